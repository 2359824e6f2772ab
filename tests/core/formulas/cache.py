"""Formulas of the cache family."""

from typing import Any

import torch
from torch import Tensor

from attention_core.variants.cache import quantised_keys as codes_of
from formulas import logits, softmax, transcribes, visible_keys
from formulas.kernel import ALL
from formulas.low_rank import even_pools


@transcribes(
    "gqa",
    r"A^{(h)} = \operatorname{softmax}\left(\frac{Q^{(h)} \bar K^{(g(h))\top}}{\sqrt d}\right),\quad "
    r"\bar K^{(g)} = \frac{1}{|g|} \sum_{h \in g} K^{(h)},\quad O^{(h)} = A^{(h)} \bar V^{(g(h))}",
)
def gqa(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    mean = k.clone()
    for group in even_pools(k.shape[-3], p.groups):
        mean[..., list(group), :, :] = k[..., list(group), :, :].mean(-3, keepdim=True)
    return softmax(logits(q, mean), visible_keys(q, causal))


@transcribes(
    "heavy_hitters",
    r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in S_i} e^{q_i^\top k_l / \sqrt d}},\quad "
    r"S_i = \{l : 0 \le i - l < w\} \cup H_i,\; H_{i+1} = \text{the } s \text{ of } H_i \cup \{i + 1 - w\} "
    r"\text{ with the largest } \textstyle\sum_{t \le i} A_{tl}",
)
def heavy_hitters(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    n = q.shape[-2]
    out = []
    for head_q, head_k in zip(q.flatten(0, -3), k.flatten(0, -3), strict=True):
        x, held = logits(head_q, head_k), set[int]()
        received = torch.zeros(n, dtype=q.dtype)
        seen = torch.zeros(n, n, dtype=torch.bool)
        for i in range(n):
            seen[i, sorted({l_ for l_ in range(i + 1) if i - l_ < p.recent} | held)] = True
            received += softmax(x[i], seen[i])
            if i + 1 - p.recent >= 0:
                candidates = held | {i + 1 - p.recent}
                held = set(sorted(candidates, key=lambda at: -received[at].item())[: p.heavy])
        out.append(softmax(x, seen if causal else seen[-1:].expand(n, n)))
    return torch.stack(out).reshape(*q.shape[:-1], n)


@transcribes(
    "mla",
    r"A^{(h)} = \operatorname{softmax}\left(\frac{Q^{(h)} (C W^{(h)})^\top}{\sqrt d}\right),\quad "
    r"[K^{(1)} \cdots K^{(H)}] \approx C W,\; C \in \mathbb R^{n \times r},\quad "
    r"[V^{(1)} \cdots V^{(H)}] \approx C' W'",
)
def mla(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    heads = torch.cat(k.unbind(-3), -1)
    u, s, v = torch.linalg.svd(heads, full_matrices=False)
    nearest = u[..., : p.rank] @ torch.diag_embed(s[..., : p.rank]) @ v[..., : p.rank, :]
    return softmax(logits(q, torch.stack(nearest.chunk(k.shape[-3], -1), -3)), ALL)


@transcribes(
    "quantised_keys",
    r"A_{ij} = \frac{e^{q_i^\top c_{z_j} / \sqrt d}}{\sum_l e^{q_i^\top c_{z_l} / \sqrt d}},\quad "
    r"z_j = \operatorname{argmin}_z \lVert k_j - c_z \rVert",
)
def quantised_keys(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    codes = codes_of.quantise(k, p)[0]  # The k-means centres, which the formula takes as given.
    nearest = (k.unsqueeze(-2) - codes.unsqueeze(-3)).square().sum(-1).argmin(-1)
    return softmax(logits(q, codes.gather(-2, nearest.unsqueeze(-1).expand_as(k))), ALL)
