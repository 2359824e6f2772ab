"""A Taylor series of the softmax weights around equal logits, instead of a series of the exponential.

Adding a vector to all keys adds a constant to the logits of a row. Softmax ignores that constant, but a series of the
exponential does not. Relative to the mean key ``k̄``, the logits ``c_j = q · (k_j - k̄) / √d`` have mean zero in each
row. ``(1 + c_j + (c_j² - mean c²) / 2) / n`` is softmax to second order. Its rows sum to one without a division, and
its entries may be negative. In the causal form, means are over the keys that the query attends to.

The fast form needs six sums over the keys: of 1, x and x²/2, and of each of these times v. Here, x is the logit of a
key before its row's mean is subtracted, and v is the key's value. Each sum is the product of the query's features and a
sum over keys, which is the same for all queries: of the keys' features, or of their features times v.
"""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core import articles
from attention_core.ops.gpu_steps import step_size
from attention_core.ops.linear.causal_scan import with_ones
from attention_core.ops.linear.monomials import BLOCK, empty_sums, feature_count, monomials, update_state
from attention_core.ops.linear.scans import map_heads, needs_gradient, scan_chunks
from attention_core.ops.softmax.masked import at_least_float32, key_counts, scores
from attention_core.variant import Cost, Decoder, Params, Variant, param


class CentredTaylorParams(Params):
    """Settings of the centred series."""

    order: int = param(
        2,
        low=1,
        high=2,
        help="Order of the Taylor polynomial. For logits that differ little, a higher order is closer to softmax. It "
        "needs a larger state, the matrix that stores past keys and values. For head size d, the state has about d "
        "rows at order 1 and about d²/2 rows at order 2.",
    )


def weights(q: Tensor, k: Tensor, p: CentredTaylorParams, *, causal: bool) -> Tensor:
    """Return ``(1 + c + (c² - mean c²) / 2) / n`` of the centred logits c, ``[..., n, n]``.

    It is computed in float64: entries of opposite signs cancel in the sum of a row.
    """
    logits, n = scores(q.double(), k.double()), key_counts(k, causal=causal)
    visible = logits.new_ones(logits.shape[-2:]).tril() if causal else logits.new_ones(())
    c = (logits - (logits * visible).sum(-1, keepdim=True) / n) * visible
    series = 1 + c
    if p.order == 2:
        series = series + (c.square() - c.square().sum(-1, keepdim=True) / n) / 2
    return (series * visible / n).to(q.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, p: CentredTaylorParams, *, causal: bool) -> Tensor:
    """Return the outputs from sums over the keys; features exist for one block of one head at a time."""
    return map_heads(partial(attend_head, p=p, causal=causal), q, k, v)


def attend_head(q: Tensor, k: Tensor, v: Tensor, p: CentredTaylorParams, *, causal: bool) -> Tensor:
    """Return the output of one head, ``[n, d_v]``."""
    state, n = empty_sums(q[..., 0, :], v[..., 0, :], p.order), q.shape[-2]
    size = min(n, step_size(block_size(n), q.device, numbers=len(state), per_pair=int(causal)))
    buffer = None if needs_gradient(q, k, v) else state.new_empty(len(state), size)
    if causal:
        k = subtract_origin(k, k[..., :1, :])
        out, _ = scan_chunks(partial(attend_chunk, order=p.order, buffer=buffer), state, q, k, v, size=size)
        return out.to(v.dtype)
    k = subtract_origin(k, at_least_float32(k).mean(-2, keepdim=True))
    _, state = scan_chunks(partial(update_state, order=p.order, buffer=buffer), state, k, v, size=size)
    out, _ = scan_chunks(partial(read_state, order=p.order, buffer=buffer), state, q, size=size)
    return out.to(v.dtype)


def subtract_origin(k: Tensor, origin: Tensor) -> Tensor:
    """Return keys minus ``origin``, ``[..., n, d]``: the centred logits are unchanged, with smaller rounding errors."""
    return at_least_float32(k) - at_least_float32(origin)


def block_size(n: int) -> int:
    """Return the number of tokens whose features exist at the same time."""
    return min(n, BLOCK // 2)


def read_state(state: Tensor, q: Tensor, order: int, buffer: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the outputs of a block of queries from ``state``, the sums over all keys, and ``state`` itself.

    ``buffer`` is memory for the features of a block, used again for each block; None allocates new memory.
    """
    return centred_outputs(*_moments(state, q, order, buffer)), state


def attend_chunk(
    state: Tensor, q: Tensor, k: Tensor, v: Tensor, order: int, buffer: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the outputs of a causal block, and the sums including its keys.

    Pairs within the block are computed from logits, which is faster than from features. ``buffer`` is memory for
    the features of a block; None allocates new memory.
    """
    x, values = scores(at_least_float32(q), at_least_float32(k)).tril(), with_ones(at_least_float32(v))
    ones, first, *second = _moments(state, q, order, buffer)
    moments = [ones + values.cumsum(-2), first + x @ values]
    moments += [square + x.square() / 2 @ values for square in second]
    return centred_outputs(*moments), update_state(state, k, v, order, buffer)[1]


def _moments(state: Tensor, q: Tensor, order: int, buffer: Tensor | None = None) -> list[Tensor]:
    """Return the sums over keys of 1, the logit x and, at order 2, x²/2, each times ``[v, 1]``.

    The sum of 1 has one row for all queries, ``[..., 1, d_v + 1]``; the other sums are ``[..., n, d_v + 1]``.
    """
    d = q.shape[-1]
    sizes = (1, d, state.shape[-2] - 1 - d)
    ones, *rest = zip(monomials(q, order, buffer).split(sizes, -2), state.split(sizes, -2), strict=True)
    return [ones[1], *((sums.mT @ f).mT for f, sums in rest[:order])]


def centred_outputs(ones: Tensor, first: Tensor, second: Tensor | None = None) -> Tensor:
    """Return the outputs for ``x - mean x``, ``[..., n, d_v]``, from the sums of 1, x and x²/2 by ``_moments``."""
    # The results get new names. If an argument's name were assigned again, Python 3.13 would free the argument earlier
    # than 3.11, and the peak memory would differ.
    n = ones[..., -1:]
    value, linear = ones[..., :-1] / n, first / n
    mean = linear[..., -1:]
    slope = linear[..., :-1] - mean * value
    out = value + slope
    if second is not None:
        square = second / n
        out = out + square[..., :-1] - square[..., -1:] * value - mean * slope
    return out


class State(NamedTuple):
    """The state of the decoder.

    Attributes:
        sums: ``Σ φ(k_j) [v_j, 1]ᵀ`` of the keys minus the first key, for C features, ``[..., C, d_v + 1]``.
        first_key: the first key, ``[..., d]``.
    """

    sums: Tensor
    first_key: Tensor


def init_state(q: Tensor, v: Tensor, p: CentredTaylorParams) -> State:
    """Return the state before any token; one token's q, ``[..., d]``, and v, ``[..., d_v]``, give shapes and type."""
    return State(empty_sums(q, v, p.order), at_least_float32(q).new_zeros(q.shape))


def step(state: State, q: Tensor, k: Tensor, v: Tensor, p: CentredTaylorParams) -> tuple[Tensor, State]:
    """Return the output of one token, ``[..., d_v]``, and the next state."""
    token_count = state.sums[..., :1, -1]  # the number of tokens so far, a sum of ones
    first_key = torch.where(token_count == 0, at_least_float32(k), state.first_key)
    q, k, v = (x.unsqueeze(-2) for x in (q, subtract_origin(k, first_key), v))
    out, sums = attend_chunk(state.sums, q, k, v, p.order)
    return out.squeeze(-2).to(v.dtype), State(sums, first_key)


def cost(n: int, d: int, p: CentredTaylorParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: key features times values, and query features times the sums; if causal, also within a block."""
    m = keys or n
    C, columns, c = feature_count(d, p.order), d + 1, block_size(n)
    block_elements = c * C  # the features of one block
    if causal:
        chunk_pairs = n // c * c**2 + (n % c) ** 2
        block_elements += C * columns + c * ((1 + p.order) * c + 2 * p.order * columns)
    else:
        chunk_pairs = 0
        block_elements += 2 * C * columns + (2 + 2 * p.order) * c * columns
    return Cost(
        multiply_adds=m * C * d + n * (C - 1) * columns + chunk_pairs * (d + p.order * columns),
        peak_elements=m * d + n * d + block_elements,  # m * d: the shifted keys; n * d: the output
    )


VARIANT = Variant(
    __name__,
    title="Centred Taylor",
    summary="A Taylor polynomial of the logits replaces softmax. It is accurate if the logits of a row are similar. "
    "Rows sum to one without being divided by their sum.",
    formula=r"A_{ij} = \frac{1}{n_i}\left(1 + c_{ij} + \tfrac12 \left(c_{ij}^2 - \overline{c_i^2}\right)\right),"
    r"\quad c_{ij} = \frac{q_i \cdot (k_j - \bar k)}{\sqrt d}",
    complexity="n d³",
    params=CentredTaylorParams,
    approximates="softmax",
    signed=True,
    decoder=Decoder(init_state, step, normalised=False),
    note="The mean logit of each row is subtracted from its logits. The weights are a Taylor polynomial of softmax "
    "in the resulting differences. They are close to softmax's weights in rows whose logits differ little. In "
    "other rows, weights may be very large, and some may be negative. For n tokens and head size d, the time "
    "grows as n d² at order 1, and as n d³ at order 2. In float32, rounding errors change the row sums slightly. "
    "This is visible only if weights reach millions.",
    source=articles.TAYLOR_EXPANSIONS,
)
