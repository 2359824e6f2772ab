"""Claim: the delta rule with write strength β is unstable if β‖k‖² exceeds 2 for a key k.

A write multiplies the value that is already stored under k by 1 - β‖k‖².
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import articles
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, UntestableError, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE
from attention_core.claims.rule import Condition, Numbers, parts

STRENGTHS = (0.5, 1.0, 1.5, 1.9, 2.0, 2.1, 2.5, 3.0)
STABLE, UNSTABLE = 2.0, 2.1
HALF, WHOLE = (
    "growth factor of stored values over the first half of the text",
    "growth factor of stored values over the whole text",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NormRow:
    """The largest ``factor`` by which all updates of one strength together can multiply the norm of a head's state.

    No new values are added to the state. ``after`` says which tokens make the updates: the first half of the text
    (``HALF``) or all tokens (``WHOLE``).
    """

    strength: float
    after: str
    head: int
    factor: float


def measure(inputs: ExperimentInput) -> Iterator[NormRow]:
    """Yield the largest singular value of ``Π (I - β k kᵀ)`` with keys of length one, per head and strength.

    Raises:
        UntestableError: if a key is zero.
    """
    k = inputs.record().k.double()
    length = torch.linalg.vector_norm(k, dim=-1, keepdim=True)
    if not length.all():
        raise UntestableError(
            "The check divides each key by its norm, but this input has a key with norm 0. Choose another head or "
            "input."
        )
    k = k / length
    betas = torch.tensor(STRENGTHS, dtype=k.dtype)[:, None, None, None]
    product = torch.eye(k.shape[-1], dtype=k.dtype).expand(len(STRENGTHS), len(k), -1, -1)
    half = k.shape[-2] // 2
    for i, key in enumerate(k.unbind(-2), 1):
        product = product - betas * key.unsqueeze(-1) * (key.unsqueeze(-2) @ product)
        if i in (half, k.shape[-2]):
            after = HALF if i == half else WHOLE
            for strength, norms in zip(STRENGTHS, torch.linalg.matrix_norm(product, 2), strict=True):
                yield from inputs.head_rows(NormRow, strength=strength, after=after, factor=norms)


def numbers(rows: Sequence[NormRow]) -> Numbers:
    """Return factors over heads: the largest for β up to 2, the smallest for β = 2.1, and medians for the largest β."""
    return {
        # Without rounding, errors of float64 would be shown as growth.
        "within": round(max(row.factor for row in rows if row.after == WHOLE and row.strength <= STABLE), 9),
        "beyond": min(values(rows, "factor", after=WHOLE, strength=UNSTABLE)),
        "far": median(values(rows, "factor", after=WHOLE, strength=STRENGTHS[-1])),
        "half": median(values(rows, "factor", after=HALF, strength=STRENGTHS[-1])),
    }


CLAIM = Claim(
    statement="At every token, the delta rule corrects the value that is stored under the token's key. Corrections "
    "make stored values grow if and only if their strength times the key's squared norm exceeds 2.",
    short="the delta rule is stable up to strength 2",
    source=articles.L2_NORMALISATION,
    place=Place("inside", {"causal": "1", "inside": "deltanet", "step": "4"}),
    experiment="The delta rule stores values in a matrix (the state), which it updates at every token. An update of "
    "strength β multiplies the value stored under the token's key by 1 − β if the key has norm 1, and then adds β "
    "times the new value. All updates of this input run in float64, with keys scaled to norm 1 and β from 0.5 to 3. "
    "The growth factor is the largest factor by which all these updates together can multiply the size of an initial "
    "state if no new values are added. It is computed after half of the text and after the whole text.",
    rule="The delta rule stores values in a matrix (the state) and updates it at every token with strength β. Keys "
    "have norm 1. The growth factor is the largest factor by which all updates of the text together can enlarge "
    "a state if no new values are stored. The claim holds if two conditions are met. (1) For every β up to 2, "
    "the growth factor is at most {most} in every head. (2) At β = 2.1, the growth factor is more than {most} in "
    "every head. The claim partly holds if only one condition is met.",
    bounds={"most": 1},
    # The second condition has a negative tolerance, so that growth by a rounding error alone does not meet it.
    verdict=parts(
        Condition("within", "<=", "most", tolerance=FLOAT32_TOLERANCE),
        Condition("beyond", ">", "most", tolerance=-FLOAT32_TOLERANCE),
    ),
    finding="An update of strength β multiplies the value stored under a key of norm 1 by 1 − β. For β up to 2, all "
    "updates of the text together multiply the size of stored values by at most {within}. At β = 2.1, the largest "
    "possible factor is {beyond} (smallest over heads).",
    details="Over half of the text, updates of strength β = 3 multiply the delta rule's stored values by up to "
    "{half} (median over heads). Over the whole text, the factor is up to {far} (median over heads).",
    quantities=(
        Quantity(
            "beyond", "growth factor of the delta rule's stored values at update strength β = 2.1, smallest over heads"
        ),
        Quantity(
            "within",
            "growth factor of the delta rule's stored values at update strengths β up to 2, largest over heads",
            bound=True,
        ),
        Quantity(
            "far",
            "growth factor of the delta rule's stored values at update strength β = 3 after the whole text, "
            "median over heads",
        ),
        Quantity(
            "half",
            "growth factor of the delta rule's stored values at update strength β = 3 after half of the text, "
            "median over heads",
        ),
    ),
    figure=Figure(
        x=Axis("strength", "update strength β of the delta rule"),
        y=Axis("factor", "growth factor of the stored values", log=True),
        by="after",
    ),
    needs=4,
    theorem="The delta rule stores values in a matrix. With keys of norm 1, an update of strength β multiplies the "
    "component of this matrix along the key by 1 − β and leaves its other components unchanged. Up to β = 2, no "
    "component grows. Beyond 2, the determinant of every update has the absolute value β − 1, which is more than "
    "1. The determinant of all updates together is therefore also larger than 1 in absolute value, so at least "
    "one direction must grow.",
)
