"""The kinds of synthetic sequences and the functions that draw their queries, keys and values.

Each function has the form ``(shape, generator) -> Draw`` with ``shape = (H, n, d)``. The scale of its result is
arbitrary, because ``from_synthetic`` scales all kinds equally.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attention_core.formatting import N_

Shape = tuple[int, int, int]

GROUPS = 8
"""Maximum number of clusters of a clustered sequence and of topics of a topical one; each is labelled by a letter."""
PERIOD = 16
"""Number of tokens after which a periodic sequence repeats."""
SMOOTHING = 4.0
"""Standard deviation, in tokens, of the Gaussian kernel that smooths neighbours; 8 tokens apart, correlation is 1/e."""
RANK = 4
"""Number of dimensions that a low-rank input uses."""
TAIL_DEGREES = 3
"""Degrees of freedom of the heavy tail (Student's t); the variance exists, the fourth moment does not."""
SHARED_VARIANCE = 0.8
"""Share of the variance that query and key of one token have in common; the rest is independent noise."""


class Draw(NamedTuple):
    """A drawn sequence: q, k and v, each ``[H, n, d]``, not scaled yet, and its labels.

    ``tokens`` is None for the labels ``t0``, ``t1``, ...
    """

    q: Tensor
    k: Tensor
    v: Tensor
    tokens: Sequence[str] | None = None


@dataclass(frozen=True)
class SyntheticKind:
    """A kind of synthetic sequence: its key in links, name, purpose, and the function that draws it."""

    key: str
    title: str
    summary: str
    draw: Callable[[Shape, Generator], Draw]


def _normal(generator: Generator, *shape: int) -> Tensor:
    """Draw N(0, 1) numbers in float32 on the CPU, for any default type and device of torch."""
    return torch.randn(*shape, generator=generator, dtype=torch.float32, device="cpu")


def _projected(x: Tensor, d: int, generator: Generator) -> Tensor:
    """Return ``x`` multiplied by a random matrix for each head, ``[H, n, d]``."""
    return x @ _normal(generator, x.shape[0], x.shape[-1], d)


def _noisy_copies(x: Tensor, generator: Generator, tokens: Sequence[str] | None = None) -> Draw:
    """Return a sequence with noisy copies of ``x`` as queries and keys, and a random projection of ``x`` as values.

    ``x`` is ``[H, n, d]`` with unit variance.
    """
    signal, noise = math.sqrt(SHARED_VARIANCE), math.sqrt(1 - SHARED_VARIANCE)
    q, k = (signal * x + noise * _normal(generator, *x.shape) for _ in "qk")
    return Draw(q, k, _projected(x, x.shape[-1], generator), tokens)


def _numbered(groups: Sequence[int]) -> list[str]:
    """Return labels ``A0 A1 B0 A2 ...``: the letter of each token's group, and the token's number within the group."""
    counts = [0] * GROUPS
    labels = []
    for group in groups:
        labels.append(f"{chr(ord('A') + group)}{counts[group]}")
        counts[group] += 1
    return labels


def _gaussian(shape: Shape, generator: Generator) -> Draw:
    q, k, v = _normal(generator, 3, *shape)
    return Draw(q, k, v)


def _grouped(shape: Shape, generator: Generator, group: Tensor) -> Draw:
    heads, _, d = shape
    centres = _normal(generator, heads, GROUPS, d)
    return _noisy_copies(centres[:, group], generator, _numbered(group.tolist()))


def _clustered(shape: Shape, generator: Generator) -> Draw:
    return _grouped(shape, generator, torch.randint(GROUPS, (shape[1],), generator=generator, device="cpu"))


def _block_topics(shape: Shape, generator: Generator) -> Draw:
    n = shape[1]
    return _grouped(shape, generator, torch.arange(n, device="cpu") * min(GROUPS, n) // n)


def _locally_correlated(shape: Shape, generator: Generator) -> Draw:
    heads, n, d = shape
    reach = math.ceil(3 * SMOOTHING)
    distance = torch.arange(-reach, reach + 1, dtype=torch.float32, device="cpu")
    kernel = torch.exp(-0.5 * (distance / SMOOTHING) ** 2)
    noise = _normal(generator, heads, n + 2 * reach, d)
    # This convolution is a sum of shifted copies, which takes 2 ms. torch's convolution takes 170 ms.
    smooth = noise.new_zeros(shape)
    for shift, weight in enumerate((kernel / kernel.norm()).tolist()):
        smooth.add_(noise[:, shift : shift + n], alpha=weight)
    return _noisy_copies(smooth, generator)


def _periodic(shape: Shape, generator: Generator) -> Draw:
    heads, n, d = shape
    phases = _normal(generator, heads, PERIOD, d)
    return _noisy_copies(phases[:, torch.arange(n, device="cpu") % PERIOD], generator)


def _needle(shape: Shape, generator: Generator) -> Draw:
    """Draw queries that share one direction, along which only a single key, the needle, has a component.

    Everything else is noise. The needle is in the first half. Its logit grows with log n, so that it has most of the
    mass at every length.
    """
    heads, n, d = shape
    position = int(torch.randint((n + 1) // 2, (), generator=generator, device="cpu"))
    direction = F.normalize(_normal(generator, heads, 1, d), dim=-1)
    q, k, v = _normal(generator, 3, *shape)
    q, k = (x - (x @ direction.mT) * direction for x in (q, k))
    q = q + direction
    k[:, position] = (math.log(n) + 3) * math.sqrt(d) * direction[:, 0]
    tokens = [f"t{i}" for i in range(n)]
    tokens[position] = "needle"
    return Draw(q, k, v, tokens)


def _low_rank(shape: Shape, generator: Generator) -> Draw:
    heads, n, d = shape
    rank = min(RANK, d)
    basis = torch.linalg.qr(_normal(generator, heads, d, rank)).Q
    q, k = _normal(generator, 2, heads, n, rank)
    return Draw(q @ basis.mT, k @ basis.mT, _projected(k, d, generator))


def _heavy_tail(shape: Shape, generator: Generator) -> Draw:
    heads, n, d = shape
    q, k = _normal(generator, 2, *shape)
    q_spread, k_spread = _normal(generator, 2, heads, n, TAIL_DEGREES).square().mean(-1, keepdim=True).rsqrt()
    return Draw(q * q_spread, k * k_spread, _projected(k, d, generator))


KINDS = (
    SyntheticKind(
        "locally_correlated",
        N_("Locally correlated"),
        N_(
            "Neighbouring tokens are similar, as in text and images. Use this input to see how much of softmax's "
            "weight a local window covers."
        ),
        _locally_correlated,
    ),
    SyntheticKind(
        "clustered",
        N_("Clustered"),
        N_(
            "Eight groups of similar tokens, scattered over the sequence. Use this input to test variants that group "
            "similar tokens, such as Reformer."
        ),
        _clustered,
    ),
    SyntheticKind(
        "block_topics",
        N_("Block topics"),
        N_(
            "Eight consecutive segments, each with its own topic. Use this input to test variants that attend to "
            "blocks of keys."
        ),
        _block_topics,
    ),
    SyntheticKind(
        "periodic",
        N_("Periodic"),
        N_(
            "Similar tokens repeat every 16 positions. Use this input to test variants with regular distances "
            "between keys, such as atrous attention."
        ),
        _periodic,
    ),
    SyntheticKind(
        "needle",
        N_("Needle"),
        N_(
            "One key is relevant to every query, and all other keys are noise. Use this input to test whether a "
            "variant finds the relevant key."
        ),
        _needle,
    ),
    SyntheticKind(
        "low_rank",
        N_("Low rank"),
        N_(
            "Queries and keys vary in only four dimensions. Use this input to test low-rank variants and linear "
            "attention."
        ),
        _low_rank,
    ),
    SyntheticKind(
        "heavy_tail",
        N_("Heavy tail"),
        N_(
            "A few queries and keys are much longer vectors than the others, as in trained models. Use this input to "
            "test how these outliers affect a variant."
        ),
        _heavy_tail,
    ),
    SyntheticKind(
        "gaussian",
        N_("Gaussian"),
        N_("Independent random numbers. They have no structure that an approximation could use."),
        _gaussian,
    ),
)
"""All kinds, the default first and the hardest last."""
