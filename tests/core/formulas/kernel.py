"""Formulas of the kernel family."""

import math
from typing import Any

import torch
from torch import Tensor

from attention_core.ops.random import normal
from attention_core.variants.kernel import performer
from formulas import divide_by_sum, logits, positions, softmax, transcribes, unit, visible_count, visible_keys

ALL = torch.tensor(True)


def features(name: str, x: Tensor) -> Tensor:
    """Return the features of x by the feature map of this name."""
    return {
        "elu+1": torch.where(x > 0, x + 1, x.exp()),
        "relu": x.clamp(min=0),
        "softmax": softmax(x, ALL),
        "exp": x.exp(),
    }[name]


def normalise_rows(similarity: Tensor, causal: bool) -> Tensor:
    """Return each row of similarities divided by its sum over the visible keys."""
    return divide_by_sum(torch.where(visible_keys(similarity, causal), similarity, 0.0))


@transcribes("linear", r"A_{ij} = \frac{\varphi(q_i)^\top \varphi(k_j)}{\sum_l \varphi(q_i)^\top \varphi(k_l)}")
def linear(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    return normalise_rows(features(p.feature_map, q) @ features(p.feature_map, k).mT, causal)


@transcribes(
    "retention",
    r"A_{ij} = \frac{\gamma^{|i-j|}\, \varphi(q_i)^\top \varphi(k_j)}"
    r"{\sum_l \gamma^{|i-l|}\, \varphi(q_i)^\top \varphi(k_l)}",
)
def retention(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = positions(q)
    return normalise_rows(
        p.decay ** (i - j).abs().double() * (features(p.feature_map, q) @ features(p.feature_map, k).mT), causal
    )


@transcribes(
    "hedgehog",
    r"A_{ij} = \frac{\varphi(q_i)^\top \varphi(k_j)}{\sum_l \varphi(q_i)^\top \varphi(k_l)},\quad "
    r"\varphi(x) = [\operatorname{softmax}(x), \operatorname{softmax}(-x)]",
)
def hedgehog(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    phi_q, phi_k = (torch.cat([softmax(x, ALL), softmax(-x, ALL)], -1) for x in (q, k))
    return normalise_rows(phi_q @ phi_k.mT, causal)


@transcribes(
    "cosine",
    r"A_{ij} = \frac{1 + \cos(q_i, k_j)}{\sum_l \left(1 + \cos(q_i, k_l)\right)},\quad "
    r"\cos(q, k) = \frac{q \cdot k}{\|q\|\, \|k\|}",
)
def cosine(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    return normalise_rows(1 + unit(q) @ unit(k).mT, causal)


@transcribes(
    "cosformer",
    r"A_{ij} \propto \operatorname{relu}(q_i)^\top \operatorname{relu}(k_j)\,\cos\left(\frac{\pi}{2}\,"
    r"\frac{i - j}{n}\right)",
)
def cosformer(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = (x - 1 for x in positions(q))
    length = q.shape[-2]
    if causal:  # The setting "length" replaces n, and positions beyond it are equal, as the setting says.
        length = p.length
        i, j = i.clamp(max=length), j.clamp(max=length)
    fading = torch.cos(math.pi / 2 * (i - j).double() / length).round(decimals=12)  # 0 at a quarter turn, not 6e-17
    return normalise_rows(q.clamp(min=0) @ k.clamp(min=0).mT * fading, causal)


@transcribes(
    "taylor2",
    r"A_{ij} = \frac{1 + x_{ij} + x_{ij}^2 / 2}{\sum_l \left(1 + x_{il} + x_{il}^2 / 2\right)},\quad "
    r"x_{ij} = \frac{q_i \cdot k_j}{\sqrt d}",
)
def taylor2(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    x = logits(q, k)
    return normalise_rows(1 + x + x**2 / 2, causal)


@transcribes(
    "centred_taylor",
    r"A_{ij} = \frac{1}{n_i}\left(1 + c_{ij} + \tfrac12 \left(c_{ij}^2 - \overline{c_i^2}\right)\right),\quad "
    r"c_{ij} = \frac{q_i \cdot (k_j - \bar k)}{\sqrt d}",
)
def centred_taylor(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    seen, n = visible_keys(q, causal), visible_count(q, causal)
    mean = seen.double() @ k / n  # The mean of the keys that are visible to each query.
    c = logits(q, k) - (q * mean).sum(-1, keepdim=True) / q.shape[-1] ** 0.5
    series = 1 + c
    if p.order == 2:
        series = series + (c**2 - (c**2 * seen).sum(-1, keepdim=True) / n) / 2
    return torch.where(seen, series / n, 0.0)


@transcribes(
    "efficient", r"A = \operatorname{softmax}_{\text{features}}(Q)\, \operatorname{softmax}_{\text{positions}}(K)^\top"
)
def efficient(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    n = q.shape[-2]
    out = torch.zeros(*q.shape[:-1], n, dtype=q.dtype)
    for i in range(n):
        stop = i + 1 if causal else n
        out[..., i, :stop] = (softmax(k[..., :stop, :].mT, ALL).mT @ softmax(q[..., i, :], ALL).unsqueeze(-1)).squeeze(
            -1
        )
    return out


@transcribes(
    "emanet",
    r"A = \operatorname{softmax}_{\text{bases}}(\lambda Q \mu^\top)\,\hat Z^\top,\quad "
    r"Z = \operatorname{softmax}_{\text{bases}}(\lambda K \mu^\top),\; "
    r"\hat Z_{jb} = \frac{Z_{jb}}{\sum_l Z_{lb}},\; \mu \leftarrow \frac{\hat Z^\top K}{\|\hat Z^\top K\|}",
)
def emanet(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    mu = unit(normal((p.bases, k.shape[-1]), p.seed, k))
    for _ in range(p.iterations):
        z = softmax(p.sharpness * k @ mu.mT, ALL)
        shares = z / z.sum(-2, keepdim=True)
        mu = unit(shares.mT @ k)
    return softmax(p.sharpness * q @ mu.mT, ALL) @ shares.mT


@transcribes(
    "performer",
    r"A_{ij} = \frac{\varphi(q_i)^\top \varphi(k_j)}{\sum_l \varphi(q_i)^\top \varphi(k_l)},\quad "
    r"\varphi(q) = \tfrac{1}{\sqrt m} \exp\!\left(W x - \tfrac{\|x\|^2}{2}\right),\; x = q / d^{1/4}",
)
def random_features(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    w = performer.directions(q, p)

    def phi(x: Tensor) -> Tensor:
        x = x / x.shape[-1] ** 0.25
        y, half = x @ w.mT, x.square().sum(-1, keepdim=True) / 2
        # The setting "kind" selects the replacement of the exponential.
        return {
            "positive": lambda: torch.exp(y - half),
            "hyperbolic": lambda: torch.cat([torch.exp(y - half), torch.exp(-y - half)], -1) / 2**0.5,
            "trig": lambda: torch.cat([torch.cos(y), torch.sin(y)], -1) * torch.exp(half),
            "relu": lambda: y.clamp(min=0),
        }[p.kind]() / len(w) ** 0.5

    return normalise_rows(phi(q) @ phi(k).mT, causal)
