"""cosFormer: positive parts of queries and keys, whose products fade with distance like a quarter of a cosine.

``cos(a_i - a_j) = cos a_i cos a_j + sin a_i sin a_j`` makes the fading a product of features too. Positions become
angles from 0 up to a right angle at the text's end, so that no weight is negative. A causal form must not know the
end: there the right angle is at a length that is set, and later tokens stand where that length ends.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.causal_scan import State as Sums
from attention_core.ops.linear.causal_scan import empty_state
from attention_core.ops.linear.features import LogFeatures, paired
from attention_core.ops.linear.kernel import kernel_attention, kernel_cost, kernel_step, similarities
from attention_core.ops.softmax.masked import rows_over_sum, widened
from attention_core.variant import Cost, Decoder, Paper, Params, Variant, param


@dataclass(frozen=True, kw_only=True)
class CosformerParams(Params):
    """Settings of cosFormer."""

    length: int = param(
        512,
        low=1,
        high=65_536,
        scale="log",
        help="Causal form only: the distance at which a weight has faded to zero, and from which on positions no "
        "longer differ. Else it is the text's own length.",
    )


def phi(x: Tensor, turns: Tensor) -> LogFeatures:
    """``[relu(x) cos a, relu(x) sin a]``, ``[..., n, 2d]``, for turns ``[n, 1]`` as ``quarter_turns`` gives them."""
    x, angles = widened(x), turns * (math.pi / 2)
    # π/2 is rounded, so that its cosine is not zero.
    cosines = angles.cos().masked_fill(turns == 1, 0.0)
    # Rectified after the products, as no factor is below zero: a backward then keeps the features alone.
    return LogFeatures(torch.cat([x * cosines.to(x), x * angles.sin().to(x)], -1).relu_())


def quarter_turns(positions: Tensor, length: int) -> Tensor:
    """The angles of the positions in quarter turns, float64: 1 at ``length`` and beyond."""
    return positions.double().clamp_max(length) / length


def along(q: Tensor, p: CosformerParams, *, causal: bool) -> Tensor:
    """The turns of all tokens, ``[n, 1]``."""
    n = q.shape[-2]
    return quarter_turns(torch.arange(n), p.length if causal else n).unsqueeze(-1).to(q.device)


def weights(q: Tensor, k: Tensor, p: CosformerParams, *, causal: bool) -> Tensor:
    """``relu(q) relu(k)ᵀ cos(a_i - a_j)``, each row divided by its sum, ``[..., n, n]``."""
    return rows_over_sum(similarities(paired(phi, q, k, along(q, p, causal=causal), causal=causal), causal=causal))


def attend(q: Tensor, k: Tensor, v: Tensor, p: CosformerParams, *, causal: bool) -> Tensor:
    """``φ(q) (φ(k)ᵀ v)``, divided by the same with ones for ``v``."""
    return kernel_attention(phi, q, k, v, along(q, p, causal=causal), causal=causal)


class State(NamedTuple):
    """What the decoder remembers.

    Attributes:
        state: the sums over the past.
        position: how many tokens came before, one number, float64.
    """

    state: Sums
    position: Tensor


def init_state(q: Tensor, v: Tensor, p: CosformerParams) -> State:
    """The state before any token, for one token's query ``[..., d]`` and value ``[..., d_v]``."""
    sums = empty_state(2 * q.shape[-1], widened(v), normalise=True, referenced=False)
    return State(sums, torch.zeros(1, 1, dtype=torch.float64, device=v.device))


def step(state: State, q: Tensor, k: Tensor, v: Tensor, p: CosformerParams) -> tuple[Tensor, State]:
    """One token, ``[..., d]`` and ``[..., d_v]``, to its output and the next state."""
    turns = quarter_turns(state.position, p.length)
    out, sums = kernel_step(state.state, paired(phi, q.unsqueeze(-2), k.unsqueeze(-2), turns, causal=True), v)
    return out, State(sums, state.position + 1)


def cost(n: int, d: int, p: CosformerParams, *, causal: bool) -> Cost:
    """Keys times values once, queries times that sum; the causal form adds what happens inside a chunk."""
    return Cost(*kernel_cost(n, 2 * d, d, causal=causal))


VARIANT = Variant(
    key="cosformer",
    title="cosFormer",
    family="kernel",
    summary="Positive parts of queries and keys, with weights that fade with distance like a cosine, at linear cost.",
    formula=r"A_{ij} \propto \operatorname{relu}(q_i)^\top \operatorname{relu}(k_j)\,"
    r"\cos\left(\frac{\pi}{2}\,\frac{i - j}{n}\right)",
    complexity="n d²",
    params=CosformerParams,
    weights=weights,
    attend=attend,
    cost=cost,
    zero_rows=True,
    decoder=Decoder(init_state, step),
    note="A row whose query has no positive entry in common with a key is a zero row. The causal form fades over its "
    "length setting in place of n.",
    source=Paper("cosFormer: Rethinking Softmax in Attention", 2022, "https://arxiv.org/abs/2202.08791"),
)
