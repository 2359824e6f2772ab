"""Two charts of the Model page side by side: perplexity and copying loss over a quantity such as the budget."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from app.figures.lines.curve import Curve, guide
from app.figures.lines.curves import curves
from app.figures.theme import GREY
from app.ui import chart, palette
from app.words.i18n import _
from app.words.labels import axis_title
from attention_core.experiments.swap import BASELINES, SwapRow
from attention_core.experiments.swap.derived import CurvePoint, original_rows
from attention_core.variant import SOFTMAX
from pages.model.options import ORIGINAL, Question, display_name
from pages.model.view import HEIGHT

MIN_LOG_RATIO = 10
"""Perplexities have a logarithmic axis if the largest exceeds this multiple of the smallest.

The axis of a smaller range would have only one or two ticks.
"""
MIN_TICK_RATIO = 1.5
"""Smallest ratio of two neighbouring ticks on a logarithmic axis. Closer numbers would overlap on a phone."""
MIN_TICK_GAP = 0.03
"""Smallest distance of two neighbouring ticks on a linear axis, as a share of the axis."""


def models(question: Question) -> list[tuple[str, str, tuple[int, ...], int]]:
    """Return one tuple for the original model and for each variant: name, word, replaced layers, index of the colour.

    A word is a variant with its settings as in links, such as ``local~window~64``.
    """
    coloured = zip(question.words, palette.indices(question.words), strict=True)
    changed = [(display_name(word), word, question.layers, place) for word, place in coloured]
    return [(_(ORIGINAL), SOFTMAX, (), GREY), *changed]


def draw(
    lines: Mapping[str, Sequence[CurvePoint]],
    rows: Sequence[SwapRow],
    *,
    key: str,
    x_title: str,
    log_x: bool = False,
    name_of: Callable[[str], str] = display_name,
    mark: tuple[float, str] | None = None,
) -> None:
    """Draw the charts of perplexity and of copying, with ticks at the measured positions.

    Args:
        lines: measurements by the variant's word.
        rows: all rows, including those of the original model.
        key: prefix of the elements' keys.
        x_title: title of the horizontal axis.
        log_x: whether the horizontal axis is logarithmic.
        name_of: function that returns a variant's name in the legend, given its word.
        mark: position and label of a vertical line in the chart of copying.
    """
    xs = sorted({point.x for points in lines.values() for point in points})
    if not xs:
        return
    ticks = separate_ticks(xs, log=log_x)
    reading_row, copy_row = original_rows(rows)
    sides = (
        ("perplexity", _("perplexity"), reading_row.perplexity if reading_row else None, True),
        ("copied", _("copying loss (nats per token)"), copy_row.copied if copy_row else None, False),
    )
    for place, (name, title, level, log) in zip(st.columns(2), sides, strict=True):
        coloured = zip(lines.items(), palette.indices(list(lines)), strict=True)
        series = [_curve(name_of(word), word, points, name, colour) for (word, points), colour in coloured]
        if level is not None:
            series.append(guide(_(ORIGINAL), [xs[0], xs[-1]], [level] * 2))
        log = log and needs_log(series)
        figure = curves(
            series,
            x_title=axis_title(x_title, log=log_x),
            y_title=axis_title(title, log=log),
            log_x=log_x,
            log_y=log,
            height=HEIGHT,
            mark=mark if name == "copied" else None,
            x_ticks=ticks,
        )
        with place:
            message = _("Lines: {measure} against {axis}", measure=title, axis=x_title)
            chart.show(figure, key=f"{key}.{name}", name=f"model-{name}", alt=message)


def separate_ticks(xs: Sequence[float], *, log: bool) -> list[float]:
    """Return the positions, in increasing order, without those whose numbers would overlap the one before."""
    ticks: list[float] = []
    for x in xs:
        least = 0.0
        if ticks:
            least = MIN_TICK_RATIO * ticks[-1] if log else ticks[-1] + MIN_TICK_GAP * (xs[-1] - xs[0])
        if x >= least:
            ticks.append(x)
    return ticks


def needs_log(lines: Sequence[Curve]) -> bool:
    """Return whether the values of the lines span so many sizes that they need a logarithmic axis."""
    values = [y for line in lines for y in line.y if y is not None]
    return max(values, default=1.0) > MIN_LOG_RATIO * min(values, default=1.0)


def _curve(title: str, word: str, points: Sequence[CurvePoint], name: str, colour: int) -> Curve:
    is_floor = word in BASELINES
    measured = [point for point in points if getattr(point, name) is not None]
    return Curve(
        title,
        [point.x for point in measured],
        [getattr(point, name) for point in measured],
        colour=GREY if is_floor else colour,
        dash=("dash", "dashdot")[BASELINES.index(word)] if is_floor else "solid",
        markers=not is_floor,
    )
