"""The table of the Matrices page: metrics of each variant's matrix and output on the input."""

from itertools import chain

import streamlit as st

from app.jobs import cached
from app.ui.tables import table
from app.words.i18n import _
from app.words.labels import label, reference_name
from attention_core.metrics import Passport, Ranks
from attention_core.metrics.passport import HEAVIEST
from pages.matrices.comparison import Found
from pages.matrices.options import MatricesOptions

RANKED = 256
"""Tokens up to which ranks are always computed: they take milliseconds, but their time grows with n³."""


def show(found: Found) -> None:
    """Draw the table of metrics with notes on its columns."""
    ranked = len(found.words) <= RANKED or MatricesOptions.ranks.draw()
    kinds = (Passport, Ranks) if ranked else (Passport,)
    known, output_error = chain(*(each.columns().items() for each in kinds)), _("output error")
    columns = dict(sorted(known, key=lambda each: not each[1].compared))
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
    st.caption(definitions())
    for attention in found.matrices:
        if attention.variant.reference is not None:
            st.caption(_("{name}: {note}", name=_(attention.title), note=_(attention.variant.note)))


def definitions() -> str:
    """Return the definitions of the columns as a Markdown list."""
    lines = (
        _(
            "**Matrix error** is the Frobenius norm of the difference between the attention matrices of a variant and "
            "of its reference, divided by the norm of the reference's matrix. **Output error** is the same ratio for "
            "the outputs, which are the matrix times the values."
        ),
        _(
            "**Total variation** is half the sum of the absolute differences between a row of the variant and the same "
            "row of the reference."
        ),
        _(
            "**KL** is the sum of P · ln(P / Q) over the keys of a row. P holds the absolute weights of the variant in "
            "this row, divided by their sum. Q is the same for the reference. KL is infinite if the variant gives "
            "weight to a key that has no weight in the reference."
        ),
        _(
            "**Top-k overlap** is the share of the {k} keys with the largest weights in a row that the variant and the "
            "reference have in common.",
            k=HEAVIEST,
        ),
        _(
            "**Entropy** is the sum of −P · ln P over the keys of a row. **S** is the mean absolute weight of a row, "
            "divided by the root of the mean square. In a row with n allowed keys, S is 1 if all weights are equal, "
            "and 1/√n if a single key has all the weight."
        ),
        _("All of these numbers except the two errors are averages over rows."),
    )
    return "\n".join(f"- {line}" for line in lines)
