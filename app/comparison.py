"""The comparison on the Matrices page: the board, its options, and what stands below it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

import attention_core as ac
from app import compute, explain, share, takeaway
from app.compute import Matrix, View
from app.input_panel import Chosen
from app.matrix_board import BoardEvent, Panel, matrix_board
from app.text import _, literal, sentence
from app.variant_picker import label
from attention_core.limits import current


@dataclass(frozen=True, eq=False)
class Found:
    """All variants of a comparison, computed.

    Attributes:
        matrices: each variant's matrix, in the order shown.
        refused: the variants that could not be computed, with their sentence.
        words: one token per row and column shown.
        labels: the same, repeats numbered.
        difference: whether the difference from softmax is shown.
    """

    matrices: dict[ac.Attention, Matrix]
    refused: dict[ac.Attention, str]
    words: tuple[str, ...]
    labels: tuple[str, ...]
    difference: bool

    @property
    def unit(self) -> str:
        """What the numbers shown are."""
        return _("difference of weights") if self.difference else _("weight")

    @property
    def shown(self) -> dict[str, np.ndarray]:
        """The matrices on screen by the variant's key."""
        return {a.key: self.values(a) for a in self.drawn}

    @property
    def names(self) -> dict[str, str]:
        """The variants' names on screen by key."""
        return {a.key: label(a) for a in self.drawn}

    @property
    def drawn(self) -> list[ac.Attention]:
        """The variants on the board; softmax's difference from itself is left out beside others."""
        return [a for a in self.matrices if not self.difference or a.key != "softmax" or len(self.matrices) == 1]

    def values(self, attention: ac.Attention) -> np.ndarray:
        """One variant's matrix as it is shown, ``[n, n]``."""
        found = self.matrices[attention]
        return found.difference if self.difference else found.weights


def use_link() -> None:
    """What a link to this page carries beside the input and the variants."""
    share.use(
        {
            "view": share.choice("weights", "difference"),
            "scale": share.choice("shared", "panel"),
            "tone": share.choice("sqrt", "linear", "log"),
            "row": share.whole(None, 0, current().matrix_tokens - 1),
            "more": share.choice("numbers", "explain", "download"),
        }
    )


def of(chosen: Chosen) -> Found:
    """Compute every chosen variant; each is a result of its own, so a knob moves only its own."""
    state = st.session_state
    view = View(source=chosen.source, head=chosen.head, causal=state["causal"], special=state["special"])
    matrices, refused = {}, {}
    for attention in state["variants"]:
        try:
            with st.spinner(_("Computing {name} …", name=attention.title), show_time=True):
                matrices[attention] = compute.matrix(view, attention.word)
        except ac.errors.NotCausalError as error:
            refused[attention] = sentence(error)
    qkv = chosen.qkv
    words = tuple(t for t, s in zip(qkv.tokens, qkv.special, strict=True) if state["special"] or not s) or qkv.tokens
    return Found(matrices, refused, words, number_repeats(words), state["view"] == "difference")


def number_repeats(tokens: Sequence[str]) -> tuple[str, ...]:
    """Tokens that can be told apart: the third ``cat`` is ``cat (3)``."""
    seen: dict[str, int] = {}
    labels = []
    for token in tokens:
        seen[token] = seen.get(token, 0) + 1
        labels.append(f"{token} ({seen[token]})" if seen[token] > 1 else token)
    return tuple(labels)


def show_view_options() -> None:
    """How the matrices are drawn."""
    _options("view", _("Show"), {"weights": _("weights"), "difference": _("difference")}, label_visibility="collapsed")
    with st.popover(_("Display"), icon=":material/tune:", type="tertiary"):
        _options("tone", _("Colour"), {"linear": _("linear"), "sqrt": _("square root"), "log": _("log")})
        _options("scale", _("Scale"), {"shared": _("shared"), "panel": _("per panel")})
        st.toggle(
            _("Special tokens"),
            key="special",
            help=_("Tokens the tokenizer adds. Without them each row is scaled back to its former total."),
        )


def _options(key: str, title: str, names: dict[str, str], **layout: Any) -> None:  # noqa: ANN401 - streamlit's own
    st.segmented_control(
        title, list(names), key=key, format_func=names.__getitem__, required=True, width="content", **layout
    )


def show_board(found: Found) -> None:
    """All matrices on one board; a click pins a query."""
    for reason in found.refused.values():
        st.caption(f":material/block: {literal(reason)} " + _("It is left out while causal is on."))
    st.markdown(explain.overall(found.matrices))
    state = st.session_state
    panels = [
        Panel(
            key=attention.key,
            title=label(attention),
            caption=_caption(attention, found.matrices[attention]),
            values=found.values(attention),
        )
        for attention in found.drawn
    ]
    matrix_board(
        panels,
        row_labels=found.labels,
        col_labels=found.labels,
        key="matrices.board",
        scale=state["scale"],
        transform=state["tone"],
        pinned=state["row"],
        on_pin=_pin,
        diverging=found.difference,
        unit=found.unit,
    )


def _pin(event: BoardEvent) -> None:
    st.session_state["row"] = event.pinned


def _caption(attention: ac.Attention, found: Matrix) -> str:
    numbers = found.passport
    if attention.key == "softmax":
        return _("entropy {entropy:.2f} nats", entropy=numbers.entropy)
    words = _("error {error:.2f} · entropy {entropy:.2f} nats", error=numbers.relative_error, entropy=numbers.entropy)
    if numbers.negative_mass > 0.0005:
        words += " · " + _("{share:.1%} negative", share=numbers.negative_mass)
    return words


def show_more(found: Found, chosen: Chosen) -> None:
    """What stands below the board: the numbers, the mathematics, and what to take away."""
    names = {"numbers": _("Numbers"), "explain": _("Formula and code"), "download": _("Take away")}
    st.segmented_control(
        _("More"), list(names), key="more", format_func=names.__getitem__, required=True, label_visibility="collapsed"
    )
    {"numbers": _numbers, "explain": _explain, "download": _download}[st.session_state["more"]](found, chosen)


def _numbers(found: Found, chosen: Chosen) -> None:
    rows = [
        {
            _("variant"): label(attention),
            _("row sums"): f"{m.passport.row_sum_min:.3g} … {m.passport.row_sum_max:.3g}",
            _("negative mass"): m.passport.negative_mass,
            _("density"): m.passport.density,
            _("rank"): m.passport.rank,
            _("effective rank"): m.passport.effective_rank,
            _("entropy (nats)"): m.passport.entropy,
            _("matrix error"): m.passport.relative_error,
            _("output error"): m.output_error,
            _("total variation"): m.passport.total_variation,
            _("KL (nats)"): m.passport.kl,
            _("top-k overlap"): m.passport.top_k_overlap,
            _("causal"): _("yes") if attention.variant.causal_reason is None else _("no"),
            _("time"): attention.variant.complexity,
        }
        for attention, m in found.matrices.items()
    ]
    percent = st.column_config.NumberColumn(format="percent")
    three = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        rows,
        hide_index=True,
        column_config={
            **dict.fromkeys((_("negative mass"), _("density"), _("top-k overlap")), percent),
            **dict.fromkeys(
                (_("entropy (nats)"), _("matrix error"), _("output error"), _("total variation"), _("KL (nats)")), three
            ),
            _("effective rank"): st.column_config.NumberColumn(format="%.1f"),
        },
    )
    st.caption(
        _(
            "Against softmax on the same queries, keys and values. Matrix error: relative Frobenius norm. Output "
            "error: relative norm of A v. Total variation: mean over rows. KL: of the variant from softmax, mean over "
            "rows. Entropy of signed rows: of their absolute values, normalised."
        )
    )


def _explain(found: Found, chosen: Chosen) -> None:
    attentions = {a.key: a for a in st.session_state["variants"]}
    titles = {key: _(a.title) for key, a in attentions.items()}
    key = st.pills(
        _("Variant"),
        list(titles),
        key="explain.variant",
        format_func=titles.__getitem__,
        default="softmax",
        required=True,
    )
    attention = attentions.get(key or "softmax", attentions["softmax"])
    variant = attention.variant
    if attention in found.matrices:
        st.markdown(explain.in_one_sentence(attention, found.matrices[attention]))
    st.markdown(_(variant.summary))
    st.latex(variant.formula)
    cost = attention.variant.cost(chosen.qkv.n, chosen.qkv.q.shape[-1], attention.params, causal=False)
    full = ac.get("softmax").cost(chosen.qkv.n, chosen.qkv.q.shape[-1])
    st.markdown(
        _(
            "Time grows as **{complexity}**: {own:,} multiply-adds per head here, {share:.2f} times softmax's.",
            complexity=variant.complexity,
            own=cost.multiply_adds,
            share=cost.multiply_adds / full.multiply_adds,
        )
    )
    if variant.causal_reason:
        st.markdown(_("**Not causal:** {reason}", reason=_(variant.causal_reason)))
    if variant.note:
        st.markdown(_(variant.note))
    st.markdown(f"{_('Source')}: [{variant.source.title} ({variant.source.year})]({variant.source.url})")
    takeaway.snippet(attention.snippet())
    with st.expander(_("The variant's own file")):
        st.code(variant.source_code(), language="python")


def _download(found: Found, chosen: Chosen) -> None:
    st.caption(_("The board's own buttons save it as a picture (PNG, SVG). Here are the numbers, in full precision."))
    shown, qkv = found.shown, chosen.qkv
    header = (_("variant"), _("query"), _("query token"), _("key"), _("key token"), found.unit)
    with st.container(horizontal=True):
        takeaway.download(
            _("Matrices (CSV)"),
            lambda: takeaway.to_csv(header, takeaway.matrix_rows(shown, found.labels)),
            "matrices.csv", "text/csv", "matrices.csv",
        )  # fmt: skip
        takeaway.download(
            _("Matrices (NPZ)"),
            lambda: takeaway.to_npz({a.key: m.weights for a, m in found.matrices.items()}),
            "matrices.npz", "application/octet-stream", "matrices.npz",
        )  # fmt: skip
        takeaway.download(
            _("Q, K, V (NPZ)"), lambda: ac.inputs.to_npz(qkv), "qkv.npz", "application/octet-stream", "matrices.qkv"
        )
    takeaway.snippet(
        "import attention_core as ac\n\n"
        'qkv = ac.inputs.from_upload(open("qkv.npz", "rb").read(), "qkv.npz")\n'
        + "".join(
            f"{a.key} = ac.get({a.key!r}{''.join(f', {k}={getattr(a.params, k)!r}' for k in a.params.changed())})"
            f".weights(qkv.q, qkv.k, causal={st.session_state['causal'] and a.variant.causal_reason is None})\n"
            for a in st.session_state["variants"]
        )
    )
