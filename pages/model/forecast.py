"""The Forecast view of the Model page: whether a variant's output error predicts its perplexity and copying loss."""

import math
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app.figures.lines.curve import Curve
from app.figures.lines.curves import curves
from app.ui import chart, palette
from app.words.finding import Finding, Lines, to_lines
from app.words.i18n import _, paragraph
from app.words.labels import axis_title, sentence_name
from attention_core import metrics, registry
from attention_core.experiments import swap
from attention_core.experiments.swap import CopyRow, SwapRow, SwapTask
from attention_core.experiments.swap.derived import ErrorPoint, Score, error_points, lost_share, original_rows
from attention_core.formatting import number, percent
from attention_core.model_patching import UNIFORM
from pages.model import words
from pages.model.budget import budget_value
from pages.model.options import Question, display_name
from pages.model.view import HEIGHT, View

MIN_POINTS = 8
"""Minimum number of points (measured variants with their settings) for which an order is reported."""
SAME_ORDER, SIMILAR_ORDER = 0.9, 0.75
"""Smallest rank correlations for which a larger output error mostly, or rather often, means a worse model.

Of eight independent points, 5% have a correlation above 0.74 or below -0.74.
"""
LABELLED = (0, 1, 2, 6)
"""Points of a line, from the smallest error, that are labelled; more labels would overlap."""
AXIS_WIDTH = 280
"""Width in pixels of the horizontal axis of each of the two charts next to a lesson, where they are narrowest."""
ROUNDING_ERROR = 1e-4
"""Errors up to this value are rounding errors; their points are neither drawn nor ranked."""


def _missing(question: Question) -> str:
    return "" if _budget_words(question) else _("Add a variant other than “Equal weights”.")


def _draw(question: Question, rows: Sequence[SwapRow], key: str) -> None:
    words, points = _budget_words(question), measurable(error_points(rows))
    sides = (("perplexity", _("perplexity"), True), ("copied", _("copying loss (nats per token)"), False))
    x_title = _("output error")
    for place, (name, title, log) in zip(st.columns(2), sides, strict=True):
        lines = [_line(word, points, name, colour) for word, colour in zip(words, palette.indices(words), strict=True)]
        figure = curves(
            lines,
            x_title=axis_title(x_title, log=True),
            y_title=axis_title(title, log=log),
            log_x=True,
            log_y=log,
            percent_x=True,
            height=HEIGHT,
            width=AXIS_WIDTH,
        )
        with place:
            message = _("Points: {measure} against {axis}", measure=title, axis=x_title)
            chart.show(figure, key=f"{key}.{name}", name=f"forecast-{name}", alt=message)


def _notes(_question: Question, rows: Sequence[SwapRow]) -> str:
    return paragraph(
        _(
            "Each point is one variant with one setting, such as a window; numbers next to points are settings. The "
            "output error compares a variant's outputs with those of softmax on the original model's queries, keys "
            "and values, averaged over heads and replaced layers."
        ),
        words.results_origin(rows),
    )


def tasks(question: Question) -> tuple[SwapTask, ...]:
    """Return the tasks of this view: to measure each variant with several budgets."""
    layers, n = question.layers, swap.PERIOD * 2
    return swap.budget_tasks(question.text, _budget_words(question), layers, n, output_errors=True, live=question.live)


def _budget_words(question: Question) -> list[str]:
    return [word for word in question.words if word != UNIFORM]


def describe_correlation(points: Sequence[ErrorPoint], copy_row: CopyRow | None) -> Lines:
    """Return the findings about whether a larger output error means a higher perplexity and copying loss."""
    total, points = len(points), measurable(points)
    if len(points) < MIN_POINTS <= total and len(points) < total / 2:
        return to_lines(
            _("On this text, most settings hide no token, so their output errors are only rounding errors.")
        )
    if len(points) < MIN_POINTS:
        return to_lines(_("At least {n} points are needed to compare output error with perplexity.", n=MIN_POINTS))
    errors = [p.output for p in points]
    reading, copying = (
        _order(name, metrics.rank_correlation(errors, values), len(points)) for name, values in _measures(points)
    )
    contrast = _contrast(points, copy_row) if copy_row else ""
    if not contrast:
        return [[Finding(reading)], [Finding(copying)]]
    return [[Finding(contrast, copying.replace("**", ""))], [Finding(reading)]]


def measurable(points: Sequence[ErrorPoint]) -> list[ErrorPoint]:
    """Return the points whose output errors are larger than rounding errors."""
    return [point for point in points if point.output > ROUNDING_ERROR]


def _contrast(points: Sequence[ErrorPoint], copy_row: CopyRow) -> str:
    """Return the finding that one variant copies at a larger output error than another with which copying fails.

    The two variants differ in more than their budget. The finding is empty if there are no such variants.
    """
    original = Score(name="", perplexity=math.nan, copied=copy_row.copied, first=copy_row.first)
    lost = {p.word: lost_share(original, replace(original, copied=p.copied)) for p in points}
    copies = max((p for p in points if lost[p.word] <= words.PRESERVED_LOSS), key=lambda p: p.output, default=None)
    fails = min((p for p in points if lost[p.word] >= words.FAILED_LOSS), key=lambda p: p.output, default=None)
    if copies is None or fails is None or percent(copies.output) == percent(fails.output):
        return ""
    first, second = registry.from_word(copies.word), registry.from_word(fails.word)
    if copies.output < fails.output or first.key == second.key:
        return ""
    return _(
        "**A smaller output error does not always mean better copying: at {high}, {copies} copies random tokens; at "
        "{low}, {fails} hardly does.**",
        copies=sentence_name(first),
        fails=sentence_name(second),
        high=percent(copies.output),
        low=percent(fails.output),
    )


def _measures(points: Sequence[ErrorPoint]) -> tuple[tuple[str, list[float]], ...]:
    return (_("perplexity"), [p.perplexity for p in points]), (_("copying loss"), [p.copied for p in points])


def _order(name: str, rho: float, n: int) -> str:
    """Return whether a larger output error means a higher value of another measurement, such as "perplexity".

    ``rho`` is their rank correlation; NaN if it is not defined.
    """
    values = {"name": name, "rho": number(rho, 2), "n": n}
    if math.isnan(rho):
        return _(
            "Output error and {name} cannot be compared, because one of them is the same for all settings.", name=name
        )
    if rho >= SAME_ORDER:
        return _(
            "**Settings with a larger output error mostly have a higher {name}** (Spearman's rank correlation {rho} "
            "over {n} points).",
            **values,
        )
    if rho >= SIMILAR_ORDER:
        return _(
            "**Settings with a larger output error tend to have a higher {name}** (Spearman's rank correlation {rho} "
            "over {n} points).",
            **values,
        )
    return _(
        "**Settings with a larger output error do not reliably have a higher {name}** (Spearman's rank correlation "
        "{rho} over {n} points).",
        **values,
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
        texts=[_budget(p.word) if i in LABELLED else "" for i, p in enumerate(variant_points)],
    )


def _budget(word: str) -> str:
    """Return the value of a variant's budget, such as its window; empty if it has no budget."""
    return f"{budget_value(word):g}" if registry.from_word(word).variant.budget else ""


FORECAST = View(
    tasks=tasks,
    missing=_missing,
    describe=lambda question, rows: describe_correlation(error_points(rows), original_rows(rows)[1]),
    draw=_draw,
    notes=_notes,
)
