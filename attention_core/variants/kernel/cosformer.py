"""cosFormer: products of the positive parts of queries and keys, multiplied by a cosine that decreases with distance.

Positions become angles, from 0 at the first token to a right angle at the end of the text, so no weight is negative.
Since ``cos(a_i - a_j) = cos a_i cos a_j + sin a_i sin a_j``, the cosine is a product of features too. A causal form
must not use the length of the text. Its right angle is at the position given by the setting ``length``, and all later
tokens have the same angle.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.causal_scan import State, empty_state
from attention_core.ops.linear.features import LogFeatures, feature_pair, similarities
from attention_core.ops.linear.kernel import kernel_attention, kernel_cost, kernel_step
from attention_core.ops.softmax.masked import at_least_float32, normalise_rows
from attention_core.variant import Cost, Decoder, Paper, Params, Variant, param


class CosformerParams(Params):
    """Settings of cosFormer."""

    length: int = param(
        512,
        low=1,
        high=65_536,
        scale="log",
        help="Distance between query and key at which weights reach zero with a causal mask. Tokens at later "
        "positions than this number count as if they were at this position. Without a causal mask, weights reach "
        "zero at a distance equal to the length of the text.",
    )


def definition(q: Tensor, k: Tensor, v: Tensor, p: CosformerParams, *, causal: bool) -> Tensor:
    """Compute ``relu(q) relu(k)ᵀ`` times a cosine of the distance, divided by row sums, times v, ``[..., n, d_v]``."""
    n = q.shape[-2]
    length = p.length if causal else n
    position = torch.arange(n).to(q).clamp(max=length)
    distance = (position[:, None] - position).abs()  # [n, n]
    cosine = torch.sin(math.pi / 2 * (1 - distance / length))  # cos(π/2 · distance / length), but exactly 0 at the end
    similarity = cosine * (q.relu() @ k.relu().mT)
    similarity = similarity.tril() if causal else similarity
    return normalise_rows(similarity) @ v


def phi(x: Tensor, quarter_turns: Tensor) -> LogFeatures:
    """Return ``[relu(x) cos a, relu(x) sin a]``, ``[..., n, 2d]``, for angles a in quarter turns, ``[n, 1]``."""
    x, angles = at_least_float32(x), quarter_turns * (math.pi / 2)
    # At the right angle the cosine is zero, but the cosine of the rounded π/2 is not, so it is set to zero.
    cosines = angles.cos().masked_fill(quarter_turns == 1, 0.0)
    # Cosine and sine are not negative here, so relu may be applied to the products instead of to x. For the backward
    # pass, autograd then stores only the features.
    return LogFeatures(torch.cat([x * cosines.to(x), x * angles.sin().to(x)], -1).relu_())


def position_angles(positions: Tensor, length: int) -> Tensor:
    """Return the angles of positions in quarter turns, float64; positions from ``length`` on have the angle 1."""
    return positions.double().clamp_max(length) / length


def token_angles(q: Tensor, p: CosformerParams, *, causal: bool) -> Tensor:
    """Return the angles of all tokens in quarter turns, ``[n, 1]``."""
    n = q.shape[-2]
    return position_angles(torch.arange(n, device=q.device), p.length if causal else n).unsqueeze(-1)


def weights(q: Tensor, k: Tensor, p: CosformerParams, *, causal: bool) -> Tensor:
    """Return ``relu(q) relu(k)ᵀ cos(a_i - a_j)``, each row divided by its sum, ``[..., n, n]``."""
    f = feature_pair(phi, q, k, token_angles(q, p, causal=causal), causal=causal)
    return normalise_rows(similarities(f, causal=causal))


def attend(q: Tensor, k: Tensor, v: Tensor, p: CosformerParams, *, causal: bool) -> Tensor:
    """Return ``φ(q) (φ(k)ᵀ v)``, each row divided by ``φ(q) Σ_j φ(k_j)``."""
    return kernel_attention(phi, q, k, v, token_angles(q, p, causal=causal), causal=causal)


class DecoderState(NamedTuple):
    """The state of the decoder.

    Attributes:
        state: the sums over the tokens so far.
        token_count: the number of tokens so far, one float64 number.
    """

    state: State
    token_count: Tensor


def init_state(q: Tensor, v: Tensor, p: CosformerParams) -> DecoderState:
    """Return the state before any token; one token's q, ``[..., d]``, and v, ``[..., d_v]``, give shapes and type."""
    sums = empty_state(2 * q.shape[-1], at_least_float32(v), normalise=True, references=0)
    return DecoderState(sums, torch.zeros(1, 1, dtype=torch.float64, device=v.device))


def step(state: DecoderState, q: Tensor, k: Tensor, v: Tensor, p: CosformerParams) -> tuple[Tensor, DecoderState]:
    """Return the output of one token, ``[..., d_v]``, and the next state."""
    quarter_turns = position_angles(state.token_count, p.length)
    f = feature_pair(phi, q.unsqueeze(-2), k.unsqueeze(-2), quarter_turns, causal=True)
    out, sums = kernel_step(state.state, f, v)
    return out, DecoderState(sums, state.token_count + 1)


def cost(n: int, d: int, p: CosformerParams, *, causal: bool) -> Cost:
    """Return the cost: key features times values, and query features times the sums; if causal, also within a chunk."""
    return Cost(*kernel_cost(n, 2 * d, d, causal=causal))


VARIANT = Variant(
    __name__,
    title="cosFormer",
    summary="Linear attention: the weight is proportional to the dot product of ReLU(q) and ReLU(k), times a cosine "
    "that decreases with the distance between query and key.",
    formula=r"A_{ij} \propto \operatorname{relu}(q_i)^\top \operatorname{relu}(k_j)\,"
    r"\cos\left(\frac{\pi}{2}\,\frac{i - j}{n}\right)",
    complexity="n d²",
    params=CosformerParams,
    cross_reason="the weights depend on the distance between query and key, which is defined only within one sequence.",
    zero_rows=True,
    decoder=Decoder(init_state, step),
    note="The cosine falls to zero at a distance of n tokens, the length of the text. With a causal mask, it falls "
    "to zero at the distance set by “length” instead. All weights of a row are zero if the query has no positive "
    "component in common with any key.",
    source=Paper("cosFormer: Rethinking Softmax in Attention", 2022, "https://arxiv.org/abs/2202.08791"),
)
