"""The class ``Curve``, one line of a line chart, and functions that make reference lines and ticks from lines."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.figures.theme import GREY


@dataclass(frozen=True)
class Curve:
    """One line of a chart.

    Attributes:
        name: name in the tooltip and the legend.
        x: positions.
        y: values; None leaves a gap.
        low: lower edge of the band; None without a band.
        high: upper edge of the band.
        hides_band: whether the band is visible only while the pointer is at the line.
        colour: index in the shared series of colours; a variant has the same colour on every page, unless two lines
            of a chart would have the same colour (see ``separate_colours``).
        dash: plotly's name of the dash: ``"dash"`` for baselines and references, ``"dot"`` for zero.
        markers: whether points have markers.
        hollow: whether the markers are open circles.
        group: lines of the same group are highlighted together; the name if empty.
        name_at_end: whether the name is written at the line's end.
        label: shorter name for the line's end; the name if empty.
        size: size of the markers in pixels.
        notes: tooltip of each point in plotly's markup; empty for a tooltip with the point's numbers.
        links: for each point, the end of the address that a click opens; the beginning is ``link_prefix``.
        symbol: plotly's name of the marker of a line with a single point; the line's name is next to the point.
        texts: text next to each point, placed to avoid lines and other texts; empty for points without one.
        text_position: plotly's name of a fixed place for the texts.
        name_index: index of the point next to which the name is, instead of at the line's end.
        name_heights: values of y at which the name may be next to a rising line, in order of preference. Without
            room there, the name is at the line's end.
        large_index: index of a point with a larger marker.
        ring_index: index of a point whose marker is a ring.
        star_index: index of a point whose marker is a star.
        width: width in pixels; the band of a line thinner than 2 pixels is paler.
        open_indices: indices of points whose markers are open.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    hides_band: bool = False
    colour: int = 0
    dash: str = "solid"
    markers: bool = True
    hollow: bool = False
    group: str = ""
    name_at_end: bool = True
    label: str = ""
    size: int = 6
    notes: Sequence[str] = ()
    links: Sequence[str] = ()
    symbol: str = ""
    texts: Sequence[str] = ()
    text_position: str = ""
    name_index: int | None = None
    name_heights: Sequence[float] = ()
    large_index: int | None = None
    ring_index: int | None = None
    star_index: int | None = None
    width: float = 2
    open_indices: Sequence[int] = ()


def guide(name: str, x: Sequence[float], y: Sequence[float], dash: str = "dot") -> Curve:
    """Return a grey line without markers, which serves as a reference for the other lines."""
    return Curve(name, x, y, colour=GREY, dash=dash, markers=False)


def doublings(lines: Iterable[Curve]) -> list[float]:
    """Return ticks for a logarithmic axis: the smallest x of the lines, doubled repeatedly, and the largest x."""
    xs = [x for line in lines for x in line.x] or [1.0]
    stops = [min(xs) * 2**i for i in range(math.floor(math.log2(max(xs) / min(xs))) + 1)]
    return [*(x for x in stops if x <= max(xs) / 1.3), max(xs)]
