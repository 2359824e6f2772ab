"""A chart of measurements in a table, as lines, points or bars.

Repeated measurements appear as their median and, except for points, their quartiles.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from app.figures.lines.curves import curves
from app.figures.lines.spread import spread
from app.figures.theme import Figure
from app.figures.whiskers import whiskers


def measurements(
    rows: pd.DataFrame,
    x: str,
    y: str,
    by: str,
    *,
    x_title: str,
    y_title: str,
    colours: Mapping[str, int] | None = None,
    bars: bool = False,
    joined: bool = True,
    log_x: bool = False,
    log_y: bool = False,
    percent: bool = False,
) -> Figure | None:
    """Draw measurements as lines, points or bars; return None if no row can be drawn.

    Args:
        rows: one measurement per row; rows without a finite number on an axis (above 0 if logarithmic) are left out.
        x: column of the horizontal axis: numbers for lines, names for bars.
        y: column of the vertical axis.
        by: column whose values name the lines, or the bars at one position.
        x_title: title of the horizontal axis, with its unit.
        y_title: title of the vertical axis, with its unit.
        colours: index of each value of ``by`` in the figures' shared colours; by default, in order of appearance.
        bars: whether to draw bars.
        joined: whether lines join the points of a series; ignored for bars.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is logarithmic.
        percent: whether the vertical axis shows shares as percentages.
    """
    for name, log in ((y, log_y),) if bars else ((y, log_y), (x, log_x)):
        values = rows[name].astype(float)
        rows = rows[np.isfinite(values) & (values > (0 if log else -np.inf))]
    if rows.empty:
        return None
    labels = list(rows[x].unique()) if bars else []
    positions = rows[x].map(labels.index) if bars else rows[x]
    series = {name: spread(zip(positions[df.index], df[y], strict=True)) for name, df in rows.groupby(by, sort=False)}
    if bars:
        return whiskers(series, labels, colours=colours, x_title=x_title, y_title=y_title, log_y=log_y, percent=percent)
    lines = [stats.curve(name, colours[name] if colours else i) for i, (name, stats) in enumerate(series.items())]
    lines = lines if joined else [replace(line, width=0, low=None, high=None) for line in lines]
    ticks = sorted({tick for line in lines for tick in line.x}) if log_x else ()
    return curves(
        lines,
        x_title=x_title,
        y_title=y_title,
        log_x=log_x,
        log_y=log_y,
        form=".2%" if percent else ".3g",
        height=380,
        percent=percent,
        x_ticks=ticks,
    )
