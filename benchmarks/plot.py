"""Draws the measured times and memory of all variants as one SVG.

There is a row per family of variants, with time on the left and memory on the right, on logarithmic axes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from attention_core.registry import families
from benchmarks.targets import Table

WIDTH, HEIGHT, LEFT, TOP, LABELS, BETWEEN = 270, 220, 52, 60, 150, 62
LINE = 12
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#555555", "#bcbd22")
KINDS = ("time", "memory")

Curve = list[tuple[int, float]]


@dataclass(frozen=True)
class Panel:
    """One set of axes: its position on the page, and the range of each axis."""

    left: float
    top: float
    sizes: Sequence[int]
    low: int
    high: int

    def x(self, n: int) -> float:
        """Return the horizontal position of a size."""
        first, last = math.log(self.sizes[0]), math.log(self.sizes[-1])
        return self.left + WIDTH * (math.log(n) - first) / max(last - first, 1e-9)

    def y(self, value: float) -> float:
        """Return the vertical position of a ratio."""
        return self.top + HEIGHT * (self.high - math.log10(value)) / (self.high - self.low)


def plot(t: Table) -> str:
    """Return the whole picture as SVG, with the main form of each variant."""
    members = {family: _members(t, family) for family in families()}
    shown = [family for family in families() if members[family]]
    width, height = LEFT + 2 * (WIDTH + LABELS) + BETWEEN, len(shown) * (HEIGHT + TOP) + TOP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11" fill="#333">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for column, kind in enumerate(KINDS):
        left = LEFT + column * (WIDTH + LABELS + BETWEEN)
        curves = {f: {name: _curve(t, name, kind) for name in members[f]} for f in shown}
        values = [y for family in curves.values() for curve in family.values() for _, y in curve] + [1.0]
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        for row, family in enumerate(shown):
            panel = Panel(left, TOP + row * (HEIGHT + TOP), t.sizes, low, max(high, low + 1))
            name = family.replace("_", " ").capitalize()
            title = f"{name}: {kind} over full attention" + (", all cores" if kind == "time" else "")
            parts += _axes(panel, title)
            parts += _curves(panel, curves[family])
    return "\n".join([*parts, "</svg>\n"])


def _members(t: Table, family: str) -> list[str]:
    return t.main(lambda v: v.family == family)


def _curve(t: Table, label: str, kind: str) -> Curve:
    points = []
    for n in t.sizes:
        own, full = t.own(label, n, "all cores"), t.full(label, n, "all cores")
        if own is None or full is None:
            continue
        value = own.ratio.median if kind == "time" else own.memory_ratio(full)
        if value is not None:
            points.append((n, value))
    return points


def _axes(p: Panel, title: str) -> Iterator[str]:
    yield f'<text x="{p.left}" y="{p.top - 12}" font-size="13" font-weight="bold">{escape(title)}</text>'
    for power in range(p.low, p.high + 1):
        y = p.y(10.0**power)
        stroke = "#333" if power == 0 else "#ddd"
        yield f'<line x1="{p.left}" x2="{p.left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{stroke}"/>'
        yield f'<text x="{p.left - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
    for n in p.sizes:
        yield f'<text x="{p.x(n):.1f}" y="{p.top + HEIGHT + 16}" text-anchor="middle">{n}</text>'


def _curves(p: Panel, curves: Mapping[str, Curve]) -> Iterator[str]:
    drawn = {name: curve for name, curve in curves.items() if curve}
    places = _apart({name: p.y(curve[-1][1]) for name, curve in drawn.items()}, p.top, p.top + HEIGHT)
    for (name, curve), colour in zip(drawn.items(), COLOURS * 2, strict=False):
        points = " ".join(f"{p.x(n):.1f},{p.y(value):.1f}" for n, value in curve)
        end, right = curve[-1], p.left + WIDTH
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        yield (
            f'<polyline points="{p.x(end[0]):.1f},{p.y(end[1]):.1f} {right + 16},{places[name]:.1f}" '
            f'fill="none" stroke="{colour}" stroke-width="0.6" stroke-dasharray="2 2"/>'
        )
        yield f'<text x="{right + 19}" y="{places[name] + 4:.1f}" fill="{colour}">{escape(name.split(",")[0])}</text>'


def _apart(positions: Mapping[str, float], top: float, bottom: float) -> dict[str, float]:
    """Return positions of labels near the wanted positions, inside the panel and at least one line of text apart."""
    names = sorted(positions, key=lambda name: positions[name])
    placed: dict[str, float] = {}
    free = top
    for index, name in enumerate(names):
        below = len(names) - 1 - index
        placed[name] = max(free, min(positions[name], bottom - below * LINE))
        free = placed[name] + LINE
    return placed
