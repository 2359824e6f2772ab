"""Claim: a layer with a window, then a layer with a stride (atrous), connect every token with every other token."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from attention_core import articles, registry
from attention_core.attention import Attention
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.inputs.record import QKV
from attention_core.metrics.reachability import first_layers, reached_shares

MIXED, LOCAL, ATROUS = "local and atrous layers in turn", "local layers", "atrous layers"
DEPTH = 3
"""Number of layers measured."""


def stride(n: int) -> int:
    """Return the stride at which both layers together have the fewest allowed pairs, about √n."""
    return max(2, math.ceil(n**0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachRow:
    """How many of a head's pairs a stack of layers connects.

    Attributes:
        stack: name of the stack.
        layers: number of layers applied, which repeat the stack.
        head: the head.
        share: per cent of the pairs that the applied layers connect.
        keys: number of weights above zero in all layers of the stack, in per cent of the pairs of one full layer.
    """

    stack: str
    layers: int
    head: int
    share: float
    keys: float


def measure(inputs: ExperimentInput) -> Iterator[ReachRow]:
    """Yield the share of token pairs in which one token can influence the other, for each stack of layers and head."""
    qkv = inputs.record()
    r = stride(qkv.n)
    local, atrous = registry.get("local", window=r - 1), registry.get("atrous", stride=r)
    stacks = {MIXED: (local, atrous), LOCAL: (local, local), ATROUS: (atrous, atrous)}
    for name, stack in stacks.items():
        yield from reach_rows(name, stack, qkv, inputs.head or 0)


def reach_rows(name: str, stack: Sequence[Attention], qkv: QKV, head: int = 0) -> Iterator[ReachRow]:
    """Yield the share of connected pairs after 0 to ``DEPTH`` layers, which repeat the layers of ``stack`` in order.

    A pair is connected if a path of weights above zero leads from one token to the other; weights that underflow to
    zero connect nothing. Heads are numbered from ``head`` on.
    """
    weights = [attention.weights(qkv.q, qkv.k, causal=qkv.causal) for attention in stack]
    possible = qkv.n * (qkv.n + 1) // 2 if qkv.causal else qkv.n**2
    for number, layers in enumerate(zip(*(w > 0 for w in weights), strict=True), head):
        first = first_layers(layers, DEPTH)
        keys = 100 * sum(int(layer.sum()) for layer in layers) / possible
        for depth, share in enumerate(reached_shares(first, DEPTH, causal=qkv.causal)):
            yield ReachRow(stack=name, layers=depth, head=number, share=100 * share, keys=keys)


def numbers(rows: Sequence[ReachRow]) -> Numbers:
    """Return means over heads: the shares of connected pairs, and the weights in both layers, all in per cent.

    The shares are measured after two layers of each stack, and after one layer of the mixed stack.
    """
    return {
        "two": fmean(values(rows, "share", stack=MIXED, layers=2)),
        "one": fmean(values(rows, "share", stack=MIXED, layers=1)),
        "local": fmean(values(rows, "share", stack=LOCAL, layers=2)),
        "atrous": fmean(values(rows, "share", stack=ATROUS, layers=2)),
        "keys": fmean(values(rows, "keys", stack=MIXED)),
    }


CLAIM = Claim(
    statement="Local attention (nearby keys) in one layer and atrous attention (regularly spaced keys) in the next "
    "together let information pass from every token to every other token.",
    short="local and atrous layers connect all tokens",
    source=articles.STANDARD_TO_SPARSE,
    place=Place("masks", {"masks_part": "reach"}, variants=("softmax", "local", "atrous")),
    experiment="For n tokens, the atrous layer allows keys at distances that are multiples of a stride r of about "
    "√n. The local layer allows keys at a distance of at most r − 1. Both layers have residual connections, so "
    "every token also keeps its own vector. Two tokens are connected if a path of weights above zero leads from one "
    "to the other through the layers. In a causal model, a path can lead only from an earlier to a later token.",
    rule="Two tokens are connected if a path of weights above zero leads from one to the other through the layers. The "
    "claim holds if a layer of local attention (nearby keys) and a layer of atrous attention (regularly spaced keys) "
    "together connect {holds}% of all pairs of tokens (mean over heads). It partly holds if they connect at least "
    "{partly}%.",
    bounds={"holds": 100, "partly": 90},
    verdict=Rule(holds=Condition("two", ">=", "holds"), partly=Condition("two", ">=", "partly")),
    finding="The atrous layer reaches keys in steps of about √n tokens, and the local layer fills the gaps. Together, "
    "they connect {two}% of all pairs of tokens.",
    details="A layer of local attention alone connects {one}% of the pairs of tokens, two such layers connect "
    "{local}%, and two layers of atrous attention connect {atrous}%. A local and an atrous layer together compute "
    "{keys}% as many attention weights as one layer of full attention.",
    quantities=(
        Quantity("two", "share of token pairs connected by a local layer and an atrous layer", "%"),
        Quantity("one", "share of token pairs connected by a local layer alone", "%"),
        Quantity("local", "share of token pairs connected by two local layers", "%"),
        Quantity("atrous", "share of token pairs connected by two atrous layers", "%"),
        Quantity(
            "keys",
            "number of attention weights that the local and the atrous layer compute together ÷ number in one layer "
            "of full attention",
            "%",
        ),
    ),
    figure=Figure(
        x=Axis("layers", "number of layers"), y=Axis("share", "share of token pairs connected (%)"), by="stack"
    ),
    needs=16,
)
