"""The patterns on the Masks page: who may look at whom in each chosen variant, and what allows it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

import attention_core as ac
from app import compute, share
from app.comparison import number_repeats
from app.compute import View
from app.figures.categories import OTHER, PRIMITIVES
from app.input_panel import Chosen
from app.matrix_board import BoardEvent, Category, Panel, matrix_board
from app.text import _, literal, sentence
from app.variant_picker import REFERENCE, label
from attention_core.experiments.reach import Pattern, has_pattern
from attention_core.limits import current


@dataclass(frozen=True, eq=False)
class Found:
    """The patterns of all chosen variants.

    Attributes:
        view: what they share.
        patterns: of every variant that could be computed, in the order chosen.
        refused: the variants that could not be, with their sentence.
        labels: one per token, repeats numbered.
    """

    view: View
    patterns: dict[ac.Attention, Pattern]
    refused: dict[ac.Attention, str]
    labels: tuple[str, ...]

    @property
    def drawn(self) -> dict[ac.Attention, Pattern]:
        """Those that keep some pairs from looking."""
        return {a: p for a, p in self.patterns.items() if has_pattern(a.variant)}


def fields() -> dict[str, share.Field]:
    """What a link to this page carries beside the input and the variants."""
    return {"front": share.whole(None, 0, current().matrix_tokens - 1)}


def show_add_all() -> None:
    """A button that compares every variant with a pattern."""
    st.button(
        _("All patterns"),
        icon=":material/library_add:",
        type="tertiary",
        on_click=_add_all,
        help=_("Compare every variant that keeps some pairs from looking at each other."),
    )


def _add_all() -> None:
    chosen = {a.key: a for a in st.session_state["variants"]}
    wanted = [v.key for v in ac.all_variants() if v.key == REFERENCE or has_pattern(v)]
    st.session_state["variants"] = tuple(chosen.get(key) or ac.get(key) for key in wanted)[
        : current().compared_variants
    ]


def of(chosen: Chosen) -> Found:
    """Find the pattern of every chosen variant; each is a result of its own, so a knob moves only its own."""
    state = st.session_state
    view = View(source=chosen.source, head=chosen.head, causal=state["causal"], special=True)
    share.fit(front=range(chosen.qkv.n))
    patterns, refused = {}, {}
    for attention in state["variants"]:
        try:
            with st.spinner(_("Computing {name} …", name=attention.title), show_time=True):
                patterns[attention] = compute.pattern(view, attention.word)
        except ac.errors.NotCausalError as error:
            refused[attention] = sentence(error)
    return Found(view, patterns, refused, number_repeats(chosen.qkv.tokens))


def show_board(found: Found) -> None:
    """All patterns on one board, coloured by what allows each pair; a click takes the token whose reach is followed."""
    for reason in found.refused.values():
        st.caption(f":material/block: {literal(reason)} " + _("It is left out while causal is on."))
    if not found.drawn:
        st.info(
            _("None of these variants keeps any pair from looking. Press “All patterns”, or add a sparse variant."),
            icon=":material/grid_on:",
        )
        return
    st.markdown(_seen(found))
    panels, kinds = [], Kinds(pattern.primitives for pattern in found.drawn.values())
    for attention, pattern in found.drawn.items():
        panels.append(
            Panel(
                key=attention.key,
                title=label(attention),
                caption=_caption(pattern, every_head=found.view.head is None),
                values=hide_future(kinds.codes(pattern.primitives), causal=found.view.causal),
            )
        )
    matrix_board(
        panels,
        row_labels=found.labels,
        col_labels=found.labels,
        key="masks.board",
        categories=kinds.categories,
        none=_("may not look"),
        unit=_("Allowed by"),
        pinned=st.session_state["front"],
        on_pin=take_token,
        file_name="masks",
    )
    open_ = [label(a) for a in found.patterns if not has_pattern(a.variant)]
    if open_:
        st.caption(_("Every pair may look, so nothing to draw: {names}.", names=literal(", ".join(open_))))


def take_token(event: BoardEvent) -> None:
    """The row pinned on a board is the token whose reach is followed."""
    st.session_state["front"] = event.pinned


class Kinds:
    """The kinds of pairs on one board: each primitive, and each mix of several, which the legend leaves out.

    Args:
        boards: what allows the pairs of each panel, ``bool [n, n]`` by name.
    """

    def __init__(self, boards: Iterable[Mapping[str, np.ndarray]]) -> None:
        known = {name for parts in boards for name, part in parts.items() if part.any()}
        order = [*PRIMITIVES, *sorted(known - PRIMITIVES.keys())]
        self._names: list[tuple[str, ...]] = [(name,) for name in order if name in known]

    def codes(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Each pair's number on the board, ``float32 [n, n]``; 0 where nothing allows it.

        Args:
            parts: what allows the pairs, ``bool [n, n]`` each; a pair has the colour of the first.
        """
        bits = sum(part.astype(np.int64) << place for place, part in enumerate(parts.values()))
        codes = np.zeros(np.shape(bits), np.float32)
        for mix in np.unique(bits).tolist():
            names = tuple(name for place, name in enumerate(parts) if mix >> place & 1)
            if not names:
                continue
            if names not in self._names:
                self._names.append(names)
            codes[bits == mix] = self._names.index(names) + 1
        return codes

    @property
    def categories(self) -> list[Category]:
        """What the numbers stand for; a mix has the colour of its first primitive."""
        return [
            Category(
                " + ".join(primitive_name(name) for name in names),
                *PRIMITIVES.get(names[0], OTHER),
                listed=len(names) == 1,
            )
            for names in self._names
        ]


def primitive_name(name: str) -> str:
    """A primitive in the visitor's language."""
    return {
        "window": _("window"),
        "stride": _("stride"),
        "global": _("global token"),
        "random": _("random key"),
        "sink": _("sink"),
        "block": _("block"),
        "summary": _("summary column"),
        "kept": _("largest scores"),
        "bucket": _("same bucket"),
        "chunk": _("same or previous chunk"),
        "itself": _("itself, seeing no other"),
        "survivor": _("surviving query"),
        "round": _("another round"),
        "missed": _("same bucket, missed"),
        "pattern": _("the pattern"),
    }.get(name, name)


def hide_future(codes: np.ndarray, *, causal: bool) -> np.ndarray:
    """The same with the pairs that causal hides masked."""
    if causal:
        codes[np.triu_indices(len(codes), 1)] = np.nan
    return codes


def _caption(pattern: Pattern, *, every_head: bool) -> str:
    share_ = pattern.pairs / pattern.possible
    if every_head and pattern.allowed.sum() > round(pattern.pairs):
        return _("{share:.1%} per head, {all:.1%} in any", share=share_, all=pattern.allowed.sum() / pattern.possible)
    return _("{share:.1%} of all · {pairs:,.0f}", share=share_, pairs=pattern.pairs)


def _seen(found: Found) -> str:
    if len(found.labels) == 1:
        return _("A single token sees itself. Give more of them to see patterns.")
    sparsest = min(found.drawn, key=lambda a: found.drawn[a].pairs)
    pattern = found.drawn[sparsest]
    alone = _("**{name}** lets {share:.1%} of {possible:,} pairs look.")
    fewest = _("**{name}** lets the fewest of {possible:,} pairs look, {share:.1%}.")
    words = (alone if len(found.drawn) == 1 else fewest).format(
        possible=pattern.possible, name=label(sparsest), share=pattern.pairs / pattern.possible
    )
    deep = {a: p.diameter for a, p in found.drawn.items() if p.diameter is not None}
    if deep:
        least = min(deep.values())
        soonest = ", ".join(label(a) for a, depth in deep.items() if depth == least)
        words += " " + _("Every pair is connected at depth {depth} by **{names}**.", depth=least, names=soonest)
    if never := ", ".join(label(a) for a in found.drawn if a not in deep):
        words += " " + _("Never, however deep: **{names}**.", names=never)
    return words
