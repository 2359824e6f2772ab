"""Claim: linear attention is less sparse than softmax, that is, it spreads a row's weight more evenly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import articles, registry
from attention_core.claims.claim import Claim, ExperimentInput, Figure, Numbers, Place, Quantity, Verdict
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
    seen = torch.arange(1, qkv.n + 1) if qkv.causal else None
    for name, key in {SOFTMAX: "softmax", **LINEAR}.items():
        weights = registry.get(key).weights(qkv.q, qkv.k, causal=qkv.causal)
        for head, value in inputs.by_head(sparsity(weights, seen).mean(-1)):
            yield SparsityRow(variant=name, head=head, sparsity=value)


def numbers(rows: Sequence[SparsityRow]) -> Numbers:
    """Return medians over heads, and the share of heads where all linear attentions are less sparse than softmax."""
    found = {name: [row.sparsity for row in rows if row.variant == name] for name in (SOFTMAX, *LINEAR)}
    softmax = found[SOFTMAX]
    below = [all(found[name][head] > own for name in LINEAR) for head, own in enumerate(softmax)]
    return {
        "softmax": median(softmax),
        "linear": median(found["Linear"]),
        "hedgehog": median(found["Hedgehog"]),
        "cosformer": median(found["cosFormer"]),
        "less": 100 * sum(below) / len(below),
        "heads": len(below),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge two parts: all three are less sparse in most heads, and in the median over heads."""
    lowest = min(numbers[name] for name in ("linear", "hedgehog", "cosformer"))
    return Verdict.of_parts(numbers["less"] >= bounds["less"], lowest > numbers["softmax"])


CLAIM = Claim(
    key="linear_sparsity",
    number=23,
    statement="Linear attention is less sparse than softmax: positive features cannot tell keys apart as sharply.",
    source=articles.CONCENTRATE,
    place=Place("entropy", options={"h_measure": "sparsity"}, variants=("softmax", "linear", "hedgehog", "cosformer")),
    experiment="Of every head's rows on this input S = E|a| / √E a² is taken over the keys a query may see, which is "
    "1 where all weigh alike and falls to 1/√n where one of n has all; under softmax and three linear attentions.",
    rule="Holds where in at least {less}% of the heads each of the three has a larger S than softmax and so it is for "
    "their middle heads; partly where only one of the two is so.",
    bounds={"less": 90},
    finding="In the middle head S is {softmax} for softmax, {linear} for linear attention, {hedgehog} for Hedgehog and "
    "{cosformer} for cosFormer; in {less}% of the {heads} heads softmax has the smallest.",
    quantities=(
        Quantity("softmax", "S of softmax"),
        Quantity("linear", "S of linear attention"),
        Quantity("hedgehog", "S of Hedgehog"),
        Quantity("cosformer", "S of cosFormer"),
        Quantity("less", "heads in which softmax has the smallest", "%"),
        Quantity("heads", "heads"),
    ),
    figure=Figure(x="head", y="sparsity", by="variant", x_title="head", y_title="S, the mean over rows"),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=8,
)
