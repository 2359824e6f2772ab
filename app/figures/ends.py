"""Names at the ends of lines: as near to their ends as they can stand without one upon another."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.figures.theme import Figure, style

LINE, LETTER = 17, 7.4
"""Pixels of a line of letters, and of a letter as wide as most."""
WIDE = 19
"""Letters of a line; a name with more takes several."""
SAVE = 20
"""Pixels of the button above them that saves the picture."""
LEGEND = 24
"""Pixels of a line of a legend, on a screen too narrow for names at the ends."""
NO_BREAK = "\xa0"
PREFIX = "→ "
"""What names the parts of a figure that belong to a name at the end of a line; the trace's place follows."""


@dataclass(frozen=True)
class End:
    """One name.

    Attributes:
        trace: place of the line among the figure's traces.
        name: what is written, as Plotly's markup.
        colour: place in the shared series of colours.
        x: where its line ends.
        y: likewise.
        hollow: whether the line's marks are open.
    """

    trace: int
    name: str
    colour: int
    x: float
    y: float
    hollow: bool = False


def apart(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float] | None:
    """Places nearest to the wanted ones, by the sum of squares, where things of some size do not overlap.

    Their order is that of the wanted places. This is isotonic regression (pooling of adjacent violators) of what is
    wanted less what the things before take.

    Args:
        wanted: the middle of each, in any order.
        sizes: how much room each takes.
        low: where the room begins.
        high: where it ends.

    Returns:
        The middle of each, in the order given; None where there is not enough room.
    """
    if sum(sizes) > high - low:
        return None
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    taken, offsets = 0.0, []
    for i in order:
        offsets.append(taken + sizes[i] / 2)
        taken += sizes[i]
    pools: list[tuple[float, int]] = []  # the sum of what is wanted, and how many want it
    for i, offset in zip(order, offsets, strict=True):
        total, count = wanted[i] - offset, 1
        while pools and pools[-1][0] * count >= total * pools[-1][1]:
            total, count = total + pools[-1][0], count + pools[-1][1]
            pools.pop()
        pools.append((total, count))
    pooled = [total / count for total, count in pools for _i in range(count)]
    places = [min(max(place, low), high - taken) + offset for place, offset in zip(pooled, offsets, strict=True)]
    return [place for _i, place in sorted(zip(order, places, strict=True))]


def written(name: str) -> list[str]:
    """Return a name in lines that are not too long; a number stays on the line of the word before it."""
    lines = textwrap.wrap(re.sub(r" (?=-?\d)", NO_BREAK, name), WIDE, break_long_words=False)
    return [line.replace(NO_BREAK, " ") for line in lines] or [""]


def room(ends: Sequence[End]) -> int:
    """Pixels that the names take beside the lines."""
    return round(LETTER * (3 + max(len(line) for end in ends for line in written(end.name))))


def labels(
    ends: Sequence[End], *, right: float, low: float, high: float, height: float, log_x: bool, log_y: bool
) -> dict[str, Any] | None:
    """The names and what joins each to its line's end, as parts of Plotly's layout; None where they do not fit.

    Args:
        ends: of the lines; on a logarithmic axis as logarithms.
        right: where the horizontal axis ends, likewise.
        low: where the vertical one begins, likewise.
        high: where it ends.
        height: of the axis in pixels.
        log_x: whether the horizontal axis is logarithmic.
        log_y: the same of the vertical one.
    """
    pixel = (high - low) / height
    sizes = [LINE * len(written(end.name)) * pixel for end in ends]
    places = apart([min(max(end.y, low), high) for end in ends], sizes, low - 0.4 * LINE * pixel, high - SAVE * pixel)
    if places is None:
        return None
    names, joints = [], []
    for end, place in zip(ends, places, strict=True):
        look = style(end.colour)
        names.append(
            {
                "name": f"{PREFIX}{end.trace}",
                "text": f'<span style="color:{look.colour}">{look.sign(hollow=end.hollow)}</span> '
                + "<br>".join(written(end.name)),
                "x": 1,
                "xref": "paper",
                "xanchor": "left",
                "y": place,
                "yref": "y",
                "yanchor": "middle",
                "align": "left",
                "showarrow": False,
                "captureevents": True,
            }
        )
        x0, y0, x1, y1 = end.x, end.y, right, place
        joints.append(
            {
                "name": f"{PREFIX}{end.trace}",
                "type": "line",
                "layer": "below",
                "x0": 10**x0 if log_x else x0,
                "x1": 10**x1 if log_x else x1,
                "y0": 10**y0 if log_y else y0,
                "y1": 10**y1 if log_y else y1,
                "line": {"color": look.colour, "width": 1, "dash": "dot"},  # a solid one reads as data
                "opacity": 0.6,
            }
        )
    return {"annotations": names, "shapes": joints}


def narrowed(figure: Figure) -> Figure:
    """The figure for a screen too narrow for names at the ends of lines: they stand in a legend beneath it."""
    layout = figure["layout"]
    kept = {
        part: [each for each in layout.get(part, ()) if not str(each.get("name", "")).startswith(PREFIX)]
        for part in ("annotations", "shapes")
    }
    if len(kept["annotations"]) == len(layout.get("annotations", ())):
        return figure
    more = LEGEND * -(-sum(trace.get("showlegend", True) for trace in figure["data"]) // 2)
    margin = {**layout["margin"], "r": 8}
    if margin["b"] > 8:  # something stands beneath the axis, and the legend beneath that
        margin["b"] += more
    below = {
        **layout,
        **kept,
        "xaxis": {name: look for name, look in layout["xaxis"].items() if name != "dtick"},  # labels would overlap
        "showlegend": True,
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        "margin": margin,
        "height": layout["height"] + more,
    }
    return {**figure, "layout": below}
