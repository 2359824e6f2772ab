"""Error against the budget: each variant over its own knob, the floor that bounds its matrix beneath it."""

from collections.abc import Sequence
from itertools import pairwise

from app.figures.curves import Curve
from app.ui import palette
from app.words.i18n import _
from app.words.labels import readable
from attention_core.experiments import error
from attention_core.experiments.error import ErrorPoint
from pages.error import sweep
from pages.error.options import Question
from pages.error.sweep import curve, drawable, floor_in_words, uniform

VISIBLE = 0.005
"""A floor that is nowhere higher than this lies on the axis, and is not drawn."""


def show(question: Question) -> None:
    """Run the ladder of every variant's budget and draw it."""
    tasks = error.tasks(question.source, question.n, question.words, head=question.head, causal=question.causal)
    sweep.show(question, tasks, lines, axis=_("budget: each variant's own knob"), captions=captions)


def lines(question: Question, found: Sequence[ErrorPoint]) -> list[Curve]:
    """One line per variant over its knob, its floor beneath it; a variant without a knob is level."""
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
                    _("{name}: floor", name=name),
                    xs,
                    [drawable(p.floor) for p in own],
                    group=name,
                    listed=False,
                    colour=palette.place(attention.key),
                    dash="dash",
                    marks=False,
                    notes=[floor_in_words(p) for p in own],
                )
            )
    return drawn


def without_budget(point: ErrorPoint) -> bool:
    """Whether it is a variant with its knob at zero, which a logarithmic axis has no place for."""
    return point.value is not None and point.budget <= 0


def cheaper_upwards(own: Sequence[ErrorPoint]) -> bool:
    """Return whether a knob saves from its first step on, as a stride does, and never costs more on the way.

    A causal window saves at its last step alone: a window over the whole text runs as full attention, whose kernel
    skips hidden blocks that are smaller than those of the window.
    """
    first, *costs = [p.multiply_adds for p in sorted(own, key=lambda p: p.budget)]
    return bool(costs) and costs[0] < first and all(after <= before for before, after in pairwise(costs))


def captions(question: Question, found: Sequence[ErrorPoint]) -> list[str]:
    """How the floors, the arrows and the level lines are read, where there are any."""
    told, shown = [], dict(question.by_variant(found))
    if question.options.measure == "matrix" and any(p.floor for p in found):
        told.append(
            _(
                "Dashed: each variant's floor, judged from its matrix. Where that has zeros, the best choice of as "
                "many keys in each row; where its rank is short, the truncated SVD of that rank; the higher one."
            )
        )
    if any(cheaper_upwards(own) for attention, own in shown.items() if attention.variant.budget is not None):
        told.append(_("↓: turning the knob up makes it cheaper."))
    if none := [_(attention.title) for attention, own in shown.items() if any(map(without_budget, own))]:
        told.append(
            _(
                "This axis has no zero: a budget of 0 is drawn against cost and stands among the numbers ({names}).",
                names=", ".join(none),
            )
        )
    if level := [_(attention.title) for attention in shown if attention.variant.budget is None]:
        told.append(_("Level lines have no budget knob: {names}.", names=", ".join(level)))
    return told
