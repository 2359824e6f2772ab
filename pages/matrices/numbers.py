"""The table of the Matrices page: metrics of each variant's attention matrix and output on the current input."""

from collections.abc import Mapping, Sequence

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.state.session import REFERENCE
from app.ui.tables import table
from app.words.i18n import _, enumeration
from app.words.labels import label, reference_name
from attention_core.analysis.matrix.compare import MatrixComparison
from attention_core.formatting import formatted, number
from attention_core.metrics import Passport, Ranks
from pages.matrices.comparison import Comparison
from pages.matrices.options import MatricesOptions

MAX_RANKED_TOKENS = 256
"""Tokens up to which ranks are always computed: they take milliseconds, but their time grows with n³."""


def show(comparison: Comparison) -> None:
    """Draw the table of metrics: one row per metric and one column per variant, like the matrices above it.

    If the matrices leave out special tokens, the metrics of all tokens have a table of their own. If only the reference
    is shown, the rows that compare a variant with it are left out.
    """
    with_ranks = len(comparison.words) <= MAX_RANKED_TOKENS or MatricesOptions.ranks.draw()
    compares = any(attention.word != REFERENCE for attention in comparison.matrices)
    columns = {
        label(attention): _cells(
            attention, matrix, cached.ranks(comparison.view, attention) if with_ranks else None, compares=compares
        )
        for attention, matrix in comparison.matrices.items()
    }
    names = list(next(iter(columns.values())))
    if all(attention.variant.reference is None for attention in comparison.matrices):
        names.remove(_("reference"))
    parts = {"": names}
    if comparison.hidden:
        on_hidden = _("weight on {tokens}", tokens=enumeration(comparison.hidden_tokens))
        for attention, matrix in comparison.matrices.items():
            columns[label(attention)][on_hidden] = formatted(matrix.left_out, ".1%")
        of_all = [name for name in (_("output error"), _("row sums"), on_hidden) if name in [*names, on_hidden]]
        parts = {
            _("With all tokens:"): of_all,
            _("Without {tokens} (the remaining weights are rescaled):", tokens=comparison.hidden): [
                name for name in names if name not in of_all
            ],
        }
    with st.container(key="matrices-numbers"):
        for heading, part in parts.items():
            if heading:
                st.markdown(heading)
            rows = [
                row
                for group, members in _groups(part).items()
                for row in [
                    {_("metric"): f"**{group}**"} | dict.fromkeys(columns, ""),
                    *(
                        {_("metric"): name} | {title: cells[name] for title, cells in columns.items()}
                        for name in members
                    ),
                ]
            ]
            st.table(table(rows), border="horizontal", hide_index=True)
    if with_ranks:
        ranks = {label(a): cached.ranks(comparison.view, a).rank for a in comparison.matrices}
        if text := rank_note(ranks, len(comparison.words)):
            st.caption(text)
    for attention in comparison.matrices:
        if attention.variant.reference is not None:
            st.caption(_("{name}: {note}", name=_(attention.title), note=_(attention.variant.note)))


def _groups(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of rows by the heading of their group, in order, without empty groups."""
    compared = {_(each.label) for each in Passport.columns().values() if each.compared}
    headings = dict.fromkeys((_("reference"), _("output error"), *compared), _("Compared with the reference"))
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(headings.get(name, _("Weights")), []).append(name)
    return groups


def rank_note(ranks: Mapping[str, float], n: int) -> str:
    """Return which variants' matrices have a low rank, and what this means; empty if no rank is low.

    Args:
        ranks: the rank of each variant's matrix, by its name.
        n: number of tokens.
    """
    low = [_("{name} ({rank})", name=name, rank=number(rank)) for name, rank in ranks.items() if rank <= n / 2]
    if not low:
        return ""
    return _("Low rank: {names}. That many rows determine all {n} rows of the matrix.", names=enumeration(low), n=n)


def _cells(attention: ac.Attention, matrix: MatrixComparison, ranks: Ranks | None, *, compares: bool) -> dict[str, str]:
    """Return the cells of a variant's column, by the names of the rows."""
    cells = {_("reference"): reference_name(attention)}
    metrics = [(record, *each) for record in (matrix.passport, ranks) if record for each in record.columns().items()]
    shown = [
        metric for metric in metrics if (compares or not metric[2].compared) and metric[1] != "sparsity"
    ]  # The evenness S repeats what the entropy says.
    if compares:
        cells[_("output error")] = formatted(matrix.output_error, ",.1%")
    for record, name, column in sorted(shown, key=lambda metric: not metric[2].compared):
        cells[_(column.label)] = _text(record.cell(name), column.format)
    return cells


def _text(value: float | str, form: str) -> str:
    if isinstance(value, str):
        return value
    return formatted(value, ",.1%" if form == "percent" else form.removeprefix("%")) if form else number(value)
