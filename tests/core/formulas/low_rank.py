"""Formulas of the low-rank family."""

from typing import Any

import torch
from torch import Tensor

from attention_core.ops.random import normal
from formulas import logits, positions, softmax, transcribes
from formulas.kernel import ALL


def even_pools(n: int, m: int) -> list[range]:
    """Cut n tokens into m consecutive pools whose sizes differ by at most one, the longer ones first."""
    m = min(m, n)
    sizes = [n // m + (number < n % m) for number in range(m)]
    return [range(sum(sizes[:number]), sum(sizes[: number + 1])) for number in range(m)]


def means(pools: list[range], n: int, how: str = "mean") -> Tensor:
    """Return ``P``, ``[m, n]``: the mean of each pool, or with "conv" a mean that weights the middle most."""
    out = torch.zeros(len(pools), n, dtype=torch.float64)
    for row, pool in zip(out, pools, strict=True):
        size = len(pool)
        weight = [min(at + 1, size - at) if how == "conv" else 1 for at in range(size)]
        row[pool.start : pool.stop] = torch.tensor(weight, dtype=torch.float64) / sum(weight)
    return out


def landmarks(x: Tensor, m: int, method: str) -> Tensor:
    """Return the means of even segments, or with "kmeans" the result of four k-means rounds from there."""
    n = x.shape[-2]
    centres = means(even_pools(n, m), n) @ x
    if method == "segment_means" or m >= n:
        return centres
    for _ in range(4):
        nearest = (x.unsqueeze(-2) - centres.unsqueeze(-3)).square().sum(-1).argmin(-1)  # [..., n]
        member = torch.nn.functional.one_hot(nearest, centres.shape[-2]).double().mT
        size = member.sum(-1, keepdim=True)
        centres = torch.where(size > 0, member @ x / size, centres)
    return centres


@transcribes(
    "funnel",
    r"A = R\, \operatorname{softmax}\left(\frac{(P Q) K^\top}{\sqrt{d}}\right),\quad "
    r"R \text{ repeats each row for the } s \text{ tokens averaged}",
)
def funnel(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    n = q.shape[-2]
    others = even_pools(n - 1, -(-(n - 1) // p.stride)) if n > 1 else []
    pools = [range(1), *(range(pool.start + 1, pool.stop + 1) for pool in others)]
    repeat = (means(pools, n) > 0).double().mT
    return repeat @ softmax(logits(means(pools, n) @ q, k), ALL)


@transcribes(
    "landmark",
    r"A = \operatorname{softmax}\left(\frac{Q \tilde{K}^\top}{\sqrt{d}}\right)"
    r"\operatorname{softmax}\left(\frac{\tilde{Q} K^\top}{\sqrt{d}}\right),\quad "
    r"\tilde{Q}, \tilde{K} \in \mathbb{R}^{m \times d}",
)
def landmark(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    some_q, some_k = (landmarks(x, p.landmarks, p.method) for x in (q, k))
    return softmax(logits(q, some_k), ALL) @ softmax(logits(some_q, k), ALL)


@transcribes(
    "nystrom",
    r"A = S\!\left(\tfrac{Q \tilde K^\top}{\sqrt d}\right)"
    r"S\!\left(\tfrac{\tilde Q \tilde K^\top}{\sqrt d}\right)^{+}S\!\left(\tfrac{\tilde Q K^\top}{\sqrt d}\right),"
    r"\quad S = \operatorname{softmax}",
)
def nystrom(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    some_q, some_k = (landmarks(x, p.landmarks, p.method) for x in (q, k))
    middle = softmax(logits(some_q, some_k), ALL)
    if p.inverse == "exact":
        inverse = torch.linalg.pinv(middle)
    else:  # Xiong and others, arXiv 2102.03902, section 3.2
        inverse = middle.mT / (
            middle.abs().sum(-2).amax(-1)[..., None, None] * middle.abs().sum(-1).amax(-1)[..., None, None]
        )
        one = torch.eye(middle.shape[-1], dtype=q.dtype)
        for _ in range(p.iterations):
            both = middle @ inverse
            inverse = inverse @ (13 * one - both @ (15 * one - both @ (7 * one - both))) / 4
    return softmax(logits(q, some_k), ALL) @ inverse @ softmax(logits(some_q, k), ALL)


@transcribes(
    "linformer",
    r"A = \operatorname{softmax}\left(\frac{Q (E K)^\top}{\sqrt{d}}\right) F,\quad E, F \in \mathbb{R}^{m \times n}",
)
def linformer(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    n = q.shape[-2]
    m = min(p.rank, n)
    if p.projection == "gaussian":
        first = normal((m, n), p.seed, q, 0) / m**0.5
        second = first if p.share else normal((m, n), p.seed, q, 1) / m**0.5
    else:
        first = second = means(even_pools(n, m), n, p.projection)
    return softmax(logits(q, first @ k), ALL) @ second


@transcribes(
    "pooled",
    r"A = \operatorname{softmax}\left(\frac{Q\, R(K)^\top}{\sqrt{d}}\right) R,\quad "
    r"R = P \in \mathbb{R}^{\lceil n/s \rceil \times n},\quad \text{causal: } R = \begin{bmatrix} P \\ I \end{bmatrix}",
)
def pooled(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    n = q.shape[-2]
    count = -(-n // p.stride)
    pools = even_pools(n, count)
    if causal:
        pools = [range(first, min(first + p.stride, n)) for first in range(0, n, p.stride)]
    matrix = means(pools, n, "mean" if p.pool == "max" else p.pool)
    keys = torch.stack([k[..., list(pool), :].amax(-2) for pool in pools], -2) if p.pool == "max" else matrix @ k
    if not causal:
        return softmax(logits(q, keys), ALL) @ matrix
    i, j = (place - 1 for place in positions(q))
    earlier = torch.arange(count) < i // p.stride  # The pools before a query's own, then the tokens of its own pool.
    own = (i // p.stride == j // p.stride) & (j <= i)
    both = torch.cat([matrix, torch.eye(n, dtype=q.dtype)])
    return softmax(logits(q, torch.cat([keys, k], -2)), torch.cat([earlier, own], -1)) @ both


@transcribes(
    "pyramid",
    r"A = \operatorname{softmax}\left(\frac{Q (P K)^\top}{\sqrt{d}}\right) P,\quad "
    r"P = \begin{bmatrix} P_{\ell} \\ P_{3\ell} \\ P_{6\ell} \\ P_{8\ell} \end{bmatrix}",
)
def pyramid(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    n = q.shape[-2]
    sizes = sorted({min(size * p.levels, n) for size in (1, 3, 6, 8)})
    matrix = torch.cat([means(even_pools(n, m), n) for m in sizes])
    return softmax(logits(q, matrix @ k), ALL) @ matrix
