"""Claim: local attention cannot learn to recall a key's value if its window is shorter than the distance to the key."""

from collections.abc import Sequence

from attention_core import articles
from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Place, Quantity
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.claims.trained_models import (
    LEARNED,
    NOT_RECALLED,
    STEPS_FIGURE,
    TrainedRow,
    accuracy,
    recorded_rows,
)
from attention_core.learning.studies import LONG_WINDOW, SHORT_WINDOW
from attention_core.variant import SOFTMAX

SHORT, WIDE = "window of 4 tokens", "window of 32 tokens"
NAMES = {f"local~window~{SHORT_WINDOW}": SHORT, f"local~window~{LONG_WINDOW}": WIDE}


def numbers(rows: Sequence[TrainedRow]) -> Numbers:
    """Return the accuracy with each window after training."""
    return {"short": accuracy(rows, SHORT), "wide": accuracy(rows, WIDE)}


CLAIM = Claim(
    statement="Local attention cannot learn to find the value of a key if its window is shorter than the distance to "
    "that key.",
    short="recall fails beyond the local window",
    source=articles.SIMPLE_LINEAR,
    place=Place("learn", variants=(SOFTMAX, f"local~window~{SHORT_WINDOW}")),
    experiment="In associative recall, a sequence of 32 tokens begins with 4 pairs of a key and a value. When a key "
    "appears again at a random position, the model must predict its value. Models with two layers of local attention "
    "and a short convolution over 3 tokens are trained for 400 steps with a learning rate of 0.003. The window is "
    "either 4 tokens or all 32 tokens. With the window of 4 tokens, two layers and the convolutions together reach 12 "
    "tokens back.",
    measure=lambda _inputs: recorded_rows("short_window", lambda model: NAMES[model.word]),
    rule="A model has learned recall (to find the value of a key) if at least {learned}% of its answers are "
    "correct. It has not learned recall if this accuracy is below {missed}%, halfway between guessing and 100%. "
    "Accuracies are medians over three runs with different random seeds. The claim holds if local attention learns "
    "recall with a window of 32 tokens but not with a window of 4 tokens. It partly holds if it learns recall with "
    "32 tokens, and fewer than {learned}% of its answers are correct with 4.",
    bounds={"learned": LEARNED, "missed": NOT_RECALLED},
    verdict=Rule(
        requires=Condition("wide", ">=", "learned"),
        holds=Condition("short", "<", "missed"),
        partly=Condition("short", "<", "learned"),
    ),
    finding="In local attention, queries attend only to keys within the window, so a short window hides the value. "
    "After 400 training steps, the model gives {short}% correct answers with a window of 4 tokens, and {wide}% with a "
    "window of 32 tokens.",
    details="Guessing one of the four values is correct in 25% of the cases. A model whose layers do not reach back to "
    "these values does not know which four to guess from, so it can be less accurate.",
    quantities=(
        Quantity("short", "accuracy of local attention with a window of 4 tokens", "%"),
        Quantity("wide", "accuracy of local attention with a window of 32 tokens", "%"),
    ),
    figure=STEPS_FIGURE,
)
