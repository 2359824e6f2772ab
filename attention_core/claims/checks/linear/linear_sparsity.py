"""Claim: linear attention spreads a row's weight more evenly over the keys than softmax, that is, it is less sparse."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import articles, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Measured, Numbers, all_of, parts
from attention_core.metrics.entropy import sparsity

SOFTMAX = "Softmax"
LINEAR = {"Linear": "linear", "Hedgehog": "hedgehog", "cosFormer": "cosformer"}
"""Linear attentions with positive features: variant keys by the name shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparsityRow:
    """The sparsity ``E|a| / √(E a²)`` of a row's weights a, mean over the rows of a head; 1 if all are equal."""

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
    }


CLAIM = Claim(
    statement="Linear attention is less sparse than softmax: it spreads each query's weight more evenly over the keys.",
    short="linear attention is less sparse than softmax",
    source=articles.CONCENTRATE,
    place=Place("entropy", options={"h_measure": "sparsity"}, variants=("softmax", "linear", "hedgehog", "cosformer")),
    experiment="For a row of weights, written a, the evenness is S = E[|a|] / √(E[a²]). Here, E is the mean over the "
    "keys that the row's query can attend to. S is 1 if all keys have the same weight, and falls to 1/√n if one of n "
    "keys has all the weight. A smaller S means a sparser row. S is averaged over the rows of each head, for softmax "
    "and for three variants of linear attention: plain linear attention, Hedgehog and cosFormer.",
    rule="S measures how evenly a query spreads its weight over the keys, and a smaller S means sparser attention. "
    "The claim holds if two conditions are met. (1) In at least {less}% of the heads, linear attention and its "
    "variants Hedgehog and cosFormer all have a larger S than softmax. (2) The median S over heads is larger for each "
    "of the three than for softmax. The claim partly holds if only one condition is met.",
    bounds={"less": 90},
    verdict=parts(
        Condition("less", ">=", "less"), all_of(*(Condition(name.lower(), ">", Measured("softmax")) for name in LINEAR))
    ),
    finding="Softmax's exponential enlarges the differences between logits, so fewer keys get most of the weight "
    "(sparser rows). In {less}% of the heads, softmax has sparser rows than all three: linear attention, Hedgehog and "
    "cosFormer.",
    details="The evenness S of a query's weights is 1 if they are all equal, and smaller if the weights are sparser.",
    quantities=(
        Quantity("softmax", "evenness S of softmax's rows (1: equal weights), median over heads"),
        Quantity("linear", "evenness S of linear attention's rows (1: equal weights), median over heads"),
        Quantity("hedgehog", "evenness S of Hedgehog's rows (1: equal weights), median over heads"),
        Quantity("cosformer", "evenness S of cosFormer's rows (1: equal weights), median over heads"),
        Quantity("less", "heads in which softmax is the sparsest of four methods", "%", of_heads=True),
    ),
    figure=Figure(
        x=Axis("head", "head"),
        y=Axis("sparsity", "evenness S of a head's rows (1: equal weights)"),
        by="variant",
        kind="points",
    ),
    needs=8,
)
