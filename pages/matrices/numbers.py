"""The table of the Matrices page: metrics of each variant's attention matrix and output on the current input."""

from itertools import chain

import streamlit as st

from app.jobs import cached
from app.ui.tables import table
from app.words.i18n import _
from app.words.labels import label, reference_name
from attention_core.metrics import Passport, Ranks
from attention_core.metrics.passport import TOP_KEYS
from pages.matrices.comparison import Comparison
from pages.matrices.options import MatricesOptions

MAX_RANKED_TOKENS = 256
"""Tokens up to which ranks are always computed: they take milliseconds, but their time grows with n³."""


def show(comparison: Comparison) -> None:
    """Draw the table of metrics with the definitions of its columns in their tooltips."""
    with_ranks = len(comparison.words) <= MAX_RANKED_TOKENS or MatricesOptions.ranks.draw()
    summaries = (Passport, Ranks) if with_ranks else (Passport,)
    metrics, output_error = chain(*(each.columns().items() for each in summaries)), _("output error")
    columns = dict(sorted(metrics, key=lambda each: not each[1].compared))
    rows = []
    for attention, matrix in comparison.matrices.items():
        row: dict[str, object] = {_("variant"): label(attention)}
        numbers = (matrix.passport, cached.ranks(comparison.view, attention)) if with_ranks else (matrix.passport,)
        cells = {name: each.cell(name) for each in numbers for name in each.columns()}
        for name, column in columns.items():
            if column.compared:
                row.setdefault(_("reference"), reference_name(attention))
            row[_(column.label)] = cells[name]
            if name == "relative_error":
                row[output_error] = matrix.output_error
        row[_("causal")] = _("yes") if attention.variant.causal_reason is None else _("no")
        row[_("time")] = _(attention.variant.complexity)
        rows.append(row)
    help_texts = definitions()
    percent = columns["relative_error"].format
    config = {output_error: st.column_config.NumberColumn(format=percent, help=help_texts["output_error"])}
    for name, column in columns.items():
        # A range is shown as text, which a column of numbers cannot contain.
        config[_(column.label)] = (
            st.column_config.TextColumn(help=help_texts.get(name))
            if column.range_end
            else st.column_config.NumberColumn(format=column.format or None, help=help_texts.get(name))
        )
    st.dataframe(table(rows), hide_index=True, column_config=config)
    for attention in comparison.matrices:
        if attention.variant.reference is not None:
            st.caption(_("{name}: {note}", name=_(attention.title), note=_(attention.variant.note)))


def definitions() -> dict[str, str]:
    """Return the definitions of the columns, by the names of their fields."""
    return {
        "relative_error": _(
            "Size of the difference between the attention matrices of the variant and of its reference, divided by "
            "the size of the reference's matrix (Frobenius norms)."
        ),
        "output_error": _(
            "Size of the difference between the outputs of the variant and of its reference, divided by the size of "
            "the reference's output. The output is the matrix times the values."
        ),
        "total_variation": _(
            "Share of a row's weight that the variant and its reference place on different keys: half the sum of the "
            "absolute differences, averaged over rows."
        ),
        "kl": _(
            "P is the variant's absolute weights in a row, divided by their sum. Q is the same for the reference. "
            "The divergence is the sum of P · ln(P / Q) over the keys of a row, averaged over rows. It is infinite "
            "if the variant gives weight to a key that has none in the reference."
        ),
        "top_k_overlap": _(
            "In each row, the {k} keys with the largest weights are found for the variant and for its reference. The "
            "measure is the share of these keys that are in both sets, averaged over rows.",
            k=TOP_KEYS,
        ),
        "row_sum_min": _("Sums of the weights of a row: the smallest and the largest over all rows."),
        "negative_mass": _(
            "The sum of the negative weights in absolute value, as a share of the sum of all absolute weights."
        ),
        "density": _(
            "Share of the query–key pairs with a weight other than zero, among the pairs that the mask allows."
        ),
        "entropy": _(
            "How widely a row spreads its weight. P is the row's absolute weights, divided by their sum. The entropy "
            "is the sum of −P · ln P over the keys of a row, averaged over rows."
        ),
        "sparsity": _(
            "Mean absolute weight of a row, divided by the root mean square of its weights, averaged over rows. In a "
            "row with n allowed keys, it is 1 if all weights are equal, and 1/√n if a single key has all the weight."
        ),
    }
