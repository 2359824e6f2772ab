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
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.ui.scope import Scope
from app.words.i18n import N_, _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import label
from attention_core.experiments import generation
from attention_core.experiments.generation import LENGTHS, MemoryRow
from attention_core.formatting import memory
from pages.causal.shared import KIB, show_lines, size_in_words, with_settings

HEIGHT = 430
ENDS = tuple(2**i for i in range(2, 15))
"""Numbers of tokens at which the chart has points."""
KINDS = {"state": N_("a state of fixed size"), "some": N_("a few keys and values"), "all": N_("all keys and values")}
"""Kinds of memory of variants, in the order of the table."""
NAMED = 2
"""Number of variants named at neighbouring lines of the chart, those with the largest memory first."""
NEAR = 1.5
"""Largest ratio of two neighbouring memories of constant size at which one name in the chart is for both lines."""
COLOURS = {"all": 0, "some": 1, "state": 2}
"""Colours of the kinds in the chart."""


def show(chosen: ChosenInput, headline: DeltaGenerator) -> None:
    """Draw the result, the chart of memory, the table of all variants, and why some variants cannot generate."""
    attentions = with_settings(ac.all_variants())
    refused = [attention for attention in attentions if attention.variant.causal_reason]
    able = [attention for attention in attentions if attention not in refused]
    heads, d, d_v = chosen.qkv.heads, chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    tasks = generation.tasks([attention.word for attention in able], heads=heads, d=d, d_v=d_v)
    rows = [row for task in tasks for row in dispatch.rows("generation", task, in_process=True)]
    headline.markdown(sentence(rows, len(attentions)))
    _chart(rows)
    st.caption(note(rows, heads, d))
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
    reasons = "\n".join(
        f"- **{escape_markdown(label(each))}**: {_(each.variant.causal_reason or '')}" for each in refused
    )
    title = _n(
        "Why {n} variant cannot generate text: its earlier outputs depend on later tokens",
        "Why {n} variants cannot generate text: their earlier outputs depend on later tokens",
        n=len(refused),
    )
    lazy_expander(title, partial(st.markdown, reasons), key="causal.refused")


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the table: all heads together, and the variants that can generate."""
    words = tuple(a.word for a in with_settings(ac.all_variants()) if not a.variant.causal_reason)
    return replace(input_panel.scope(chosen), head=None, aggregation="each", variants=words)


def sentence(rows: Sequence[MemoryRow], n: int) -> str:
    """Return how many of all ``n`` variants can generate text, and how large their memories are."""
    fixed = by_memory(rows)
    growing = len(rows) - len(fixed)
    return paragraph(
        _(
            "**{able} of {n} variants can generate text token by token**, because their outputs do not depend on later "
            "tokens.",
            able=len(rows),
            n=n,
        ),
        _n(
            "{n} of them stores every key and value, so its memory grows with the text.",
            "{n} of them store every key and value, so their memory grows with the text.",
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
        _(
            "The typical (median) constant memory is {memory}. From **{most:,}** tokens on, softmax's key-value cache "
            "is larger.",
            memory=memory(typical.state_bytes),
            most=typical.outgrown,
        )
        if (typical := typical_memory(rows))
        else "",
    )


def note(rows: Sequence[MemoryRow], heads: int, d: int) -> str:
    """Return what the chart shows, and which variant has the largest memory of constant size."""
    text = _(
        "Memory of one layer with {heads} heads of size {d} (float32). A state is a matrix that all tokens are merged "
        "into. Point at a line to see its variants.",
        heads=heads,
        d=d,
    )
    if not (fixed := by_memory(rows)):
        return text
    return paragraph(
        text,
        _(
            "The largest constant memory is {memory} ({name}). Softmax needs more from {most:,} tokens on.",
            memory=memory(fixed[-1].state_bytes),
            name=_(ac.from_word(fixed[-1].variant).title),
            most=fixed[-1].outgrown,
        ),
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


def names_at_lines(rows: Sequence[MemoryRow]) -> dict[int, str]:
    """Return names of variants with a memory of constant size, by the smallest size in bytes of neighbouring ones."""
    found: list[list[MemoryRow]] = []
    for row in by_memory(rows):
        if found and row.state_bytes <= NEAR * found[-1][-1].state_bytes:
            found[-1].append(row)
        else:
            found.append([row])
    named = {}
    for own in found:
        first = enumeration(_(ac.from_word(row.variant).title) for row in own[: -NAMED - 1 : -1])
        more = len(own) - NAMED
        named[own[0].state_bytes] = (
            _n("{names} and {n} other", "{names} and {n} others", n=more, names=first) if more > 0 else first
        )
    return named


def _chart(rows: Sequence[MemoryRow]) -> None:
    lines, at_lines = [], names_at_lines(rows)
    for name, title in KINDS.items():
        own = sorted((row for row in rows if kind(row) == name), key=_bytes)
        for size, same in groupby(own, key=_bytes):
            names = [label(ac.from_word(row.variant)) for row in same]
            is_last, held = size == _bytes(own[-1]), [size[1] + n * size[0] for n in ENDS]
            lines.append(
                Curve(
                    _n("{what}: {n} variant", "{what}: {n} variants", n=len(own), what=_(title))
                    if is_last
                    else _("of these, {names}", names=enumeration(names))
                    if size[0] > 0
                    else enumeration(names),
                    ENDS,
                    [each / KIB for each in held],
                    colour=COLOURS[name],
                    marks=False,
                    group=name,
                    name_at_end=is_last or size[0] > 0,
                    notes=["<br>".join([memory(each), *names]) for each in held],
                    texts=[*[""] * (len(ENDS) - 1), "" if size[0] else at_lines.pop(size[1], "")],
                )
            )
    show_lines(
        lines,
        key="causal.memory",
        name="causal-memory",
        alt=_("Lines: memory against the number of tokens, coloured by what the variants remember"),
        x_title=_("tokens so far"),
        y_title=_("memory (KiB)"),
        log_x=True,
        log_y=True,
        mark=(typical.outgrown, _("typical: {n:,} tokens", n=typical.outgrown))
        if (typical := typical_memory(rows)) and typical.outgrown
        else None,
        x_ticks=ENDS[::2],
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
