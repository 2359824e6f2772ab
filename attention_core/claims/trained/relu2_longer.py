"""Claim: squared ReLU divided by n generalises to longer sequences less well than softmax."""

from collections.abc import Iterator, Sequence

from attention_core import articles
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule, all_of
from attention_core.claims.trained_models import CLOSE, LEARNED, LENGTHS_FIGURE, TrainedRow, accuracy, recorded_rows
from attention_core.formatting import N_
from attention_core.learning.tasks import recall
from attention_core.variant import SOFTMAX

RELU2, REFERENCE = "squared ReLU ÷ n", N_("softmax")


def measure(_inputs: ExperimentInput) -> Iterator[TrainedRow]:
    """Yield the accuracy of the trained models on longer sequences with the same number of pairs."""
    rows = recorded_rows("relu2_longer", lambda model: REFERENCE if model.word == SOFTMAX else RELU2, tests=True)
    yield from (row for row in rows if row.items == recall.TASK.items)


def numbers(rows: Sequence[TrainedRow]) -> Numbers:
    """Return both models' accuracies at the length of training and at the largest length.

    Also return this length and softmax's lead at it.
    """
    lengths = list(map(int, values(rows, "length")))
    found = {
        f"{name}_{place}": accuracy(rows, model, length=length)
        for name, model in (("relu2", RELU2), ("softmax", REFERENCE))
        for place, length in (("short", min(lengths)), ("long", max(lengths)))
    }
    return found | {"lead": found["softmax_long"] - found["relu2_long"], "longest": max(lengths)}


CLAIM = Claim(
    statement="On sequences longer than in training, a model with squared ReLU ÷ n is less accurate than a model "
    "with softmax. Squared ReLU ÷ n is the square of each positive logit, divided by the number of tokens n.",
    short="softmax beats squared ReLU on longer inputs",
    source=articles.BETTER_WITH_SOFTMAX,
    place=Place("learn", {"l_view": "longer"}, variants=(SOFTMAX, "relu2")),
    experiment="In associative recall, a sequence begins with 4 pairs of a key and a value. When a key appears "
    "again, the model must predict its value. One model has softmax, and the other has squared ReLU divided by the "
    "number of tokens n. Both have two layers, a short convolution and no position encoding. They are trained for "
    "400 steps on sequences of 32 tokens, and tested on sequences of up to 256 tokens. The learning rate of each "
    "model is tuned in separate runs with another random seed.",
    rule="Accuracies are medians over three runs with different random seeds. The model with softmax and the model "
    "with squared ReLU ÷ n (n tokens) must both give at least {learned}% correct answers on sequences as long as in "
    "training. The claim holds if, on the longest sequences, the accuracy of softmax is at least {close} percentage "
    "points above that of squared ReLU. It partly holds if softmax is more accurate on the longest sequences by less "
    "than {close} percentage points.",
    bounds={"learned": LEARNED, "close": CLOSE, "none": 0},
    verdict=Rule(
        requires=all_of(Condition("softmax_short", ">=", "learned"), Condition("relu2_short", ">=", "learned")),
        holds=Condition("lead", ">=", "close"),
        partly=Condition("lead", ">", "none"),
    ),
    finding="Squared ReLU is divided by the number of tokens n, so a longer sequence makes every weight smaller "
    "than in training. At {longest} tokens, the model with squared ReLU gives {relu2_long}% correct answers, and "
    "the model with softmax gives {softmax_long}%.",
    quantities=(
        Quantity(
            "lead",
            "accuracy of softmax minus accuracy of squared ReLU, on the longest sequences",
            "percentage points",
            digits=2,
        ),
        Quantity("relu2_long", "accuracy of squared ReLU on the longest sequences", "%"),
        Quantity("softmax_long", "accuracy of softmax on the longest sequences", "%"),
        Quantity("relu2_short", "accuracy of squared ReLU at the training length", "%"),
        Quantity("softmax_short", "accuracy of softmax at the training length", "%"),
        Quantity("longest", "largest length tested", "tokens"),
    ),
    figure=LENGTHS_FIGURE,
)
