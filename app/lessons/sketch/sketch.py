"""The canvas of a lesson on which the visitor draws the curve they expect, and a comparison with the measured curve."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import attention_core as ac
from app.board_messages.packing import encode
from app.figures.theme import style
from app.lessons.screen import Screen
from app.matrix_board.component import mount, receiver
from app.measures import CurveMeasure
from app.ui import palette
from app.words.i18n import _
from attention_core.metrics.area import mean_gap, share_above

_SKETCH = receiver("attention_lab_sketch", Path(__file__).with_name("sketch.css"))
MAX_POINTS = 8
"""The largest number of points that the visitor moves."""
MOSTLY_SHARE = 0.75
"""Fraction of the area between two curves that must be on one side to count as mostly above or mostly below."""


def point_positions(curve: CurveMeasure, key: str, screen: Screen) -> list[float]:
    """Return the positions of the points that the visitor moves: some measured positions, including both ends.

    Args:
        curve: the curve to draw.
        key: the key of its variant.
        screen: the screen that shows the answer.
    """
    measured = curve.positions(screen, screen.variant(key))
    count = min(len(measured), MAX_POINTS)
    return [measured[round(i * (len(measured) - 1) / max(1, count - 1))] for i in range(count)]


def read_heights(values: object, count: int, high: float) -> tuple[float, ...] | None:
    """Return ``count`` heights that the browser reported, limited to 0 to ``high``; None if they are not valid."""
    if not isinstance(values, list) or len(values) != count:
        return None
    if not all(isinstance(each, int | float) and math.isfinite(each) for each in values):
        return None
    return tuple(min(max(float(each), 0.0), high) for each in values)


def describe(
    curve: CurveMeasure,
    drawn: Sequence[float] | None,
    positions: Sequence[float],
    measured: Sequence[tuple[float, float]],
    screen: Screen | None = None,
) -> str:
    """Return a sentence that compares a drawn curve with the measured one.

    Args:
        curve: the curve.
        drawn: heights of the drawn points; None for a visitor who drew none.
        positions: positions of the drawn points, some of the measured ones.
        measured: measured positions and heights.
        screen: the screen that shows the answer.
    """
    if drawn is None:
        return _("The line shows the measured curve.")
    x, second = [math.log(position) for position, _height in measured], [height for _position, height in measured]
    first = np.interp(x, np.log(positions), drawn).tolist()
    distance, above = mean_gap(x, first, second), share_above(x, first, second)
    values = {"distance": curve.format(distance, screen)}
    if distance <= curve.tolerance:
        return _("Your curve is close: its average distance from the measured curve is {distance}.", **values)
    if above >= MOSTLY_SHARE:
        return _("On average, your curve is {distance} from the measured curve, mostly above it.", **values)
    if above <= 1 - MOSTLY_SHARE:
        return _("On average, your curve is {distance} from the measured curve, mostly below it.", **values)
    return _("On average, your curve is {distance} from the measured curve, partly above and partly below.", **values)


def show(
    curve: CurveMeasure,
    key: str,
    screen: Screen,
    *,
    mount_key: str,
    drawn: Sequence[float] | None,
    on_draw: Callable[[tuple[float, ...]], None] | None = None,
    measured: Sequence[tuple[float, float]] = (),
) -> None:
    """Draw the canvas on which a visitor draws a predicted curve, and which then also shows the measured curve.

    Args:
        curve: the curve to draw.
        key: the key of its variant.
        screen: the screen that shows the answer.
        mount_key: the element's key, unique in the app.
        drawn: heights of the points so far; None if the visitor has moved none.
        on_draw: called with the heights of the points before the script's next run; None once the curve is measured.
        measured: positions and heights of the measured curve; empty before the answer.
    """
    positions, high = point_positions(curve, key, screen), curve.high(screen)
    name = _(ac.variant(key).title)
    title = _(curve.title, name=name)
    header = {
        "kind": "sketch",
        "key": mount_key,
        "x": positions,
        "high": high,
        "step": curve.step,
        "digits": curve.digits,
        "is_share": curve.is_share(screen),
        "colour": style(palette.index(key)).colour,
        "drawn": None if drawn is None else list(drawn),
        "measured": list(map(list, measured)),
    }
    texts = {
        "title": title[:1].upper() + title[1:],
        "help": _("Drag the points or use the arrow keys."),
        "point": _("{x}: {y}"),
        "x": _(curve.x_title),
        "y": _(curve.y_title),
        "drawn": _("your curve"),
        "measured": _("measured"),
    }

    def report(values: object) -> None:
        heights = read_heights(values, len(positions), high)
        if on_draw is not None and heights is not None:
            on_draw(heights)

    mount(encode(header), key=mount_key, events={"draw": report}, settings={"texts": texts}, receiver=_SKETCH)
