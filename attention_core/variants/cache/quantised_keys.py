"""Quantised keys: each key is replaced by the nearest of a few codes, so the time of attention is linear in n.

All tokens with the same code have the same logit. Their values are therefore summed first, and each query attends to
the codes only. The codes are k-means centres of the head's own keys: k-means++ draws the initial codes, preferring keys
far from the codes already drawn, and a fixed number of rounds moves them. If there are no more distinct keys than
codes, each key is its own code.
"""

import torch
from torch import Tensor

from attention_core import articles
from attention_core.ops.random import generator
from attention_core.ops.softmax.masked import at_least_float32, masked_softmax, scores
from attention_core.variant import TOKENS, Cache, Cost, Paper, Params, SpecialCase, Variant, param

ROUNDS = 8
"""How often k-means moves the codes to the mean of their keys."""


class QuantisedKeysParams(Params):
    """Settings of quantised keys."""

    codes: int = param(
        16,
        low=1,
        high=1024,
        scale="log",
        budget=True,
        help="Number c of codes, the vectors that replace the keys. With as many codes as tokens, the result is "
        "softmax attention.",
    )
    seed: int = param(0, low=0, high=9999, help="Random seed of the initial codes, the vectors that replace the keys.")


def squared_distances(k: Tensor, codes: Tensor) -> Tensor:
    """Return the squared distances of keys and codes, ``[..., n, c]``, never negative."""
    return torch.cdist(k, codes, compute_mode="donot_use_mm_for_euclid_dist").square()


@torch.no_grad()
def initial_codes(k: Tensor, p: QuantisedKeysParams) -> Tensor:
    """Draw by k-means++ which keys are the first codes, ``int64 [..., c]``; all heads share the draws."""
    n, count = k.shape[-2], min(p.codes, k.shape[-2])
    draws = torch.rand(count, generator=generator(p.seed), dtype=torch.float64, device="cpu").tolist()
    index = torch.full(k.shape[:-2], int(draws[0] * n), dtype=torch.int64, device=k.device)
    chosen, distance = [index], torch.full(k.shape[:-1], torch.inf, dtype=k.dtype, device=k.device)
    for draw in draws[1:]:
        code = k.take_along_dim(index[..., None, None], -2)  # [..., 1, d]
        distance = torch.minimum(distance, squared_distances(k, code).squeeze(-1))
        total = distance.double().cumsum(-1)
        index = (total <= draw * total[..., -1:]).sum(-1).clamp(max=n - 1)
        chosen.append(index)
    return torch.stack(chosen, -1)


def quantise(k: Tensor, p: QuantisedKeysParams) -> tuple[Tensor, Tensor]:
    """Return the codes, ``[..., c, d]``, and the index of each key's code, ``int64 [..., n]``.

    A code is the mean of the keys that were nearest to it before its last move; a code without keys does not move.
    """
    codes = k.take_along_dim(initial_codes(k, p).unsqueeze(-1), -2)
    nearest = squared_distances(k.detach(), codes.detach()).argmin(-1)
    if p.codes >= k.shape[-2]:
        return codes, nearest
    for _ in range(ROUNDS):
        sums, count = sum_by_code(k, nearest, codes.shape[-2])
        codes = torch.where(count > 0, sums / count.clamp(min=1), codes)
        nearest = squared_distances(k.detach(), codes.detach()).argmin(-1)
    return codes, nearest


def sum_by_code(x: Tensor, nearest: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the sum and the number of each code's rows of x, ``[..., c, d]`` and ``[..., c, 1]``; c is ``count``.

    ``nearest``, ``int64 [..., n]``, is the index of each row's code.
    """
    index = nearest.unsqueeze(-1)
    sums = x.new_zeros(*x.shape[:-2], count, x.shape[-1]).scatter_add(-2, index.expand_as(x), x)
    ones = torch.ones_like(x[..., :1])
    return sums, x.new_zeros(*x.shape[:-2], count, 1).scatter_add(-2, index, ones)


def weights(q: Tensor, k: Tensor, p: QuantisedKeysParams, *, causal: bool) -> Tensor:
    """Compute softmax with each key replaced by its code, ``[..., n, n]``."""
    codes, nearest = quantise(k, p)
    # All keys with one code must have exactly the same logit. Products with copies of the code might be rounded
    # differently, so each logit is computed once and then copied.
    logits = scores(q, codes).take_along_dim(nearest.unsqueeze(-2), -1)
    return masked_softmax(logits, None)


def attend(q: Tensor, k: Tensor, v: Tensor, p: QuantisedKeysParams, *, causal: bool) -> Tensor:
    """Sum the values of each code, then attend to the c codes: O(n c d) time, O(n (c + d)) memory."""
    q, k, values = at_least_float32(q), at_least_float32(k), at_least_float32(v)
    codes, nearest = quantise(k, p)
    sums, count = sum_by_code(values, nearest, codes.shape[-2])
    shares = (scores(q, codes) + count.log().mT).softmax(-1)  # the weight of all tokens of a code together
    return (shares @ (sums / count.clamp(min=1))).to(v.dtype)


def cost(n: int, d: int, p: QuantisedKeysParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: the distances of keys and codes in k-means, queries times codes, and weights times values."""
    m = keys or n
    c = min(p.codes, m)
    # Number of distances computed per key: c - 1 while k-means++ draws the c codes, then c to find the key's code, and
    # c again after each round that moves the codes.
    distances = (c - 1) + c * (1 + ROUNDS * (p.codes < m))
    return Cost(
        multiply_adds=d * (m * distances + 2 * n * c), peak_elements=3 * m + max(2 * m * c, n * (c + max(c, d)))
    )


def cache(heads: int, d: int, d_v: int, p: QuantisedKeysParams) -> Cache:
    """Return the numbers cached: for each code, its key, the sum of its values, and the number of these values."""
    return Cache(per_token=0, fixed=heads * p.codes * (d + d_v + 1))


VARIANT = Variant(
    __name__,
    title="Quantised keys",
    summary="Each key is replaced by the nearest of a few vectors (codes), so a query computes only one logit for "
    "all keys with the same code.",
    formula=r"A_{ij} = \frac{e^{q_i^\top c_{z_j} / \sqrt d}}{\sum_l e^{q_i^\top c_{z_l} / \sqrt d}},\quad "
    r"z_j = \operatorname{argmin}_z \lVert k_j - c_z \rVert",
    complexity="n c d",
    params=QuantisedKeysParams,
    approximates="softmax",
    causal_reason="the codes (vectors that replace the keys) are computed from all keys of the text, including later "
    "keys.",
    random=True,
    source=Paper(
        "Transformer-VQ: Linear-Time Transformers via Vector Quantization", 2023, "https://arxiv.org/abs/2309.16354"
    ),
    further=(articles.VQ_KEYS,),
    note="A code is a vector that replaces all keys near it. Published models learn their codes during training. "
    "Here, the codes are the k-means centres of the text's own keys.",
    special_cases=(SpecialCase("softmax", {"codes": TOKENS}),),
)
