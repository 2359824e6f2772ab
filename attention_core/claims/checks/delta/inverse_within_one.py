"""Claim: with keys of norm one, the matrix inverse that the chunked delta rule computes has entries from -1 to 1."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import articles
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.experiments.error import doubling_lengths
from attention_core.ops.delta.fast_weights import RuleInputs, anatomy
from attention_core.ops.softmax.masked import safe_divisor

UNIT, FREE = "keys of norm 1", "keys of different norms"
OVERFLOW = 1e300
"""Value that replaces results beyond the range of float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """The largest absolute entry below the diagonal of ``(I + K Kᵀ ⊙ M⁻)⁻¹``, for one head's first ``n`` tokens.

    ``keys`` is ``UNIT`` for keys of length one, or ``FREE`` for keys of their own lengths.
    """

    n: int
    keys: str
    head: int
    largest: float


def measure(inputs: ExperimentInput) -> Iterator[EntryRow]:
    """Yield the largest entry below the diagonal of ``(I + K Kᵀ ⊙ M⁻)⁻¹`` per head and length.

    K has each token's key as a row, and M⁻ is 1 below the diagonal and 0 elsewhere. The entry is measured with keys of
    length one, and with keys of their own lengths divided by the root mean square of these lengths. The diagonal is
    left out, because it is 1 for every input.
    """
    k = inputs.record().k.double()
    length = torch.linalg.vector_norm(k, dim=-1, keepdim=True)
    for keys, scale in ((UNIT, length), (FREE, length.square().mean(-2, keepdim=True).sqrt())):
        scaled = k / safe_divisor(scale)
        ones = torch.ones_like(length)
        inverse = anatomy(RuleInputs(scaled, scaled, ones, None, ones), causal=True)["inverse"]
        # The inverse is lower triangular, so its first n rows and columns are the inverse for the first n tokens. The
        # running maximum over rows is therefore the largest entry for each length.
        largest = inverse.abs().tril(-1).amax(-1).nan_to_num(OVERFLOW, OVERFLOW).clamp(max=OVERFLOW).cummax(-1).values
        for n in doubling_lengths(k.shape[-2], 2):
            yield from inputs.head_rows(EntryRow, n=n, keys=keys, largest=largest[:, n - 1])


def numbers(rows: Sequence[EntryRow]) -> Numbers:
    """Return the largest entry with unit keys, and for free keys the median and the share of heads above one."""
    n = max(row.n for row in rows)
    unit, free = (values(rows, "largest", n=n, keys=keys) for keys in (UNIT, FREE))
    return {
        "unit": max(unit),
        "free": median(free),
        "beyond": 100 * sum(largest > 1 + FLOAT32_TOLERANCE for largest in free) / len(free),
    }


CLAIM = Claim(
    statement="The delta rule subtracts from each value the value already stored under its key. With keys of norm 1, "
    "the inverse matrix that combines all these subtractions has only entries between −1 and 1, however long the text "
    "is.",
    short="the delta rule's inverse stays within ±1",
    source=articles.CORE_INVERSE,
    place=Place("inside", {"causal": "1", "inside": "deltanet", "step": "2"}),
    experiment="The delta rule subtracts from each value the value already stored under its key. Together, these "
    "corrections multiply all values by the inverse of one matrix. This matrix is the identity I plus the dot "
    "products of each key with the keys before it. It is inverted in float64 for longer and longer parts of the "
    "text, with keys of norm 1 and with keys whose squared norms average 1. The diagonal of the inverse is always "
    "1, so the check ignores it.",
    rule="The delta rule subtracts from each value the value already stored under its key. Together, these corrections "
    "multiply all values by the inverse of a matrix. This matrix is the identity I plus the dot products of each "
    "key with the keys before it. The claim holds if, with keys of norm 1, no entry of the inverse below the "
    "diagonal exceeds {most} in absolute value in any head.",
    bounds={"most": 1},
    verdict=Rule(holds=Condition("unit", "<=", "most", tolerance=FLOAT32_TOLERANCE)),
    finding="The delta rule subtracts from each value the value already stored under its key. With keys of norm 1, "
    "each subtraction is a projection, which never lengthens a vector. In the inverse matrix that combines all "
    "subtractions, no entry below the diagonal therefore exceeds 1 in absolute value (here: at most {unit}).",
    details="The inverse matrix of the delta rule's corrections was also computed for keys of different norms (mean "
    "squared norm 1). Its largest entry below the diagonal is then {free} in absolute value (median over heads). "
    "It exceeds 1 in {beyond}% of the heads.",
    quantities=(
        Quantity(
            "unit",
            "largest |entry| below the diagonal of the inverse matrix by which the delta rule multiplies values (keys "
            "of norm 1)",
            bound=True,
        ),
        Quantity(
            "free",
            "largest |entry| below the diagonal of the inverse matrix by which the delta rule multiplies values (keys "
            "not scaled to norm 1), median over heads",
        ),
        Quantity(
            "beyond",
            "heads where the inverse matrix by which the delta rule multiplies values has an entry outside "
            "−1 to 1 (keys not scaled to norm 1)",
            "%",
            of_heads=True,
        ),
    ),
    figure=Figure(
        x=Axis("n", "tokens n", log=True),
        y=Axis("largest", "delta rule: largest |entry| below the diagonal of the inverse matrix", log=True),
        by="keys",
    ),
    needs=4,
    theorem="The delta rule corrects all values by one inverse matrix. Each entry below its diagonal is, up to its "
    "sign, the dot product of two keys. Before this product is taken, one of the two keys is multiplied by I − k "
    "kᵀ for every key k between them. For keys of norm 1, these matrices are projections, which never lengthen a "
    "vector. The dot product therefore stays between −1 and 1.",
)
