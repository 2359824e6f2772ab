"""Claim: Nyström attention equals softmax if every token is a landmark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.conditions import FUTURE, future_percent
from attention_core.claims.rule import Condition, Numbers, Rule

EXACT, ITERATED = "Nyström, exact inverse", "Nyström, inverse from six iterations"
MAX_TOKENS = 256
"""Maximum number of tokens: singular values of many large matrices would dominate the time of all claims."""
INVERSES = {EXACT: "exact", ITERATED: "iterative"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarksRow:
    """The relative error of one head's Nyström matrix with one number of landmarks.

    ``condition`` is the condition number of softmax's own matrix, which is inverted when every token is a landmark.
    ``future`` (``FUTURE``): for a causal model, the percentage of softmax's attention on later tokens without a mask.
    """

    inverse: str
    landmarks: int
    n: int
    head: int
    condition: float
    error: float
    future: float


def measure(inputs: ExperimentInput) -> Iterator[LandmarksRow]:
    """Yield the relative error of the matrix with n/8, n/4, n/2 and n landmarks, per head, in float64."""
    qkv = inputs.record(min(inputs.record().n, MAX_TOKENS))
    q, k = qkv.q.double(), qkv.k.double()
    exact = registry.get("softmax").weights(q, k)
    hidden, rounding = future_percent(qkv), torch.finfo(q.dtype).eps
    singular = metrics.singular_values(exact)
    # The smallest singular value is not accurate if it is below the rounding error of the largest one. The
    # condition number is then computed with this rounding error instead.
    condition = singular[..., 0] / torch.maximum(singular[..., -1], singular[..., 0] * rounding)
    for landmarks in sorted({max(1, qkv.n // share) for share in (8, 4, 2, 1)}):
        for inverse, method in INVERSES.items():
            nystrom = registry.get("nystrom", landmarks=landmarks, inverse=method)
            error = metrics.relative_error(nystrom.weights(q, k), exact).clamp(min=rounding)
            row = {"inverse": inverse, "landmarks": landmarks, "n": qkv.n, "future": hidden}
            yield from inputs.head_rows(LandmarksRow, **row, condition=condition, error=error)


def numbers(rows: Sequence[LandmarksRow]) -> Numbers:
    """Return the errors with n landmarks, and the largest condition number.

    The errors are the largest one with the exact inverse, and the median with the iterated inverse.
    """
    n = rows[0].n
    return {
        "error": max(values(rows, "error", inverse=EXACT, landmarks=n)),
        "condition": max(row.condition for row in rows),
        "iterated": median(values(rows, "error", inverse=ITERATED, landmarks=n)),
        "tokens": n,
        "future": rows[0].future,
    }


CLAIM = Claim(
    statement="Nyström attention summarises the tokens by landmarks, usually averages of tokens. If every token is "
    "its own landmark and the matrix of weights between landmarks is inverted exactly, the result equals softmax.",
    short="Nyström with n landmarks equals softmax",
    source=articles.NYSTROMFORMER,
    place=Place("error", variants=("softmax", "nystrom~inverse~exact")),
    experiment="Nyström attention summarises n tokens by m landmarks, which are means of neighbouring tokens. It "
    "inverts the m × m matrix of weights between the landmarks. Nyström's matrix is computed in float64 for n/8, "
    "n/4, n/2 and n landmarks, on at most 256 tokens. With n landmarks, every token is a landmark. The inverse is "
    "either exact or comes from six iterations. The matrix error is the size of the difference from softmax's "
    "matrix, divided by the size of softmax's matrix.",
    rule="The matrix error is the relative difference of Nyström attention's matrix from softmax's matrix. Here, "
    "every token is its own landmark, so no tokens are averaged. The matrix of weights between landmarks is "
    "inverted exactly. The claim holds if the matrix error is at most {equal} in every head. It partly holds if "
    "the matrix error is at most {near} in every head.",
    bounds={"equal": 1e-6, "near": 1e-2},
    verdict=Rule(holds=Condition("error", "<=", "equal"), partly=Condition("error", "<=", "near")),
    finding="With all {tokens} tokens as landmarks, Nyström attention averages nothing, so only rounding errors "
    "remain. With the exact inverse, the matrix error (difference from softmax's matrix, largest over heads) is "
    "{error}. With an inverse from six iterations, it is {iterated} (median over heads).",
    details="The matrix to invert has a condition number of up to {condition}, so its inverse can "
    "amplify rounding errors by up to this factor.",
    quantities=(
        Quantity(
            "error",
            "matrix error of Nyström attention with the exact inverse, largest over heads",
            digits=2,
            share=True,
        ),
        Quantity(
            "condition", "condition number of the matrix that Nyström attention inverts, largest over heads", digits=2
        ),
        Quantity(
            "iterated",
            "matrix error of Nyström attention with the landmark matrix inverted in six iterations, median over heads",
            share=True,
        ),
        Quantity("tokens", "number of tokens (every token is a landmark)", "tokens"),
        FUTURE,
    ),
    figure=Figure(
        x=Axis("landmarks", "number of landmarks m", log=True),
        y=Axis("error", "matrix error (%)", log=True),
        by="inverse",
        percent=True,
    ),
    theorem="Every matrix A and its pseudoinverse A⁺ satisfy the equation A A⁺ A = A. If every token is a landmark, "
    "the two outer factors of Nyström attention are softmax's matrix A, and the middle factor is A⁺. Their product is "
    "therefore A.",
)
