"""Non-local networks: the weights are softmax without the scale 1/√d, or similarities divided by the number of keys."""  # noqa: N999 - a Python keyword, but a module has the name of its variant's key

from torch import Tensor

from attention_core.ops.linear.causal_scan import CHUNK, causal_attention
from attention_core.ops.linear.features import Features
from attention_core.ops.random import normal
from attention_core.ops.softmax.blockwise import RowBlock, blockwise_attention, largest_block, n_pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, causal_mask, key_counts, masked_softmax, visible_pairs
from attention_core.variant import Cost, Paper, Params, Variant, param


class NonlocalParams(Params):
    """Settings of the non-local block."""

    similarity: str = param(
        "gaussian",
        choices=("gaussian", "dot", "concat"),
        help='Formula that compares a query with a key. "gaussian" is the softmax of the dot products, without the '
        'scale 1/√d. "dot" is the dot product, divided by the number of keys. With "concat", query and key are each '
        "projected to one number. The ReLU of their sum is divided by the number of keys.",
    )
    seed: int = param(
        0,
        low=0,
        high=9999,
        help="Random seed of the two vectors that project queries and keys to numbers. This setting is used only "
        'with the similarity "concat".',
    )


def _projections(q: Tensor, k: Tensor, p: NonlocalParams) -> tuple[Tensor, Tensor]:
    """Return ``w_qᵀ q_i`` and ``w_kᵀ k_j``, each ``[..., n, 1]``, for random vectors w with entries of variance 1/d."""
    q, k, d = at_least_float32(q), at_least_float32(k), q.shape[-1]
    w_q, w_k = (normal((d, 1), p.seed, q, stream) * d**-0.5 for stream in (0, 1))
    return q @ w_q, k @ w_k


def weights(q: Tensor, k: Tensor, p: NonlocalParams, *, causal: bool) -> Tensor:
    """Compute each pair's similarity, normalised by softmax or by the number of visible keys, ``[..., n, n]``."""
    if p.similarity == "gaussian":
        return masked_softmax(q @ k.mT, visible_pairs(q, causal=causal))
    if p.similarity == "concat":
        q_projection, k_projection = _projections(q, k, p)  # [..., n, 1] each
        similarity = (q_projection + k_projection.mT).relu()  # [..., n, n]
    else:
        similarity = q @ k.mT
    if causal:
        similarity = similarity.masked_fill(~causal_mask(q.shape[-2], q.device), 0.0)
    return similarity / key_counts(k, causal=causal).to(q)


def _concat_weights(a: Tensor, b: Tensor, rows: RowBlock) -> Tensor:
    """Compute ``relu(a_i + b_j) / n_i`` for one block of queries; n_i is the number of keys visible to query i."""
    return rows.fill_future(a + b.mT, 0.0).relu_() / rows.key_counts(a.device).to(a)


def attend(q: Tensor, k: Tensor, v: Tensor, p: NonlocalParams, *, causal: bool) -> Tensor:
    """Compute the output: "gaussian" by the fused kernel, "concat" by blocks of queries, "dot" as ``q (kᵀ v)``."""
    if p.similarity == "gaussian":
        return exact_attention(q, k, v, causal=causal, scale=1.0)
    if p.similarity == "concat":
        return blockwise_attention(_concat_weights, *_projections(q, k, p), v, causal=causal)
    dtype, q, k, v = v.dtype, at_least_float32(q), at_least_float32(k), at_least_float32(v)
    sums = causal_attention(Features(q, k), v, mode="chunked", normalise=False) if causal else q @ (k.mT @ v)
    return sums.div_(key_counts(k, causal=causal).to(q)).to(dtype)


def cost(n: int, d: int, p: NonlocalParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: products with k and v or, for "dot", with a d x d state and (if causal) within chunks."""
    m = keys or n
    if p.similarity == "gaussian":
        return Cost(multiply_adds=2 * d * n_pairs(n, causal=causal, keys=keys), peak_elements=n * (d + 1))
    if p.similarity == "concat":
        return Cost(
            multiply_adds=(n + m) * d + d * n_pairs(n, causal=causal, keys=keys),
            peak_elements=n * (d + 1) + m + 2 * largest_block(n, keys=keys),
        )
    full_chunks, rest = divmod(n, CHUNK)
    within = 2 * d * (full_chunks * CHUNK**2 + rest**2) if causal else 0
    return Cost(
        multiply_adds=(n + m) * d * d + within, peak_elements=n * d + d * d + causal * min(n, CHUNK) * (CHUNK + 3 * d)
    )


VARIANT = Variant(
    __name__,
    title="Non-local",
    summary="Depending on a setting, the weight of query q and key k is proportional to exp(q · k), to q · k or to "
    "ReLU(a + b), where a depends on q and b on k.",
    formula=r"A_{ij} = \operatorname{softmax}_j(q_i \cdot k_j) \quad\text{or}\quad \frac{q_i \cdot k_j}{n_i}"
    r"\quad\text{or}\quad \frac{\operatorname{relu}(w_q^\top q_i + w_k^\top k_j)}{n_i}",
    complexity="n² d",
    params=NonlocalParams,
    source=Paper("Non-local Neural Networks", 2017, "https://arxiv.org/abs/1711.07971"),
    rows_sum_to_one=False,
    signed=True,
    random=lambda p: p.similarity == "concat",
    note='The setting “similarity” selects one of three formulas. With "gaussian", a softmax of dot products, rows '
    'sum to one. With "dot" and "concat", they generally do not. With "dot", weights can be negative, and the '
    'time for n tokens is proportional to n instead of n². With "concat", the vectors that project queries and '
    "keys to numbers are random, not trained.",
)
