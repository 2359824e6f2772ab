"""Cosine attention: the similarity is ``1 + cos(q, k)``, the first two Taylor terms of ``exp(cos(q, k))``.

The similarity lies between 0 and 2. The cosine of a zero vector with every vector is defined as 0, so its similarity
is 1. No weight exceeds ``2 / (1 + c)`` times the average of its row, where c is the mean of ``cos(q, k)`` over the
keys that the query attends to. This is twice the average if c is 0, and more if most keys point away from the query.
Only directions count, not lengths, so cosine attention does not approximate softmax.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core import articles
from attention_core.ops.linear.causal_scan import run_decoder
from attention_core.ops.linear.features import Features, LogFeatures, similarities
from attention_core.ops.linear.kernel import kernel_attention, kernel_cost, kernel_decoder
from attention_core.ops.linear.scans import mode_setting
from attention_core.ops.softmax.masked import at_least_float32, normalise_rows, safe_divisor
from attention_core.variant import Cost, Decoder, Params, Variant


class CosineParams(Params):
    """Settings of cosine attention."""

    mode: str = mode_setting(cumsum=True)


def definition(q: Tensor, k: Tensor, v: Tensor, p: CosineParams, *, causal: bool) -> Tensor:
    """Compute ``1 + cos(q_i, k_j)``, each row divided by its sum, times v, ``[..., n, d_v]``."""
    similarity = 1 + F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
    similarity = similarity.tril() if causal else similarity
    return normalise_rows(similarity) @ v


def phi(x: Tensor) -> Tensor:
    """Return ``[1, x / ‖x‖]``, ``[..., n, d + 1]``.

    The unit vectors are shortened by the largest rounding error of a cosine, so that ``1 + cos`` is never negative.
    """
    x = at_least_float32(x)
    rounding_margin = 1 + x.shape[-1] * torch.finfo(x.dtype).eps
    return F.pad(x / safe_divisor(rounding_margin * x.norm(dim=-1, keepdim=True)), (1, 0), value=1.0)


def weights(q: Tensor, k: Tensor, p: CosineParams, *, causal: bool) -> Tensor:
    """Return ``1 + cos(q_i, k_j)``, each row divided by its sum, ``[..., n, n]``."""
    f = Features(phi(q), phi(k))  # [..., n, d + 1] each; their products are 1 + cos(q_i, k_j)
    return normalise_rows(similarities(f, causal=causal)).to(q.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, p: CosineParams, *, causal: bool) -> Tensor:
    """Return ``φ(q) (φ(k)ᵀ v)``, each row divided by ``φ(q) Σ_j φ(k_j)``."""
    if causal and p.mode == "recurrent":
        state = init_state(q[..., 0, :], v[..., 0, :], p)
        return run_decoder(partial(step, p=p), state, q, k, v)
    return kernel_attention(lambda x: LogFeatures(phi(x)), q, k, v, causal=causal, mode=p.mode)


init_state, step = kernel_decoder(lambda x, p: LogFeatures(phi(x)))


def cost(n: int, d: int, p: CosineParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: key features times values, and query features times the sums; if causal, also within a chunk."""
    return Cost(*kernel_cost(n, d + 1, d, causal=causal, mode=p.mode, keys=keys))


VARIANT = Variant(
    __name__,
    title="Cosine",
    summary="Linear attention in which the weight of a key is never negative: it is proportional to one plus the "
    "cosine of the angle between query and key.",
    formula=r"A_{ij} = \frac{1 + \cos(q_i, k_j)}{\sum_l \left(1 + \cos(q_i, k_l)\right)},"
    r"\quad \cos(q, k) = \frac{q \cdot k}{\|q\|\, \|k\|}",
    complexity="n d²",
    params=CosineParams,
    decoder=Decoder(init_state, step),
    note="A weight is 1 + cos(q, k), divided by the sum of its row. If c is the mean of cos(q, k) over the keys of "
    "the row, a weight is at most 2 / (1 + c) times the mean weight. No key can therefore stand out much, unless "
    "c is close to −1. If all keys point away from the query, the sum is almost zero, and the result is "
    "unreliable.",
    source=articles.MUST_IT_HAVE_SOFTMAX,
)
