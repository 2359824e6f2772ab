"""Claim: linear attention needs a short convolution for recall."""

from collections.abc import Iterator, Sequence

from attention_core import articles
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.claims.trained_models import LEARNED, NOT_RECALL, OVER_STEPS, TrainedRow, accuracy, recorded

WITH, WITHOUT = "with the convolution", "without the convolution"


def measure(_inputs: ExperimentInput) -> Iterator[TrainedRow]:
    """Yield the accuracy during training."""
    yield from recorded("linear_convolution", lambda model: WITH if model.convolution else WITHOUT)


def numbers(rows: Sequence[TrainedRow]) -> Numbers:
    """Return the accuracy with and without the convolution after training."""
    seeds = values(rows, "accuracy", model=WITHOUT, step=max(values(rows, "step")))
    return {
        "with": accuracy(rows, WITH),
        "without": accuracy(rows, WITHOUT),
        "lowest": min(seeds),
        "highest": max(seeds),
    }


CLAIM = Claim(
    statement="Linear attention needs a short convolution over neighbouring tokens to learn associative recall "
    "(finding the value that belongs to a key).",
    short="linear attention needs a convolution to recall",
    source=articles.WHY_SHORT_CONV,
    place=Place("learn", {"l_view": "parts"}, variants=("softmax", "linear")),
    experiment="In associative recall, a sequence of 32 tokens begins with 4 pairs of a key and a value. When a key "
    "appears again, the model must predict its value. Models with two layers of linear attention are trained for 400 "
    "steps, with and without a short convolution. The convolution mixes each query, key and value with those of the "
    "two tokens before it. The models have no position encoding. The learning rate of each model is tuned in "
    "separate runs with another random seed.",
    measure=measure,
    numbers=numbers,
    rule="A model has learned recall if it answers at least {learned}% of the queries correctly. A model with less "
    "than {missed}% correct answers has not learned recall. This limit is half way between guessing and 100%. "
    "Accuracies are medians over three runs with different random seeds. The claim holds if the model with the "
    "convolution has learned recall and the model without it has not. It holds partly if the model with the "
    "convolution has learned recall and the model without it answers less than {learned}% correctly.",
    bounds={"learned": LEARNED, "missed": NOT_RECALL},
    verdict=Rule(
        requires=Condition("with", ">=", "learned"),
        holds=Condition("without", "<", "missed"),
        partly=Condition("without", "<", "learned"),
    ),
    finding="The convolution combines each value with the key just before it, so attention can find the value by "
    "its key. After 400 steps, linear attention answers {with}% of the queries correctly with the convolution, and "
    "{without}% without it.",
    details="These shares are medians over three runs with different random seeds. Without the convolution, the "
    "runs differ: they answer {lowest}% to {highest}% of the queries correctly. Guessing one of the four values is "
    "correct in 25% of the cases.",
    quantities=(
        Quantity("without", "accuracy without the short convolution", "%"),
        Quantity("with", "accuracy with the short convolution", "%"),
        Quantity("lowest", "lowest accuracy of the three runs without the short convolution", "%"),
        Quantity("highest", "highest accuracy of the three runs without the short convolution", "%"),
    ),
    figure=OVER_STEPS,
    is_recorded=True,
)
