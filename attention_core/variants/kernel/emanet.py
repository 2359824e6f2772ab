"""Expectation-maximisation attention: all tokens are told by a few bases, found by soft clustering of the keys.

Each round hands every key out over the bases (E step) and makes each basis the mean of its keys, as a unit vector
(M step). Queries are then handed out over the last bases, and a basis gives each the mean of the values it was handed
in the last round.

``sharpness`` is the λ of the formula. It is 1 by default, as in the paper: bases are unit vectors, so that an inner
product with a key does not grow with d as that of a query and a key does, and 1/√d would leave all bases alike.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from attention_core.ops.linear.scans import again, by_heads, wants_gradient
from attention_core.ops.random import normal
from attention_core.ops.softmax.masked import nonzero, widened
from attention_core.variant import Cost, Paper, Params, Variant, param


@dataclass(frozen=True, kw_only=True)
class EmanetParams(Params):
    """Settings of expectation-maximisation attention."""

    bases: int = param(
        16,
        low=1,
        high=1024,
        scale="log",
        budget=True,
        help="Cluster centres all tokens are told by; more tell finer and cost more.",
    )
    iterations: int = param(3, low=1, high=20, help="Rounds of clustering; the bases settle within a few.")
    sharpness: float = param(
        1.0,
        low=0.1,
        high=20.0,
        step=0.1,
        scale="log",
        help="How firmly a token belongs to its nearest basis: small shares it among all, large gives it to one.",
    )
    seed: int = param(0, low=0, high=2**31 - 1, help="Which random directions the bases start from.")


def unit(x: Tensor) -> Tensor:
    """Rows of length one; a row of zeros stays."""
    return x / nonzero(x.norm(dim=-1, keepdim=True))


def rounds(k: Tensor, p: EmanetParams) -> Iterator[tuple[Tensor, Tensor]]:
    """For each round log responsibilities, ``[..., n, b]``, and the bases they lead to, ``[..., b, d]``.

    The first round starts from seeded directions, the same for every head.
    """
    bases = unit(normal((p.bases, k.shape[-1]), p.seed, k))  # μ, [b, d]
    for _ in range(p.iterations):
        log_z = (k @ (p.sharpness * bases).mT).log_softmax(-1)  # E: [..., n, b]
        # Shares of many bases are as much as all else of a round: a backward works them out again.
        bases = (again(means, k) if many_bases(k, p) else means)(log_z, k)  # M: [..., b, d]
        yield log_z, bases


def many_bases(k: Tensor, p: EmanetParams) -> bool:
    """Whether a token's responsibilities are more than half as many numbers as its key."""
    return 2 * p.bases > k.shape[-1]


def means(log_z: Tensor, k: Tensor) -> Tensor:
    """The direction of each basis' mean key, ``[..., b, d]``."""
    return unit(shares(log_z).mT @ k)


def shares(log_z: Tensor) -> Tensor:
    """Responsibilities over their sum along the tokens, ``[..., n, b]``: never 0/0, however far a basis is from all."""
    return log_z.softmax(-2)


def maps(q: Tensor, k: Tensor, p: EmanetParams) -> tuple[Tensor, Tensor]:
    """How queries are handed out over the bases, and what each basis takes from each token, ``[..., n, b]`` both."""
    log_z, bases = deque(rounds(widened(k), p), maxlen=1).pop()
    given = (widened(q) @ (p.sharpness * bases).mT).softmax(-1)  # S_bases(λ q μᵀ), [..., n, b]
    return given, shares(log_z)


def weights(q: Tensor, k: Tensor, p: EmanetParams, *, causal: bool) -> Tensor:
    """``S_bases(λ q μᵀ) (z / Σ_j z)ᵀ``, ``[..., n, n]``."""
    given, taken = maps(q, k, p)
    return given @ taken.mT  # [..., n, b] @ [..., b, n]


def attend(q: Tensor, k: Tensor, v: Tensor, p: EmanetParams, *, causal: bool) -> Tensor:
    """Values are gathered by the bases, then handed out: O(T n b d)."""
    # Head by head less is held, which takes more time where bases are few or a backward makes them again.
    if not many_bases(k, p) or wants_gradient(q, k, v):
        return handed_out(q, k, v, p)
    return by_heads(partial(handed_out, p=p), q, k, v)


def handed_out(q: Tensor, k: Tensor, v: Tensor, p: EmanetParams) -> Tensor:
    """All heads at once, or one."""
    given, taken = maps(q, k, p)
    return (given @ (taken.mT @ widened(v))).to(v.dtype)


def cost(n: int, d: int, p: EmanetParams, *, causal: bool) -> Cost:
    """Two products of tokens and bases per round, and three to hand out queries and values."""
    b = p.bases
    return Cost(
        multiply_adds=(2 * p.iterations + 3) * n * b * d, peak_elements=max(3 * n * b, n * d + 2 * n * b) + 2 * b * d
    )


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: EmanetParams, *, causal: bool) -> dict[str, Tensor]:
    """The clustering round by round.

    ``responsibilities``, ``[..., T, n, b]``: how each round hands the keys out; ``bases``, ``[..., T, b, d]``: the unit
    vectors it leads to; ``given``, ``[..., n, b]``: how the queries are handed out over the last.
    """
    made = list(rounds(widened(k), p))
    return {
        "responsibilities": torch.stack([log_z.exp() for log_z, _ in made], -3),
        "bases": torch.stack([bases for _, bases in made], -3),
        "given": maps(q, k, p)[0],
    }


VARIANT = Variant(
    key="emanet",
    title="Expectation maximisation",
    family="kernel",
    summary="A few bases, found by soft clustering of the keys, gather the values and hand them out to the queries.",
    formula=r"A = \operatorname{softmax}_{\text{bases}}(\lambda Q \mu^\top)\,\hat Z^\top,\quad "
    r"Z = \operatorname{softmax}_{\text{bases}}(\lambda K \mu^\top),\; \hat Z_{jb} = \frac{Z_{jb}}{\sum_l Z_{lb}},\;"
    r" \mu \leftarrow \frac{\hat Z^\top K}{\|\hat Z^\top K\|}",
    complexity="T n b d",
    params=EmanetParams,
    weights=weights,
    attend=attend,
    cost=cost,
    causal_reason="its bases are fitted to all tokens together, so each of them already knows the later ones.",
    random=True,
    anatomy=anatomy,
    source=Paper(
        "Expectation-Maximization Attention Networks for Semantic Segmentation",
        2019,
        "https://arxiv.org/abs/1907.13426",
    ),
)
