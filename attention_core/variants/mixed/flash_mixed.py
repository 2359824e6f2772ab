"""Mixed chunk attention (FLASH): squared ReLU attention within chunks of c tokens, linear attention across chunks.

For a logit x, the weight of a key in the query's own chunk is ``relu²(x) / c``. The linear part adds ``x / n`` for
every key of the text; this term may be negative, and weights are not normalised. The causal form hides later keys,
and its linear part covers earlier chunks only, with ``x / n_i``. There, n_i is the number of tokens up to and
including the query's own, since the total number is not known during generation.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.linear.causal_scan import CHUNK
from attention_core.ops.linear.scans import scan_chunks
from attention_core.ops.softmax.blockwise import RowBlock, block_size, blockwise_attention, n_pairs
from attention_core.ops.softmax.masked import at_least_float32, key_counts, scores
from attention_core.variant import Cost, Paper, Params, Variant, param

STEP = 2**16
"""Numbers in a block of several chunks: twice the default of ``blockwise_attention``, to halve the calls."""


class FlashMixedParams(Params):
    """Settings of mixed chunk attention."""

    chunk: int = param(
        32,
        low=1,
        high=1024,
        scale="log",
        budget=True,
        help="Number c of tokens per chunk. Within a chunk, all pairs of tokens are compared, so larger chunks cost "
        "more.",
    )


def earlier_chunk(n: int, p: FlashMixedParams, device: torch.device) -> Tensor:
    """Return which keys lie in a chunk before their query's chunk, ``bool [n, n]``."""
    chunk = torch.arange(n, device=device) // p.chunk
    return chunk[:, None] > chunk


def weights(q: Tensor, k: Tensor, p: FlashMixedParams, *, causal: bool) -> Tensor:
    """Compute ``relu²(x) / c`` of logits x in chunks of c tokens, plus ``x / n_i`` in all (causal: earlier) chunks.

    n_i is the number of keys visible to query i.
    """
    x = scores(q, k)  # [..., n, n]
    is_earlier = earlier_chunk(q.shape[-2], p, q.device)  # [n, n]
    own = ~(is_earlier | is_earlier.mT) * x.relu().square() / p.chunk
    linear = x / key_counts(k, causal=causal).to(q)
    return own.tril() + linear * is_earlier if causal else own + linear


def attend(q: Tensor, k: Tensor, v: Tensor, p: FlashMixedParams, *, causal: bool) -> Tensor:
    """Compute the output in chunks of c tokens, with ``q (kᵀ v)`` for the linear term: O(n c d + n d²) time."""
    queries, keys, values = at_least_float32(q), at_least_float32(k), at_least_float32(v)
    own_output = attend_own_chunks(queries, keys, values, p, causal=causal)
    factor = q.shape[-1] ** -0.5 / key_counts(k, causal=causal).to(queries)
    if not causal:
        flat_output = own_output.view(-1, *v.shape[-2:])
        rest = keys.mT @ values * factor
        flat_output.baddbmm_(queries.reshape(-1, *q.shape[-2:]), rest.view(-1, *rest.shape[-2:]))
        return own_output.to(v.dtype)
    state = values.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1])
    step = partial(add_earlier_chunks, p=p)
    out, _ = scan_chunks(step, state, queries, keys, values, own_output, factor, size=tokens_per_step(p))
    return out.to(v.dtype)


def attend_own_chunks(q: Tensor, k: Tensor, v: Tensor, p: FlashMixedParams, *, causal: bool) -> Tensor:
    """Compute the squared ReLU within the chunks, ``[..., n, d_v]``."""
    n, size = q.shape[-2], min(p.chunk, q.shape[-2])
    if n % size:
        # The last chunk is padded with zeros. Zero keys get the weight 0; the rows of zero queries are cut off below.
        q, k, v = (F.pad(x, (0, 0, 0, -n % size)) for x in (q, k, v))
    chunks = (x.unflatten(-2, (-1, size)) for x in (q, k, v))
    return blockwise_attention(partial(_row_weights, p=p), *chunks, causal=causal, step=STEP).flatten(-3, -2)[
        ..., :n, :
    ]


def _row_weights(q: Tensor, k: Tensor, rows: RowBlock, p: FlashMixedParams) -> Tensor:
    """Return the weights ``relu²(x) / c`` of a block of queries.

    The queries are scaled instead of the logits x, because a block has fewer queries than logits.
    """
    return rows.fill_future(q * (q.shape[-1] * p.chunk) ** -0.5 @ k.mT, 0.0).relu_().square()


def add_earlier_chunks(
    state: Tensor, q: Tensor, k: Tensor, v: Tensor, own_output: Tensor, factor: Tensor, p: FlashMixedParams
) -> tuple[Tensor, Tensor]:
    """Return the outputs of some chunks with the linear term of earlier chunks, and the next state.

    ``own_output`` is the output of attention within the chunks, and ``factor`` scales the queries of the linear term.
    The state is ``Σ kᵀ v`` over the tokens so far.
    """
    q = q * factor
    out = own_output + q @ state
    if p.chunk < q.shape[-2]:
        out = out + earlier_chunk(q.shape[-2], p, q.device) * (q @ k.mT) @ v
    return out, state + k.mT @ v


def tokens_per_step(p: FlashMixedParams) -> int:
    """Return the number of tokens per step of the causal linear term: whole chunks with at least ``CHUNK`` tokens."""
    return p.chunk * -(-CHUNK // p.chunk)


def cost(n: int, d: int, p: FlashMixedParams, *, causal: bool) -> Cost:
    """Return the cost: products with k and v within the chunks, and the two products of the linear term."""
    size, step = min(p.chunk, n), min(tokens_per_step(p), n)
    chunks, rest = -(-n // size), n % step
    # Pairs of queries and keys of the causal linear term in the same step of ``step`` tokens. They exist only if a step
    # is longer than a chunk: a query then has earlier chunks in its own step.
    step_pairs = n // step * step**2 * (step > p.chunk) + rest**2 * (rest > p.chunk) if causal else 0
    # Memory of the squared ReLU: several chunks are computed at the same time. Each chunk needs ``block`` numbers for
    # its logits. It also needs memory for their squares or for the scaled queries, whichever is larger.
    rows, block = block_size(size), block_size(size) * size
    relu_elements = (block + max(block, rows * d)) * min(chunks, max(1, STEP // block))
    relu_elements += 3 * chunks * size * d if n % size else 0
    linear_elements = n * d + (n * d + max(3 * step * d, 9 * step**2 // 4 if step_pairs else 0) if causal else 0)
    return Cost(
        multiply_adds=2 * d * (chunks * n_pairs(size, causal=causal) + n * d + step_pairs),
        peak_elements=max(n * d + relu_elements, linear_elements + 2 * d * d),
    )


VARIANT = Variant(
    __name__,
    title="Mixed chunks",
    summary="Within each chunk of the text, tokens attend to each other with squared ReLU weights, and linear "
    "attention connects the chunks.",
    formula=r"A_{ij} = \frac{x_{ij}}{n_i} + \frac{\operatorname{relu}^2(x_{ij})}{c}"
    r"\left[\lfloor i/c \rfloor = \lfloor j/c \rfloor\right],\quad x_{ij} = \frac{q_i \cdot k_j}{\sqrt d}",
    complexity="n c d + n d²",
    params=FlashMixedParams,
    cross_reason="a query attends to all tokens of its own chunk, so queries and keys must come from one sequence.",
    rows_sum_to_one=False,
    signed=True,
    note="Each weight is a sum of two parts. The first part is the squared ReLU of the logit, divided by c, for "
    "pairs within a chunk of c tokens. The second part (linear attention) is the logit divided by n_i, the "
    "number of tokens that query i can attend to. With a causal mask, the second part covers only the chunks "
    "before the query's own chunk. The weights of a row are not divided by their sum.",
    source=Paper("Transformer Quality in Linear Time", 2022, "https://arxiv.org/abs/2202.10447"),
)
