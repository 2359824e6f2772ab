"""What a feature map makes of queries and keys, with the exponential ones kept in range."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.scans import running_max


class Features(NamedTuple):
    """Features of queries and keys, so that the similarity of a pair is ``Σ_f q_if e^{R_jf - R_if} k_jf``.

    Attributes:
        q: ``[..., n, C]``.
        k: ``[..., n, C]``.
        reference: ``R``, ``[..., n, C]``, or ``[..., n, 1]`` for one per token; it never falls along the positions, so
            that every weight of a visible key is at most one. None means zero. Only a causal form has one.
    """

    q: Tensor
    k: Tensor
    reference: Tensor | None = None


def elu_plus_one(x: Tensor) -> Tensor:
    """``x + 1`` above zero and ``eˣ`` below, without the cancellation of ``elu(x) + 1`` far below zero."""
    return x.clamp(min=0).add_(x.clamp(max=0).exp_())


def both_softmaxes(x: Tensor) -> Tensor:
    """``[S(x), S(-x)]`` over the entries, ``[..., n, 2d]``: what stands out either way has a feature of its own."""
    return torch.stack([x, -x], -2).softmax(-1).flatten(-2)  # a backward then keeps the result alone


MAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu+1": elu_plus_one,
    "relu": torch.relu,
    "softmax": lambda x: x.softmax(-1),
}
"""Feature maps that stay in range by themselves."""


def exponential_features(a: Tensor, b: Tensor, *, causal: bool, start: Tensor | None = None) -> Features:
    """Features for the similarity ``Σ_f e^{a_if + b_jf}``, each row up to a factor, for logarithms of any size.

    The largest visible key of each feature moves from the key to the query, where it decides how much that feature
    counts; then the largest feature of each query, common to its row, is dropped. So every exponential is at most one,
    every row has a pair of features that are one, nothing overflows and no row vanishes, whatever the jumps.

    Args:
        a: logarithms of the query features, ``[..., n, C]``.
        b: logarithms of the key features, ``[..., n, C]``.
        causal: whether only keys up to the query's own position are visible.
        start: the reference of an earlier token, ``[..., 1, C]``, to go on from.
    """
    # Both shifts cancel in a normalised row, so they carry no gradient.
    with torch.no_grad():
        reference = running_max(b) if causal else b.amax(-2, keepdim=True)
        if start is not None:
            reference = torch.maximum(reference, start)
        row = (a + reference).amax(-1, keepdim=True)
    return Features((a + reference - row).exp(), (b - reference).exp(), reference if causal else None)


class LogFeatures(NamedTuple):
    """Features ``base · e^log``.

    Attributes:
        base: ``[..., n, C]``; None for ones.
        log: ``[..., n, C]``, or ``[..., n, 1]`` for one per token; None for zeros, which need no reference.
    """

    base: Tensor | None
    log: Tensor | None = None

    def above(self, reference: Tensor | None) -> Tensor:
        """``base · e^(log - reference)``, ``[..., n, C]``."""
        if self.log is None or reference is None:
            assert self.base is not None
            return self.base
        exponential = (self.log - reference).exp_()
        return exponential if self.base is None else exponential * self.base


Map = Callable[..., LogFeatures]
"""Makes features of queries or keys, ``[..., n, d]``, and of what else it is told of their tokens, ``[n, *]``."""


def paired(phi: Map, q: Tensor, k: Tensor, *along: Tensor, causal: bool, start: Tensor | None = None) -> Features:
    """``φ(q)`` and ``φ(k)``, each row up to a factor, kept in range by references that go on from ``start``."""
    of_q, of_k = phi(q, *along), phi(k, *along)
    if of_q.log is None or of_k.log is None:
        return Features(of_q.above(None), of_k.above(None))
    f = exponential_features(of_q.log, of_k.log, causal=causal, start=start)
    if of_q.base is None or of_k.base is None:
        return f
    return Features(f.q * of_q.base, f.k * of_k.base, f.reference)
