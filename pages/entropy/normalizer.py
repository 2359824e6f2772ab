"""The “Row totals by length” view of the Entropy page: the sum Z of a row's similarities against the text length."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from app.figures.lines.curve import Curve, doublings, guide
from app.figures.lines.spread import Spread, spread
from app.ui import palette
from app.words.finding import Finding
from app.words.i18n import N_, _, paragraph
from attention_core.experiments import normalizer_length
from attention_core.experiments.normalizer_length import LOG_NORMALIZERS, MAX_LOG_GROWTH, NormalizerRow, growth
from attention_core.experiments.task import group_by_head
from attention_core.formatting import number, percent
from attention_core.metrics.fit import TAIL_POSITIONS, PowerFit, fit_bend, fit_growth
from pages.entropy.options import Measurement
from pages.entropy.view import View, progress_note, quartiles

MAX_EXPONENT_DISTANCE = 0.05
"""Distance of an exponent from 1 up to which dividing by n fits a total."""
SHRINKS = N_(
    "**No. From {a:,} to {b:,} tokens, n becomes {times} times as large, but the row totals of squared ReLU become "
    "only {growth} times as large. The sum of the weights falls by {fall}.**"
)
CONSTANT = N_(
    "**Yes. From {a:,} to {b:,} tokens, the row totals of squared ReLU grow about as fast as n, so the sum of the "
    "weights stays nearly constant.**"
)
GROWS = N_(
    "**No. From {a:,} to {b:,} tokens, n becomes {times} times as large, and the row totals of squared ReLU become "
    "{growth} times as large. The sum of the weights grows.**"
)
NO_GROWTH = N_(
    "**No. From {a:,} to {b:,} tokens, n becomes {times} times as large, but the row totals of squared ReLU hardly "
    "grow. The sum of the weights falls by {fall}.**"
)
VARIES = N_(
    "**No. From {a:,} to {b:,} tokens, the row totals of squared ReLU do not grow as one power of n, so the sum of "
    "the weights changes.**"
)
LATE = N_(
    "**Only for long inputs. From {tail:,} to {b:,} tokens, the row totals of squared ReLU grow about as fast as n, "
    "but not over all lengths.**"
)
"""Findings about the sum of the weights of squared ReLU after a division by n, to be translated."""
MIN_MISFIT = 0.05
"""Smallest difference between the last total and the fitted power, as a share of the latter, that the text names."""
RAISED = str.maketrans("0123456789.-", "⁰¹²³⁴⁵⁶⁷⁸⁹·⁻")
"""Characters of a number, and the raised characters that represent them."""
MAX_DENSE_TICKS = 6
"""Largest number of lengths, and largest ratio of totals, for which an axis has other ticks than powers of two."""


def power(exponent: float) -> str:
    """Return a power of n as text, such as n⁰·³⁹; Unicode has no raised full stop."""
    return "n" + f"{round(exponent, 2) + 0.0:.2f}".translate(RAISED)


def level_ticks(levels: Sequence[float]) -> dict[float, str] | None:
    """Return ticks such as 1, 1.5, 2, 3 with their texts; None (Plotly chooses) if levels differ too much for them."""
    low, high = min(levels, default=1.0), max(levels, default=1.0)
    if not 0 < high <= MAX_DENSE_TICKS * low or low < 0.5:
        return None
    return {tick: f"{tick:g}" for tick in (0.5, 0.75, 1, 1.5, 2, 3, 4, 6) if low <= tick <= high}


def total_names() -> dict[str, str]:
    """Return the names on screen of the totals Σ exp(x) and Σ relu(x)²."""
    return {"softmax": _("Softmax: Σ exp(x)"), "relu2": _("Squared ReLU: Σ relu(x)²")}


def short_labels() -> dict[str, str]:
    """Return the shorter names of the totals, for the ends of their lines."""
    return {"softmax": _("Softmax"), "relu2": _("Squared ReLU")}


def totals(rows: Sequence[NormalizerRow], measurement: Measurement) -> dict[str, Spread]:
    """Return each total by length, relative to its value at each head's shortest length."""
    return {name: spread(growth(rows, name), mean=measurement.uses_mean) for name in LOG_NORMALIZERS}


def chart(rows: Sequence[NormalizerRow], measurement: Measurement) -> tuple[list[Curve], dict[str, Any]]:
    """Return both totals, their fitted power laws, and n itself."""
    curves_: list[Curve] = []
    spreads = totals(rows, measurement)
    for name, each in spreads.items():
        colour = palette.index(name)
        curve = each.curve(total_names()[name], colour, band=measurement.options.band)
        curves_.append(replace(curve, label=short_labels()[name], hides_band=name != "relu2"))
        if name == "relu2" and (law := fit_growth(each.x, each.middle)) and _has_one_power(each):
            title = _("best fit: {power}, R² {r2:.2f}", power=power(law.exponent), r2=law.r2)
            end = _("best fit: {power}", power=power(law.exponent))
            y = [law.at(x) for x in each.x]
            curves_.append(Curve(title, each.x, y, colour=colour, dash="dash", markers=False, label=end))
    lengths = max((each.x for each in spreads.values()), key=len)
    if lengths:
        curves_.append(guide(_("proportional to n"), lengths, [n / lengths[0] for n in lengths]))
    first = f"{lengths[0]:g}" if lengths else "…"
    axes = {
        "x_title": measurement.length_title,
        "y_title": _("total, relative to n = {first}", first=first),
        "log_x": True,
        "log_y": True,
        "y_ticks": level_ticks([y for line in curves_ for y in line.y if y is not None]),
    }
    return curves_, {**axes, "x_ticks": lengths if len(lengths) <= MAX_DENSE_TICKS else doublings(curves_)}


def describe(rows: Sequence[NormalizerRow], measurement: Measurement) -> Finding | str:
    """Return how fast the totals grow, or a note if too few lengths are measured so far."""
    spreads = totals(rows, measurement)
    return progress_note(spreads["softmax"].x, measurement) or main_finding(spreads)


def main_finding(spreads: Mapping[str, Spread]) -> Finding:
    """Return how fast the totals grow, and whether dividing by n fits squared ReLU."""
    softmax, relu2 = spreads["softmax"], spreads["relu2"]
    law, other = (fit_growth(each.x, each.middle) for each in (softmax, relu2))
    if law is None:
        return Finding(_("These lengths are too few or too close together to measure growth. Use a longer input."))
    if other is None:
        return Finding(_softmax_growth(law))
    tail = fit_bend(relu2.x, relu2.middle)
    exponents = (other.exponent, tail.exponent if tail else other.exponent)
    purpose = _(
        "Softmax divides each row by its total. Squared ReLU attention can divide by n instead, which is simpler."
    )
    terms = _("Squared ReLU attention uses relu(logit)² where softmax uses exp(logit).")
    total = _("A row's total is the sum of these terms. Divided by n, the total is the sum of the row's weights.")
    why = _("The output is the weighted mean of the values, multiplied by the sum of the weights.")
    misfit = _misfit(relu2, other) if _has_one_power(relu2) else ""
    return Finding(
        paragraph(_weight_sums(relu2, *map(_side, exponents)), purpose),
        paragraph(terms, total, _growth_text(*exponents), misfit, why),
    )


def _has_one_power(relu2: Spread) -> bool:
    """Return whether the totals compare with n over the longest lengths as over all lengths, so that a fit is shown."""
    law, tail = fit_growth(relu2.x, relu2.middle), fit_bend(relu2.x, relu2.middle)
    return law is not None and (tail is None or _side(law.exponent) == _side(tail.exponent))


def _softmax_growth(law: PowerFit) -> str:
    """Return the power of n as which the totals of softmax grow."""
    if round(law.exponent, 2) < 0:
        return _("The totals of softmax fall approximately as {power}.", power=power(law.exponent))
    return _("The totals of softmax grow approximately as {power}.", power=power(law.exponent))


def _misfit(relu2: Spread, law: PowerFit) -> str:
    """Return how far the totals at the greatest length are from the fitted power; empty if they are close to it."""
    difference = relu2.middle[-1] / law.at(relu2.x[-1]) - 1
    values = {"n": int(relu2.x[-1]), "share": percent(abs(difference))}
    if abs(difference) < MIN_MISFIT:
        return ""
    if difference < 0:
        return _("This fit is not exact: at {n:,} tokens, the totals are {share} below it.", **values)
    return _("This fit is not exact: at {n:,} tokens, the totals are {share} above it.", **values)


def _side(exponent: float) -> int:
    """Return −1, 0 or 1 for a total that grows more slowly than n, about as fast as n, or faster."""
    return (exponent > 1 - MAX_EXPONENT_DISTANCE) + (exponent > 1 + MAX_EXPONENT_DISTANCE) - 1


def _weight_sums(relu2: Spread, side: int, tail_side: int) -> str:
    """Return how the sum of squared ReLU's weights in a row changes if each row is divided by n."""
    (first, last), (a, b) = ((each[0], each[-1]) for each in (relu2.middle, relu2.x))
    ratio = (last / first) / (b / a)
    values = {
        "a": int(a),
        "b": int(b),
        "times": number(b / a),
        "growth": number(last / first),
        "fall": percent(1 - ratio),
        "tail": int(relu2.x[-TAIL_POSITIONS:][0]),
    }
    if side == tail_side == 0:
        return _(CONSTANT, **values)
    if tail_side == 0:
        return _(LATE, **values)
    if side != tail_side and (side == 0 or abs(ratio - 1) < MAX_EXPONENT_DISTANCE):
        return _(VARIES, **values)
    if last / first < 1 + MAX_EXPONENT_DISTANCE:
        return _(NO_GROWTH, **values)
    return _(SHRINKS if ratio < 1 else GROWS, **values)


def _growth_text(exponent: float, tail: float) -> str:
    """Return the power of n as which the totals of squared ReLU grow, over all lengths and the longest ones."""
    values: dict[str, Any] = {"power": power(exponent), "tail": power(tail), "n": TAIL_POSITIONS}
    if _side(exponent) == _side(tail):
        return (
            _("The totals of squared ReLU fall approximately as {power}.", **values)
            if round(exponent, 2) < 0
            else _("The totals of squared ReLU grow approximately as {power}.", **values)
        )
    if _side(tail) == 0:
        return _("Over all lengths, these totals grow as {power}, and over the {n} longest ones as {tail}.", **values)
    return _(
        "Over the {n} longest lengths, the totals of squared ReLU grow differently, as {tail}, so no power of n is a "
        "good divisor.",
        **values,
    )


def table(rows: Sequence[NormalizerRow], measurement: Measurement) -> list[dict[str, object]]:
    """Return the totals at the shortest and longest length, and the exponents' spread over heads."""
    table_rows: list[dict[str, object]] = []
    for name, title in total_names().items():
        total_rows = [row for row in rows if row.normalizer == name]
        spread_ = spread(growth(total_rows, name), mean=measurement.uses_mean)
        logs = spread(((row.n, row.log_z) for row in total_rows if row.log_z is not None), mean=measurement.uses_mean)
        laws = (
            fit_growth(*zip(*points, strict=True))
            for head in group_by_head(total_rows)
            if (points := growth(head, name))
        )
        law = fit_growth(spread_.x, spread_.middle)
        table_rows.append(
            {
                _("variant and sum Z"): title,
                **{f"Z({logs.x[i]:g})": readable(logs.middle[i]) for i in (0, -1) if logs.x},
                _("exponent a of Z ∝ nᵃ"): law and law.exponent,
                _("R² of the exponent"): law and law.r2,
                _("exponent, quartiles over heads"): quartiles([each.exponent for each in laws if each]),
                _("share of rows with Z = 0"): fmean(row.empty for row in total_rows),
            }
        )
    return table_rows


def readable(log: float) -> str:
    """Return a number, given by its logarithm, as text."""
    return number(math.exp(log), 3) if log < MAX_LOG_GROWTH else f"e^{log:.0f}"


def notes(measurement: Measurement) -> str:
    """Return how Z and its exponent are computed."""
    return _(
        "- Z is the sum by which a row's terms can be divided so that its weights sum to 1. The terms are computed "
        "from the logits x, without subtracting their maximum. If all logits are zero, softmax's Z is the number of "
        "keys.\n"
        "- A head's Z is the geometric mean over its queries. In a row without a positive logit, squared ReLU's Z is "
        "0. The mean leaves these rows out.\n"
        "- Every curve shows a head's Z divided by its Z at the shortest length. Lines show the median or mean over "
        "heads and seeds, and bands show the quartiles.\n"
        "- **Exponent** a is the slope of a line fitted to log Z against log n by least squares: Z grows "
        "approximately as nᵃ. If a is below 1, Z grows more slowly than n. Dividing by n then makes the sum "
        "of the weights fall with length."
    )


VIEW = View(
    experiment=normalizer_length,
    heading=N_("Can squared ReLU attention divide by n instead of the row total?"),
    variants=lambda measurement: tuple(LOG_NORMALIZERS),
    describe=describe,
    chart=chart,
    table=table,
    formula=r"Z_i = \sum_j e^{x_{ij}}\quad\text{or}\quad Z_i = \sum_j \operatorname{relu}(x_{ij})^2,"
    r"\qquad x_{ij} = \frac{q_i\cdot k_j}{\sqrt d}",
    notes=notes,
    dashed=N_("Dashed: the power of n that fits the totals of squared ReLU best."),
)
