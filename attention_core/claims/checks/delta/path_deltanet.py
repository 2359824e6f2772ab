"""Claim: PaTH's logits equal DeltaNet's weights if the directions that PaTH removes are the keys.

In PaTH, each token removes from all earlier keys their component along the token's direction.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from attention_core import registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.experiments.error import doubling_lengths
from attention_core.ops.delta.delta_rule import unit_vectors
from attention_core.variants.gated.path import FIXED, KEYS, ROTATED, rule_directions

NAMES = {
    KEYS: "PaTH, keys as directions",
    ROTATED: "PaTH, rotated keys as directions",
    FIXED: "PaTH, one direction for all tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRow:
    """The largest difference between PaTH's logits and DeltaNet's weights, over one head's first ``n`` tokens.

    ``along`` names the directions w. At each token, PaTH removes the component of all earlier keys along w.
    """

    n: int
    along: str
    head: int
    difference: float


def measure(inputs: ExperimentInput) -> Iterator[PathRow]:
    """Yield the largest difference between PaTH's and DeltaNet's matrices, in float64, per head and length."""
    qkv = inputs.record()
    q, k = qkv.q.double(), qkv.k.double()
    delta = registry.get("deltanet").weights(q, k, causal=True)
    q, k = unit_vectors(q), unit_vectors(k)
    for along, name in NAMES.items():
        largest = (path_logits(q, k, rule_directions(k, along)) - delta).abs().amax(-1).cummax(-1).values
        for n in doubling_lengths(qkv.n, 2):
            yield from inputs.head_rows(PathRow, n=n, along=name, difference=largest[:, n - 1])


def path_logits(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    """Compute ``q_iᵀ H_i ... H_{j+1} k_j`` step by step, ``[..., n, n]``, with ``H_t = I - w_t w_tᵀ``."""
    products, rows = torch.zeros_like(k), []
    for i in range(k.shape[-2]):
        direction = w[..., i : i + 1, :]
        products = products - (products @ direction.mT) @ direction
        products[..., i, :] = k[..., i, :]
        rows.append(q[..., i : i + 1, :] @ products.mT)
    return torch.cat(rows, -2)


def numbers(rows: Sequence[PathRow]) -> Numbers:
    """Return the largest difference over heads if w is the key, and the medians for the other choices of w.

    All are those of the longest length.
    """
    n = max(row.n for row in rows)
    same, turned, fixed = (values(rows, "difference", n=n, along=name) for name in NAMES.values())
    return {"same": max(same), "turned": median(turned), "fixed": median(fixed), "n": n}


CLAIM = Claim(
    statement="In PaTH attention, each token removes from all earlier keys their component along one direction. If "
    "this direction is the token's own key, PaTH's logits equal the attention weights of DeltaNet, a linear "
    "attention that corrects stored values.",
    short="PaTH's logits can equal DeltaNet's weights",
    source=registry.variant("path").source,
    place=Place("matrices", {"causal": "1"}, variants=("softmax", "deltanet", "path~along~keys")),
    experiment="In PaTH attention, each token removes the component along its direction w from all earlier keys. "
    "PaTH's logits (before its softmax) are computed token by token in float64, with queries and keys of norm 1. "
    "They are compared with DeltaNet's attention weights, which come from solving a triangular system. Three "
    "choices of the directions w are measured: (1) the keys k, (2) rotated keys, with halves swapped and one half "
    "negated, and (3) one direction for all tokens.",
    rule="In PaTH attention, each token removes the component along its direction from all earlier keys. Here, this "
    "direction is the token's own key. The claim holds if PaTH's logits (before its softmax) differ from DeltaNet's "
    "attention weights by at most {most} in every head.",
    bounds={"most": FLOAT32_TOLERANCE},
    verdict=Rule(holds=Condition("same", "<=", "most")),
    finding="In PaTH attention, each token removes from all earlier keys their component along one direction. If this "
    "direction is the token's key, DeltaNet changes its stored values by the same matrix. Over {n} tokens, PaTH's "
    "logits then differ from DeltaNet's attention weights by at most {same}.",
    details="In PaTH, each token removes from all earlier keys their component along its direction w. If w is the "
    "token's rotated key, PaTH's logits differ from DeltaNet's weights by up to {turned}. If w is the same for all "
    "tokens, they differ by up to {fixed} (medians over heads).",
    quantities=(
        Quantity(
            "same",
            "largest difference between PaTH's logits and DeltaNet's weights if tokens remove components along their "
            "own keys",
            digits=2,
            bound=True,
        ),
        Quantity(
            "turned",
            "largest difference between PaTH's logits and DeltaNet's weights if tokens remove components along "
            "rotated keys, median over heads",
        ),
        Quantity(
            "fixed",
            "largest difference between PaTH's logits and DeltaNet's weights if all tokens remove the component "
            "along one direction, median over heads",
        ),
        Quantity("n", "length of this input", "tokens"),
    ),
    figure=Figure(
        x=Axis("n", "tokens n", log=True),
        y=Axis("difference", "largest difference between PaTH's logits and DeltaNet's weights"),
        by="along",
    ),
    theorem="DeltaNet stores values in a matrix. With write strength β = 1, it multiplies this matrix by I − k kᵀ "
    "before it stores the value of key k. PaTH multiplies all earlier keys by I − w wᵀ, where w is the direction of "
    "the current token. If w is the token's key, both multiply by the same matrix at every token. PaTH's logit and "
    "DeltaNet's weight are then both the dot product of the query with an earlier key after these multiplications.",
)
