"""A heat map whose rows have titles, for example one row per attention variant and one cell per layer of a model.

Colours compare each cell with a reference, such as the unchanged model: blue is better, orange is worse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.figures.theme import DARK, LIGHT, Figure, annotation, axis, escape_label, finish, sample_ramp

MAX_GAPS = 48
"""Largest number of cells with gaps between them. On a phone, gaps would cover half of narrower cells."""
STOPS = 17
"""Number of stops of the colour scale."""
LEGEND = 240
"""Length of the colour scale in pixels."""
_ROW, _HEAD, _FOOT = 48, 76, 64
"""Height in pixels of a row with its title, of the legend above all rows, and of the axis below."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Row:
    """One row of cells.

    Attributes:
        title: title above the row.
        positions: positions on the colour scale, ``[n]``: 0 equals the reference, positive is worse, negative is
            better, NaN is unknown. Positions beyond -1 or 1 have the last colour on that side.
        notes: tooltip of each cell.
    """

    title: str
    positions: np.ndarray
    notes: Sequence[str]


def heat(rows: Sequence[Row], ticks: Mapping[float, str], *, dark: bool, x_title: str, scale: str) -> Figure:
    """Draw the rows from top to bottom with their titles above them, so that the cells use the full width of a phone.

    ``ticks`` labels positions on the colour scale, and ``scale`` is its title.
    """
    n = max((len(row.positions) for row in rows), default=0)
    cells, notes = np.full((2 * len(rows), n), np.nan), np.full((2 * len(rows), n), "", object)
    for i, row in enumerate(rows):  # The row above each row of cells stays empty, for the title.
        cells[2 * i + 1], notes[2 * i + 1] = row.positions, [escape_label(note) for note in row.notes]
    low = float(np.clip(np.nanmin(cells), -1, 0)) if np.isfinite(cells).any() else 0.0
    ramps = DARK if dark else LIGHT
    stops = [
        "rgb({:.0f},{:.0f},{:.0f})".format(*sample_ramp(ramps.negative if p >= 0 else ramps.positive, abs(p)))
        for p in np.linspace(low, 1, STOPS)
    ]
    return finish_rows(
        [
            {
                "type": "heatmap",
                "z": np.clip(cells, low, 1),
                "zmin": low,
                "zmax": 1,
                "colorscale": [[i / (STOPS - 1), colour] for i, colour in enumerate(stops)],
                "xgap": int(n <= MAX_GAPS),
                "hoverongaps": False,
                "text": notes.tolist(),
                "hovertemplate": "%{text}<extra></extra>",
                # The labels at both ends of the colour bar fit on a phone too.
                "colorbar": colour_legend(scale, ticks, x=0.05, length=LEGEND) | {"lenmode": "pixels"},
            }
        ],
        [escape_label(row.title) for row in rows],
        n,
        sizes=(_ROW, _HEAD, _FOOT),
        xaxis=axis(x_title),
    )


def colour_legend(title: str, ticks: Mapping[float, str], *, x: float, length: float) -> dict[str, Any]:
    """Return a horizontal colour bar above a figure; ``x`` and ``length`` are fractions of the figure's width."""
    placement = {"orientation": "h", "len": length, "x": x, "xanchor": "left", "y": 1, "yanchor": "bottom"}
    style = {"xpad": 0, "ypad": 4, "thickness": 8, "outlinewidth": 0}
    text = {"title": {"text": title, "side": "top", "font": {"size": 12}}}
    return {**placement, **style, **text, "tickvals": list(ticks), "ticktext": list(ticks.values())}


def finish_rows(
    data: list[dict[str, Any]],
    titles: Sequence[str],
    n: int,
    *,
    sizes: tuple[int, int, int],
    xaxis: dict[str, Any],
    **layout: Any,  # noqa: ANN401 - properties of plotly's layout
) -> Figure:
    """Build a figure of heat maps in which every row of cells has its title in an empty row above it.

    Args:
        data: heat maps with two rows per title: an empty one, then the row of cells.
        titles: titles of the rows, from top to bottom.
        n: cells of a row.
        sizes: height in pixels of a row with its title, of the legends above, and of the axis below.
        xaxis: properties of the horizontal axis.
        layout: further properties of the layout.
    """
    row, head, foot = sizes
    title_place = {"xanchor": "left", "yanchor": "middle", "xshift": -3}
    return finish(
        data,
        height=row * len(titles) + head + foot,
        xaxis={**xaxis, "range": [-0.5, n - 0.5], "showgrid": False, "zeroline": False},
        yaxis={"visible": False, "range": [2 * len(titles) - 0.5, -0.5]},
        annotations=[annotation(title, -0.5, 2 * i, **title_place) for i, title in enumerate(titles)],
        margin={"t": head, "b": foot},
        **layout,
    )
