"""Claim: a trained model with linear attention can recall fewer pairs of keys and values than one with softmax."""

from collections.abc import Iterator, Sequence

from attention_core import articles
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Measured, Numbers, Rule, all_of
from attention_core.claims.trained_models import LEARNED, TrainedRow, accuracy, recorded_rows
from attention_core.formatting import N_
from attention_core.learning.tasks import recall

LINEAR, SOFTMAX = "linear attention", N_("softmax")


def measure(_inputs: ExperimentInput) -> Iterator[TrainedRow]:
    """Yield the accuracy of the trained models with growing numbers of pairs."""
    rows = recorded_rows("linear_pairs", lambda model: LINEAR if model.word == "linear" else SOFTMAX, tests=True)
    task = recall.TASK
    yield from (row for row in rows if row.items != task.items or row.length == task.length)


def numbers(rows: Sequence[TrainedRow]) -> Numbers:
    """Return both models' accuracies at the fewest and the most pairs, and the number of pairs that each recalls.

    Also return the largest number of pairs.
    """
    pairs = sorted(set(values(rows, "items")))
    accuracies = {
        model: {items: accuracy(rows, model, items=items) for items in map(int, pairs)} for model in (LINEAR, SOFTMAX)
    }
    return {
        "linear": _up_to(accuracies[LINEAR]),
        "softmax": _up_to(accuracies[SOFTMAX]),
        "linear_few": accuracies[LINEAR][int(pairs[0])],
        "softmax_few": accuracies[SOFTMAX][int(pairs[0])],
        "linear_many": accuracies[LINEAR][int(pairs[-1])],
        "softmax_many": accuracies[SOFTMAX][int(pairs[-1])],
        "many": pairs[-1],
    }


def _up_to(accuracies: dict[int, float]) -> int:
    """Return the largest number of pairs up to which every accuracy is at least ``LEARNED``; 0 if the first is not."""
    last = 0
    for items, share in accuracies.items():
        if share < LEARNED:
            break
        last = items
    return last


CLAIM = Claim(
    statement="Linear attention stores all keys and values in one matrix of fixed size. A model with linear "
    "attention can therefore recall fewer pairs of keys and values than a model with softmax.",
    short="linear attention recalls fewer pairs",
    source=articles.SIMPLE_LINEAR,
    place=Place("learn", {"l_view": "capacity"}, variants=("softmax", "linear")),
    experiment="In associative recall, a sequence begins with pairs of a key and a value. When a key appears again, "
    "the model must predict its value. Models with linear attention and with softmax have two layers and a short "
    "convolution. They are trained for 400 steps on sequences of 32 tokens with 4 pairs, and tested with up to 24 "
    "pairs. Sequences with more pairs are also longer, up to 128 tokens.",
    rule="A model counts as recalling a given number of pairs of keys and values if at least {learned}% of its answers "
    "are correct. Accuracies are medians over three runs with different random seeds. The claim can hold or partly "
    "hold only if both models recall as many pairs as there were in training. It holds if linear attention recalls "
    "fewer pairs than softmax. It partly holds if linear attention recalls at least as many pairs as softmax, but is "
    "less accurate with the largest number of pairs.",
    bounds={"learned": LEARNED},
    verdict=Rule(
        requires=all_of(Condition("linear_few", ">=", "learned"), Condition("softmax_few", ">=", "learned")),
        holds=Condition("linear", "<", Measured("softmax")),
        partly=Condition("linear_many", "<", Measured("softmax_many")),
    ),
    finding="The more pairs of keys and values a matrix of fixed size stores, the more they interfere with each "
    "other. At least 95% of the answers are correct with up to {linear} pairs for linear attention, and with up to "
    "{softmax} pairs for softmax.",
    details="With {many} pairs of keys and values, linear attention gives {linear_many}% correct answers, and "
    "softmax gives {softmax_many}%.",
    quantities=(
        Quantity("linear", "pairs recalled by linear attention"),
        Quantity("softmax", "pairs recalled by softmax"),
        Quantity("linear_many", "accuracy of linear attention with the most pairs tested", "%"),
        Quantity("softmax_many", "accuracy of softmax with the most pairs tested", "%"),
        Quantity("linear_few", "accuracy of linear attention with as many pairs as in training", "%"),
        Quantity("softmax_few", "accuracy of softmax with as many pairs as in training", "%"),
        Quantity("many", "largest number of pairs tested"),
    ),
    figure=Figure(
        x=Axis("items", "number of pairs to remember"), y=Axis("accuracy", "correct answers (%)"), by="model"
    ),
)
