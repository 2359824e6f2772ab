"""The Overview chapter of the Causal page: which variants can generate text, and with how much memory.

Its table also has the length from which a variant needs fewer multiply-adds than softmax.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.figures.lines.curves import Curve
from app.jobs import dispatch
from app.state.session import REFERENCE, SharedOptions
from app.ui import chart, export, input_panel
from app.ui.input_forms import forms
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.ui.scope import Scope
from app.words.i18n import N_, _, _n, escape_markdown, paragraph
from app.words.labels import label
from attention_core.experiments import generation
from attention_core.experiments.generation import LENGTHS, MemoryRow
from attention_core.formatting import memory, number
from pages.causal.shared import KIB, show_lines, size_in_words, with_settings

HEIGHT = 430
TICKS = {10.0**i: f"{10**i} KiB" for i in range(3)} | {2.0**10 * 10**i: f"{10**i} MiB" for i in range(3)}
"""Texts of the ticks of the vertical axis, by KiB."""
ENDS = tuple(2**i for i in range(2, 15))
"""Numbers of tokens at which the chart has points."""
KINDS = {"state": N_("a state of fixed size"), "some": N_("a few keys and values"), "all": N_("all keys and values")}
"""Kinds of memory of variants, in the order of the table."""
NEAR = 1.2
"""Largest ratio of two neighbouring memories of constant size at which one band in the chart is for both."""
EQUAL = 1.02
"""Largest ratio of the sizes of a group that the chart cannot distinguish, so that the group has no band."""
GROWING, LESS, CONSTANT = 0, 10, 2
"""Colours of softmax's memory, of growing memories below it, and of constant memories."""


def show(chosen: ChosenInput, headline: DeltaGenerator) -> None:
    """Draw the result, the chart of memory, the table of all variants, and why some variants cannot generate."""
    attentions = with_settings(ac.all_variants())
    refused = [attention for attention in attentions if attention.variant.causal_reason]
    able = [attention for attention in attentions if attention not in refused]
    heads, d, d_v = chosen.qkv.heads, chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    tasks = generation.tasks([attention.word for attention in able], heads=heads, d=d, d_v=d_v)
    rows = [row for task in tasks for row in dispatch.rows("generation", task, in_process=True)]
    selected = SharedOptions.variants.value
    refused.sort(key=lambda attention: attention not in selected)
    # A model that the text goes through, but that also sees later tokens, cannot generate text itself.
    reader = forms()[chosen.source.key].name() if chosen.source.written and not chosen.qkv.causal else ""
    headline.markdown(sentence(rows, [label(each) for each in refused], reader), help=method(heads, d))
    _chart(rows, heads)
    reasons = "\n".join(
        f"- **{escape_markdown(label(each))}**: {_(each.variant.causal_reason or '')}" for each in refused
    )
    title = _n(
        "Why {n} variant cannot generate text: its earlier outputs depend on later tokens",
        "Why {n} variants cannot generate text: their earlier outputs depend on later tokens",
        n=len(refused),
    )
    lazy_expander(title, partial(st.markdown, reasons), key="causal.refused")
    st.markdown("## " + _("All variants"), anchors=False)
    st.dataframe(
        table(rows, refused),
        hide_index=True,
        height=430,
        column_config={
            _("Memory"): st.column_config.Column(help=_("Constant memory, and the memory that each token adds.")),
            _("Fewer multiply-adds than softmax"): st.column_config.Column(
                help=_(
                    "Shortest text for which the variant needs at least 5% fewer multiply-adds than "
                    "softmax. Only lengths that are powers of two are tried."
                )
            ),
        },
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        export.download(_("Numbers (CSV)"), lambda: export.csv_of(rows), "causal-variants.csv")
        chart.choose_format()


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the table: all heads together, and the variants that can generate."""
    words = tuple(a.word for a in with_settings(ac.all_variants()) if not a.variant.causal_reason)
    return replace(input_panel.scope(chosen), head=None, aggregation="each", variants=words)


def sentence(rows: Sequence[MemoryRow], refused: Sequence[str], reader: str = "") -> str:
    """Return how many variants can generate text, which cannot, and how large the memories are.

    Args:
        rows: the variants that can generate text.
        refused: names of the variants that cannot.
        reader: name of the input's model if it cannot generate text.
    """
    fixed, more = by_memory(rows), len(refused) - 1
    growing, typical = len(rows) - len(fixed), typical_memory(rows)
    return paragraph(
        _("**{able} of {n} variants can generate text token by token.**", able=len(rows), n=len(rows) + len(refused)),
        _(
            "The other {n}, such as {name}, cannot: their earlier outputs depend on later tokens.",
            n=len(refused),
            name=escape_markdown(refused[0]),
        )
        if more > 0
        else "",
        _n(
            "{n} of those that can generate text stores every key and value, so its memory grows with the text.",
            "{n} of those that can generate text store every key and value, so their memory grows with the text.",
            n=growing,
        )
        if growing
        else "",
        _n(
            "{n} merges or discards earlier tokens, so its memory stays constant.",
            "{n} merge or discard earlier tokens, so their memory stays constant.",
            n=len(fixed),
        )
        if fixed
        else "",
        small_memories(fixed, typical) if typical else "",
        _("{model} cannot generate text. It is used here only for the number and size of its heads.", model=reader)
        if reader
        else "",
    )


def small_memories(fixed: Sequence[MemoryRow], typical: MemoryRow) -> str:
    """Return how many of the constant memories have at most the typical size, and when softmax needs more."""
    count = sum(row.state_bytes <= typical.state_bytes for row in fixed)
    values = {"every": len(fixed), "memory": memory(typical.state_bytes)}
    return paragraph(
        _("The constant memory is {memory}.", **values)
        if len(fixed) == 1
        else _n(
            "{n} of these {every} variants needs at most {memory}.",
            "{n} of these {every} variants need at most {memory}.",
            n=count,
            **values,
        ),
        ""
        if typical.outgrown is None
        else _(
            "From {most:,} tokens on, softmax's key-value cache is larger than {memory}.",
            most=typical.outgrown,
            **values,
        ),
    )


def method(heads: int, d: int) -> str:
    """Return what the chart measures."""
    return _(
        "Memory of one layer with {heads} heads of size {d} (float32). A state is a matrix that merges all tokens. "
        "Point at a line to see the names of its variants.",
        heads=heads,
        d=d,
    )


def by_memory(rows: Sequence[MemoryRow]) -> list[MemoryRow]:
    """Return the variants with a memory of constant size, the smallest first."""
    return sorted((row for row in rows if not row.grown_bytes), key=_bytes)


def typical_memory(rows: Sequence[MemoryRow]) -> MemoryRow | None:
    """Return the variant with the median memory of constant size, the smaller of two; None if no memory is constant."""
    fixed = by_memory(rows)
    return fixed[(len(fixed) - 1) // 2] if fixed else None


def kind(row: MemoryRow) -> str:
    """Return what a variant remembers: one of ``KINDS``."""
    variant = ac.from_word(row.variant).variant
    if row.grown_bytes:
        return "all"
    return "state" if variant.decoder is not None and variant.family != "cache" else "some"


def neighbours(rows: Sequence[MemoryRow]) -> list[list[MemoryRow]]:
    """Return the variants with a memory of constant size, in groups of nearly equal sizes, the smallest first."""
    found: list[list[MemoryRow]] = []
    for row in by_memory(rows):
        if found and row.state_bytes <= NEAR * found[-1][-1].state_bytes:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def words_at_mark(typical: MemoryRow) -> str:
    """Return what the chart's mark at the length from which softmax needs more than the typical memory means."""
    return _("softmax needs over {memory}", memory=memory(typical.state_bytes))


def _short(names: Sequence[str]) -> str:
    """Return the first name and the number of the others."""
    first, *others = names
    return _n("{name} and {n} other", "{name} and {n} others", n=len(others), name=first) if others else first


def constant_line(own: Sequence[MemoryRow]) -> Curve:
    """Return the line of a group of ``neighbours`` at their median, with a band from the smallest to the largest."""
    low, middle, high = (each.state_bytes for each in (own[0], own[(len(own) - 1) // 2], own[-1]))
    is_band, (unit, size) = high > EQUAL * low, ("KiB", KIB) if high < KIB**2 else ("MiB", KIB**2)
    sizes = {"low": number(low / size), "high": number(high / size), "unit": unit}
    titles = [_(ac.from_word(row.variant).title) for row in reversed(own)]
    note = "<br>".join(f"{label(ac.from_word(row.variant))}: {memory(row.state_bytes)}" for row in own)
    points = len(ENDS)
    return Curve(
        _("{n} variants: {low} to {high} {unit}", n=len(own), **sizes) if is_band else _short(titles),
        ENDS,
        [middle / KIB] * points,
        low=[low / KIB] * points if is_band else None,
        high=[high / KIB] * points if is_band else None,
        colour=CONSTANT,
        marks=False,
        notes=[note] * points,
    )


def growing_lines(rows: Sequence[MemoryRow]) -> list[Curve]:
    """Return a line for each growing memory; the largest has most of the variants."""
    own = sorted((row for row in rows if row.grown_bytes), key=_bytes)
    lines = []
    for size, same in groupby(own, key=_bytes):
        names = [label(ac.from_word(row.variant)) for row in same]
        held, is_last = [size[1] + n * size[0] for n in ENDS], size == _bytes(own[-1])
        lines.append(
            Curve(
                _short(names),
                ENDS,
                [each / KIB for each in held],
                colour=GROWING if is_last else LESS,
                marks=False,
                notes=["<br>".join([memory(each), *names]) for each in held],
            )
        )
    return lines


def _chart(rows: Sequence[MemoryRow], heads: int) -> None:
    typical = typical_memory(rows)
    show_lines(
        [*map(constant_line, neighbours(rows)), *growing_lines(rows)],
        key="causal.memory",
        name="causal-memory",
        alt=_("Lines: memory of the variants against the number of tokens"),
        x_title=_("tokens so far"),
        y_title=_n("memory of one layer, {n} head", "memory of one layer, all {n} heads", n=heads),
        log_x=True,
        log_y=True,
        bands=True,
        mark=(typical.outgrown, words_at_mark(typical)) if typical and typical.outgrown else None,
        x_ticks=ENDS[::2],
        y_ticks=TICKS,
        height=HEIGHT,
    )


def _bytes(row: MemoryRow) -> tuple[int, int]:
    return row.grown_bytes, row.state_bytes


def table(rows: Sequence[MemoryRow], refused: Sequence[ac.Attention]) -> list[dict[str, Any]]:
    """Return a line for softmax, and for each variant by what it remembers; the last cannot generate text."""
    selected = [attention.key for attention in SharedOptions.variants.value]

    def order(row: MemoryRow) -> tuple[int, ...]:
        key = ac.from_word(row.variant).key
        place = selected.index(key) if key in selected else len(selected)
        return (row.variant != REFERENCE, list(KINDS).index(kind(row)), place, *_bytes(row))

    lines = [
        (ac.from_word(row.variant), _(KINDS[kind(row)]), in_words(row), cheaper(row)) for row in sorted(rows, key=order)
    ]
    lines += [(attention, _("cannot generate text"), "—", "—") for attention in refused]
    titles = (_("Remembers"), _("Memory"), _("Fewer multiply-adds than softmax"))
    return [{_("Variant"): label(attention), **dict(zip(titles, cells, strict=True))} for attention, *cells in lines]


def in_words(row: MemoryRow) -> str:
    """Return the constant part of a memory and the part per token."""
    return size_in_words(row) if row.grown_bytes else _("{memory}, constant", memory=size_in_words(row))


def cheaper(row: MemoryRow) -> str:
    """Return the length from which a variant takes fewer multiply-adds than softmax, in words."""
    if row.variant == REFERENCE:
        return _("reference")
    if row.cheaper is None:
        return _("never")
    return _("at any length") if row.cheaper == LENGTHS[0] else _("from {n:,} tokens", n=row.cheaper)
