"""The Forecast view of the Model page: whether a variant's output error predicts its perplexity and copying loss."""

import math
from collections.abc import Sequence

import streamlit as st

from app.figures.lines.curves import Curve, curves
from app.ui import chart, palette
from app.words.i18n import _, _n, paragraph
from attention_core import metrics, registry
from attention_core.experiments import swap
from attention_core.experiments.swap import SwapRow, SwapTask
from attention_core.experiments.swap.derived import ErrorPoint, error_points
from attention_core.formatting import number
from attention_core.model_patching import UNIFORM
from pages.model import words
from pages.model.options import Question, display_name, name_in_sentence
from pages.model.view import HEIGHT, View

MIN_POINTS = 5
"""Minimum number of points (measured variants with their settings) for which an order is reported."""
SAME_ORDER, SIMILAR_ORDER = 0.9, 0.6
"""Smallest rank correlations for which an order is reported as the same, and as roughly the same."""
ROUNDING_ERROR = 1e-4
"""Errors below this value are rounding errors and are not drawn on the logarithmic axis."""


def _missing(question: Question) -> str:
    return "" if _budget_words(question) else _("Add a variant other than “Equal weights”.")


def _draw(question: Question, rows: Sequence[SwapRow], key: str) -> None:
    words, points = _budget_words(question), [p for p in error_points(rows) if p.output > ROUNDING_ERROR]
    sides = (("perplexity", _("perplexity")), ("copied", _("copying loss (nats per token)")))
    x_title = _("relative output error")
    for place, (name, title) in zip(st.columns(2), sides, strict=True):
        lines = [_line(word, points, name, colour) for word, colour in zip(words, palette.indices(words), strict=True)]
        figure = curves(lines, x_title=x_title, y_title=title, log_x=True, log_y=True, height=HEIGHT)
        with place:
            message = _("Points: {measure} against {axis}", measure=title, axis=x_title)
            chart.show(figure, key=f"{key}.{name}", name=f"forecast-{name}", alt=message)


def _notes(_question: Question, rows: Sequence[SwapRow]) -> str:
    return paragraph(
        _(
            "Each point is one variant with one budget, such as a window size, and a line connects the points of one "
            "variant. The output error is the relative difference between the outputs of a variant and of softmax. "
            "It is measured on the original model's queries, keys and values, and averaged over heads and replaced "
            "layers."
        ),
        pair_counts(error_points(rows)),
        words.results_origin(rows),
    )


def tasks(question: Question) -> tuple[SwapTask, ...]:
    """Return the tasks of this view: to measure each variant with several budgets."""
    layers, n = question.layers, swap.PERIOD * 2
    return swap.budget_tasks(question.text, _budget_words(question), layers, n, output_errors=True, live=question.live)


def _budget_words(question: Question) -> list[str]:
    return [word for word in question.words if word != UNIFORM]


def describe_correlation(points: Sequence[ErrorPoint]) -> str:
    """Return the sentences that say if the output error ranks variants like perplexity and like copying loss do."""
    if len(points) < MIN_POINTS:
        return _("At least {n} points are needed to compare the rankings.", n=MIN_POINTS)
    errors = [p.output for p in points]
    return "  \n".join(
        _order(name, metrics.rank_correlation(errors, values), len(points)) for name, values in _measures(points)
    )


def pair_counts(points: Sequence[ErrorPoint]) -> str:
    """Return the sentences about how many pairs of points the output error ranks correctly, and the largest outlier."""
    if len(points) < MIN_POINTS:
        return ""
    errors, keys = [p.output for p in points], [registry.from_word(p.word).key for p in points]
    return paragraph(
        *(
            _between(name, name_in_sentence(points[metrics.farthest_off(errors, values)].word), correct, pairs)
            for name, values in _measures(points)
            for correct, pairs in (metrics.same_order(errors, values, keys),)
            if pairs
        )
    )


def _measures(points: Sequence[ErrorPoint]) -> tuple[tuple[str, list[float]], ...]:
    return (_("perplexity"), [p.perplexity for p in points]), (_("copying loss"), [p.copied for p in points])


def _between(name: str, outlier: str, correct: int, pairs: int) -> str:
    """Return the sentence about how many pairs of points from different variants the output error ranks correctly.

    Args:
        name: the other measurement, such as "perplexity".
        outlier: name of the variant whose ranks differ most.
        correct: number of pairs with the same order in both measurements.
        pairs: number of pairs.
    """
    return _n(
        "For {same} of {n} pair of points from different variants, the point with the larger output error also has the "
        "higher {name}. The point whose ranks in these two measurements differ most is {outlier}.",
        "For {same} of {n} pairs of points from different variants, the point with the larger output error also has "
        "the higher {name}. The point whose ranks in these two measurements differ most is {outlier}.",
        n=pairs,
        same=correct,
        name=name,
        outlier=outlier,
    )


def _order(name: str, rho: float, n: int) -> str:
    """Return the sentence that compares the rankings by output error and by another measurement.

    Args:
        name: the other measurement, such as "perplexity".
        rho: the rank correlation; NaN if it is not defined.
        n: number of points.
    """
    values = {"name": name, "rho": number(rho, 2), "n": n}
    if math.isnan(rho):
        return _(
            "The rankings by output error and by {name} cannot be compared, because one of the two "
            "quantities is constant.",
            name=name,
        )
    if rho >= SAME_ORDER:
        return _(
            "**Output error and {name} rank the variants in nearly the same order** (rank correlation {rho} over {n} "
            "points).",
            **values,
        )
    if rho >= SIMILAR_ORDER:
        return _(
            "**Output error and {name} rank the variants in roughly the same order** (rank correlation {rho} over "
            "{n} points).",
            **values,
        )
    return _(
        "**Output error and {name} rank the variants differently** (rank correlation {rho} over {n} points).", **values
    )


def _line(word: str, points: Sequence[ErrorPoint], name: str, colour: int) -> Curve:
    variant_words = {each.word for each in swap.budget_variants(word, swap.PERIOD * 2)}
    variant_points = sorted((p for p in points if p.word in variant_words), key=lambda p: p.output)
    return Curve(
        _(registry.from_word(word).title),
        [p.output for p in variant_points],
        [getattr(p, name) for p in variant_points],
        colour=colour,
        notes=[display_name(p.word) for p in variant_points],
    )


FORECAST = View(
    tasks=tasks,
    missing=_missing,
    describe=lambda question, rows: describe_correlation(error_points(rows)),
    draw=_draw,
    notes=_notes,
)
