"""The family tree on the Home page: which variant is a special case of which other, and at which settings."""

import html

import streamlit as st

from app.jobs import cached
from app.state.controls import Options
from app.state.session import REFERENCE
from app.ui.matrix_picture import SAMPLE
from app.words.i18n import _, enumeration, paragraph
from app.words.labels import readable
from attention_core import family_tree
from attention_core.family_tree import Branch, Edge
from attention_core.formatting import format_readable, number
from attention_core.variant import TOKENS, Value
from pages.home.gallery import way

N = SAMPLE.spec.n


def show() -> None:
    """Draw every tree, the largest first."""
    text = paragraph(
        _(
            "With the settings shown, each variant computes the same attention matrix as its parent, the variant one "
            "level above it."
        ),
        _(
            "Each number is the largest difference between a weight of the variant and the same weight of its "
            "parent, on {n} random tokens.",
            n=N,
        ),
    )
    roots = "".join(root(tree) for tree in family_tree.trees())
    with st.container(key="family-tree"):
        st.markdown(f":small[{text}]\n\n{roots}", unsafe_allow_html=True)


def root(tree: Branch) -> str:
    """Return a tree as nested HTML lists."""
    return f"<p><strong>{html.escape(_(tree.variant.title))}</strong></p>{_branches(tree)}"


def _branches(of: Branch) -> str:
    lines = (
        f"<li><span>{line(each.edge)}{''.join(map(also, each.also))}</span>{_branches(each)}</li>"
        for each in of.branches
        if each.edge is not None
    )
    return f"<ul>{''.join(lines)}</ul>" if of.branches else ""


def line(edge: Edge) -> str:
    """Return a variant, the settings that make it its parent, their difference, and a link to both, as HTML."""
    name = f"<strong>{html.escape(_(edge.general.title))}</strong>"
    return f"{name} <small>{html.escape(conditions(edge))} · {html.escape(distance(apart(edge)))}</small> {_both(edge)}"


def also(edge: Edge) -> str:
    """Return another variant that this one equals at other settings, as HTML."""
    text = _("also equals {name} if {conditions}", name=_(edge.special.title), conditions=conditions(edge))
    return f"<br><small>{html.escape(text)} · {html.escape(distance(apart(edge)))}</small> {_both(edge)}"


def conditions(edge: Edge) -> str:
    """Return the settings at which a variant equals its special case, such as ``window = n, causal``."""
    own, other = edge.case.settings, edge.case.other
    both = [name for name in own if name in other and own[name] == other[name]]
    parts = [_("{setting} = {value} in both", setting=readable(name), value=_text(own[name])) for name in both]
    parts += [_("{setting} = {value}", setting=readable(n), value=_text(v)) for n, v in own.items() if n not in both]
    parts += [
        _("{setting} = {value} in the parent", setting=readable(n), value=_text(v))
        for n, v in other.items()
        if n not in both
    ]
    parts += [_("same {setting}", setting=readable(name)) for name in edge.case.shared]
    if edge.case.causal is not None:
        parts.append(_("causal") if edge.case.causal else _("not causal"))
    return enumeration(parts)


def _text(value: Value) -> str:
    if value == TOKENS:
        return "n"
    return readable(str(value)) if isinstance(value, str | bool) else format_readable(value, None)


def distance(apart: float) -> str:
    """Return the difference of two matrices in words."""
    return _("identical") if apart == 0 else _("differs by {apart}", apart=number(apart))


def apart(edge: Edge) -> float:
    """Return the largest difference of the two variants' matrices on the gallery's tokens."""
    return cached.special_case_distance(SAMPLE, *edge.both(N), causal=_causal(edge))


def _causal(edge: Edge) -> bool:
    return not edge.holds(causal=False)


def _both(edge: Edge) -> str:
    """Return a link to the Matrices page that shows both variants side by side on the gallery's tokens."""
    changes = {"input": SAMPLE.key, "n": N, "heads": SAMPLE.spec.heads, "causal": _causal(edge)}
    fields = Options.shared()
    query = {name: fields[name].write(value) for name, value in changes.items() if value != fields[name].default}
    general, special = edge.both(N)
    shown = list(dict.fromkeys((REFERENCE, special.word, general.word)))
    return way("matrices", {**query, "variants": shown}, f"→ {_('Compare both')}")
