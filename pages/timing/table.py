"""The table of the Timing page: each variant at one length, with the growth of its time and multiply-adds."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from app.ui import chart, export
from app.ui.about import describe_counts
from app.words.i18n import _, clauses, enumeration
from app.words.measured_times import Series, crossing_text
from attention_core.benchmarking.run_records import sample_table
from attention_core.benchmarking.run_summary import growth
from attention_core.formatting import between
from pages.timing.memory import call_bytes, memory_unit
from pages.timing.options import TimingOptions


def show(series: Sequence[Series], key: str, *, is_last: bool) -> None:
    """Draw the table at one length.

    Args:
        series: the timed variants.
        key: key of the element.
        is_last: whether this is the last drawing in a rerun, which also draws the controls and the download.
    """
    sizes = sorted({p.n for line in series for p in line.points})
    common_sizes = [n for n in sizes if all(n in {p.n for p in line.points} for line in series)]
    n = TimingOptions.at.value if TimingOptions.at.value in sizes else max(common_sizes or sizes)
    unit = memory_unit(series)
    rows = [row(line, n, unit) for line in series]
    several_runs = len({line.live for line in series}) > 1
    shown_columns = list(rows[0]) if TimingOptions.columns.value else first_columns(n, unit, several_runs=several_runs)
    st.dataframe(rows, hide_index=True, key=key, column_config=_columns(rows, n, unit), column_order=shown_columns)
    if text := empty_cells(rows, shown_columns, n):
        st.caption(text)
    if TimingOptions.columns.value:
        st.caption(describe_counts())
    if is_last:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            TimingOptions.at.draw_with_options(sizes, n, key="timing.at", format_func="{:,}".format, width=160)
            TimingOptions.columns.draw()
            export.download(_("Numbers (CSV)"), lambda: csv(series), "timing.csv")


def row(line: Series, n: int, unit: tuple[int, str]) -> dict[str, object]:
    """Return a row of the table: the results with n tokens, and the growth of time and multiply-adds, by column.

    Args:
        line: the variant in one run.
        n: the number of tokens.
        unit: the bytes of the unit of memory, and the title of its column.
    """
    sizes = [point.n for point in line.points]
    time = growth(sizes, [p.quartiles[1] for p in line.points])
    work = growth(sizes, [p.multiply_adds for p in line.points])
    point_ = next((point for point in line.points if point.n == n), None)
    low, middle, high = point_.quartiles if point_ else (math.nan,) * 3
    return {
        _("variant"): line.name,
        _("run"): _("live") if line.live else _("recorded"),
        _("faster than softmax from"): "—" if line.is_reference else crossing_text(line),
        _column_at(n): point_ and middle,
        _("time ÷ softmax's time (median)"): next((ratio.middle for ratio in line.ratios if ratio.n == n), None),
        unit[1]: point_ and call_bytes(line)[n] / unit[0],
        _("exponent a of time ∝ nᵃ"): time and time.exponent,
        _("R² of the fit of time ∝ nᵃ"): time and time.r2,
        _("exponent a of multiply-adds ∝ nᵃ"): work and work.exponent,
        _("quartiles of the time (ms)"): point_ and between(low, high, ".3g"),
        _("multiply-adds"): point_ and point_.multiply_adds,
        _("multiply-adds by formula"): point_ and point_.promised,
        _("multiply-adds per second"): point_ and point_.multiply_adds / middle * 1e3,
    }


def _column_at(n: int) -> str:
    return _("time at n = {n:,} (ms)", n=n)


def first_columns(n: int, unit: tuple[int, str], *, several_runs: bool) -> list[str]:
    """Return the titles of the columns that are shown initially; with several runs, one column names the run."""
    return [
        _("variant"),
        *([_("run")] if several_runs else []),
        _column_at(n),
        _("time ÷ softmax's time (median)"),
        unit[1],
        _("faster than softmax from"),
    ]


def empty_cells(rows: Sequence[Mapping[str, object]], shown_columns: Sequence[str], n: int) -> str:
    """Return the sentence that says why some cells of the table are empty; empty if all cells have values."""
    short = _("at least two lengths are needed")
    reason_by_column = {
        _("faster than softmax from"): _("softmax was not measured"),
        _column_at(n): _("not measured at this length"),
        _("time ÷ softmax's time (median)"): _("softmax was not measured at this length"),
        _("exponent a of time ∝ nᵃ"): short,
        _("R² of the fit of time ∝ nᵃ"): short,
        _("exponent a of multiply-adds ∝ nᵃ"): short,
        _("multiply-adds by formula"): _("multiply-adds have a formula only for a forward pass"),
    }
    reasons: dict[str, list[str]] = {}
    for column, reason in reason_by_column.items():
        if column in shown_columns and any(row[column] in (None, "") for row in rows):
            reasons.setdefault(reason, []).append(column)
    text = clauses(
        _("{names} ({reason})", names=enumeration(columns), reason=reason) for reason, columns in reasons.items()
    )
    return _("Some cells are empty: {reasons}.", reasons=text) if text else ""


def decimals(values: Iterable[object]) -> int:
    """Return the decimal places with which the smallest positive number of a column has two significant digits."""
    smallest = min((value for value in values if isinstance(value, float) and value > 0), default=1.0)
    return max(0, 1 - math.floor(math.log10(smallest)))


def _columns(rows: Sequence[Mapping[str, object]], n: int, unit: tuple[int, str]) -> dict[str, Any]:
    number = st.column_config.NumberColumn
    ratio = _("time ÷ softmax's time (median)")
    # On a phone, these labels and widths let the variant and both times fit next to each other.
    labels = {_column_at(n): _("time, ms"), ratio: _("÷ softmax")} if chart.is_narrow() else {}
    width = 85 if labels else None
    return {
        **dict.fromkeys((_("exponent a of time ∝ nᵃ"), _("exponent a of multiply-adds ∝ nᵃ")), number(format="%.2f")),
        **dict.fromkeys(
            (_("multiply-adds"), _("multiply-adds by formula"), _("multiply-adds per second")), number(format="compact")
        ),
        _("R² of the fit of time ∝ nᵃ"): number(format="%.3f"),
        **{
            title: number(labels.get(title), width=width, format=f"%.{decimals(row[title] for row in rows)}f")
            for title in (_column_at(n), unit[1])
        },
        ratio: number(
            labels.get(ratio),
            width=width,
            format=f"%.{decimals(row[ratio] for row in rows)}f",
            help=_(
                "The median of the ratios within each round. It can differ slightly from the ratio of the median times."
            ),
        ),
        _("faster than softmax from"): st.column_config.TextColumn(width=220),
    }


def csv(series: Sequence[Series]) -> bytes:
    """Return every measured time with its device, settings and length, as CSV."""
    rows = [
        row for line in series for row in sample_table(line.run, line.word, origin="live" if line.live else "recorded")
    ]
    return export.to_csv(list(rows[0]), (list(row.values()) for row in rows))
