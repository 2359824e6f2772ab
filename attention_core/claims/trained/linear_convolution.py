"""Claim: linear attention needs a short convolution over neighbouring tokens to learn to recall a key's value."""

from collections.abc import Sequence

from attention_core import articles
from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.claims.trained_models import (
    LEARNED,
    NOT_RECALLED,
    STEPS_FIGURE,
    TrainedRow,
    accuracy,
    recorded_rows,
)

WITH, WITHOUT = "with a convolution", "without a convolution"


def numbers(rows: Sequence[TrainedRow]) -> Numbers:
    """Return the accuracies after training, with and without the convolution.

    Without it, also return the accuracy at step 300, and the lowest and the highest final accuracy over the seeds.
    """
    seeds = values(rows, "accuracy", model=WITHOUT, step=max(values(rows, "step")))
    return {
        "with": accuracy(rows, WITH),
        "without": accuracy(rows, WITHOUT),
        "before": accuracy(rows, WITHOUT, step=300),
        "lowest": min(seeds),
        "highest": max(seeds),
    }


CLAIM = Claim(
    statement="Linear attention needs a short convolution over neighbouring tokens to learn associative recall "
    "(finding the value that belongs to a key).",
    short="a convolution lets linear attention recall",
    source=articles.WHY_SHORT_CONV,
    place=Place("learn", {"l_view": "parts"}, variants=("softmax", "linear")),
    experiment="In associative recall, a sequence of 32 tokens begins with 4 pairs of a key and a value. When a key "
    "appears again, the model must predict its value. Models with two layers of linear attention are trained for 400 "
    "steps, with and without a short convolution. The convolution mixes each query, key and value with those of the "
    "two tokens before it. The models have no position encoding. The learning rate of each model is tuned in "
    "separate runs with another random seed.",
    measure=lambda _inputs: recorded_rows("linear_convolution", lambda model: WITH if model.convolution else WITHOUT),
    rule="A model has learned recall (to find the value of a key) if at least {learned}% of its answers are "
    "correct. It has not learned recall if this accuracy is below {missed}%, halfway between guessing and 100%. "
    "Accuracies are medians over three runs with different random seeds. The claim holds if linear attention learns "
    "recall with the short convolution but not without it. It partly holds if it learns recall with the "
    "convolution, and fewer than {learned}% of its answers are correct without it.",
    bounds={"learned": LEARNED, "missed": NOT_RECALLED},
    verdict=Rule(
        requires=Condition("with", ">=", "learned"),
        holds=Condition("without", "<", "missed"),
        partly=Condition("without", "<", "learned"),
    ),
    finding="The short convolution combines each value with the key just before it, so attention can find the value "
    "by its key. After 400 training steps, linear attention gives {with}% correct answers with the convolution, and "
    "{without}% without it ({before}% at step 300).",
    details="Accuracies are medians over three runs with different random seeds. In the three runs without the "
    "convolution, {lowest}% to {highest}% of the answers are correct. Guessing one of the four values is correct in "
    "25% of the cases.",
    quantities=(
        Quantity("without", "accuracy of linear attention without the short convolution", "%"),
        Quantity("with", "accuracy of linear attention with the short convolution", "%"),
        Quantity("before", "accuracy of linear attention without the short convolution, at step 300", "%"),
        Quantity("lowest", "accuracy of linear attention without the short convolution, lowest of three runs", "%"),
        Quantity("highest", "accuracy of linear attention without the short convolution, highest of three runs", "%"),
    ),
    figure=STEPS_FIGURE,
)
