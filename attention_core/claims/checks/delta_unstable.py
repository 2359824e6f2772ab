"""Claim: the delta rule is unstable if β‖k‖² exceeds 2, that is, if it removes more than twice what a key reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import articles
from attention_core.claims.claim import (
    FLOAT32_TOLERANCE,
    Claim,
    ExperimentInput,
    Figure,
    Numbers,
    Place,
    Quantity,
    UntestableError,
    Verdict,
)

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
        raise UntestableError("Some key is zero here and has no direction; choose another head or input.")
    k = k / length
    betas = torch.tensor(STRENGTHS, dtype=k.dtype)[:, None, None, None]
    left = torch.eye(k.shape[-1], dtype=k.dtype).expand(len(STRENGTHS), len(k), -1, -1)
    half = k.shape[-2] // 2
    for i, key in enumerate(k.unbind(-2), 1):
        left = left - betas * key.unsqueeze(-1) * (key.unsqueeze(-2) @ left)
        if i in (half, k.shape[-2]):
            after = HALF if i == half else WHOLE
            for strength, norms in zip(STRENGTHS, torch.linalg.matrix_norm(left, 2), strict=True):
                for head, norm in inputs.by_head(norms):
                    yield NormRow(strength=strength, after=after, head=head, left=norm)


def numbers(rows: Sequence[NormRow]) -> Numbers:
    """Return the largest factor for β up to 2, the smallest just above 2, and the medians at the largest β."""
    whole = [row for row in rows if row.after == WHOLE]
    return {
        "within": max(row.left for row in whole if row.strength <= STABLE),
        "beyond": min(row.left for row in whole if row.strength == BEYOND),
        "far": median(row.left for row in whole if row.strength == STRENGTHS[-1]),
        "half": median(row.left for row in rows if row.strength == STRENGTHS[-1] and row.after == HALF),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge two parts: stable up to β = 2 in all heads, and growing just above 2 in all heads."""
    return Verdict.of_parts(
        numbers["within"] <= bounds["most"] + FLOAT32_TOLERANCE, numbers["beyond"] > bounds["most"] + FLOAT32_TOLERANCE
    )


CLAIM = Claim(
    key="delta_unstable",
    number=25,
    statement="The delta rule is unstable where β‖k‖² is beyond 2: what is in its state grows without end, while up to "
    "2 nothing in it grows.",
    source=articles.L2_NORMALISATION,
    place=Place("inside", {"inside": "deltanet", "step": "4"}),
    experiment="Keys of length one take back β times what they read, token after token, in float64. After half of the "
    "text and after all of it, the factor is taken by which a part of what stood there before is left at most, for β "
    "from 0.5 to 3.",
    rule="Holds where that factor is at most {most} in every head up to β = 2, and beyond {most} in every head at β = "
    "2.1; partly where one of the two.",
    bounds={"most": 1},
    finding="Up to β = 2 the steps of the whole text multiply no part of the state by more than {within}. At β = 2.1 "
    "they multiply a part by {beyond} or more in every head; at β = 3 by {far} in the median head, and by {half} after "
    "half of the text.",
    quantities=(
        Quantity("beyond", "least factor, β = 2.1"),
        Quantity("within", "largest factor, β up to 2", bound=True),
        Quantity("far", "median factor, β = 3"),
        Quantity("half", "the same at half of the text"),
    ),
    figure=Figure(
        x="strength",
        y="left",
        by="after",
        x_title="strength β with keys of length one",
        y_title="largest factor of what is left",
        log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=4,
    theorem="A step multiplies its key's direction by 1 − β and leaves all others: up to 2 it lengthens nothing, and "
    "beyond 2 each makes the volume of the state larger by β − 1.",
)
