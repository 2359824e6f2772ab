"""The “Length transfer” view of the Entropy page: how row sums and output norms change with the sequence length.

It compares squared ReLU under several divisors ("normalisers") with softmax. All values are relative to those at a
reference length, which the visitor chooses.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from app.figures.lines.curves import Curve, doublings, guide
from app.figures.lines.spread import Spread, spread
from app.ui import palette
from app.words.finding import Finding
from app.words.i18n import N_, _, paragraph
from attention_core.experiments import length_drift
from attention_core.experiments.length_drift import NORMALIZERS, SOFTMAX, DriftRow, ratios
from attention_core.experiments.lengths import measured_lengths
from attention_core.formatting import number
from attention_core.metrics.fit import fit_growth
from pages.entropy.options import EntropyOptions, Measurement
from pages.entropy.view import View, progress_note

DASHES = dict(zip(NORMALIZERS, ("solid", "dash", "dashdot", "dot"), strict=True))
"""Dash patterns of squared ReLU's normalisers, which share one colour."""


def reference_length(measurement: Measurement) -> int:
    """Return the measured length closest to the chosen reference length."""
    return min(
        measured_lengths(measurement.longest), key=lambda n: abs(math.log(n / measurement.options.reference_length))
    )


def show_controls(measurement: Measurement) -> None:
    """Draw the choice of the measure and of the reference length."""
    EntropyOptions.reference_length.set(reference_length(measurement))
    EntropyOptions.drift_axis.draw()
    EntropyOptions.reference_length.draw(options=measured_lengths(measurement.longest))


def measures() -> dict[str, str]:
    """Return the names of the measures on screen."""
    return {"total": _("row sum"), "size": _("output size")}


def divisors() -> dict[str, str]:
    """Return the names of squared ReLU's divisors on screen."""
    return {"length": "÷ n", "squared": "÷ n²", "fixed": _("÷ constant"), "sum": _("÷ row sum")}


def normalizer_names() -> dict[str, str]:
    """Return the normalisers' translated names, by key."""
    named = {key: _("squared ReLU {divisor}", divisor=divisor) for key, divisor in divisors().items()}
    return {**named, SOFTMAX: _("softmax")}


def drifts(rows: Sequence[DriftRow], measurement: Measurement, measure: str) -> dict[str, Spread]:
    """Return a measure relative to its value at the reference length, by normaliser."""
    spreads = ratios(rows, reference_length(measurement), "size" if measure == "size" else "total")
    return {name: spread(points, mean=measurement.uses_mean) for name, points in spreads.items()}


def describe(rows: Sequence[DriftRow], measurement: Measurement) -> Finding | str:
    """Return the change of the chosen measure, or a note if it cannot be computed from the lengths measured so far."""
    base, measure, lengths = reference_length(measurement), measurement.options.drift_axis, {row.n for row in rows}
    if base not in lengths:
        return _("The reference length has not been measured yet.")
    return progress_note(sorted(lengths), measurement) or main_finding(
        drifts(rows, measurement, measure), base, measure
    )


def main_finding(spreads: Mapping[str, Spread], base: int, measure: str) -> Finding:
    """Return the change with each fixed divisor at the measured length farthest from the reference length."""
    lengths = spreads[SOFTMAX].x
    if len(lengths) < 2:
        return Finding(
            _("At least two text lengths are needed to measure how a value changes with length. Use a longer input.")
        )
    farthest = max(lengths, key=lambda n: (abs(math.log(n / base)), n))
    factors_at_end = {name: spreads[name].value_at(farthest) for name in ("length", "squared", "fixed")}
    if None in factors_at_end.values():
        return Finding(
            _("At {base:,} tokens, no row has a positive logit, so all weights of squared ReLU are 0.", base=base)
        )
    factors = {name: end or 0.0 for name, end in factors_at_end.items()}
    explanation = paragraph(
        _("A row of squared ReLU has one term per key, so its sum can grow with the text."),
        _(
            "From {base:,} to {n:,} tokens, the {measure} of squared ReLU changes by a factor of {length} if the "
            "weights are divided by n. The factor is {squared} with division by n² and {fixed} with division by a "
            "constant.",
            measure=measures()[measure],
            base=base,
            n=int(farthest),
            **{name: number(end) for name, end in factors.items()},
        ),
        _(
            "Between the same two lengths, the output size of softmax changes by a factor of {softmax}.",
            softmax=number(spreads[SOFTMAX].value_at(farthest) or 0.0),
        )
        if measure == "size"
        else "",
    )
    return Finding(smallest_change(factors, measures()[measure], base, int(farthest)), explanation)


def smallest_change(changes: Mapping[str, float], measure: str, base: int, n: int) -> str:
    """Return the fixed divisor with the smallest change of a measure; doubling and halving count as equal changes.

    Args:
        changes: factor by which the measure changes, by divisor.
        measure: name of the measure on screen.
        base: the reference length in tokens.
        n: the length in tokens at which the change is measured.
    """
    sizes = {name: abs(math.log(end)) if end > 0 else math.inf for name, end in changes.items()}
    first, second = sorted(sizes.values())[:2]
    divisor = {"length": "n", "squared": "n²", "fixed": _("a constant")}[min(sizes, key=sizes.__getitem__)]
    values = {"measure": measure, "divisor": divisor, "base": base, "n": n}
    if second - first < 0.01:  # The two best divisors differ by less than 1 %, which the chart cannot show.
        return _(
            "**From {base:,} to {n:,} tokens, no divisor is clearly best at keeping the {measure} of squared ReLU "
            "constant.**",
            **values,
        )
    return _(
        "**From {base:,} to {n:,} tokens, the {measure} of squared ReLU changes least if the weights are divided by "
        "{divisor}.**",
        **values,
    )


def chart(rows: Sequence[DriftRow], measurement: Measurement) -> tuple[list[Curve], dict[str, Any]]:
    """Return one line per normaliser, relative to the reference length."""
    softmax, relu2, base = palette.index("softmax"), palette.index("relu2"), reference_length(measurement)
    curves_ = []
    for name, each in drifts(rows, measurement, measurement.options.drift_axis).items():
        band = measurement.options.band and name in (SOFTMAX, "length")
        colour = softmax if name == SOFTMAX else relu2
        curves_.append(each.curve(normalizer_names()[name], colour, dash=DASHES.get(name, "solid"), band=band))
    lengths = curves_[-1].x
    if lengths:
        curves_.append(guide(_("no change"), lengths, [1.0] * len(lengths)))
    title = _("{measure}, relative to n = {base}", measure=measures()[measurement.options.drift_axis], base=base)
    axes = {"x_title": measurement.length_title, "y_title": title, "log_x": True, "log_y": True}
    mark = (base, _("reference length")) if lengths else None  # Until that length is measured, there are no curves.
    return curves_, {**axes, "mark": mark, "x_ticks": doublings(curves_)}


def table(rows: Sequence[DriftRow], measurement: Measurement) -> list[dict[str, object]]:
    """Return both measures at the shortest and longest length, with their exponents."""
    columns, base = measures(), reference_length(measurement)
    spreads = {measure: drifts(rows, measurement, measure) for measure in columns}
    table_rows = []
    for name, title in normalizer_names().items():
        line: dict[str, object] = {_("variant"): title}
        for measure, word in columns.items():
            each = spreads[measure][name]
            for i in (0, -1) if each.x else ():
                if each.x[i] != base:  # At the reference length, the ratio is always 1.
                    line[_("{measure} at n = {n:g}, relative to n = {base}", measure=word, n=each.x[i], base=base)] = (
                        number(each.middle[i], 3)
                    )
            law = fit_growth(each.x, each.middle) if min(each.middle, default=0) > 0 else None
            line[_("growth exponent a of the {measure} (∝ nᵃ)", measure=word)] = law and law.exponent
        table_rows.append(line)
    return table_rows


def notes(measurement: Measurement) -> str:
    """Return how the change is defined, and why a constant factor does not count."""
    return _(
        "- Every curve shows a head's row sum or output size divided by the same head's result at the reference "
        "length. Training at that length can compensate for any constant factor, so only the shape of the curve "
        "matters.\n"
        "- **Row sum**: the sum of a row's weights, averaged over queries. A row with no positive logit has a sum of "
        "0.\n"
        "- **Output size**: the root mean square of the lengths of the output vectors, over all queries. It can "
        "shrink even if the row sums stay the same, because averaging a larger number of different value vectors "
        "gives a shorter vector.\n"
        "- **Exponent** a: the exponent of the power law c·nᵃ that best fits the curve, by least squares on "
        "logarithms. If a is 0, the curve does not change with n.\n"
        "- Queries, keys and values come from the input, not from a model trained with squared ReLU."
    )


VIEW = View(
    experiment=length_drift,
    heading=N_(
        "If squared ReLU replaces softmax, which divisor of the weights makes attention depend least on the "
        "text length?"
    ),
    variants=lambda measurement: (SOFTMAX, "relu2"),
    controls_above_chart=show_controls,
    describe=describe,
    chart=chart,
    table=table,
    formula=r"A_{ij} = \frac{\operatorname{relu}(x_{ij})^2}{Z_i},\qquad Z_i = n_i,\quad n_i^2,\quad "
    r"\text{a constant}\quad\text{or}\quad \textstyle\sum_l \operatorname{relu}(x_{il})^2,"
    r"\qquad x_{ij} = \frac{q_i\cdot k_j}{\sqrt d}",
    notes=notes,
)
