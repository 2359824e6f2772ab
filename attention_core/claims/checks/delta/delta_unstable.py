"""Claim: the delta rule is unstable if β‖k‖² exceeds 2, that is, if it removes more than twice what a key reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import articles
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Numbers, Place, Quantity, UntestableError, Verdict, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE

STRENGTHS = (0.5, 1.0, 1.5, 1.9, 2.0, 2.1, 2.5, 3.0)
STABLE, BEYOND = 2.0, 2.1
HALF, WHOLE = "after half of the text", "after the whole text"


@dataclass(frozen=True, slots=True, kw_only=True)
class NormRow:
    """The largest factor by which any direction of an earlier state is scaled after some of a head's tokens."""

    strength: float
    after: str
    head: int
    left: float


def measure(inputs: ExperimentInput) -> Iterator[NormRow]:
    """Yield the largest singular value of ``Π (I - β k kᵀ)`` with keys of length one, per head and strength.

    Raises:
        UntestableError: if a key is zero.
    """
    k = inputs.record().k.double()
    length = torch.linalg.vector_norm(k, dim=-1, keepdim=True)
    if not length.all():
        raise UntestableError("A key of this input is zero, so it has no direction. Choose another head or input.")
    k = k / length
    betas = torch.tensor(STRENGTHS, dtype=k.dtype)[:, None, None, None]
    left = torch.eye(k.shape[-1], dtype=k.dtype).expand(len(STRENGTHS), len(k), -1, -1)
    half = k.shape[-2] // 2
    for i, key in enumerate(k.unbind(-2), 1):
        left = left - betas * key.unsqueeze(-1) * (key.unsqueeze(-2) @ left)
        if i in (half, k.shape[-2]):
            after = HALF if i == half else WHOLE
            for strength, norms in zip(STRENGTHS, torch.linalg.matrix_norm(left, 2), strict=True):
                yield from inputs.head_rows(NormRow, strength=strength, after=after, left=norms)


def numbers(rows: Sequence[NormRow]) -> Numbers:
    """Return the largest factor for β up to 2, the smallest just above 2, and the medians at the largest β."""
    return {
        "within": max(row.left for row in rows if row.after == WHOLE and row.strength <= STABLE),
        "beyond": min(values(rows, "left", after=WHOLE, strength=BEYOND)),
        "far": median(values(rows, "left", after=WHOLE, strength=STRENGTHS[-1])),
        "half": median(values(rows, "left", after=HALF, strength=STRENGTHS[-1])),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge two parts: stable up to β = 2 in all heads, and growing just above 2 in all heads."""
    most = bounds["most"] + FLOAT32_TOLERANCE
    return Verdict.of_parts(numbers["within"] <= most, numbers["beyond"] > most)


CLAIM = Claim(
    measure,
    numbers,
    verdict,
    statement="With strength β and keys k, the delta rule is unstable if β‖k‖² exceeds 2, because its state then "
    "grows without bound. Up to 2, no part of the state grows.",
    source=articles.L2_NORMALISATION,
    place=Place("inside", {"inside": "deltanet", "step": "4"}),
    experiment="Keys of length 1 update the state token by token, in float64. Each update subtracts β times the "
    "value that its key retrieves from the state. The largest factor by which any part of the initial state is "
    "scaled is computed after half of the text and after all of it. β runs from 0.5 to 3.",
    rule="Two conditions: (1) For every β up to 2, no part of the state is scaled by a factor of more than {most} in "
    "any head. (2) At β = 2.1, some part of the state is scaled by a factor of more than {most} in every head. The "
    "claim holds if both conditions are met. It holds partly if only one is met.",
    bounds={"most": 1},
    finding="Up to β = 2, the whole text multiplies no part of the initial state by more than {within}. At β = 2.1, "
    "the largest factor is at least {beyond} in every head. At β = 3, the largest factor in the median head is "
    "{half} after half of the text and {far} at the end.",
    quantities=(
        Quantity("beyond", "smallest factor over heads, β = 2.1"),
        Quantity("within", "largest factor, β up to 2", bound=True),
        Quantity("far", "median factor, β = 3"),
        Quantity("half", "median factor, β = 3, half of the text"),
    ),
    figure=Figure(x="strength", y="left", by="after", x_title="strength β", y_title="largest factor", log="y"),
    needs=4,
    theorem="An update multiplies the component of the state along its key by 1 − β and leaves all other components "
    "unchanged. Up to β = 2, no component grows. Beyond 2, every update multiplies volumes by β − 1, which is more "
    "than 1, so at least one direction must grow.",
)
