"""The table of each variant's metrics on the input."""

from itertools import chain

import streamlit as st

from app.jobs import cached
from app.ui.tables import table
from app.words.i18n import _
from app.words.labels import label, reference_name
from attention_core.metrics import Passport, Ranks
from pages.matrices.comparison import Found
from pages.matrices.options import MatricesOptions

RANKED = 256
"""Tokens up to which ranks are always computed: they take milliseconds, but their time grows with n³."""


def show(found: Found) -> None:
    """Draw the table of metrics with notes on its columns."""
    ranked = len(found.words) <= RANKED or MatricesOptions.ranks.draw()
    kinds = (Passport, Ranks) if ranked else (Passport,)
    known, output_error = chain(*(each.columns().items() for each in kinds)), _("output error")
    columns = dict(sorted(known, key=lambda each: each[1].compared))
    rows = []
    for attention, m in found.matrices.items():
        row: dict[str, object] = {_("variant"): label(attention)}
        numbers = (m.passport, cached.ranks(found.view, attention)) if ranked else (m.passport,)
        cells = {name: each.cell(name) for each in numbers for name in each.columns()}
        for name, column in columns.items():
            if column.compared:
                row.setdefault(_("reference"), reference_name(attention))
            row[_(column.label)] = cells[name]
            if name == "relative_error":
                row[output_error] = m.output_error
        row[_("causal")] = _("yes") if attention.variant.causal_reason is None else _("no")
        row[_("time")] = _(attention.variant.complexity)
        rows.append(row)
    formats = {_(column.label): column.format for column in columns.values() if column.format}
    formats[output_error] = columns["relative_error"].format
    st.dataframe(
        table(rows),
        hide_index=True,
        column_config={name: st.column_config.NumberColumn(format=form) for name, form in formats.items()},
    )
    st.caption(
        _(
            "Errors, total variation, KL and top-k overlap compare a variant with its reference on the same "
            "queries, keys and values. Matrix error is the Frobenius norm of the difference between the two "
            "attention matrices, divided by the norm of the reference's matrix. Output error is the same ratio "
            "for the outputs, which are the matrix times the values. Total variation and KL (of the "
            "variant from its reference) are averages over rows. Entropy and S do not depend on the scale or the "
            "signs of a row. In a row with n allowed keys, S is 1 if all weights are equal. S is 1/√n if a "
            "single key has all the weight."
        )
    )
    if len(found.words) < found.chosen.qkv.n:
        st.caption(_("Special tokens are hidden. Only the output error includes them."))
    if found.view.head is None:
        st.caption(
            _(
                "The output error is computed from the outputs of all heads. All other numbers describe the "
                "average of the heads' matrices."
            )
        )
    for attention in found.matrices:
        if attention.variant.reference is not None:
            st.caption(_("{name}: {note}", name=_(attention.title), note=_(attention.variant.note)))
