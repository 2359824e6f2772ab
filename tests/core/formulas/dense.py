"""Formulas of the dense family."""

import math
from typing import Any

import torch
from torch import Tensor

from attention_core.ops.random import normal, normal_table
from formulas import divide_by_sum, logits, positions, softmax, transcribes, visible_count, visible_keys


@transcribes("softmax", r"A = \operatorname{softmax}\left(\frac{Q K^\top}{T \sqrt{d}}\right)")
def plain(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    return softmax(logits(q, k) / p.temperature, visible_keys(q, causal))


@transcribes(
    "additive",
    r"A_{ij} = \operatorname{softmax}_j\left(w^\top \tanh(q_i + k_j)\right),\quad "
    r"w \sim \mathcal{N}\left(0, \tfrac{1}{d} I\right)",
)
def additive(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    w = normal((q.shape[-1],), p.seed, q) / q.shape[-1] ** 0.5
    return softmax(torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3)) @ w, visible_keys(q, causal))


@transcribes("alibi", r"A = \operatorname{softmax}_j\left(\frac{q_i \cdot k_j}{\sqrt{d}} - m\,|i - j|\right)")
def alibi(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = positions(q)
    return softmax(logits(q, k) - p.slope * (i - j).abs().double(), visible_keys(q, causal))


@transcribes(
    "differential",
    r"A = \operatorname{softmax}\left(\frac{Q_1 K_1^\top}{\sqrt{d/2}}\right) "
    r"- \lambda \operatorname{softmax}\left(\frac{Q_2 K_2^\top}{\sqrt{d/2}}\right)",
)
def differential(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    d = q.shape[-1]
    cut = math.ceil(d / 2)
    first, second = (
        softmax(q[..., half] @ k[..., half].mT / math.sqrt(d / 2), visible_keys(q, causal))
        for half in (slice(None, cut), slice(cut, None))
    )
    return first - p.taken * second


@transcribes(
    "entmax",
    r"A_{ij} = \left[(\alpha - 1)\, \frac{q_i^\top k_j}{\sqrt d} - \tau_i\right]_+^{1/(\alpha-1)},\quad "
    r"\textstyle\sum_j A_{ij} = 1",
)
def entmax(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    x = torch.where(visible_keys(q, causal), (p.alpha - 1) * logits(q, k), -torch.inf)
    high = x.amax(-1, keepdim=True)
    low = high - 1
    for _ in range(200):
        tau = (low + high) / 2
        above = (x - tau).clamp(min=0).pow(1 / (p.alpha - 1)).sum(-1, keepdim=True) >= 1
        low, high = torch.where(above, tau, low), torch.where(above, high, tau)
    return (x - low).clamp(min=0).pow(1 / (p.alpha - 1))


def gate_logs(k: Tensor, p: Any) -> Tensor:
    """Return the logarithm of each token's gate by the selected rule, ``[..., n, d]``, one for each channel."""
    t, _ = positions(k)
    if p.gate == "keys":
        return torch.log(1 / (1 + torch.exp(-k))) / p.root
    if p.gate == "constant":
        return math.log(p.decay) * torch.ones_like(k)
    return torch.log(torch.where(t == 1, 1.0, 1 - 1 / t.double())) * torch.ones_like(k)


@transcribes(
    "fox",
    r"A = \operatorname{softmax}_j\left(\frac{q_i \cdot k_j}{\sqrt{d}} - |g_i - g_j|\right),\quad "
    r"g_i = \sum_{l \le i} \log \alpha_l",
)
def fox(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    g = gate_logs(k, p).mean(-1, keepdim=True).cumsum(-2)
    return softmax(logits(q, k) - (g - g.mT).abs(), visible_keys(q, causal))


@transcribes(
    "nonlocal",
    r"A_{ij} = \operatorname{softmax}_j(q_i \cdot k_j) \quad\text{or}\quad \frac{q_i \cdot k_j}{n_i}"
    r"\quad\text{or}\quad \frac{\operatorname{relu}(w_q^\top q_i + w_k^\top k_j)}{n_i}",
)
def nonlocal_block(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    d, seen = q.shape[-1], visible_keys(q, causal)
    if p.similarity == "gaussian":
        return softmax(q @ k.mT, seen)
    if p.similarity == "dot":
        return torch.where(seen, q @ k.mT / visible_count(q, causal), 0.0)
    w_q, w_k = (normal((d, 1), p.seed, q, which) / d**0.5 for which in (0, 1))
    return torch.where(seen, (q @ w_q + (k @ w_k).mT).clamp(min=0) / visible_count(q, causal), 0.0)


@transcribes(
    "selective",
    r"A = \operatorname{softmax}(S - F),\quad F_{ij} = [j > 1] \sum_{l < i,\; l \ne j} "
    r"\operatorname{relu}\left(S^{(0)}_{lj}\right),\quad S = \frac{Q K^\top}{\sqrt d}",
)
def selective(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    s, seen = logits(q, k), visible_keys(q, causal)
    first = torch.where(seen, s[..., :1, :, :], -torch.inf)
    taken = torch.zeros_like(first)
    n = q.shape[-2]
    for i in range(n):
        for j in range(1, n):
            others = [other for other in range(i) if other != j]
            taken[..., i, j] = first[..., others, j].clamp(min=0).sum(-1)
    return softmax(s - taken, seen)


@transcribes(
    "sigmoid",
    r"A_{ij} = \sigma\left(\frac{q_i \cdot k_j}{\sqrt{d}} - \log m_i\right),\quad "
    r"m_i = n_i = \text{number of keys query } i \text{ sees} \quad\text{or}\quad m_i = n_0",
)
def sigmoid(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    m = torch.tensor(float(p.base_length)) if p.shift == "fixed" else visible_count(q, causal)
    return torch.where(visible_keys(q, causal), 1 / (1 + torch.exp(m.double().log() - logits(q, k))), 0.0)


@transcribes("sink_logit", r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{e^{s} + \sum_l e^{q_i^\top k_l / \sqrt d}}")
def sink_logit(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    e = torch.where(visible_keys(q, causal), logits(q, k).exp(), 0.0)
    return e / (math.exp(p.logit) + e.sum(-1, keepdim=True))


@transcribes(
    "softmax_log_n",
    r"A = \operatorname{softmax}\left(\frac{\log n_i}{\log n_0}\,\frac{Q K^\top}{\sqrt{d}}\right),\quad "
    r"n_i = \text{number of keys query } i \text{ sees}",
)
def softmax_log_n(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    return softmax(visible_count(q, causal).log() / math.log(p.base_length) * logits(q, k), visible_keys(q, causal))


@transcribes(
    "softpick",
    r"A_{ij} = \frac{\operatorname{relu}(e^{s_{ij}} - 1)}{\sum_l |e^{s_{il}} - 1|},\quad s = \frac{Q K^\top}{\sqrt d}",
)
def softpick(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    x = torch.where(visible_keys(q, causal), torch.expm1(logits(q, k)), 0.0)
    return x.clamp(min=0) / x.abs().sum(-1, keepdim=True)


@transcribes(
    "relu2",
    r"A_{ij} = \frac{1}{Z_i}\operatorname{relu}^2\left(\frac{q_i \cdot k_j}{\sqrt{d}}\right),\quad "
    r"Z_i = n_i,\; n_i^2,\; n_0 \text{ or } \textstyle\sum_l \operatorname{relu}^2(\cdot)",
)
def relu2(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    x = torch.where(visible_keys(q, causal), logits(q, k).clamp(min=0) ** 2, 0.0)
    n = visible_count(q, causal)
    if p.normalizer == "sum":
        return divide_by_sum(x)
    return x / {"length": n, "squared": n**2, "fixed": torch.tensor(float(p.base_length))}[p.normalizer]


@transcribes(
    "synthesizer",
    r"A = \operatorname{softmax}\left(\operatorname{relu}(Q W_1)\, W_2^\top\right)"
    r"\quad\text{or}\quad \operatorname{softmax}(R)",
)
def synthesizer(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    n, d = q.shape[-2:]
    if p.kind == "random":
        return softmax(normal_table(range(n), n, p.seed, q).expand(*q.shape[:-2], n, n), visible_keys(q, causal))
    first, second = normal((d, d), p.seed, q, 1) / d**0.5, normal_table(range(n), d, p.seed, q, 2) / d**0.5
    return softmax((q @ first).clamp(min=0) @ second.mT, visible_keys(q, causal))
