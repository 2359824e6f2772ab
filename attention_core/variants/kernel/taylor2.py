"""Second-order Taylor attention: ``1 + x + x²/2``, which is always positive, in place of the exponential of a logit x.

Near zero it is softmax to second order; it approximates softmax as far as logits stay small: the parabola is
least at -1 and the same on both sides of it, so that logits x and -2 - x weigh alike.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.algorithms.causal_scan import divided, with_ones
from attention_core.algorithms.masked import rows_over_sum, scores, widened
from attention_core.algorithms.monomials import BLOCK, factors, monomials, width
from attention_core.algorithms.scans import by_chunks
from attention_core.variant import Cost, Decoder, Paper, Params, Variant, param


@dataclass(frozen=True, kw_only=True)
class Taylor2Params(Params):
    """Settings of the Taylor series."""

    mode: str = param(
        "chunked",
        choices=("chunked", "recurrent"),
        help="How the causal form is computed: by chunks of tokens or token by token. The answer is one.",
    )


def series(q: Tensor, k: Tensor) -> Tensor:
    """``1 + x + x²/2`` of the logits x, ``[..., n, n]``."""
    x = scores(widened(q), widened(k))
    return 1 + x + x.square() / 2


def gather(state: Tensor, k: Tensor, v: Tensor) -> tuple[None, Tensor]:
    """A block of keys and values into the sums ``Σ_j φ(k_j) [v_j, 1]ᵀ``, ``[..., C, d_v + 1]``."""
    return None, state + monomials(k) @ with_ones(widened(v)) * factors(k.shape[-1], state)


def read(state: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """A block of queries against the sums over all keys."""
    return divided(monomials(q).mT @ state), state


def take(state: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The next tokens of the causal form, one or a block: among themselves the series itself is cheaper."""
    out = series(q, k).tril() @ with_ones(widened(v)) + monomials(q).mT @ state
    return divided(out), gather(state, k, v)[1]


def weights(q: Tensor, k: Tensor, p: Taylor2Params, *, causal: bool) -> Tensor:
    """The series of the logits, each row divided by its sum, ``[..., n, n]``."""
    similarity = series(q, k)  # [..., n, n]
    return rows_over_sum(similarity.tril_() if causal else similarity).to(q.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, p: Taylor2Params, *, causal: bool) -> Tensor:
    """``φ(q) (φ(k)ᵀ v)``, divided by the same with ones for ``v``; features exist for one block of tokens at a time."""
    state = init_state(q[..., 0, :], v[..., 0, :], p)
    if causal:
        outs, _ = by_chunks(take, state, q, k, v, size=BLOCK if p.mode == "chunked" else 1)
    else:
        _, state = by_chunks(gather, state, k, v, size=BLOCK)
        outs, _ = by_chunks(read, state, q, size=BLOCK)
    return torch.cat(outs, -2).to(v.dtype)


def init_state(q: Tensor, v: Tensor, p: Taylor2Params) -> Tensor:
    """The sums before any token, for one token's query ``[..., d]`` and value ``[..., d_v]``."""
    *lead, d_v = v.shape
    return widened(v).new_zeros(*lead, width(q.shape[-1]), d_v + 1)


def step(state: Tensor, q: Tensor, k: Tensor, v: Tensor, p: Taylor2Params) -> tuple[Tensor, Tensor]:
    """One token, ``[..., d]`` and ``[..., d_v]``, to its output and the next sums."""
    out, state = take(state, *(x.unsqueeze(-2) for x in (q, k, v)))
    return out.squeeze(-2).to(v.dtype), state


def cost(n: int, d: int, p: Taylor2Params, *, causal: bool) -> Cost:
    """Keys times values once, queries times that sum; causal forms add what happens inside a block."""
    C, columns = width(d), d + 1
    c = min(n, BLOCK) if p.mode == "chunked" or not causal else 1
    inside = n // c * c**2 + (n % c) ** 2 if causal else 0
    block = max(2 * c * C, c * C + 3 * C * columns, 4 * c * c if causal else 0)
    return Cost(
        multiply_adds=2 * n * C * columns + inside * (d + columns),
        peak_elements=max(2 * n * d, (n - c) * d + block) + C * columns,
    )


VARIANT = Variant(
    key="taylor2",
    title="Second-order Taylor",
    family="kernel",
    summary="A parabola that touches the exponential at zero and is always positive, as a product of features.",
    formula=r"A_{ij} = \frac{1 + x_{ij} + x_{ij}^2 / 2}{\sum_l \left(1 + x_{il} + x_{il}^2 / 2\right)},"
    r"\quad x_{ij} = \frac{q_i \cdot k_j}{\sqrt d}",
    complexity="n d³ / 2",
    params=Taylor2Params,
    weights=weights,
    attend=attend,
    cost=cost,
    approximates="softmax",
    decoder=Decoder(init_state, step),
    note="It follows softmax where logits are small; below -1 it rises again, so that a logit of -10 weighs as much as "
    "one of 8.",
    source=Paper(
        "The even-order Taylor polynomials of exp(x) at 0 are positive", 2020, "https://kexue.fm/archives/7919"
    ),
    # The series as a product of features: 1, x and x ⊗ x / √2.
    further=(Paper("Attention as linear attention of infinite dimension", 2021, "https://kexue.fm/archives/8601"),),
)
