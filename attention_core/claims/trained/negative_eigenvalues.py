"""Claim: DeltaNet learns parity only if its write strength may exceed 1, and the solution does not extrapolate."""

from collections.abc import Iterator, Sequence

from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule, all_of, any_of
from attention_core.claims.trained_models import LEARNED, NOT_PARITY, OVER_LENGTHS, TrainedRow, accuracy, recorded
from attention_core.formatting import N_
from attention_core.learning.studies import WRITES
from attention_core.variant import Paper

STRONG, WEAK, SOFTMAX = "DeltaNet, write strengths up to 2", "DeltaNet, write strengths up to 1", N_("softmax")
NAMES = dict(zip(WRITES, (STRONG, WEAK, SOFTMAX), strict=True))


def measure(_inputs: ExperimentInput) -> Iterator[TrainedRow]:
    """Yield the accuracy of the trained models at the length of training and at larger lengths."""
    yield from recorded("negative_eigenvalues", lambda model: NAMES[model.word], tests=True)


def numbers(rows: Sequence[TrainedRow]) -> Numbers:
    """Return the accuracies at the length of training, and with write strengths up to 2 also at the largest length."""
    lengths = list(map(int, values(rows, "length")))
    short = {
        name: accuracy(rows, model, length=min(lengths))
        for name, model in (("strong", STRONG), ("weak", WEAK), ("softmax", SOFTMAX))
    }
    return short | {"longer": accuracy(rows, STRONG, length=max(lengths)), "longest": max(lengths)}


CLAIM = Claim(
    statement="DeltaNet learns parity (whether a count is odd) if its write strength can reach 2, but not if it is "
    "limited to 1. Softmax does not learn parity, and DeltaNet's solution fails on longer sequences.",
    short="parity needs write strengths above 1",
    source=Paper(
        "Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues",
        2024,
        "https://arxiv.org/abs/2411.12537",
        authors="Grazzi et al.",
    ),
    place=Place("learn", {"l_task": "parity", "l_view": "longer"}, variants=("softmax", WRITES[0])),
    experiment="The model reads zeros and ones. At each of them, it must predict whether the count of ones so far "
    "is odd. At each token, DeltaNet multiplies its state's component along the key by 1 minus the write strength. "
    "This factor is negative only if the write strength is above 1. Models with two layers and a short convolution "
    "over 3 tokens are trained for 400 steps on sequences of 32 tokens, and tested on up to 256 tokens. The write "
    "strength of each token is learned, between 0 and a limit of 1 or 2. The learning rate of each model is tuned in "
    "separate runs with another random seed.",
    measure=measure,
    numbers=numbers,
    rule="A model has learned parity if it gives at least {learned}% correct answers. A model with less than "
    "{missed}% has not learned parity. This limit is half way between guessing and 100%. Accuracies are medians over "
    "three runs with different random seeds. DeltaNet with write strengths up to 2 must have learned parity. Three "
    "conditions: (1) DeltaNet with write strengths up to 1 has not learned it. (2) Softmax has not learned it. (3) "
    "At the largest length, DeltaNet with write strengths up to 2 gives less than {learned}% correct answers. The "
    "claim holds if all three conditions are met. It holds partly if the first or the second is met.",
    bounds={"learned": LEARNED, "missed": NOT_PARITY},
    verdict=Rule(
        requires=Condition("strong", ">=", "learned"),
        holds=all_of(
            Condition("weak", "<", "missed"), Condition("softmax", "<", "missed"), Condition("longer", "<", "learned")
        ),
        partly=any_of(Condition("weak", "<", "missed"), Condition("softmax", "<", "missed")),
    ),
    finding="To track whether the count is odd, the state must change its sign at each 1 that the model reads. It "
    "can change its sign only if the write strength is above 1. DeltaNet gives {strong}% correct answers with "
    "strengths up to 2, and {weak}% with strengths up to 1.",
    details="These are results on sequences of 32 tokens, as in training. Softmax gives {softmax}% correct answers, "
    "and guessing gives 50%. At {longest} tokens, DeltaNet with write strengths up to 2 gives {longer}% correct "
    "answers.",
    quantities=(
        Quantity("strong", "accuracy of DeltaNet with write strengths up to 2", "%"),
        Quantity("weak", "accuracy of DeltaNet with write strengths up to 1", "%"),
        Quantity("softmax", "accuracy of softmax", "%"),
        Quantity("longer", "accuracy of DeltaNet with write strengths up to 2 at the largest length", "%"),
        Quantity("longest", "largest length tested", "tokens"),
    ),
    figure=OVER_LENGTHS,
    is_recorded=True,
)
