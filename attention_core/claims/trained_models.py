"""Code for the claims about trained models: rows of recorded training runs, and thresholds of accuracy.

The thresholds decide whether a model has learned a task.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core.claims.claim_parts import Axis, Figure, UntestableError, values
from attention_core.learning.model import ModelSpec
from attention_core.learning.studies import STUDIES

LEARNED = 95
"""Per cent of correct answers from which a model has learned its task: within 5 points of 100%."""
CLOSE = 5
"""Percentage points up to which two accuracies count as equal."""
NOT_RECALLED, NOT_PARITY = 62.5, 75
"""Per cent of correct answers below which a model has not learned recall or parity: half way between guessing, which
is correct in 25% or 50% of the cases, and 100%."""
STEPS_FIGURE = Figure(x=Axis("step", "training steps"), y=Axis("accuracy", "correct answers (%)"), by="model")
LENGTHS_FIGURE = Figure(
    x=Axis("length", "tokens in a sequence", log=True), y=Axis("accuracy", "correct answers (%)"), by="model"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRow:
    """The accuracy of a tiny model during training, or of the trained model on other sequences.

    Attributes:
        model: description of the model.
        seed: seed of the run.
        step: training steps so far.
        length: tokens of the sequences that the model is measured on.
        items: pairs to remember, or numbers to compare, in each sequence; 0 if the task has no such number.
        accuracy: per cent of correct answers.
    """

    model: str
    seed: int
    step: int
    length: int
    items: int
    accuracy: float


def recorded_rows(study: str, describe: Callable[[ModelSpec], str], *, tests: bool = False) -> Iterator[TrainedRow]:
    """Yield the recorded rows of a claim's runs.

    Args:
        study: the claim's key.
        describe: ``model -> description``; no two models of the claim have the same description.
        tests: whether to yield the tests of the trained models instead of the rows of training.

    Raises:
        UntestableError: if a run is not recorded.
    """
    from attention_core.learning import recorded_runs  # imported here: it needs msgspec, an optional package

    for plan in STUDIES[study]():
        rows = [each for each in recorded_runs.recorded_rows(plan) if each.is_test == tests]
        if {each.spec for each in rows} != set(plan.specs):
            raise UntestableError("The training runs of this claim are not recorded.")
        for each in rows:
            row = each.row
            yield TrainedRow(
                model=describe(each.spec.model),
                seed=row.seed,
                step=row.step,
                length=row.length,
                items=row.items,
                accuracy=100 * row.accuracy,
            )


def accuracy(rows: Sequence[TrainedRow], model: str, **where: int) -> float:
    """Return the median accuracy of a model over its seeds, in per cent.

    ``where`` selects rows by their fields; without it, the rows after the last training step are used.
    """
    selection: dict[str, float] = {**where} if where else {"step": max(values(rows, "step", model=model))}
    return median(values(rows, "accuracy", model=model, **selection))
