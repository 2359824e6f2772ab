"""Names that the app shows for attention variants, settings, families, references, axes, tokens and papers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import attention_core as ac
from app.jobs import cached
from app.state.session import REFERENCE
from app.words.i18n import C_, SETTING, _, enumeration, language
from app.words.isolation import isolate
from attention_core.variant import Paper

MAIN_SHARE = 0.1
"""Share of the weight on special tokens from which a token is named."""


def label(attention: ac.Attention, more: Iterable[str] = ()) -> str:
    """Return a variant's name and budget, ``Nyström · landmarks 16``.

    For softmax, the name and any changed settings.

    Args:
        attention: the variant.
        more: names of settings that are shown too.
    """
    budget, params = attention.variant.budget, attention.params
    own = params.changed() if attention.key == REFERENCE else () if budget is None else (budget.name,)
    names = dict.fromkeys((*own, *more))
    values = (f"{setting_name(name)} {setting_name(str(getattr(params, name)))}" for name in names)
    return " · ".join([_(attention.title), *values])


def sentence_name(attention: ac.Attention) -> str:
    """Return a variant's label as words of a sentence: "Local with window 16", "Top-k with k = 8"."""
    return in_words(label(attention))


def in_words(label: str) -> str:
    """Return a label as words of a sentence: "Nyström with 16 landmarks" for "Nyström · landmarks 16"."""
    title, *settings = label.split(" · ")
    settings = [f"{each[0]} = {each[2:]}" if each[1:2] == " " else each for each in settings]
    settings = [re.sub(r"^([a-z]+)s 1$", r"1 \1", each) for each in settings]
    settings = [re.sub(r"^([a-z]+s) ([2-9]|\d\d+)\b", r"\2 \1", each) for each in settings]
    return _("{title} with {setting}", title=title, setting=enumeration(settings)) if settings else title


def setting_name(name: str) -> str:
    """Return a setting's name, or the name of one of its choices, as words."""
    return _(C_(SETTING, name.replace("_", " ")))


def axis_title(title: str, *, log: bool) -> str:
    """Return the title of an axis; on a logarithmic axis, the title also says "log scale"."""
    if not log:
        return title
    if title.endswith((")", "）")):
        return _("{title}, log scale)", title=title[:-1])
    return _("{title} (log scale)", title=title)


def token_options(labels: Sequence[str]) -> dict[str, Any]:
    """Return ``options`` and ``format_func`` for a widget that selects one of these tokens."""

    def name(i: int) -> str:
        # The widget may still have an index into a longer text. Streamlit formats this index before it rejects it.
        return f"{i}  {isolate(labels[i])}" if i < len(labels) else str(i)

    return {"options": range(len(labels)), "format_func": name}


def spinner(name: str) -> AbstractContextManager[None]:
    """Return a spinner with the text that ``name`` is being computed."""
    return cached.spinner(_("Computing {name} …", name=name))


def reference_name(attention: ac.Attention) -> str:
    """Return the name of the reference against which a variant's errors are measured, in the visitor's language."""
    return _(attention.variant.reference_name)


def main_tokens(weights: Mapping[str, float]) -> str:
    """Return text that lists the tokens with at least ``MAIN_SHARE`` of the sum of ``weights``."""
    return enumeration(token for token, weight in weights.items() if weight >= MAIN_SHARE * sum(weights.values()))


def every_key(*, causal: bool) -> str:
    """Return text that names the keys to which uniform attention, the baseline, gives equal weights."""
    return _("all keys up to the query") if causal else _("all keys")


def paper_title(paper: Paper) -> str:
    """Return the title of a publication: of a Chinese article in Chinese for a Chinese visitor, else in English."""
    return paper.original if paper.original and language() == "zh" else paper.title


def paper_heading(paper: Paper) -> str:
    """Return the title of a publication as ``paper_title`` does; a translated title is followed by the original."""
    return paper_title(paper) if language() == "zh" else paper.heading


def family_title(family: str) -> str:
    """Return a family's name on screen."""
    return {
        "dense": _("Dense"),
        "sparse": _("Sparse"),
        "kernel": _("Linear (kernel)"),
        "gated": _("Gated and delta rule"),
        "low_rank": _("Low rank and pooled"),
        "cache": _("Smaller caches"),
        "mixed": _("Mixed"),
    }[family]


def family_summary(family: str) -> str:
    """Return a sentence on what a family's variants have in common."""
    return {
        "dense": _("Every query attends to every key. The variants differ in how logits are computed and normalised."),
        "sparse": _("Each query attends with softmax to some of the keys, chosen by a fixed rule or from the data."),
        "kernel": _(
            "A product of transformed queries and keys replaces the exponential: the cost is linear in the number of "
            "tokens."
        ),
        "gated": _(
            "The keys and values of all tokens are stored in one matrix of constant size, the state. The state decays "
            "or is corrected, and queries read from it."
        ),
        "low_rank": _(
            "A few vectors (landmarks, pools or projections) represent many tokens, so the attention matrix has low "
            "rank."
        ),
        "cache": _(
            "Softmax with a smaller cache of keys and values: they are shared between heads, compressed, quantised or "
            "evicted."
        ),
        "mixed": _(
            "Quadratic attention (which compares all pairs) for nearby tokens, and linear attention for distant tokens."
        ),
    }[family]


def complexity_letters(family: str) -> str:
    """Return the meaning of the letters in the time complexities of a family's variants."""
    letters = {
        "sparse": _(
            "w: window · r: stride · s: sinks · g: global tokens · ρ: random keys · b: block size · m: selected "
            "blocks; in Reformer, m: rounds, c: bucket size; in Vertical and slash, c: columns, s: diagonals, m: "
            "judging queries"
        ),
        "kernel": _("m: random features · b: bases · T: iterations"),
        "low_rank": _("m: landmarks, or Linformer's rank · s: stride · S: pools of all sizes"),
        "cache": _("w: recent tokens · s: heavy hitters · c: codes"),
        "mixed": _("w: window · c: chunk size"),
    }
    return " · ".join(filter(None, (_("Letters: n: tokens · d: head size"), letters.get(family, ""))))
