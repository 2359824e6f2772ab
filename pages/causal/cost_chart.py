"""Charts of the cost of algorithms for causal linear attention, in the Training chapter of the Causal page."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.figures.lines.curve import Curve
from app.figures.theme import GREY
from app.ui import chart
from app.words.i18n import N_, _
from attention_core.experiments import causal_modes
from attention_core.experiments.causal_gradient import BytesRow
from attention_core.experiments.causal_modes import MATRIX, CostRow
from attention_core.formatting import format_interpolated
from pages.causal.shared import show_lines

HEIGHT = 340
"""Height in pixels of the charts."""
MAX_NARROW_TICKS = 6
"""Largest number of ticks of the horizontal axis on a narrow screen; of more, every second one is left out."""
ALGORITHM_NAMES = {
    "chunked": N_("chunked"),
    "recurrent": N_("recurrent"),
    "cumsum": N_("state after every token"),
    MATRIX: N_("explicit matrix"),
}
"""Names of the algorithms on screen."""
COLOURS = {"chunked": 4, "recurrent": 2, "cumsum": 5, MATRIX: GREY}
"""Colours of the algorithms: indices into the palette, or a colour."""
Points = Mapping[str, Sequence[tuple[float, float]]]


def over_length(rows: Sequence[CostRow | BytesRow], measure: str, unit: float = 1.0) -> Points:
    """Return a measure as a function of the length, by algorithm."""
    points_by_algorithm: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        points_by_algorithm.setdefault(row.algorithm, []).append((float(row.n), getattr(row, measure) / unit))
    return {algorithm: points_by_algorithm[algorithm] for algorithm in COLOURS if algorithm in points_by_algorithm}


def cumsum_crossing(points_by_algorithm: Points) -> tuple[float, float] | None:
    """Return the length from which cumsum costs less than the explicit matrix, and the cost there; None if unknown."""
    return causal_modes.crossing(points_by_algorithm.get("cumsum", ()), points_by_algorithm.get(MATRIX, ()))


def show_costs(points_by_algorithm: Points, unit: str, key: str, *, marks_crossing: bool = False) -> None:
    """Draw a cost as a function of the length.

    Args:
        points_by_algorithm: lengths and costs of each algorithm.
        unit: title of the vertical axis.
        key: key of the chart, whose last part is also the name of its file.
        marks_crossing: whether a ring marks where cumsum becomes cheaper than the explicit matrix.
    """
    lines = [
        Curve(
            _(ALGORITHM_NAMES[algorithm]),
            [n for n, _cost in points],
            [cost for _n, cost in points],
            colour=COLOURS[algorithm],
            dash="dash" if algorithm == MATRIX else "solid",
        )
        for algorithm, points in points_by_algorithm.items()
    ]
    ticks = sorted({x for line in lines for x in line.x})
    if marks_crossing and (crossing := cumsum_crossing(points_by_algorithm)) is not None and crossing[0] > ticks[0]:
        title = _(
            "from n ≈ {n} on, storing every state costs less than the explicit matrix",
            n=format_interpolated(crossing[0]),
        )
        text = f"n ≈ {format_interpolated(crossing[0])}"
        ring = Curve(title, [crossing[0]], [crossing[1]], colour=COLOURS["cumsum"], hollow=True)
        lines.append(replace(ring, name_at_end=False, texts=[text if crossing[0] > 2 * ticks[0] else ""]))
    show_lines(
        lines,
        key=key,
        name="causal-" + key.rpartition(".")[-1],
        alt=_("Lines: {unit} of each algorithm against the number of tokens", unit=unit),
        x_title=_("tokens n"),
        y_title=unit,
        log_x=True,
        log_y=True,
        x_ticks=ticks[:: 2 if chart.is_narrow() and len(ticks) > MAX_NARROW_TICKS else 1],
        height=HEIGHT,
    )
