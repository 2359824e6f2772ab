"""The numbers of the Model page that a lesson can ask about, such as the perplexity and the loss when copying."""

from collections.abc import Sequence
from typing import cast

from app.lessons import sweep_results
from app.lessons.lesson import LessonError
from app.lessons.screen import Screen
from app.measures import PageMeasure
from app.words.i18n import N_
from attention_core import metrics
from attention_core.experiments import swap
from attention_core.experiments.swap import SwapRow, SwapTask
from attention_core.experiments.swap.derived import Score, error_points
from pages.model import forecast, reading
from pages.model.options import ModelOptions, Question, question_of


def _question(screen: Screen) -> Question:
    return question_of(screen.options(ModelOptions), screen.shared.text)


def _rows(tasks: Sequence[SwapTask]) -> list[SwapRow]:
    """Return the measurement of each task: a recorded one if available, else one that the page has computed."""
    known = [(task, None if task.live else swap.recorded_row(task)) for task in tasks]
    return [row or cast(SwapRow, sweep_results.read_rows("swap", [task])[0]) for task, row in known]


def _scores(screen: Screen) -> tuple[Score, Score]:
    """Return the perplexity and copying loss of the original model, and those with the variant on a lesson's screen.

    Raises:
        LessonError: if no variant is chosen, or it has not been measured.
    """
    question = _question(screen)
    if not question.words:
        raise LessonError(N_("No variant is chosen to replace softmax. Add a variant to measure it."))
    original, changed = reading.scores(question, _rows(reading.tasks(question)))
    return original, changed[min(question.options.shown, len(changed) - 1)]


def _perplexity_ratio(screen: Screen) -> float:
    original, chosen = _scores(screen)
    return chosen.perplexity / original.perplexity


def _copying_loss(screen: Screen) -> float:
    return _scores(screen)[1].copied


def _rank_correlation(screen: Screen) -> float:
    points = forecast.measurable(error_points(_rows(forecast.tasks(_question(screen)))))
    return metrics.rank_correlation([p.output for p in points], [p.perplexity for p in points])


MEASURES = {
    "times": PageMeasure(
        N_("perplexity with the selected variant, relative to the original model"),
        _perplexity_ratio,
        unit=N_("times"),
        low=0.1,
        high=10,
        step=0.1,
        digits=1,
        tolerance=0.2,
    ),
    "copied": PageMeasure(
        N_("loss per copied token with the selected variant"),
        _copying_loss,
        unit=N_("nats"),
        high=14,
        step=0.1,
        digits=1,
        tolerance=0.5,
    ),
    "forecast": PageMeasure(
        N_("rank correlation between output error and perplexity"),
        _rank_correlation,
        low=-1,
        high=1,
        step=0.01,
        digits=2,
        tolerance=0.05,
    ),
}
