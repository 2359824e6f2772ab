"""Hedgehog: the features of a query or key are the softmax of its entries and the softmax of their negatives.

The largest entries of queries and keys dominate the features, whereas maps such as ``elu + 1`` flatten them. Entries
far below zero count as much as entries far above zero. Hedgehog approximates softmax only after training, which is not
done here.
"""

import torch
from torch import Tensor

from attention_core.ops.linear.features import LogFeatures, both_softmaxes, feature_pair, similarities
from attention_core.ops.linear.kernel import kernel_attention, kernel_cost, kernel_decoder
from attention_core.ops.linear.streamed_kernel import default_block_size
from attention_core.ops.softmax.masked import at_least_float32, normalise_rows
from attention_core.variant import Cost, Decoder, Paper, Params, Variant


def phi(x: Tensor) -> LogFeatures:
    """Return ``[softmax(x), softmax(-x)]``, ``[..., n, 2d]``."""
    return LogFeatures(both_softmaxes(at_least_float32(x)))


def definition(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Compute products of features ``[softmax(x), softmax(-x)]``, divided by row sums, times v, ``[..., n, d_v]``."""
    phi_q, phi_k = (torch.cat([x.softmax(-1), (-x).softmax(-1)], -1) for x in (q, k))
    similarity = phi_q @ phi_k.mT
    similarity = similarity.tril() if causal else similarity
    return normalise_rows(similarity) @ v


def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return ``φ(q) φ(k)ᵀ``, each row divided by its sum, ``[..., n, n]``."""
    return normalise_rows(similarities(feature_pair(phi, q, k, causal=causal), causal=causal))


def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return ``φ(q) (φ(k)ᵀ v)``, each row divided by ``φ(q) Σ_j φ(k_j)``."""
    return kernel_attention(phi, q, k, v, causal=causal)


init_state, step = kernel_decoder(lambda x, p: phi(x))


def cost(n: int, d: int, p: Params, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: key features times values, and query features times the sums; if causal, also within a chunk."""
    adds, peak = kernel_cost(n, 2 * d, d, causal=causal, keys=keys)
    # The features of a block of keys, 2 d numbers per key, are concatenated from two halves. During this step, the
    # halves and the result are in memory, together with the state.
    joined_features = 0 if causal else 4 * d * min(keys or n, default_block_size(2 * d, causal=False)) + 2 * d * (d + 1)
    return Cost(multiply_adds=adds, peak_elements=max(peak, joined_features))


VARIANT = Variant(
    __name__,
    title="Hedgehog",
    summary="Linear attention with the features softmax(x) and softmax(−x) of each query or key x, which emphasise "
    "its largest and smallest components.",
    formula=r"A_{ij} = \frac{\varphi(q_i)^\top \varphi(k_j)}{\sum_l \varphi(q_i)^\top \varphi(k_l)},\quad "
    r"\varphi(x) = [\operatorname{softmax}(x), \operatorname{softmax}(-x)]",
    complexity="n d²",
    params=Params,
    zero_rows=True,
    decoder=Decoder(init_state, step),
    note="In published models, each query or key x first passes through a linear map, which is trained so that the "
    "weights imitate softmax attention. Here, there is no such map. All weights of a row are zero if the dot "
    "products of the query's features with those of all keys are too small for float32.",
    source=Paper(
        "The Hedgehog & the Porcupine: Expressive Linear Attentions with Softmax Mimicry",
        2024,
        "https://arxiv.org/abs/2402.04347",
        authors="Zhang et al.",
    ),
)
