"""Second-order Taylor attention: ``1 + x + x²/2``, which is always positive, replaces the exponential of a logit x.

It equals softmax to second order, so it approximates softmax if logits are small. The parabola has its minimum at -1
and is symmetric around it, so logits x and -2 - x have the same weight.
"""

from functools import partial

from torch import Tensor

from attention_core import articles
from attention_core.ops.gpu_steps import step_size
from attention_core.ops.linear.causal_scan import apply_normaliser, with_ones
from attention_core.ops.linear.monomials import BLOCK, empty_sums, feature_count, monomials, update_state
from attention_core.ops.linear.scans import map_heads, mode_setting, needs_gradient, scan_chunks, token_step
from attention_core.ops.softmax.masked import at_least_float32, normalise_rows, scores
from attention_core.variant import Cost, Decoder, Params, Variant


class Taylor2Params(Params):
    """Settings of the Taylor series."""

    mode: str = mode_setting()


def read_state(state: Tensor, q: Tensor, buffer: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the outputs of a block of queries from ``state``, the sums over all keys, and ``state`` itself.

    ``buffer`` is memory for the features of a block, used again for each block; None allocates new memory.
    """
    return apply_normaliser((state.mT @ monomials(q, buffer=buffer)).mT), state


def attend_chunk(state: Tensor, q: Tensor, k: Tensor, v: Tensor, buffer: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the outputs of a causal block, and the sums including its keys.

    Within the block, the polynomial of the logits is cheaper than features. ``buffer`` is memory for the features
    of a block; None allocates new memory.
    """
    earlier_sums = (state.mT @ monomials(q, buffer=buffer)).mT
    x = scores(at_least_float32(q), at_least_float32(k))
    out = apply_normaliser((1 + x + x.square() / 2).tril() @ with_ones(at_least_float32(v)) + earlier_sums)
    return out, update_state(state, k, v, buffer=buffer)[1]


def weights(q: Tensor, k: Tensor, p: Taylor2Params, *, causal: bool) -> Tensor:
    """Return ``1 + x + x²/2`` of the logits x, each row divided by its sum, ``[..., n, n]``."""
    x = scores(at_least_float32(q), at_least_float32(k))
    similarity = 1 + x + x.square() / 2
    return normalise_rows(similarity.tril() if causal else similarity).to(q.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, p: Taylor2Params, *, causal: bool) -> Tensor:
    """Return ``φ(q) (φ(k)ᵀ v)``, each row divided by ``φ(q) Σ_j φ(k_j)``, for one block of one head at a time."""
    return map_heads(partial(attend_head, p=p, causal=causal), q, k, v)


def attend_head(q: Tensor, k: Tensor, v: Tensor, p: Taylor2Params, *, causal: bool) -> Tensor:
    """Return the output of one head, ``[n, d_v]``."""
    state, size = init_state(q[..., 0, :], v[..., 0, :], p), block_size(q.shape[-2], p, causal=causal)
    if size > 1:
        size = min(q.shape[-2], step_size(size, q.device, numbers=len(state), per_pair=int(causal)))
    buffer = None if needs_gradient(q, k, v) else state.new_empty(len(state), size)
    if causal:
        out, _ = scan_chunks(partial(attend_chunk, buffer=buffer), state, q, k, v, size=size)
    else:
        _, state = scan_chunks(partial(update_state, buffer=buffer), state, k, v, size=size)
        out, _ = scan_chunks(partial(read_state, buffer=buffer), state, q, size=size)
    return out.to(v.dtype)


def block_size(n: int, p: Taylor2Params, *, causal: bool) -> int:
    """Return the number of tokens whose features exist at the same time."""
    if causal:
        return 1 if p.mode == "recurrent" else min(n, BLOCK // 2)
    return min(n, BLOCK)


def init_state(q: Tensor, v: Tensor, p: Taylor2Params) -> Tensor:
    """Return the sums before any token; one token's q, ``[..., d]``, and v, ``[..., d_v]``, give shapes and type."""
    return empty_sums(q, v)


step = token_step(lambda state, q, k, v, p: attend_chunk(state, q, k, v))


def cost(n: int, d: int, p: Taylor2Params, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: key features times values, and query features times the sums; if causal, also within a block."""
    C, columns, m = feature_count(d), d + 1, keys or n
    c = block_size(n, p, causal=causal)
    chunk_pairs = n // c * c**2 + (n % c) ** 2 if causal else 0
    # The numbers in memory at the peak: the features of a block, the sums, and a block's logits and outputs.
    block_elements = c * C + C * columns + (4 * c * c if causal else 0) + 2 * c * columns
    adds = m * C * d + n * C * columns + chunk_pairs * (d + columns)
    return Cost(multiply_adds=adds, peak_elements=n * d + block_elements)


VARIANT = Variant(
    __name__,
    title="Second-order Taylor",
    summary="Linear attention in which the polynomial 1 + x + x²/2, which is always positive, replaces the "
    "exponential of the logit x.",
    formula=r"A_{ij} = \frac{1 + x_{ij} + x_{ij}^2 / 2}{\sum_l \left(1 + x_{il} + x_{il}^2 / 2\right)},"
    r"\quad x_{ij} = \frac{q_i \cdot k_j}{\sqrt d}",
    complexity="n d³",
    params=Taylor2Params,
    approximates="softmax",
    decoder=Decoder(init_state, step),
    note="The weights are close to those of softmax if the logits are small. The polynomial is smallest at a logit "
    "of -1. Below -1 it rises again, so a logit of -10 gets the same weight as a logit of 8.",
    source=articles.EVEN_TAYLOR,
    # The article below writes the polynomial as a dot product of features. Those of a vector u are 1, u and u ⊗ u / √2.
    further=(articles.INFINITE_DIMENSION,),
)
