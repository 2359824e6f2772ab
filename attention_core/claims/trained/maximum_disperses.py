"""Claim: models find the largest number less often among more numbers than in training, above all without softmax."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Measured, Numbers, Rule, all_of, any_of
from attention_core.claims.trained_models import CLOSE, TrainedRow, accuracy, recorded_rows
from attention_core.formatting import N_
from attention_core.learning.studies import MAXIMUM_VARIANTS
from attention_core.learning.tasks import maximum

SOFTMAX, LOG_N, SIGMOID, RELU2 = N_("softmax"), "softmax × log n", N_("sigmoid"), "squared ReLU ÷ n"
NAMES = dict(zip(MAXIMUM_VARIANTS, (SOFTMAX, LOG_N, SIGMOID, RELU2), strict=True))


def measure(_inputs: ExperimentInput) -> Iterator[TrainedRow]:
    """Yield the accuracy of the trained models with growing counts of numbers to compare."""
    for row in recorded_rows("maximum_disperses", lambda model: NAMES[model.word], tests=True):
        yield replace(row, items=row.length - 1)  # without the last token, the query


def numbers(rows: Sequence[TrainedRow]) -> Numbers:
    """Return each model's accuracy with the smallest count of numbers, and its decrease at the largest count.

    Also return these two counts.
    """
    counts = list(map(int, values(rows, "items")))
    few, many = min(counts), max(counts)
    result: dict[str, float] = {"few": few, "many": many}
    for word, model in NAMES.items():
        result[word] = accuracy(rows, model, items=few)
        result[f"{word}_falls"] = result[word] - accuracy(rows, model, items=many)
    return result


CLAIM = Claim(
    statement="Models trained to find the largest of 5 to 16 numbers are less accurate with 256 numbers. Accuracy "
    "falls least if softmax's logits are multiplied by log n (n tokens), and most if softmax is replaced by "
    "sigmoid, or by squared ReLU divided by n.",
    short="more numbers make the largest harder to find",
    source=maximum.TASK.source,
    place=Place("learn", {"l_task": "maximum", "l_view": "longer"}, variants=MAXIMUM_VARIANTS),
    experiment="Each item has a number and a class. The model must name the class of the item with the largest "
    "number. Four models are compared: softmax, softmax with logits multiplied by log n (n tokens), sigmoid, and "
    "squared ReLU ÷ n. They have two layers, a short convolution over 3 tokens and no position encoding. They are "
    "trained for 400 steps with 5 to 16 numbers, and tested with up to 256 numbers. The learning rate of each model is "
    "tuned in separate runs with another random seed.",
    rule="The models must find the largest number. The drop of a model is its accuracy with 16 numbers "
    "minus its accuracy with 256 numbers, in percentage points. Accuracies are medians over three runs with "
    "different random seeds. The claim holds if three conditions are met. (1) The drop of softmax is more than "
    "{close} points. (2) The drop of softmax is smaller if its logits are multiplied by log n (n tokens). (3) "
    "Sigmoid and squared ReLU ÷ n, which replace softmax, both have a larger drop than softmax. The claim partly "
    "holds if condition (1) and only one of the others are met.",
    bounds={"close": CLOSE},
    verdict=Rule(
        requires=Condition("softmax_falls", ">", "close"),
        holds=all_of(
            Condition("softmax_log_n_falls", "<", Measured("softmax_falls")),
            Condition("sigmoid_falls", ">", Measured("softmax_falls")),
            Condition("relu2_falls", ">", Measured("softmax_falls")),
        ),
        partly=any_of(
            Condition("softmax_log_n_falls", "<", Measured("softmax_falls")),
            all_of(
                Condition("sigmoid_falls", ">", Measured("softmax_falls")),
                Condition("relu2_falls", ">", Measured("softmax_falls")),
            ),
        ),
    ),
    finding="With more numbers, each query spreads its weight over more of them. From {few} to {many} numbers, softmax "
    "loses {softmax_falls} percentage points of accuracy. With logits multiplied by log n (n tokens), softmax loses "
    "{softmax_log_n_falls} points.",
    details="With {few} numbers to compare, the accuracy is {softmax}% for softmax and {softmax_log_n}% for softmax "
    "with logits multiplied by log n (n tokens). It is {sigmoid}% for sigmoid and {relu2}% for squared ReLU ÷ n.",
    quantities=(
        Quantity(
            "softmax_falls",
            "drop in softmax's accuracy in finding the largest number, from the fewest to the most numbers",
            "percentage points",
        ),
        Quantity(
            "softmax_log_n_falls",
            "drop in the accuracy of softmax with logits × log n in finding the largest number, from the fewest to "
            "the most numbers",
            "percentage points",
        ),
        Quantity(
            "sigmoid_falls",
            "drop in sigmoid's accuracy in finding the largest number, from the fewest to the most numbers",
            "percentage points",
        ),
        Quantity(
            "relu2_falls",
            "drop in squared ReLU's accuracy in finding the largest number, from the fewest to the most numbers",
            "percentage points",
        ),
        Quantity("softmax", "accuracy of softmax in finding the largest number, with the fewest numbers", "%"),
        Quantity(
            "softmax_log_n",
            "accuracy of softmax with the log n factor in finding the largest number, with the fewest numbers",
            "%",
        ),
        Quantity("sigmoid", "accuracy of sigmoid in finding the largest number, with the fewest numbers", "%"),
        Quantity("relu2", "accuracy of squared ReLU in finding the largest number, with the fewest numbers", "%"),
        Quantity("few", "smallest count of numbers tested"),
        Quantity("many", "largest count of numbers tested"),
    ),
    figure=Figure(
        x=Axis("items", "numbers to compare", log=True), y=Axis("accuracy", "correct answers (%)"), by="model"
    ),
)
