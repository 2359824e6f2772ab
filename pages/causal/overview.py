"""The Overview chapter of the Causal page: which variants can generate text, and with how much memory.

It also shows the length from which a variant is cheaper than softmax.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

import attention_core as ac
from app.jobs import dispatch
from app.state.session import REFERENCE, SharedOptions
from app.ui import export, input_panel
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import _, _n, escape_markdown, paragraph
from app.words.labels import label
from attention_core.experiments import generation
from attention_core.experiments.generation import LENGTHS, MemoryRow
from pages.causal.shared import size_in_words, with_settings

TOKENS = 1024
"""Length of the text whose memory the bars compare."""
KIB = 2**10


def show(chosen: ChosenInput) -> None:
    """Draw the sentence, the table of the variants that can generate, and the reasons why others cannot."""
    attentions = with_settings(ac.all_variants())
    refused = [attention for attention in attentions if attention.variant.causal_reason]
    able = [attention for attention in attentions if attention not in refused]
    heads, d, d_v = chosen.qkv.heads, chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    tasks = generation.tasks([attention.word for attention in able], heads=heads, d=d, d_v=d_v)
    rows = [row for task in tasks for row in dispatch.rows("generation", task, in_process=True)]
    st.markdown(sentence(rows, len(refused)))
    column, bar = st.column_config, _("Memory at {n:,} tokens", n=TOKENS)
    found = table(rows)
    st.dataframe(
        found,
        hide_index=True,
        height=430,
        column_config={
            _("Variant"): column.TextColumn(width=165),
            bar: column.ProgressColumn(
                width=190,
                format="%.0f KiB",
                min_value=0,
                max_value=max(line[bar] for line in found),
                help=_("Size of the state, or of the cached keys and values, for all heads of one layer in float32."),
            ),
            _("Memory"): column.TextColumn(width=220, help=_("Constant memory, and the memory that each token adds.")),
            _("Cheaper than softmax from"): column.TextColumn(
                width=200,
                help=_(
                    "Shortest text for which the variant needs at least 5% fewer multiply-adds than "
                    "softmax. Only lengths that are powers of two are tried."
                ),
            ),
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
    st.markdown("## " + _("Variants that cannot generate"), anchors=False)
    st.markdown(
        "\n".join(f"- **{escape_markdown(label(each))}**: {_(each.variant.causal_reason or '')}" for each in refused)
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


def table(rows: Sequence[MemoryRow]) -> list[dict[str, Any]]:
    """Return a line per variant: the selected variants in their order, then the others, by increasing memory."""
    selected = [attention.key for attention in SharedOptions.variants.value]

    def order(row: MemoryRow) -> tuple[int, ...]:
        key = ac.from_word(row.variant).key
        place = selected.index(key) if key in selected else len(selected)
        return (place, row.grown_bytes, row.state_bytes)

    return [
        {
            _("Variant"): label(attention := ac.from_word(row.variant)),
            _("Memory at {n:,} tokens", n=TOKENS): (row.state_bytes + TOKENS * row.grown_bytes) / KIB,
            _("Memory"): in_words(row),
            _("Cheaper than softmax from"): cheaper(attention, row),
        }
        for row in sorted(rows, key=order)
    ]


def in_words(row: MemoryRow) -> str:
    """Return the constant part of a memory and the part per token."""
    return size_in_words(row) if row.grown_bytes else _("{memory}, constant", memory=size_in_words(row))


def cheaper(attention: ac.Attention, row: MemoryRow) -> str:
    """Return the length from which a variant takes fewer multiply-adds than softmax, in words."""
    if attention.key == REFERENCE:
        return _("reference")
    if row.cheaper is None:
        return _("never")
    return _("any length") if row.cheaper == LENGTHS[0] else _("{n:,} tokens", n=row.cheaper)
