"""The view of the Entropy page that multiplies logits by λ, which changes softmax's entropy but not squared ReLU's."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from app.figures.lines.curve import Curve
from app.figures.lines.spread import Spread, spread
from app.ui import palette
from app.words.finding import Finding
from app.words.i18n import N_, _, paragraph
from attention_core.experiments import homogeneity
from attention_core.experiments.homogeneity import FACTORS, VARIANTS, HomogeneityRow
from attention_core.formatting import at_most, number
from pages.entropy.growth import row_sum_range
from pages.entropy.options import EntropyOptions, Measurement
from pages.entropy.view import View

MAX_TOKENS = 256
"""Maximum tokens: the effect needs no more, and every factor is computed for every head."""
SOFTMAX, RELU2 = VARIANTS[:2]


def measured_tokens(measurement: Measurement) -> int:
    """Return the number of the input's tokens that are measured."""
    return min(measurement.record.m, MAX_TOKENS)


def variant_names() -> dict[str, str]:
    """Return the variants' names on screen."""
    return dict(zip(VARIANTS, (_("Softmax"), _("Squared ReLU ÷ row sum"), _("Squared ReLU ÷ n")), strict=True))


def entropies(rows: Sequence[HomogeneityRow], word: str, measurement: Measurement) -> Spread:
    """Return a variant's entropy by the factor that multiplies every logit, in the chosen unit."""
    points = ((row.factor, measurement.units_per_nat * row.entropy) for row in rows if row.variant == word)
    return spread(points, mean=measurement.uses_mean)


def largest_change(rows: Sequence[HomogeneityRow], word: str, factor: float) -> float:
    """Return the largest change of any weight of a variant that a factor causes."""
    return max((row.change for row in rows if row.variant == word and row.factor == factor), default=0.0)


def chart(rows: Sequence[HomogeneityRow], measurement: Measurement) -> tuple[list[Curve], dict[str, Any]]:
    """Return the entropy of each variant against the factor."""
    drawn, factor = [], measurement.options.factor
    for word, name in variant_names().items():
        colour, dash = palette.index(word.partition("~")[0]), "dash" if word == VARIANTS[2] else "solid"
        spread_ = entropies(rows, word, measurement)
        drawn.append(spread_.curve(name, colour, dash=dash, band=measurement.options.band and dash == "solid"))
    if [f"{y:.2f}" for y in drawn[1].y] == [f"{y:.2f}" for y in drawn[2].y]:  # The lines coincide.
        drawn[1:] = replace(drawn[1], label=_("Squared ReLU")), replace(drawn[2], name_at_end=False)
    axes = {
        "x_title": _("factor λ on every logit"),
        "y_title": _("entropy ({unit}), lower = sharper", unit=measurement.unit),
    }
    return drawn, {
        **axes,
        "log_x": True,
        "mark": (factor, f"λ = {factor:g}"),
        "x_ticks": {x: _("1 (unchanged)") if x == 1 else f"{x:g}" for x in FACTORS[::2]},
    }


def describe(rows: Sequence[HomogeneityRow], measurement: Measurement) -> Finding:
    """Return the finding about the chosen factor."""
    factor, (softmax, relu2) = measurement.options.factor, (entropies(rows, word, measurement) for word in VARIANTS[:2])
    change, per_nat = largest_change(rows, RELU2, factor), measurement.units_per_nat
    return main_finding(factor, softmax, relu2, change, measurement.unit, per_nat)


def main_finding(
    factor: float, softmax: Spread, relu2: Spread, weight_change: float, unit: str, per_nat: float = 1.0
) -> Finding:
    """Return the finding that a factor changes softmax's entropy, but not squared ReLU divided by its row sum.

    Args:
        factor: the factor.
        softmax: softmax's entropies by factor.
        relu2: squared ReLU's entropies by factor.
        weight_change: largest change of any weight of squared ReLU.
        unit: unit of the entropies.
        per_nat: number of these units in one nat.
    """
    unchanged, changed, constant = softmax.value_at(1.0), softmax.value_at(factor), relu2.value_at(factor)
    if unchanged is None or changed is None or constant is None:
        return Finding(_("Measuring λ = {factor:g} …", factor=factor))
    values = {"still": constant, "unit": unit, "moved": at_most(weight_change), "factor": factor}
    values |= {"plain": unchanged, "steered": changed}
    values |= {"before": number(math.exp(unchanged / per_nat)), "after": number(math.exp(changed / per_nat))}
    text = _("The entropy of softmax changes from {plain:.2f} to {steered:.2f} {unit}.", **values)
    if f"{unchanged:.2f}" == f"{changed:.2f}":
        text = _("The entropy of softmax is {plain:.2f} {unit} with and without this factor.", **values)
    if values["before"] == values["after"]:
        finding = _("**Multiplying all logits by λ = {factor:g} hardly changes the entropy of softmax.**", **values)
    elif changed < unchanged:
        finding = _(
            "**Multiplying all logits by λ = {factor:g} sharpens softmax from {before} to {after} effective keys. "
            "The spread of squared ReLU stays the same.**",
            **values,
        )
    else:
        finding = _(
            "**Multiplying all logits by λ = {factor:g} flattens softmax from {before} to {after} effective keys. "
            "The spread of squared ReLU stays the same.**",
            **values,
        )
    terms = _(
        "The entropy of squared ReLU stays at {still:.2f} {unit}, because a factor λ on all logits multiplies each "
        "term of a row by λ².",
        **values,
    )
    by_sum = (
        _("If the terms are divided by the row sum, λ² cancels, and no weight changes.")
        if weight_change == 0
        else _(
            "If the terms are divided by the row sum, λ² cancels, and no weight changes by more than {moved}.", **values
        )
    )
    return Finding(finding, paragraph(text, terms, by_sum))


def table(rows: Sequence[HomogeneityRow], measurement: Measurement) -> list[dict[str, object]]:
    """Return the rows of the table, one per variant.

    A row has the entropies without and with the factor λ of the logits, the largest change of a weight, and the row
    sums with λ.
    """
    factor, unit = measurement.options.factor, measurement.unit
    return [
        {
            _("variant"): title,
            _("entropy H, λ = {factor} ({unit})", factor=1, unit=unit): entropies(rows, word, measurement).value_at(
                1.0
            ),
            _("entropy H, λ = {factor} ({unit})", factor=f"{factor:g}", unit=unit) + " ": entropies(
                rows, word, measurement
            ).value_at(factor),
            _("largest change of a weight, λ = {factor:g}", factor=factor): number(largest_change(rows, word, factor)),
            _("row sums, λ = {factor:g}", factor=factor): row_sum_range(
                [row for row in rows if row.variant == word and row.factor == factor]
            ),
        }
        for word, title in variant_names().items()
    ]


def notes(measurement: Measurement) -> str:
    """Return why a factor cancels in squared ReLU, but not in softmax."""
    return _(
        "Because the factor cancels in squared ReLU, neither a temperature nor log n scaling can sharpen its rows. All "
        "values are measured on the first {n} tokens.",
        n=measured_tokens(measurement),
    )


def draw_factor() -> None:
    """Draw the slider of the factor, with its label to the left."""
    factor = EntropyOptions.factor
    st.caption(_(factor.title), help=_(factor.help), width="content")
    factor.draw(width=420, label_visibility="collapsed")


VIEW = View(
    experiment=homogeneity,
    heading=N_("Do larger logits sharpen attention?"),
    variants=lambda measurement: VARIANTS,
    settings=lambda measurement: {"n": measured_tokens(measurement)},
    controls_above_chart=lambda measurement: draw_factor(),
    sweeps=False,
    describe=describe,
    chart=chart,
    table=table,
    formula=r"\frac{\operatorname{relu}(\lambda x_{ij})^2}{\sum_l \operatorname{relu}(\lambda x_{il})^2}"
    r"= \frac{\lambda^2\operatorname{relu}(x_{ij})^2}{\lambda^2\sum_l \operatorname{relu}(x_{il})^2}"
    r"\qquad\text{but}\qquad \frac{e^{\lambda x_{ij}}}{\sum_l e^{\lambda x_{il}}} = "
    r"\frac{(e^{x_{ij}})^\lambda}{\sum_l (e^{x_{il}})^\lambda}",
    notes=notes,
    caption=lambda measurement: (
        _("Only the first {n} tokens are measured, to save computing time.", n=MAX_TOKENS)
        if measured_tokens(measurement) < measurement.record.m
        else ""
    ),
)
