"""The view of the Error page that draws errors over each variant's budget, the setting that trades cost for accuracy.

For each variant, the view also draws a lower bound: the lowest error that any matrix of the same rank or sparsity can
have.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from app.figures.lines.curve import Curve
from app.state.session import REFERENCE
from app.ui import palette
from app.words.i18n import _, enumeration
from app.words.labels import setting_name
from attention_core.experiments.error import UNIFORM, ErrorPoint
from pages.error import budget_words, words
from pages.error.options import Question
from pages.error.sweep import SETTINGS_AXIS, View, curve, finite_or_none, floor_text, uniform_curves

MAX_HIDDEN_FLOOR = 0.005
"""Largest lower bound of the matrix error that is not drawn, because its line would coincide with the axis."""


def lines(question: Question, points: Sequence[ErrorPoint]) -> list[Curve]:
    """Return one line per variant over its budget; a variant without a budget has a horizontal line.

    For the matrix error, the lower bounds of the variants are drawn too.
    """
    points = [p for p in points if not has_zero_budget(p)]
    budgets = [p.budget for p in points if p.value is not None] or [1.0, float(question.n)]
    budget_range = [min(budgets), max(budgets)]
    curves = uniform_curves(question, points, lambda point: budget_range)
    full_cost, named = words.cost_of_softmax(question) or 0.0, budget_words.linked_point(question, points)
    for attention, group in question.by_variant(points):
        budget = attention.variant.budget
        if budget is None:
            curves.append(curve(question, attention, group * 2, budget_range, name=_(attention.title), markers=False))
            continue
        group = sorted(group, key=lambda p: p.budget)
        name = (
            f"{_(attention.title)} · {setting_name(budget.name)}{' × n' if isinstance(group[0].value, float) else ''}"
        )
        name, xs = (name + (" ↓" if gets_cheaper(group) else ""), [p.budget for p in group])
        line = curve(question, attention, group, xs, name=name)
        expensive = [i for i, p in enumerate(group) if p.multiply_adds >= full_cost]
        current = getattr(attention.params, budget.name)
        large = next((i for i, p in enumerate(group) if p.value == current), None)
        star = group.index(named) if named in group and halves_error(named, points) else None
        curves.append(replace(line, open_indices=expensive, large_index=large, star_index=star))
        if question.options.measure == "matrix" and any((p.floor or 0.0) > MAX_HIDDEN_FLOOR for p in group):
            curves.append(
                Curve(
                    _("{name}: lower bound", name=name),
                    xs,
                    [finite_or_none(p.floor) for p in group],
                    group=name,
                    name_at_end=False,
                    colour=palette.index(attention.key),
                    dash="dash",
                    markers=False,
                    notes=[floor_text(p) for p in group],
                )
            )
    return curves


def has_zero_budget(point: ErrorPoint) -> bool:
    """Return whether a point has a budget of zero, which a logarithmic axis cannot show."""
    return point.value is not None and point.budget <= 0


def gets_cheaper(group: Sequence[ErrorPoint]) -> bool:
    """Return whether a larger budget never costs more, and the second smallest costs less than the smallest.

    This is true for a stride, but not for a causal window. The cost of a window falls only at
    the last step: it then covers the whole text, and the kernel of full attention skips smaller masked blocks.
    """
    first, *costs = [p.multiply_adds for p in sorted(group, key=lambda p: p.budget)]
    return bool(costs) and costs[0] < first and all(after <= before for before, after in pairwise(costs))


def key(question: Question, points: Sequence[ErrorPoint]) -> list[str]:
    """Return what open points, dashed lines and arrows in the chart mean, for those that the chart has."""
    groups = {a: group for a, group in question.by_variant(points) if a.variant.budget is not None}
    full_cost = words.cost_of_softmax(question) or 0.0
    return [
        _("Equal settings of different variants do not cost the same.") if len(groups) > 1 else "",
        _("Open points cost at least as much as softmax.")
        if any(p.multiply_adds >= full_cost and not has_zero_budget(p) for group in groups.values() for p in group)
        else "",
        _("Dashed: the lowest error possible with the same rank or number of keys.")
        if question.options.measure == "matrix"
        and any((p.floor or 0.0) > MAX_HIDDEN_FLOOR for group in groups.values() for p in group)
        else "",
        _("↓: cheaper at larger values.") if any(map(gets_cheaper, groups.values())) else "",
        _("The star marks the cheapest setting with at most half the error of equal weights.")
        if halves_error(budget_words.linked_point(question, points), points)
        else "",
    ]


def halves_error(best: ErrorPoint | None, points: Sequence[ErrorPoint]) -> bool:
    """Return whether a point has at most half the error of equal weights, compared with softmax."""
    uniform = [p.middle for p in points if (p.variant, p.reference) == (UNIFORM, REFERENCE)]
    return best is not None and any(best.middle <= budget_words.CLOSE_ERROR_SHARE * error for error in uniform)


def notes(question: Question, points: Sequence[ErrorPoint]) -> list[str]:
    """Return notes on budgets that the axis cannot show, and on the flat lines of variants without a budget."""
    sentences, groups = [], dict(question.by_variant(points))
    if undrawn := [_(attention.title) for attention, group in groups.items() if any(map(has_zero_budget, group))]:
        sentences.append(
            _(
                "This axis cannot show a budget of 0 ({names}). The view “By cost” shows these points.",
                names=enumeration(undrawn),
            )
        )
    if flat := [_(attention.title) for attention in groups if attention.variant.budget is None]:
        sentences.append(
            _("These variants have no budget setting, so their lines are flat: {names}.", names=enumeration(flat))
        )
    return sentences


VIEW = View(
    axis_title=SETTINGS_AXIS,
    lines=lines,
    describe=budget_words.budget_findings,
    linked_point=budget_words.linked_point,
    notes=notes,
    key=key,
)
