"""Error against length: every variant with its settings as they are, from a few tokens to all there are."""

from collections.abc import Sequence

from app.figures.curves import Curve
from app.words.i18n import _
from app.words.labels import label
from attention_core.experiments import error
from attention_core.experiments.error import ErrorPoint
from attention_core.inputs.source import Source
from attention_core.limits import current
from pages.error import sweep
from pages.error.options import Question
from pages.error.sweep import curve, uniform


def lengths(source: Source, n: int) -> tuple[int, ...]:
    """Return the lengths measured of an input of n tokens, ascending."""
    # A sequence that is made can be made longer; a text or a file is as long as it is.
    return error.lengths_to(max(n, current().matrix_tokens) if source.made else n)


def show(question: Question) -> None:
    """Run every length and draw it."""
    tasks = error.length_tasks(
        question.source,
        lengths(question.source, question.n),
        question.words,
        head=question.head,
        causal=question.causal,
    )
    sweep.show(question, tasks, lines, axis=_("tokens"))


def lines(question: Question, found: Sequence[ErrorPoint]) -> list[Curve]:
    """One line per variant."""
    drawn = uniform(question, found, lambda point: [float(point.n)])
    for attention, own in question.by_variant(found):
        drawn.append(curve(question, attention, own, [float(p.n) for p in own], name=label(attention)))
    return drawn
