"""The numbers of the Learn page that a lesson can ask about, taken from recorded training runs."""

import attention_core as ac
from app.lessons.lesson import LessonError
from app.lessons.screen import Screen
from app.measures import VariantMeasure
from app.words.i18n import N_
from attention_core.learning import recorded_runs
from attention_core.learning.defaults import SEEDS
from pages.learn.options import LearnOptions, plan_of
from pages.learn.outcomes import Outcome, outcomes


def _outcome(screen: Screen, attention: ac.Attention) -> Outcome:
    """Return the recorded measurements of a variant with the settings of a lesson's screen.

    Raises:
        LabError: if the variant is not recorded with these settings, or cannot be trained on the task.
    """
    rows = recorded_runs.recorded_rows(plan_of(screen.options(LearnOptions), [attention.word], SEEDS))
    if not rows:
        raise LessonError(N_("No runs of this variant are recorded with these settings."))
    return outcomes(rows)[0]


def _longest_accuracy(screen: Screen, attention: ac.Attention) -> float | None:
    """Return the accuracy in per cent at the largest tested length; None without tests."""
    largest = _outcome(screen, attention).largest_test("length")
    return None if largest is None else 100 * largest[1]


MEASURES = {
    "accuracy": VariantMeasure(
        N_("share of correct answers of {name} at the end of training"),
        lambda screen, attention: 100 * _outcome(screen, attention).accuracy,
        unit="%",
        tolerance=5,
    ),
    "longest_accuracy": VariantMeasure(
        N_("share of correct answers of {name} on the longest sequences"),
        _longest_accuracy,
        unit="%",
        tolerance=5,
        missing_message=N_("The models of this task are not tested on longer sequences."),
    ),
}
