"""Claim: PaTH attention along the keys themselves equals DeltaNet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from attention_core import registry
from attention_core.claims.checks.inverse_within_one import lengths
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
from attention_core.ops.delta.delta_rule import unit
from attention_core.variant import Paper
from attention_core.variants.gated.path import FIXED, KEYS, TURNED, directions

NAMES = {KEYS: "w = k", TURNED: "w = k turned", FIXED: "one w for all tokens"}


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
        apart = (path_logits(unit(q), unit(k), directions(unit(k), along)) - delta).abs().amax(-1)
        grown = apart.cummax(-1).values
        for n in lengths(qkv.n):
            for head, difference in inputs.by_head(grown[:, n - 1]):
                yield PathRow(n=n, along=name, head=head, difference=difference)


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
    same, turned, fixed = (
        [row.difference for row in rows if row.n == n and row.along == name] for name in NAMES.values()
    )
    return {"same": max(same), "turned": median(turned), "fixed": median(fixed), "n": n}


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the largest difference over heads for w = k."""
    return Verdict.of_parts(numbers["same"] <= bounds["most"])


CLAIM = Claim(
    key="path_deltanet",
    number=33,
    statement="PaTH whose directions are the keys themselves, W = K, has DeltaNet's matrix.",
    source=Paper(
        "PaTH Attention: Position Encoding via Accumulating Householder Transformations",
        2025,
        "https://arxiv.org/abs/2505.16381",
    ),
    place=Place("matrices", variants=("softmax", "deltanet", "path~along~keys")),
    experiment="With queries and keys of length one, every key is carried along the text in float64, and each token it "
    "passes takes out what lies along that token's direction w. What the queries then find is set beside DeltaNet's "
    "matrix, which solves one triangular system: for w = k, for k with its halves changed over and one negated, and "
    "for one direction that all tokens share. This is PaTH's matrix before the softmax that its models take of it.",
    rule="Holds where no entry of any head differs by more than {most} for w = k.",
    bounds={"most": FLOAT32_TOLERANCE},
    finding="Over {n} tokens the entries differ by {same} at most for w = k. With keys turned it is {turned} in the "
    "median head, with one direction for all {fixed}.",
    quantities=(
        Quantity("same", "largest difference, w = k", digits=2, bound=True),
        Quantity("turned", "the same with w = k turned, median head"),
        Quantity("fixed", "the same with one w for all tokens, median head"),
        Quantity("n", "tokens"),
    ),
    figure=Figure(
        x="n", y="difference", by="along", x_title="tokens n", y_title="largest difference of an entry", log_x=True
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=2,
    theorem="Linear attention whose state is multiplied by I − k kᵀ before k is written is the delta rule at strength "
    "1, and PaTH's product of steps is what the triangular system's inverse works out.",
)
