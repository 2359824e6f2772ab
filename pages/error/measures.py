"""The errors on the Error page that a lesson can ask about: a number at given settings, or a curve over budgets."""

from dataclasses import replace

import attention_core as ac
from app.lessons import sweep_results
from app.lessons.lesson import LessonError
from app.lessons.screen import Screen
from app.measures import CurveMeasure, VariantMeasure
from app.words.i18n import N_
from attention_core.experiments.error import MEASURES as KINDS
from attention_core.experiments.error import ErrorTask, budget_variants, points
from pages.error.options import ErrorOptions


def _error(screen: Screen, attention: ac.Attention) -> float:
    """Return the median error over heads and seeds at the variant's chosen settings."""
    chosen, causal = screen.chosen, screen.shared.causal
    task = ErrorTask(source=chosen.source, word=attention.word, head=chosen.head, causal=causal)
    if screen.options(ErrorOptions).against == "length":
        task = replace(task, tokens=chosen.qkv.m, with_floors=False)
    measure = screen.options(ErrorOptions).measure
    assert measure in KINDS
    [point] = points(sweep_results.read_rows("error", [task]), measure)
    return point.middle


def _budgets(screen: Screen, attention: ac.Attention) -> list[float]:
    """Return the budgets at which the page measures a variant.

    Raises:
        LessonError: if the variant has no budget, or a fractional one.
    """
    budget = attention.variant.budget
    if budget is None or budget.kind != "int":
        raise LessonError(
            N_(
                "This variant has no budget (a whole-number setting that limits its cost), so there is no curve to "
                "draw."
            )
        )
    return [float(getattr(each.params, budget.name)) for each in budget_variants(attention, screen.chosen.qkv.m)]


def _is_share(screen: Screen) -> bool:
    """Return whether the page writes errors in the selected metric as percentages."""
    return screen.options(ErrorOptions).is_share


MAX_ERROR = 2.0
"""Largest error that a visitor can guess or draw in a lesson."""
MEASURES = {
    "error": VariantMeasure(
        N_("error of {name} at its current settings, in the error metric selected on the page"),
        _error,
        high=MAX_ERROR,
        step=0.05,
        digits=2,
        tolerance=0.1,
        is_share=_is_share,
    )
}
CURVES = {
    "error": CurveMeasure(
        N_("error of {name} against its budget, in the error metric selected on the page"),
        lambda screen, attention: [_error(screen, each) for each in budget_variants(attention, screen.chosen.qkv.m)],
        positions=_budgets,
        x_title=N_("budget"),
        y_title=N_("error"),
        high=lambda screen: MAX_ERROR,
        step=0.05,
        digits=2,
        tolerance=0.1,
        is_share=_is_share,
    )
}
