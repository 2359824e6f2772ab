"""Claim: without a short convolution, softmax attention needs two layers to learn to recall a key's value."""

from collections.abc import Sequence

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
from attention_core.learning.model import ModelSpec
from attention_core.learning.tasks import induction

TWO, ONE, CONVOLUTION = "two layers", "one layer", "one layer and a short convolution"


def _describe(model: ModelSpec) -> str:
    return TWO if model.layers > 1 else CONVOLUTION if model.convolution else ONE


def numbers(rows: Sequence[TrainedRow]) -> Numbers:
    """Return the accuracy of the three models after training, and with two layers, also the lowest over the seeds."""
    return {
        "two": accuracy(rows, TWO),
        "lowest": min(values(rows, "accuracy", model=TWO, step=max(values(rows, "step", model=TWO)))),
        "one": accuracy(rows, ONE),
        "convolution": accuracy(rows, CONVOLUTION),
    }


CLAIM = Claim(
    statement="Without a short convolution, softmax needs two layers to learn to find the value that belongs to a "
    "key (associative recall). One layer must first copy each key to the position of its value.",
    short="two layers recall without a convolution",
    source=induction.TASK.source,
    place=Place("learn", {"l_view": "parts"}, variants=("softmax", "linear")),
    experiment="In associative recall, a sequence of 32 tokens begins with 4 pairs of a key and a value. When a key "
    "appears again, the model must predict its value. Two softmax models, one with one layer and one with two layers, "
    "are trained for 1,600 steps. Both use learned position vectors and no short convolution. Their learning rate is "
    "0.003. This rate was chosen because a model with two layers learned recall with it in a run with another random "
    "seed. A third model has one layer, a short convolution over 3 tokens and no position encoding, and is trained for "
    "400 steps.",
    measure=lambda _inputs: recorded_rows("two_layers_recall", _describe),
    rule="A model has learned recall (to find the value of a key) if at least {learned}% of its answers are "
    "correct. It has not learned recall if this accuracy is below {missed}%, halfway between guessing and 100%. "
    "Accuracies are medians over three runs with different random seeds. The claim holds if, without a short "
    "convolution, a model with two layers learns recall and a model with one layer does not. It partly holds if two "
    "layers learn recall and fewer than {learned}% of the answers are correct with one layer.",
    bounds={"learned": LEARNED, "missed": NOT_RECALLED},
    verdict=Rule(
        requires=Condition("two", ">=", "learned"),
        holds=Condition("one", "<", "missed"),
        partly=Condition("one", "<", "learned"),
    ),
    finding="To find the value of a key, one layer copies each key to the position of its value, and the next layer "
    "finds the key there. With two layers, {two}% of the answers are correct (median of three runs; {lowest}% in the "
    "lowest run). With one layer, the median is {one}%; guessing one of the four values gives 25%.",
    details="With a short convolution, a model with one layer gives {convolution}% correct answers. The models "
    "without one also learn a vector for each position and train longer than those of Learn › One part removed, so "
    "their accuracies differ.",
    quantities=(
        Quantity("two", "accuracy with two layers and no convolution, median of three runs", "%"),
        Quantity("lowest", "accuracy with two layers and no convolution, lowest of three runs", "%"),
        Quantity("one", "accuracy with one layer and no convolution", "%"),
        Quantity("convolution", "accuracy with one layer and a short convolution", "%"),
    ),
    figure=STEPS_FIGURE,
)
