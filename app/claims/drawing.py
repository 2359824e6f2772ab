"""A claim's rows as its figure."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from app.figures.curves import curves
from app.figures.spread import Spread, spread
from app.figures.whiskers import whiskers
from app.text import _
from attention_core.claims import Figure
from attention_core.experiments.task import Row

HEIGHT = 380


def picture(figure: Figure, rows: Sequence[Row]) -> go.Figure | None:
    """Draw the rows of a claim; several at one place become median and quartiles; None where none can be drawn."""
    drawn = [row for row in rows if _drawable(row.get(figure.y), figure.log_y)]
    x_title, y_title = _(figure.x_title), _(figure.y_title)
    if figure.kind == "bars":
        labels = list(dict.fromkeys(str(row[figure.x]) for row in drawn))
        series = _series(figure, [row | {figure.x: labels.index(str(row[figure.x]))} for row in drawn])
        named = [_(label) for label in labels]
        return whiskers(series, named, x_title=x_title, y_title=y_title, log_y=figure.log_y) if series else None
    series = _series(figure, [row for row in drawn if _drawable(row.get(figure.x), figure.log_x)])
    if not series:
        return None
    return curves(
        [found.curve(name, i) for i, (name, found) in enumerate(series.items())],
        x_title=x_title,
        y_title=y_title,
        log_x=figure.log_x,
        log_y=figure.log_y,
        height=HEIGHT,
        x_ticks=sorted({x for found in series.values() for x in found.x}) if figure.log_x else (),
    )


def _series(figure: Figure, rows: Sequence[Row]) -> dict[str, Spread]:
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        points.setdefault(_(str(row[figure.by])), []).append((float(row[figure.x] or 0), float(row[figure.y] or 0)))
    return {name: spread(found) for name, found in points.items()}


def _drawable(value: object, log: bool) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and (value > 0 or not log)
