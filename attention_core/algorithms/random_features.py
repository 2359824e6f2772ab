"""Random features whose products estimate the softmax kernel (FAVOR+).

Source: Choromanski et al. 2020, arXiv 2009.14794.
"""

import math

import torch
from torch import Tensor

from attention_core.algorithms.log_features import LogFeatures
from attention_core.algorithms.random import generator

KINDS = ("positive", "hyperbolic", "trig", "relu")


def random_directions(m: int, d: int, seed: int, like: Tensor, *, orthogonal: bool, row_norms: str) -> Tensor:
    """Random vectors, each of them uniform in direction, ``[m, d]``.

    Args:
        m: how many.
        d: their size.
        seed: the user's seed.
        like: the tensor whose device and dtype the result takes.
        orthogonal: whether every d consecutive ones are orthogonal, which spreads them more evenly than chance.
        row_norms: ``"chi"``, lengths as of N(0, I) vectors, so that each by itself is one; ``"fixed"``, all √d.
    """
    draws = generator(seed)
    W = torch.randn(-(-m // d), d, d, generator=draws, dtype=torch.float64)
    if orthogonal:
        # Lengths must not depend on the directions, hence a draw of their own.
        lengths = torch.randn(W.shape, generator=draws, dtype=torch.float64).norm(dim=-1, keepdim=True)
        q, r = torch.linalg.qr(W)
        # With the signs of R's diagonal the decomposition is unique, and Q uniform among all rotations.
        W = q * torch.linalg.diagonal(r).sgn().unsqueeze(-2) * lengths
    if row_norms == "fixed":
        W *= math.sqrt(d) / W.norm(dim=-1, keepdim=True)
    return W.flatten(0, 1)[:m].to(like)


def feature_count(m: int, kind: str) -> int:
    """Number of features C that m directions make."""
    return 2 * m if kind in ("hyperbolic", "trig") else m


def random_features(x: Tensor, W: Tensor, kind: str) -> LogFeatures:
    """Features whose products estimate ``random_kernel``.

    Args:
        x: queries or keys, ``[..., n, d]``.
        W: directions, ``[m, d]``.
        kind: one of ``KINDS``.
    """
    x = x * x.shape[-1] ** -0.25
    along, half = x @ W.mT, x.square().sum(-1, keepdim=True) / 2
    root = math.log(len(W)) / 2  # every feature is over √m, or √2m
    if kind == "relu":
        return LogFeatures(along.relu(), torch.full_like(half, -root))
    if kind == "trig":
        along = torch.cat([along, along - math.pi / 2], -1)
        return LogFeatures(along.cos(), half - root)
    if kind == "hyperbolic":
        along, root = torch.cat([along, -along], -1), root + math.log(2) / 2
    return LogFeatures(None, along.sub_(half + root))


def random_kernel(q: Tensor, k: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """What the features' products estimate, as ``value · e^log``: ``[..., n, n]`` and ``[..., n, 1]``.

    ``exp(q·k / √d)``; for ``relu`` the arc-cosine kernel ``‖q‖ ‖k‖ (sin θ + (π - θ) cos θ) / (2π √d)`` of the angle θ
    (Cho and Saul 2009), which for directions of length √d and of random length is the same.
    """
    products = q @ k.mT / math.sqrt(q.shape[-1])
    if kind != "relu":
        largest = products.amax(-1, keepdim=True)
        return (products - largest).exp(), largest
    sizes = q.norm(dim=-1, keepdim=True) * k.norm(dim=-1, keepdim=True).mT / math.sqrt(q.shape[-1])
    cosine = (products / torch.where(sizes == 0, 1.0, sizes)).clamp(-1, 1)
    angle = cosine.acos()
    value = sizes * (angle.sin() + (math.pi - angle) * cosine) / (2 * math.pi)
    return value, torch.zeros_like(value[..., :1])


def estimate_and_kernel(q: Tensor, k: Tensor, W: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """The features' products and what they estimate, ``[..., n, n]`` float64, over ``random_kernel``'s ``e^log``."""
    q, k, W = q.double(), k.double(), W.double()
    kernel, log = random_kernel(q, k, kind)
    of_q, of_k = random_features(q, W, kind), random_features(k, W, kind)
    shift = of_k.log.amax(-2, keepdim=True)
    return of_q.above(log - shift) @ of_k.above(shift).mT, kernel
