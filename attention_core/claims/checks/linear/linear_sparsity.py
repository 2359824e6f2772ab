"""Claim: linear attention is less sparse than softmax, that is, it spreads a row's weight more evenly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import articles, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Numbers, Place, Quantity, Verdict, values
from attention_core.metrics.entropy import sparsity

SOFTMAX = "Softmax"
LINEAR = {"Linear": "linear", "Hedgehog": "hedgehog", "cosFormer": "cosformer"}
"""Linear attentions with positive features: variant keys by the name shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparsityRow:
    """The sparsity ``S = E|a| / √(E a²)`` of one head, mean over its rows; 1 if all keys have equal weight."""

    variant: str
    head: int
    sparsity: float


def measure(inputs: ExperimentInput) -> Iterator[SparsityRow]:
    """Yield every head's sparsity under softmax and the linear attentions, over the keys that a query can attend to."""
    qkv = inputs.record()
    allowed = torch.arange(1, qkv.n + 1) if qkv.causal else None
    for name, key in {SOFTMAX: "softmax", **LINEAR}.items():
        weights = registry.get(key).weights(qkv.q, qkv.k, causal=qkv.causal)
        yield from inputs.head_rows(SparsityRow, variant=name, sparsity=sparsity(weights, allowed).mean(-1))


def numbers(rows: Sequence[SparsityRow]) -> Numbers:
    """Return medians over heads, and the share of heads where all linear attentions are less sparse than softmax."""
    softmax, *linear = (values(rows, "sparsity", variant=name) for name in (SOFTMAX, *LINEAR))
    below = [min(others) > own for own, *others in zip(softmax, *linear, strict=True)]
    return {
        "softmax": median(softmax),
        **{name.lower(): median(own) for name, own in zip(LINEAR, linear, strict=True)},
        "less": 100 * sum(below) / len(below),
        "heads": len(below),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge two parts: all three are less sparse in most heads, and in the median over heads."""
    lowest = min(numbers[name.lower()] for name in LINEAR)
    return Verdict.of_parts(numbers["less"] >= bounds["less"], lowest > numbers["softmax"])


CLAIM = Claim(
    measure,
    numbers,
    verdict,
    statement="Linear attention is less sparse than softmax, because positive features separate keys less sharply.",
    source=articles.CONCENTRATE,
    place=Place("entropy", options={"h_measure": "sparsity"}, variants=("softmax", "linear", "hedgehog", "cosformer")),
    experiment="For every row of weights a, the number S = E[|a|] / √(E[a²]) is computed, where E is the mean over the "
    "allowed keys. S is 1 if all keys have the same weight, and falls to 1/√n if one of n keys has all the weight. A "
    "smaller S therefore means a sparser row. Softmax is compared with linear attention, Hedgehog and cosFormer.",
    rule="A smaller S means a sparser row. Two conditions: (1) In at least {less}% of the heads, all three linear "
    "attentions have a larger S than softmax. (2) The median S over heads is also larger for all three linear "
    "attentions than for softmax. The claim holds if both conditions are met. It holds partly if only one is met.",
    bounds={"less": 90},
    finding="Softmax is the sparsest (smallest S) in {less}% of {heads} heads. The median S is {softmax} for "
    "softmax, {linear} for linear attention, {hedgehog} for Hedgehog and {cosformer} for cosFormer.",
    quantities=(
        Quantity("softmax", "S of softmax"),
        Quantity("linear", "S of linear attention"),
        Quantity("hedgehog", "S of Hedgehog"),
        Quantity("cosformer", "S of cosFormer"),
        Quantity("less", "heads where softmax is the sparsest", "%"),
        Quantity("heads", "heads"),
    ),
    figure=Figure(x="head", y="sparsity", by="variant", x_title="head", y_title="mean S of the rows"),
    needs=8,
)
