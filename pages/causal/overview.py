"""The Overview: which variants can generate text, the memory that they need, and when they are cheaper than softmax."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

import attention_core as ac
from app.jobs import dispatch
from app.state.session import REFERENCE, SharedOptions
from app.ui import export, input_panel
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import _, _n, paragraph
from app.words.labels import label
from attention_core.experiments import generation
from attention_core.experiments.generation import LENGTHS, MemoryRow
from attention_core.formatting import memory
from pages.causal.shared import with_settings


def show(chosen: ChosenInput) -> None:
    """Draw the sentence and the table of all variants."""
    attentions = with_settings(ac.all_variants())
    able = [attention for attention in attentions if not attention.variant.causal_reason]
    heads, d, d_v = chosen.qkv.heads, chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    tasks = generation.tasks([attention.word for attention in able], heads=heads, d=d, d_v=d_v)
    rows = [row for task in tasks for row in dispatch.rows("generation", task, in_process=True)]
    st.markdown(sentence(rows, len(attentions) - len(able)))
    column = st.column_config
    st.dataframe(
        table(attentions, rows),
        hide_index=True,
        height=430,
        column_config={
            _("Variant"): column.TextColumn(pinned=True),
            _("Generates"): column.TextColumn(width=90),
            _("Memory"): column.TextColumn(
                width=165,
                help=_("Size of the state, or of the cached keys and values, for all heads of one layer in float32."),
            ),
            _("Fewer multiply-adds from"): column.TextColumn(
                width=185,
                help=_(
                    "Shortest text for which the variant needs at least 5% fewer multiply-adds than "
                    "softmax. Only lengths that are powers of two are tried."
                ),
            ),
            _("Obstacle"): column.TextColumn(width=540),
        },
    )
    st.caption(
        _(
            "Selected variants come first. Memory and multiply-adds are counted for {heads} heads of size {d}. "
            "Times are in the chapter “Generation”.",
            heads=heads,
            d=d,
        )
    )
    export.download(_("Numbers (CSV)"), lambda: export.csv_of(rows), "causal-variants.csv")


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the table: all heads together, and the variants that can generate."""
    words = tuple(a.word for a in with_settings(ac.all_variants()) if not a.variant.causal_reason)
    return replace(input_panel.scope(chosen), head=None, aggregation="each", variants=words)


def sentence(rows: Sequence[MemoryRow], others: int) -> str:
    """Return how many variants can generate, and how many of them keep how much.

    Args:
        rows: the variants that can generate.
        others: the number of variants that cannot.
    """
    constant = sum(not row.grown_bytes for row in rows)
    return paragraph(
        _("**{able} of {n} variants can generate text.**", able=len(rows), n=len(rows) + others),
        _n(
            "{n} of these variants needs constant memory. The other {rest} need a cache that grows with the text.",
            "{n} of these variants need constant memory. The other {rest} need a cache that grows with the text.",
            n=constant,
            rest=len(rows) - constant,
        ),
        _n(
            "{n} variant cannot generate text, because its earlier outputs depend on later tokens.",
            "{n} variants cannot generate text, because their earlier outputs depend on later tokens.",
            n=others,
        ),
    )


def table(attentions: Sequence[ac.Attention], rows: Sequence[MemoryRow]) -> list[dict[str, object]]:
    """Return one row per variant: the selected ones in their order, then the others from the least to the most memory.

    Variants that cannot generate come last.
    """
    found = {row.variant: row for row in rows}
    selected = [attention.key for attention in SharedOptions.variants.value]

    def order(attention: ac.Attention) -> tuple[float, ...]:
        row, key = found.get(attention.word), attention.key
        place = selected.index(key) if key in selected else len(selected)
        return (place, row is None, row.grown_bytes if row else 0, row.state_bytes if row else 0)

    return [_cells(attention, found.get(attention.word)) for attention in sorted(attentions, key=order)]


def _cells(attention: ac.Attention, row: MemoryRow | None) -> dict[str, object]:
    return {
        _("Variant"): label(attention),
        _("Generates"): _("yes") if row else _("no"),
        _("Memory"): in_words(row) if row else "",
        _("Fewer multiply-adds from"): cheaper(attention, row) if row else "",
        _("Obstacle"): _(attention.variant.causal_reason or ""),
    }


def in_words(row: MemoryRow) -> str:
    """Return the constant part of a memory and the part per token."""
    if not row.grown_bytes:
        return _("{memory}, constant", memory=memory(row.state_bytes))
    each = _("{memory} per token", memory=memory(row.grown_bytes))
    return f"{memory(row.state_bytes)} + {each}" if row.state_bytes else each


def cheaper(attention: ac.Attention, row: MemoryRow) -> str:
    """Return the length from which a variant takes fewer multiply-adds than softmax, in words."""
    if attention.key == REFERENCE:
        return _("reference")
    if row.cheaper is None:
        return _("never")
    return _("any length") if row.cheaper == LENGTHS[0] else _("{n:,} tokens", n=row.cheaper)
