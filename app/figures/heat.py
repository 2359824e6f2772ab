"""Rows of coloured cells over one axis of steps: what is better than a reference in blue, what is worse in orange."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.figures.theme import DARK, LIGHT, Figure, along, axis, finish, plain

STOPS = 17
"""Stops of the scale."""
_ROW, _HEAD, _FOOT = 48, 56, 44
"""Pixels of a row with its title, of the legend above all rows, and of the axis below."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Row:
    """One row.

    Attributes:
        title: over the row.
        places: ``[n]`` on the scale: 0 as the reference, 1 and more as bad as has a colour of its own, NaN not known.
        notes: what is told of each cell on hover.
    """

    title: str
    places: np.ndarray
    notes: Sequence[str]


def heat(rows: Sequence[Row], ticks: Mapping[float, str], *, dark: bool, x_title: str, scale: str) -> Figure:
    """Draw the rows, their titles above them, so that a phone's width is left to the cells.

    Args:
        rows: from top to bottom, all of one length.
        ticks: what places on the scale are called.
        dark: whether it stands on a dark page.
        x_title: what is counted from 0 along a row.
        scale: what the colours are.
    """
    n = max((len(row.places) for row in rows), default=0)
    cells, notes = np.full((2 * len(rows), n), np.nan), np.full((2 * len(rows), n), "", object)
    for i, row in enumerate(rows):  # every second line is left free, for the title
        cells[2 * i + 1], notes[2 * i + 1] = row.places, [plain(note) for note in row.notes]
    low = float(np.clip(np.nanmin(cells), -1, 0)) if np.isfinite(cells).any() else 0.0
    ramps = DARK if dark else LIGHT
    stops = [
        "rgb({:.0f},{:.0f},{:.0f})".format(*along(ramps.negative if at >= 0 else ramps.positive, abs(at)))
        for at in np.linspace(low, 1, STOPS)
    ]
    return finish(
        [
            {
                "type": "heatmap",
                "z": np.clip(cells, low, 1),
                "zmin": low,
                "zmax": 1,
                "colorscale": [[i / (STOPS - 1), colour] for i, colour in enumerate(stops)],
                "xgap": 1,
                "hoverongaps": False,
                "text": notes.tolist(),
                "hovertemplate": "%{text}<extra></extra>",
                "colorbar": {
                    "orientation": "h",
                    "len": 0.9,  # room for words at its ends, on a phone too
                    "x": 0.05,
                    "xanchor": "left",
                    "xpad": 0,
                    "y": 1,
                    "yanchor": "bottom",
                    "ypad": 4,
                    "thickness": 8,
                    "outlinewidth": 0,
                    "title": {"text": scale, "side": "top", "font": {"size": 12}},
                    "tickvals": list(ticks),
                    "ticktext": list(ticks.values()),
                },
            }
        ],
        height=_ROW * len(rows) + _HEAD + _FOOT,
        xaxis=axis(x_title, range=[-0.5, n - 0.5], showgrid=False, zeroline=False, dtick=5),
        yaxis={"visible": False, "range": [2 * len(rows) - 0.5, -0.5]},
        annotations=[
            {
                "x": -0.5,
                "y": 2 * i - 0.05,
                "text": plain(row.title),
                "showarrow": False,
                "xanchor": "left",
                "yanchor": "middle",
                "xshift": -3,
            }
            for i, row in enumerate(rows)
        ],
        margin={"t": _HEAD, "b": _FOOT},
    )
