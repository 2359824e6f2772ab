"""The view of the error over each variant's budget, the setting that trades cost for accuracy.

Each line comes with its floor, a lower bound: the lowest error that any matrix of the same rank or sparsity can have.
"""

from collections.abc import Sequence
from itertools import pairwise

from app.figures.lines.curves import Curve
from app.ui import palette
from app.words.i18n import N_, _, enumeration
from app.words.labels import readable
from attention_core.experiments.error import ErrorPoint
from pages.error import words
from pages.error.options import Question
from pages.error.sweep import View, curve, drawable, floor_in_words, uniform

VISIBLE = 0.005
"""Largest height at which a floor coincides with the axis and is not drawn."""


def lines(question: Question, found: Sequence[ErrorPoint]) -> list[Curve]:
    """Return one line per variant over its budget, with its floor; a variant without a budget has a level line."""
    found = [p for p in found if not without_budget(p)]
    budgets = [p.budget for p in found if p.value is not None] or [1.0, float(question.n)]
    ends = [min(budgets), max(budgets)]
    drawn = uniform(question, found, lambda point: ends)
    for attention, own in question.by_variant(found):
        knob = attention.variant.budget
        if knob is None:
            drawn.append(curve(question, attention, own * 2, ends, name=_(attention.title), marks=False))
            continue
        own = sorted(own, key=lambda p: p.budget)
        name = f"{_(attention.title)} · {readable(knob.name)}{' × n' if isinstance(own[0].value, float) else ''}"
        name, xs = name + (" ↓" if cheaper_upwards(own) else ""), [p.budget for p in own]
        drawn.append(curve(question, attention, own, xs, name=name))
        if question.options.measure == "matrix" and any((p.floor or 0.0) > VISIBLE for p in own):
            drawn.append(
                Curve(
                    _("{name}: lower bound", name=name),
                    xs,
                    [drawable(p.floor) for p in own],
                    group=name,
                    name_at_end=False,
                    colour=palette.place(attention.key),
                    dash="dash",
                    marks=False,
                    notes=[floor_in_words(p) for p in own],
                )
            )
    return drawn


def without_budget(point: ErrorPoint) -> bool:
    """Return whether a point has a budget of zero, which a logarithmic axis cannot show."""
    return point.value is not None and point.budget <= 0


def cheaper_upwards(own: Sequence[ErrorPoint]) -> bool:
    """Return whether a larger budget is cheaper from the first step on, as for a stride, and never more expensive.

    A causal window saves only at its last step. A window over the whole text runs as full attention, whose kernel skips
    masked blocks that are smaller than those of the window.
    """
    first, *costs = [p.multiply_adds for p in sorted(own, key=lambda p: p.budget)]
    return bool(costs) and costs[0] < first and all(after <= before for before, after in pairwise(costs))


def notes(question: Question, found: Sequence[ErrorPoint]) -> list[str]:
    """Return notes on how to read the floors, the arrows and the level lines that occur."""
    sentences, shown = [], dict(question.by_variant(found))
    if question.options.measure == "matrix" and any(p.floor for p in found):
        sentences.append(
            _(
                "Dashed lines show a lower bound of a variant's matrix error. No matrix with as many keys per row, and "
                "no matrix of the same rank, has a smaller error."
            )
        )
    if any(cheaper_upwards(own) for attention, own in shown.items() if attention.variant.budget is not None):
        sentences.append(
            _("↓ marks variants that need fewer multiply-adds at a larger budget, such as a larger stride.")
        )
    if none := [_(attention.title) for attention, own in shown.items() if any(map(without_budget, own))]:
        sentences.append(
            _(
                "This axis cannot show a budget of 0 ({names}). The view “By cost” shows these points.",
                names=enumeration(none),
            )
        )
    if level := [_(attention.title) for attention in shown if attention.variant.budget is None]:
        sentences.append(
            _("These variants have no budget setting, so their lines are flat: {names}.", names=enumeration(level))
        )
    return sentences


VIEW = View(axis=N_("budget (the setting named at each line)"), lines=lines, describe=words.against_budget, notes=notes)
