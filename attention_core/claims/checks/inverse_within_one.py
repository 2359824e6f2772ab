"""Claim: keys of length one keep every entry of the delta rule's inverse between -1 and 1."""

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
    Verdict,
)
from attention_core.ops.delta.fast_weights import Tokens, anatomy
from attention_core.ops.softmax.masked import nonzero

UNIT, FREE = "keys of length one", "keys as long as they are"
BEYOND = 1e300
"""Value that replaces results beyond the range of float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """The largest absolute value off the diagonal in one head's inverse over its first ``n`` tokens."""

    n: int
    keys: str
    head: int
    largest: float


def measure(inputs: ExperimentInput) -> Iterator[EntryRow]:
    """Yield the largest entry below the diagonal of ``(I + K Kᵀ ⊙ M⁻)⁻¹`` per head and length, for both kinds of keys.

    The diagonal is left out: it is 1 for every input, so it would hide every smaller entry. Keys with their own
    lengths are divided by the root mean square of those lengths, so that both kinds have mean square length one.
    """
    k = inputs.record().k.double()
    length = torch.linalg.vector_norm(k, dim=-1, keepdim=True)
    for keys, scale in ((UNIT, length), (FREE, length.square().mean(-2, keepdim=True).sqrt())):
        taken = k / nonzero(scale)
        one = torch.ones_like(length)
        inverse = anatomy(Tokens(taken, taken, one, None, one), causal=True)["inverse"]
        # The first n rows and columns are the inverse for the first n tokens, as the matrix is lower triangular.
        grown = inverse.abs().tril(-1).amax(-1).nan_to_num(BEYOND, BEYOND).clamp(max=BEYOND).cummax(-1).values
        for n in lengths(k.shape[-2]):
            for head, largest in inputs.by_head(grown[:, n - 1]):
                yield EntryRow(n=n, keys=keys, head=head, largest=largest)


def lengths(n: int) -> list[int]:
    """Return the powers of two from 2 up to n tokens, followed by n."""
    return [*(2**i for i in range(1, (n - 1).bit_length())), n]


def numbers(rows: Sequence[EntryRow]) -> Numbers:
    """Return the largest entry with unit keys, and the median and the share of heads beyond one with free keys."""
    n = max(row.n for row in rows)
    unit, free = ([row.largest for row in rows if row.n == n and row.keys == keys] for keys in (UNIT, FREE))
    return {
        "unit": max(unit),
        "free": median(free),
        "beyond": 100 * sum(largest > 1 + FLOAT32_TOLERANCE for largest in free) / len(free),
        "n": n,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the largest entry of all heads with unit keys."""
    return Verdict.of_parts(numbers["unit"] <= bounds["most"] + FLOAT32_TOLERANCE)


CLAIM = Claim(
    key="inverse_within_one",
    number=24,
    statement="Keys of length one keep every entry of the delta rule's inverse between −1 and 1, however long the text "
    "is.",
    source=articles.CORE_INVERSE,
    place=Place("inside", {"inside": "deltanet", "step": "2"}),
    experiment="The matrix of the delta rule's corrections, I plus the dot products of each key with the keys before "
    "it, is inverted in float64 for growing parts of the text at strength 1: with keys of length one, and with keys "
    "whose lengths have mean square one. Entries are taken below the diagonal, as the diagonal is always 1.",
    rule="Holds where no entry below the diagonal exceeds {most} in absolute value in any head with keys of length "
    "one.",
    bounds={"most": 1},
    finding="Over {n} tokens the largest entry below the diagonal is at most {unit} in absolute value with keys of "
    "length one. With the keys' own lengths it is {free} in the median head, and {beyond}% of the heads have an entry "
    "beyond 1.",
    quantities=(
        Quantity("unit", "largest entry below the diagonal, keys of length one", bound=True),
        Quantity("free", "the same, keys with their own lengths, median head"),
        Quantity("beyond", "heads beyond one then", "%"),
        Quantity("n", "tokens"),
    ),
    figure=Figure(
        x="n",
        y="largest",
        by="keys",
        x_title="tokens n",
        y_title="largest entry below the diagonal",
        log_x=True,
        log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=4,
    theorem="An entry is the dot product of one key with another key after steps I − k kᵀ, which are projections where "
    "k has length one and so lengthen nothing.",
)
