"""The Copying view of the Model page: a model reads random tokens twice; the loss shows whether it copies them."""

from collections.abc import Sequence
from statistics import mean

from app.figures.lines.curves import Curve, curves, guide
from app.ui import chart
from app.words.finding import Finding, Lines
from app.words.i18n import _, paragraph
from attention_core.experiments import swap
from attention_core.experiments.swap import CopyRow, SwapRow
from pages.model import reading, sweep, words
from pages.model.options import Question
from pages.model.view import HEIGHT, View, show_definitions


def _draw(question: Question, rows: Sequence[SwapRow], key: str) -> None:
    lines = [line for line in (_line(rows, *each) for each in sweep.models(question)) if line]
    first = [row.first for row in _copies(rows) if row.layers == ()]
    if lines and first:
        xs = [1.0, float(swap.PERIOD - 1)]
        lines.append(guide(_("Original model, first occurrence"), xs, [mean(first)] * 2))
        lines.append(guide(_("Uniform guess"), xs, [words.GUESS_LOSS] * 2, dash="dash"))
    top = 1.05 * max((y for line in lines for y in line.y if y is not None), default=1.0)
    x_title, y_title = _("position in the repetition (tokens)"), _("mean loss (nats per token)")
    figure = curves(lines, x_title=x_title, y_title=y_title, height=HEIGHT, top=top)
    message = _("Lines: the loss on each repeated token, in the original model and with each variant")
    chart.show(figure, key=f"{key}.chart", name="copying", alt=message)


def _notes(_question: Question, rows: Sequence[SwapRow]) -> str:
    return paragraph(
        _(
            "On the first occurrence, there is nothing to copy. Lines show the mean over {n} random sequences. Point "
            "at a line to see the range.",
            n=max((row.seed + 1 for row in _copies(rows)), default=0),
        ),
        words.results_origin(_copies(rows)),
    )


def show(question: Question) -> None:
    """Draw the copy test, and the definitions of perplexity and copying loss."""
    COPYING.show(question)
    show_definitions()


def _copies(rows: Sequence[SwapRow]) -> list[CopyRow]:
    return [row for row in rows if isinstance(row, CopyRow)]


def _line(rows: Sequence[SwapRow], name: str, word: str, layers: tuple[int, ...], colour: int) -> Curve | None:
    """Return a model's curve of the loss by position: the mean over random sequences, and a band from min to max.

    The result is None if no sequence is finished.
    """
    draws = [row for row in _copies(rows) if (row.word, row.layers) == (word, layers) and row.losses]
    if not draws:
        return None
    by_position = list(zip(*(row.losses for row in draws), strict=True))
    several = len(draws) > 1
    return Curve(
        name,
        [float(i) for i in range(1, 1 + len(by_position))],
        [mean(each) for each in by_position],
        low=[min(each) for each in by_position] if several else None,
        high=[max(each) for each in by_position] if several else None,
        colour=colour,
        markers=False,
    )


def _describe(question: Question, rows: Sequence[SwapRow]) -> Lines | str:
    """Return the findings about the effect of the variants on copying, and the sentence about the test."""
    found = reading.describe_outcome(question, rows, words.describe_copying)
    if isinstance(found, str):
        return found
    test = _("The model reads {period} random tokens twice. The second time, it can copy them.", period=swap.PERIOD)
    return [*found, [Finding(test)]]


COPYING = View(tasks=reading.tasks, describe=_describe, draw=_draw, notes=_notes)
