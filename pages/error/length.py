"""The view of the Error page that draws errors over the sequence length, with variants at their chosen settings."""

from collections.abc import Sequence

from app.figures.lines.curve import Curve
from app.words.labels import label
from attention_core.experiments import error
from attention_core.experiments.error import ErrorPoint
from attention_core.inputs.source import Source
from attention_core.limits import current
from pages.error import length_words
from pages.error.options import Question
from pages.error.sweep import TOKENS_AXIS, View, curve, uniform_curves


def lengths(source: Source, n: int) -> tuple[int, ...]:
    """Return the sequence lengths at which an input of n tokens is measured, ascending."""
    # A synthetic sequence can be generated at lengths beyond the chosen one; a text or a file cannot grow.
    return error.doubling_lengths(max(n, current().matrix_tokens) if source.is_generated else n)


def lines(question: Question, points: Sequence[ErrorPoint]) -> list[Curve]:
    """Return one line per variant."""
    curves = uniform_curves(question, points, lambda point: [float(point.n)])
    for attention, group in question.by_variant(points):
        curves.append(curve(question, attention, group, [float(p.n) for p in group], name=label(attention)))
    return curves


VIEW = View(
    axis_title=TOKENS_AXIS,
    tasks=lambda question: error.length_tasks(
        question.source,
        lengths(question.source, question.n),
        question.words,
        head=question.head,
        causal=question.causal,
    ),
    lines=lines,
    describe=length_words.length_findings,
)
