"""Linear attention: a positive feature map replaces the exponential, and the cost grows like n.

Linear attention does not approximate softmax at any setting.
"""

from functools import partial

import torch
from torch import Tensor

from attention_core import articles
from attention_core.ops.linear.causal_scan import CHUNK, run_decoder
from attention_core.ops.linear.features import FEATURE_MAPS, Features, LogFeatures, feature_pair, similarities
from attention_core.ops.linear.kernel import kernel_attention, kernel_cost, kernel_decoder
from attention_core.ops.linear.scans import mode_setting, running_sum
from attention_core.ops.softmax.masked import at_least_float32, normalise_rows
from attention_core.variant import Cost, Decoder, Paper, Params, Variant, param


class LinearParams(Params):
    """Settings of linear attention."""

    feature_map: str = param(
        "elu+1",
        choices=("elu+1", "relu", "softmax", "exp"),
        help="Function that turns each query and each key into a vector of features, which are never negative.",
    )
    mode: str = mode_setting(cumsum=True)


def definition(q: Tensor, k: Tensor, v: Tensor, p: LinearParams, *, causal: bool) -> Tensor:
    """Compute ``φ(q) φ(k)ᵀ``, each row divided by its sum, times v, ``[..., n, d_v]``."""
    phi = {**FEATURE_MAPS, "exp": torch.exp}[p.feature_map]
    similarity = phi(q) @ phi(k).mT
    similarity = similarity.tril() if causal else similarity
    return normalise_rows(similarity) @ v


def phi(x: Tensor, p: LinearParams) -> LogFeatures:
    """Return ``φ(x)``, ``[..., n, d]``."""
    x = at_least_float32(x)
    return LogFeatures(None, x) if p.feature_map == "exp" else LogFeatures(FEATURE_MAPS[p.feature_map](x))


def features(q: Tensor, k: Tensor, p: LinearParams, *, causal: bool) -> Features:
    """Return ``φ(q)`` and ``φ(k)``, ``[..., n, d]``."""
    return feature_pair(partial(phi, p=p), q, k, causal=causal)


def weights(q: Tensor, k: Tensor, p: LinearParams, *, causal: bool) -> Tensor:
    """Return ``φ(q) φ(k)ᵀ``, each row divided by its sum, ``[..., n, n]``."""
    f = features(q, k, p, causal=causal)  # [..., n, d] each
    return normalise_rows(similarities(f, causal=causal)).to(q.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, p: LinearParams, *, causal: bool) -> Tensor:
    """Return ``φ(q) (φ(k)ᵀ v)``, each row divided by ``φ(q) Σ_j φ(k_j)``."""
    if causal and p.mode == "recurrent":
        state = init_state(q[..., 0, :], v[..., 0, :], p)
        return run_decoder(lambda state, q, k, v: step(state, q, k, v, p), state, q, k, v)
    return kernel_attention(partial(phi, p=p), q, k, v, causal=causal, mode=p.mode, size=chunk_size(p))


def chunk_size(p: LinearParams) -> int:
    """Return the number of tokens per chunk: more for ``exp``, whose running maxima take a fixed time per chunk."""
    return 2 * CHUNK if p.feature_map == "exp" else CHUNK


init_state, step = kernel_decoder(phi)


def cost(n: int, d: int, p: LinearParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: key features times values, and query features times the sums; if causal, also within a chunk."""
    referenced = p.feature_map == "exp"
    copies = 2 if p.feature_map == "elu+1" else 1
    size = chunk_size(p)
    return Cost(
        *kernel_cost(n, d, d, causal=causal, mode=p.mode, referenced=referenced, size=size, keys=keys, copies=copies)
    )


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: LinearParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the features, ``[..., n, C]``, and the normaliser over time.

    ``key_sums``, ``[..., n, C]``, holds the sum of the key features up to each token, or over all tokens unless
    causal. ``normaliser``, ``[..., n]``, is the divisor of each query's row.
    """
    f = features(q, k, p, causal=causal)
    sums = running_sum(f.k, f.reference) if causal else f.k.sum(-2, keepdim=True).expand_as(f.k)
    return {"query_features": f.q, "key_features": f.k, "key_sums": sums, "normaliser": (f.q * sums).sum(-1)}


VARIANT = Variant(
    __name__,
    title="Linear",
    summary="A function turns queries and keys into vectors of features, whose dot product replaces softmax's "
    "exponential. Products of key features and values are summed in one matrix. Without a mask, all queries use the "
    "same sum.",
    formula=r"A_{ij} = \frac{\varphi(q_i)^\top \varphi(k_j)}{\sum_l \varphi(q_i)^\top \varphi(k_l)}",
    complexity="n d²",
    params=LinearParams,
    zero_rows=True,
    decoder=Decoder(init_state, step),
    note="All weights of a row are zero if the query's features have a zero dot product with the features of every "
    "key. With relu, this happens if the query and each key have no positive component in common. With other feature "
    "maps, it happens only if exponentials are too small for float32.",
    source=Paper(
        "Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention",
        2020,
        "https://arxiv.org/abs/2006.16236",
        authors="Katharopoulos et al.",
    ),
    further=(
        articles.MUST_IT_HAVE_SOFTMAX,
        # The feature map exp is from this article, which obtains it from Performer by learning the directions.
        articles.PERFORMER_TO_LINEAR,
    ),
)
