"""The table and the downloads of the Masks page.

For each variant, the table lists the allowed pairs, the farthest key that a query can attend to, and the number of
layers that connect all tokens.
"""

from collections.abc import Iterable, Sequence
from functools import partial

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.jobs.cached import MatrixView
from app.ui import export
from app.ui.tables import table
from app.words.i18n import N_, _, enumeration, paragraph
from app.words.labels import label
from attention_core.analysis.masks.pattern import has_pattern
from attention_core.formatting import format_readable
from attention_core.limits import current
from pages.masks.patterns import Masks, reads_means

SYMBOLS = {
    "w": ("window", N_("window")),
    "r": ("stride", N_("stride")),
    "g": ("global_tokens", N_("global tokens")),
    "ρ": ("random_keys", N_("random keys")),
    "s": ("sinks", N_("sinks")),
    "k": ("k", N_("keys kept per query")),
    "κ": ("keep", N_("share of pairs kept")),
    "m": ("blocks", N_("selected blocks")),
    "b": ("block", N_("block size")),
}
"""The setting that each letter in a variant's number of pairs represents, and its name on screen."""


def symbol_text(attentions: Iterable[ac.Attention]) -> str:
    """Return the meaning of the letters in the variants' numbers of pairs, with values that all of them share."""
    values: dict[str, set[str]] = {}
    for attention in attentions:
        for letter in SYMBOLS.keys() & {*attention.variant.pairs}:
            value = format_readable(getattr(attention.params, SYMBOLS[letter][0]), None)
            values.setdefault(letter, set()).add(value)
    return " · ".join(
        _(
            "{name}: {note}",
            name=letter,
            note=_(name)
            if len(values[letter]) > 1
            else _("{name} ({result})", name=_(name), result=min(values[letter])),
        )
        for letter, (_setting, name) in SYMBOLS.items()
        if letter in values
    )


def _rows(masks: Masks) -> list[dict[str, object]]:
    crosses = masks.key_labels is not None
    possible = "n (n + 1) / 2" if masks.view.causal else "n m" if crosses else "n²"
    rows: list[dict[str, object]] = [
        {
            _("variant"): label(attention),
            _("pairs allowed"): pattern.pairs,
            _("of {possible}", possible=possible): pattern.pairs / pattern.possible,
            _("keys per query"): pattern.pairs / len(masks.labels),
            _("formula"): attention.variant.pairs if has_pattern(attention.variant) else "n²",
            _("farthest key"): pattern.farthest,
            _("layers to connect all"): _("never") if pattern.diameter is None else str(pattern.diameter),
        }
        for attention, pattern in masks.patterns.items()
    ]
    undefined = (_("formula"), _("farthest key"), _("layers to connect all")) if crosses else ()
    return [{name: cell for name, cell in row.items() if name not in undefined} for row in rows]


def show(masks: Masks) -> None:
    """Draw the table with one row per variant."""
    rows = _rows(masks)
    possible = list(rows[0])[2]
    st.dataframe(
        table([{**row, possible: round(row[possible], 3)} for row in rows]),  # type: ignore[call-overload]
        hide_index=True,
        column_config={
            _("pairs allowed"): st.column_config.NumberColumn(
                format="localized", help=_("Query–key pairs allowed in one layer, per head.")
            ),
            possible: st.column_config.NumberColumn(format="percent"),
            _("keys per query"): st.column_config.NumberColumn(format="%.1f"),
            _("farthest key"): st.column_config.NumberColumn(
                help=_("Largest distance between a query and a key it can attend to in one layer, in tokens.")
            ),
            _("formula"): st.column_config.TextColumn(
                width="medium", help=_("Approximate number of pairs without a causal mask.")
            ),
            _("layers to connect all"): st.column_config.TextColumn(alignment="right"),
        },
    )
    if masks.key_labels is not None:
        st.caption(_("{n} queries, {m} keys.", n=len(masks.labels), m=len(masks.key_labels)))
        return
    size = _("n: {n} tokens", n=len(masks.labels))
    st.caption(" · ".join(filter(None, [size, symbol_text(masks.sparse)])))
    means = [label(attention) for attention, pattern in masks.sparse.items() if reads_means(pattern)]
    depth_note = _(
        "“Layers to connect all” is the number of layers needed to connect all tokens if every layer uses only this "
        "pattern and has a residual connection."
    )
    means_note = _("{names}: queries read some keys only as block means.", names=enumeration(means)) if means else ""
    st.caption(paragraph(depth_note, means_note))


def _masks_file(view: MatrixView, attentions: Sequence[ac.Attention]) -> bytes:
    arrays = {}
    for attention in attentions:
        pattern = cached.pattern(view.source, attention, head=view.head, causal=view.causal)
        arrays[attention.key] = pattern.allowed
        arrays |= {f"{attention.key}.{name}": part for name, part in pattern.primitives.items()}
    return export.to_npz(arrays)


def show_downloads(masks: Masks, stack: Sequence[ac.Attention]) -> None:
    """Draw the downloads of numbers and masks, and Python code that reproduces the stack."""
    rows = _rows(masks)
    with st.container(horizontal=True):
        export.download(
            _("Numbers (CSV)"), lambda: export.to_csv(list(rows[0]), [list(row.values()) for row in rows]), "masks.csv"
        )
        export.download(_("Masks (NPZ)"), partial(_masks_file, masks.view, tuple(masks.patterns)), "masks.npz")
    export.draw_snippet(
        "import attention_core as ac\nfrom attention_core.analysis.masks.pattern import pattern\n"
        "from attention_core.analysis.masks.stack import reach\n\n"
        f"qkv = {masks.view.source.code}.load()\n"
        f"head, causal = {masks.view.head}, {masks.view.causal}\n"
        f"stack = [ac.from_word(word) for word in {[attention.word for attention in stack]!r}]\n"
        "allowed = [pattern(qkv, attention, head=head, causal=causal).allowed for attention in stack]\n"
        f"print(reach(allowed, {current().stack_layers}, causal=causal) if allowed else 'no layers')\n"
    )
