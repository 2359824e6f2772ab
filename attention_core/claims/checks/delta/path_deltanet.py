"""Claim: PaTH attention along the keys themselves equals DeltaNet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from attention_core import registry
from attention_core.claims.checks.delta.inverse_within_one import lengths
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Place, Quantity, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.ops.delta.delta_rule import unit
from attention_core.variant import Paper
from attention_core.variants.gated.path import FIXED, KEYS, TURNED, directions

NAMES = {KEYS: "keys as directions", TURNED: "rotated keys as directions", FIXED: "one direction for all tokens"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRow:
    """The largest difference from DeltaNet's matrix, with entries up to 1, over one head's first ``n`` tokens."""

    n: int
    along: str
    head: int
    difference: float


def measure(inputs: ExperimentInput) -> Iterator[PathRow]:
    """Yield the largest difference between PaTH's and DeltaNet's matrices, in float64, per head and length."""
    qkv = inputs.record()
    q, k = qkv.q.double(), qkv.k.double()
    delta = registry.get("deltanet").weights(q, k, causal=True)
    for along, name in NAMES.items():
        largest = (path_logits(unit(q), unit(k), directions(unit(k), along)) - delta).abs().amax(-1).cummax(-1).values
        for n in lengths(qkv.n):
            yield from inputs.head_rows(PathRow, n=n, along=name, difference=largest[:, n - 1])


def path_logits(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    """Compute ``q_iᵀ H_i ... H_{j+1} k_j`` step by step, ``[..., n, n]``, with ``H_t = I - w_t w_tᵀ``."""
    carried, rows = torch.zeros_like(k), []
    for i in range(k.shape[-2]):
        along = w[..., i : i + 1, :]
        carried = carried - (carried @ along.mT) @ along
        carried[..., i, :] = k[..., i, :]
        rows.append(q[..., i : i + 1, :] @ carried.mT)
    return torch.cat(rows, -2)


def numbers(rows: Sequence[PathRow]) -> Numbers:
    """Return the largest difference over heads for w = k, and the median differences for other directions."""
    n = max(row.n for row in rows)
    same, turned, fixed = (values(rows, "difference", n=n, along=name) for name in NAMES.values())
    return {"same": max(same), "turned": median(turned), "fixed": median(fixed), "n": n}


CLAIM = Claim(
    statement="In PaTH attention, every token removes one direction from all earlier keys. If this direction is the "
    "token's own key, PaTH's scores before its softmax equal the weights of DeltaNet, which uses the delta rule.",
    short="PaTH's matrix can equal DeltaNet's",
    source=Paper(
        "PaTH Attention: Position Encoding via Accumulating Householder Transformations",
        2025,
        "https://arxiv.org/abs/2505.16381",
        authors="Yang et al.",
    ),
    place=Place("matrices", variants=("softmax", "deltanet", "path~along~keys")),
    experiment="In PaTH attention, each token has a direction w, which it removes from all earlier keys. PaTH's matrix "
    "before its softmax is computed token by token in float64, with queries and keys of norm 1. It is compared with "
    "DeltaNet's matrix, the delta rule's solution of a triangular system. Three choices of the directions w are "
    "measured: (1) the keys k, (2) rotated keys, with halves swapped and one half negated, and (3) one direction for "
    "all tokens.",
    measure=measure,
    numbers=numbers,
    rule="In PaTH attention, every token removes one direction from all earlier keys. With each token's own key as "
    "its direction, PaTH's matrix is compared with DeltaNet's matrix. The claim holds if their entries differ by at "
    "most {most} in every head.",
    bounds={"most": FLOAT32_TOLERANCE},
    verdict=Rule(holds=Condition("same", "<=", "most")),
    finding="For each token with key k, PaTH attention and DeltaNet multiply by the same matrix I − k kᵀ. Over {n} "
    "tokens, the entries of their attention matrices differ by at most {same}.",
    details="If the tokens' directions are not their own keys, the two matrices differ. In the median head, the "
    "largest difference between entries is {turned} with rotated keys as directions, and {fixed} with one direction "
    "for all tokens.",
    quantities=(
        Quantity(
            "same",
            "largest difference between the entries of PaTH's and DeltaNet's matrices, with keys as directions w",
            digits=2,
            bound=True,
        ),
        Quantity(
            "turned",
            "largest difference between the entries of PaTH's and DeltaNet's matrices, with rotated keys as directions "
            "w; median over heads",
        ),
        Quantity(
            "fixed",
            "largest difference between the entries of PaTH's and DeltaNet's matrices, with one direction w for all "
            "tokens; median over heads",
        ),
        Quantity("n", "length of this input", "tokens"),
    ),
    figure=Figure(
        x="n",
        y="difference",
        by="along",
        x_title="tokens n",
        y_title="largest difference between matrix entries",
        log="x",
    ),
    theorem="The delta rule with strength 1 multiplies its matrix of stored values by I − k kᵀ before it stores the "
    "value of key k. If each token's direction is its key, PaTH multiplies by the same factors. DeltaNet obtains "
    "their product by inverting a triangular matrix.",
)
