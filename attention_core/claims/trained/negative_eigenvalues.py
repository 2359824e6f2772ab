"""Claim: DeltaNet learns parity only if its write strength may exceed 1, and then also answers longer sequences."""

from collections.abc import Sequence

from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule, all_of, any_of
from attention_core.claims.trained_models import (
    LEARNED,
    LENGTHS_FIGURE,
    NOT_PARITY,
    TrainedRow,
    accuracy,
    recorded_rows,
)
from attention_core.formatting import N_
from attention_core.learning.studies import PARITY_VARIANTS
from attention_core.learning.tasks import parity

STRONG, WEAK, SOFTMAX = "DeltaNet, strength up to 2", "DeltaNet, strength up to 1", N_("softmax")
NAMES = dict(zip(PARITY_VARIANTS, (STRONG, WEAK, SOFTMAX), strict=True))


def numbers(rows: Sequence[TrainedRow]) -> Numbers:
    """Return the accuracy of each model at the length of training.

    Also return the largest length, and the accuracy there with write strengths up to 2.
    """
    lengths = list(map(int, values(rows, "length")))
    short = {
        name: accuracy(rows, model, length=min(lengths))
        for name, model in (("strong", STRONG), ("weak", WEAK), ("softmax", SOFTMAX))
    }
    return short | {"longer": accuracy(rows, STRONG, length=max(lengths)), "longest": max(lengths)}


CLAIM = Claim(
    statement="DeltaNet learns parity (whether the count of ones is odd) only if its write strength, which scales "
    "each correction of stored values, may exceed 1. It then also answers correctly on sequences longer than in "
    "training. Softmax does not learn parity.",
    short="DeltaNet needs strengths above 1 for parity",
    source=parity.TASK.source,
    place=Place("learn", {"l_task": "parity", "l_view": "longer"}, variants=("softmax", PARITY_VARIANTS[0])),
    experiment="The model reads zeros and ones. After each digit, it must predict whether the count of ones so far is "
    "odd. DeltaNet stores values in a matrix. At each token with write strength β, it multiplies the value stored "
    "under the token's key by 1 − β, and then adds β times the token's value. The factor 1 − β is negative only if β "
    "is above 1. Models with two layers and a short convolution over 3 tokens are trained for 400 steps on sequences "
    "of 32 tokens, and tested on up to 256 tokens. The write strength of each token is learned, between 0 and a limit "
    "of 1 or 2. The learning rate of each model is tuned in separate runs with another random seed.",
    measure=lambda _inputs: recorded_rows("negative_eigenvalues", lambda model: NAMES[model.word], tests=True),
    rule="A model has learned parity (whether the count of ones so far is odd) if its accuracy is at least "
    "{learned}%. It has not learned parity if its accuracy is below {missed}%, halfway between guessing and "
    "100%. Accuracies are medians over three runs with different random seeds. DeltaNet stores values under keys "
    "and corrects them at each token. The write strength scales each correction. The claim holds if four "
    "conditions are met. (1) DeltaNet learns parity with write strengths up to 2. (2) DeltaNet does not learn "
    "parity with write strengths up to 1. (3) Softmax does not learn parity. (4) On the longest sequences, the "
    "accuracy of DeltaNet with write strengths up to 2 is at least {learned}%. The claim partly holds if condition "
    "(1) and at least one of conditions (2) and (3) are met.",
    bounds={"learned": LEARNED, "missed": NOT_PARITY},
    verdict=Rule(
        requires=Condition("strong", ">=", "learned"),
        holds=all_of(
            Condition("weak", "<", "missed"), Condition("softmax", "<", "missed"), Condition("longer", ">=", "learned")
        ),
        partly=any_of(Condition("weak", "<", "missed"), Condition("softmax", "<", "missed")),
    ),
    finding="Parity changes at each 1, and DeltaNet can change the sign of its stored values only with a write "
    "strength above 1. On sequences as long as in training, it gives {strong}% correct answers with strengths up to 2, "
    "and {weak}% with strengths up to 1. On {longest} tokens, it gives {longer}% with strengths up to 2.",
    details="On sequences as long as in training (32 tokens), guessing gives 50% correct answers.",
    quantities=(
        Quantity("strong", "accuracy of DeltaNet with write strengths up to 2, at the training length", "%"),
        Quantity("weak", "accuracy of DeltaNet with write strengths up to 1, at the training length", "%"),
        Quantity("softmax", "accuracy of softmax, at the training length", "%"),
        Quantity("longer", "accuracy of DeltaNet with write strengths up to 2, on the longest sequences", "%"),
        Quantity("longest", "largest length tested", "tokens"),
    ),
    figure=LENGTHS_FIGURE,
)
