"""Claim: the delta rule is unstable if β‖k‖² exceeds 2: it then erases more than twice what a key retrieves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import articles
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Place, Quantity, UntestableError, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE
from attention_core.claims.rule import Condition, Numbers, parts

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


CLAIM = Claim(
    statement="The delta rule corrects a matrix of stored values (the state) at every token. This is stable as long "
    "as the strength of a correction, times the squared norm of the key, is at most 2, and unstable otherwise.",
    short="the delta rule is stable up to strength 2",
    source=articles.L2_NORMALISATION,
    place=Place("inside", {"inside": "deltanet", "step": "4"}),
    experiment="The delta rule stores values in a state, a matrix that is updated token by token. Each update "
    "multiplies the component of the state along the token's key by 1 − β. The updates run over this input in float64, "
    "with keys of norm 1 and β from 0.5 to 3. The growth factor is the largest factor by which any component of an "
    "initial state is multiplied. It is computed after half of the text and after all of it.",
    measure=measure,
    numbers=numbers,
    rule="The delta rule stores values in a matrix, the state. The growth factor is the largest factor by which the "
    "updates of the whole text multiply any component of an initial state. Keys have norm 1, and β is the strength of "
    "each update. Two conditions: (1) For every β up to 2, the growth factor is at most {most} in every head. (2) At β "
    "= 2.1, the growth factor is more than {most} in every head. The claim holds if both conditions are met. It holds "
    "partly if only one is met.",
    bounds={"most": 1},
    # In the second condition, the negative tolerance demands more growth than a rounding error.
    verdict=parts(
        Condition("within", "<=", "most", tolerance=FLOAT32_TOLERANCE),
        Condition("beyond", ">", "most", tolerance=-FLOAT32_TOLERANCE),
    ),
    finding="With keys of norm 1, an update of strength β multiplies the state's component along the key by 1 − β. "
    "Over the whole text, no component grows by more than a factor of {within} for β up to 2. At β = 2.1, the largest "
    "factor is at least {beyond} in every head.",
    details="At β = 3, the largest factor in the median head is {half} after half of the text and {far} at the end.",
    quantities=(
        Quantity(
            "beyond",
            "factor by which stored values grow over the whole text at update strength β = 2.1, smallest over heads",
        ),
        Quantity(
            "within",
            "largest factor by which stored values grow over the whole text at update strengths β up to 2, over all "
            "heads",
            bound=True,
        ),
        Quantity(
            "far", "factor by which stored values grow over the whole text at update strength β = 3, median over heads"
        ),
        Quantity(
            "half",
            "factor by which stored values grow over half of the text at update strength β = 3, median over heads",
        ),
    ),
    figure=Figure(x="strength", y="left", by="after", x_title="update strength β", y_title="growth factor", log="y"),
    needs=4,
    theorem="The state is the matrix of stored values. An update of strength β multiplies its component along the "
    "token's key by 1 − β and leaves all other components unchanged. Up to β = 2, no component grows. Beyond 2, "
    "every update multiplies volumes by β − 1, which is more than 1, so the state must grow in at least one "
    "direction.",
)
