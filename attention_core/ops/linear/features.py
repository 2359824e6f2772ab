"""Features of queries and keys, with exponential features kept in range by references."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.scans import running_max


class Features(NamedTuple):
    """Features of queries and keys; the similarity of a pair is ``Σ_f q_if e^{R_jf - R_if} k_jf``.

    Attributes:
        q: ``[..., n, C]``.
        k: ``[..., n, C]``.
        reference: ``R``, ``[..., n, C]``, or ``[..., n, 1]`` for one per token; None means zero. It never falls along
            the positions, so the factor of a visible key is at most one. Only causal forms have a reference.
    """

    q: Tensor
    k: Tensor
    reference: Tensor | None = None


def elu_plus_one(x: Tensor) -> Tensor:
    """Return ``x + 1`` above zero and ``eˣ`` below, without the cancellation of ``elu(x) + 1`` far below zero."""
    return x.clamp(min=0).add_(x.clamp(max=0).exp_())


def both_softmaxes(x: Tensor) -> Tensor:
    """Return ``[softmax(x), softmax(-x)]`` over the entries of each token, ``[..., n, 2d]``."""
    return torch.stack([x, -x], -2).softmax(-1).flatten(-2)  # autograd then stores the result alone


MAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu+1": elu_plus_one,
    "relu": torch.relu,
    "softmax": lambda x: x.softmax(-1),
}
"""Feature maps that need no reference to stay in range."""


def exponential_features(a: Tensor, b: Tensor, *, causal: bool, start: Tensor | None = None) -> Features:
    """Return features for the similarity ``Σ_f e^{a_if + b_jf}``, each row up to a factor, for any logarithms.

    The largest visible key of each feature is subtracted from the keys and added to the query. Then the largest feature
    of each query, which is common to its row, is subtracted. So every exponential is at most one, and every row has a
    pair of features that are one: nothing overflows, and no row underflows to zero.

    Args:
        a: logarithms of the query features, ``[..., n, C]``.
        b: logarithms of the key features, ``[..., n, C]``.
        causal: whether only keys up to the query's own position are visible.
        start: the reference of the token before the first, ``[..., 1, C]``, if there is one.
    """
    # Both shifts cancel in a normalised row, so they need no gradient.
    with torch.no_grad():
        reference = running_max(b) if causal else b.amax(-2, keepdim=True)
        if start is not None:
            reference = torch.maximum(reference, start)
        row = (a + reference).amax(-1, keepdim=True)
    return Features((a + reference - row).exp(), (b - reference).exp(), reference if causal else None)


class LogFeatures(NamedTuple):
    """Features ``base · e^log``.

    Attributes:
        base: ``[..., n, C]``; None means ones.
        log: ``[..., n, C]``, or ``[..., n, 1]`` for one per token; None means zeros, which need no reference.
    """

    base: Tensor | None
    log: Tensor | None = None

    def above(self, reference: Tensor | None) -> Tensor:
        """Return ``base · e^(log - reference)``, ``[..., n, C]``."""
        if self.log is None or reference is None:
            assert self.base is not None
            return self.base
        exponential = (self.log - reference).exp_()
        return exponential if self.base is None else exponential * self.base


Map = Callable[..., LogFeatures]
"""A function from queries or keys, ``[..., n, d]``, and further inputs per token, ``[n, *]``, to their features."""


def paired(phi: Map, q: Tensor, k: Tensor, *along: Tensor, causal: bool, start: Tensor | None = None) -> Features:
    """Return ``φ(q)`` and ``φ(k)``, each row up to a factor, with references that continue from ``start``."""
    of_q, of_k = phi(q, *along), phi(k, *along)
    if of_q.log is None or of_k.log is None:
        return Features(of_q.above(None), of_k.above(None))
    f = exponential_features(of_q.log, of_k.log, causal=causal, start=start)
    if of_q.base is None or of_k.base is None:
        return f
    return Features(f.q * of_q.base, f.k * of_k.base, f.reference)
