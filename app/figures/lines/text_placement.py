"""Functions that find a place next to a point of a line chart where a text crosses neither lines nor other texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

SIDES = (
    "top right",
    "top left",
    "bottom left",
    "bottom right",
    "bottom center",
    "top center",
    "middle right",
    "middle left",
)
"""Places of a text relative to its point, in plotly's words, the preferred one first."""
GAP = 4
"""Pixels between a point and its text."""
CLEARANCE = 6
"""Pixels between a text and other lines, if there is room."""
MARKER_GAP = 8
"""Pixels between the centre of a marker on a line and the name next to the marker."""
Path = Sequence[tuple[float, float]]
"""Points of a line in pixels, from the left and from below."""


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels, from the left and from below."""

    left: float
    low: float
    right: float
    high: float

    def overlaps(self, other: "Box") -> bool:
        """Return whether the rectangles have an area in common."""
        return self.left < other.right and other.left < self.right and self.low < other.high and other.low < self.high

    def is_crossed(self, path: Path) -> bool:
        """Return whether a line passes through the rectangle."""
        for (x0, y0), (x1, y1) in pairwise(sorted(path)):
            if x1 > self.left and x0 < self.right:
                slope = (y1 - y0) / (x1 - x0) if x1 > x0 else 0.0
                edge_heights = [y0 + slope * (max(x0, self.left) - x0), y0 + slope * (min(x1, self.right) - x0)]
                heights = edge_heights if x1 > x0 else [y0, y1]
                if max(heights) > self.low and min(heights) < self.high:
                    return True
        return False


def find_side(
    point: tuple[float, float], size: tuple[float, float], paths: Sequence[Path], boxes: Sequence[Box], width: float
) -> tuple[str, Box]:
    """Return the first of ``SIDES`` with room for a text, and the text's rectangle.

    If no side has room, return the first side where the text crosses no line and no other text, and no end of the chart
    cuts it off. If there is no such side either, return the first where the right end does not cut the text off.

    Args:
        point: the point in pixels.
        size: width and height of the text in pixels.
        paths: lines that the text may not cross.
        boxes: rectangles of other texts and of points.
        width: right end of the chart in pixels.
    """
    for margin in (CLEARANCE, 0):
        for side in SIDES:
            box, padded_box = (_box(*point, size[0] + extra, size[1] + extra, side) for extra in (0, margin))
            # On a narrower chart, the point is closer to the left end, but the text keeps its width. With its own
            # width of free space to its left, the text still fits on a chart of half the width.
            has_room = box.left >= size[0] and box.right <= width
            if has_room and not any(map(box.overlaps, boxes)) and not any(map(padded_box.is_crossed, paths)):
                return side, box
    placed = ((side, _box(*point, *size, side)) for side in SIDES)
    uncut = [each for each in placed if each[1].right <= width or each[0].endswith("left")]
    free = (
        each
        for each in uncut
        if each[1].left >= 0 and not any(map(each[1].overlaps, boxes)) and not any(map(each[1].is_crossed, paths))
    )
    return next(free, uncut[0])


def find_rise(
    path: Path, heights: Sequence[float], size: tuple[float, float], paths: Sequence[Path], boxes: Sequence[Box]
) -> tuple[tuple[float, float], str, Box] | None:
    """Return a point of a rising line with room for a text, the text's side, and its rectangle; None without room.

    Args:
        path: the line.
        heights: heights in pixels at which the text may be, in order of preference. All are tried to the right of
            the line first, then to its left.
        size: width and height of the text in pixels.
        paths: lines that the text may not cross.
        boxes: rectangles of other texts and of points.
    """
    for side in ("middle right", "middle left"):
        for y in heights:
            rises = (pair for pair in pairwise(path) if pair[0][1] < y <= pair[1][1])
            for (x0, y0), (x1, y1) in islice(rises, 1):
                x = x0 + (x1 - x0) * (y - y0) / (y1 - y0)
                box = _box(x, y, *size, side, MARKER_GAP)
                has_room = box.left >= path[0][0]
                if has_room and not any(map(box.overlaps, boxes)) and not any(map(box.is_crossed, paths)):
                    return (x, y), side, box
    return None


def _box(x: float, y: float, width: float, height: float, side: str, gap: float = GAP) -> Box:
    vertical, horizontal = side.split()
    left = {"right": x + gap, "center": x - width / 2, "left": x - gap - width}[horizontal]
    low = {"top": y + GAP, "middle": y - height / 2, "bottom": y - GAP - height}[vertical]
    return Box(left, low, left + width, low + height)
