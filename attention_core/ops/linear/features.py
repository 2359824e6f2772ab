"""Features of queries and keys. The similarity of a query and a key is the product of their features.

An exponential feature is stored as ``e^(log - reference)``, so that it stays in range. A reference is a logarithm per
token or per feature, such as the largest logarithm so far.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.linear.scans import running_max

SPREAD = 40.0
"""Largest increase of a reference over tokens that can share its last value: e⁴⁰ times a sum fits float32."""


class Features(NamedTuple):
    """Features of queries and keys; the similarity of a pair is ``Σ_f q_if e^{R_jf - R_if} k_jf``.

    Attributes:
        q: ``[..., n, C]``.
        k: ``[..., n, C]``.
        reference: ``R``, ``[..., n, C]``, or ``[..., n, 1]`` for one per token; None means zero. It never decreases
            with the position, so the factor of a visible key is at most one. Only causal forms have a reference.
    """

    q: Tensor
    k: Tensor
    reference: Tensor | None = None


def elu_plus_one(x: Tensor) -> Tensor:
    """Return ``x + 1`` above zero and ``eˣ`` below, without the cancellation of ``elu(x) + 1`` far below zero."""
    return x.clamp(min=0).add_(x.clamp(max=0).exp_())


def both_softmaxes(x: Tensor) -> Tensor:
    """Return ``[softmax(x), softmax(-x)]`` over the entries of each token, ``[..., n, 2d]``."""
    return torch.stack([x, -x], -2).softmax(-1).flatten(-2)  # one softmax call: autograd then stores only one result


FEATURE_MAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu+1": elu_plus_one,
    "relu": torch.relu,
    "softmax": lambda x: x.softmax(-1),
}
"""Feature maps that need no reference to stay in range."""


def exponential_features(a: Tensor, b: Tensor, *, causal: bool, previous: Tensor | None = None) -> Features:
    """Return features whose similarities are ``Σ_f e^{a_if + b_jf}`` up to one factor per query.

    For each feature, the largest logarithm of a visible key is subtracted from the keys and added to the query. Then
    the query's largest logarithm is subtracted, which changes all similarities of its row by the same factor. So every
    exponential is at most one, and every row has a pair of features that are one. Nothing overflows, and no row
    underflows to zero.

    Args:
        a: logarithms of the query features, ``[..., n, C]``.
        b: logarithms of the key features, ``[..., n, C]``.
        causal: whether only keys up to the query's own position are visible.
        previous: the reference of the token before the first, ``[..., 1, C]``, if there is one.
    """
    # The shifts ``reference`` and ``row_max`` cancel when a row is divided by its sum, so they need no gradient.
    with torch.no_grad():
        reference = running_max(b) if causal else b.amax(-2, keepdim=True)
        if previous is not None:
            reference = torch.maximum(reference, previous)
        row_max = (a + reference).amax(-1, keepdim=True)
    return Features((a + reference - row_max).exp(), (b - reference).exp(), reference if causal else None)


class LogFeatures(NamedTuple):
    """Features ``base · e^log``.

    Attributes:
        base: ``[..., n, C]``; None means ones.
        log: ``[..., n, C]``, or ``[..., n, 1]`` for one per token; None means zeros; such features need no
            reference.
    """

    base: Tensor | None
    log: Tensor | None = None

    def relative_to(self, reference: Tensor | None) -> Tensor:
        """Return ``base · e^(log - reference)``, ``[..., n, C]``."""
        if self.log is None or reference is None:
            assert self.base is not None
            return self.base
        exponential = (self.log - reference).exp_()
        return exponential if self.base is None else exponential * self.base


Phi = Callable[..., LogFeatures]
"""A function from queries or keys, ``[..., n, d]``, and further inputs per token, ``[n, *]``, to their features."""


def feature_pair(
    phi: Phi, q: Tensor, k: Tensor, *extras: Tensor, causal: bool, previous: Tensor | None = None
) -> Features:
    """Return features whose similarities are those of ``φ(q)`` and ``φ(k)`` up to one factor per query.

    Args:
        phi: computes the features.
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        extras: further inputs of ``phi`` per token, ``[n, *]`` each.
        causal: whether only keys up to the query's own position are visible.
        previous: the reference of the token before the first, ``[..., 1, C]``, if there is one.
    """
    q_features, k_features = phi(q, *extras), phi(k, *extras)
    if q_features.log is None or k_features.log is None:
        return Features(q_features.relative_to(None), k_features.relative_to(None))
    f = exponential_features(q_features.log, k_features.log, causal=causal, previous=previous)
    if q_features.base is None or k_features.base is None:
        return f
    return Features(f.q * q_features.base, f.k * k_features.base, f.reference)


def similarities(f: Features, *, causal: bool) -> Tensor:
    """Return ``φ(q_i) · φ(k_j)`` of every pair, ``[..., n, n]``, zero if causal and the key is later than the query.

    Args:
        f: features of the queries and keys, with references if ``causal``.
        causal: whether query i attends to keys 0..i only.
    """
    return causal_similarities(f)[0] if causal else f.q @ f.k.mT


def causal_similarities(f: Features, previous: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``Σ_f q_if e^{R_jf - R_if} k_jf`` for ``j <= i``, zero above, ``[..., n, n]``, and scaled features.

    Args:
        f: features of n tokens.
        previous: the reference before the first token, ``[..., 1, C]``, finite; None means the first token's reference.

    Returns:
        The matrix, zero above its diagonal; the queries relative to the state before the first token,
        ``q_i e^{before - R_i}``; the keys relative to the state after the last token, ``k_j e^{R_j - R_last}``.
    """
    if f.reference is None:
        return (f.q @ f.k.mT).tril_(), f.q, f.k
    first, last = f.reference[..., :1, :], f.reference[..., -1:, :]
    q = f.q * ((first if previous is None else previous) - f.reference).exp()
    k = f.k * (f.reference - last).exp()
    if f.reference.shape[-1] == 1:
        # All features of a token share one reference, so the factor ``e^(R_j - R_i)`` is the same for all features. It
        # can therefore be applied to each query-key pair after the sum over the features.
        return (f.q @ f.k.mT).mul_(token_decay(f.reference)), q, k
    if exceeds_spread(first, last):
        return _similarities_by_blocks(f), q, k
    return ((f.q * (last - f.reference).exp()) @ k.mT).tril_(), q, k


def token_decay(reference: Tensor) -> Tensor:
    """Return ``e^(R_j - R_i)`` for ``j <= i``, zero above, ``[..., n, n]``, for references ``[..., n, 1]``."""
    decay = (reference.mT - reference).clamp_(max=0)
    # With gradients, these operations are not in place, because autograd would need the overwritten numbers.
    return decay.exp().tril() if decay.requires_grad else decay.exp_().tril_()


def exceeds_spread(first: Tensor, last: Tensor) -> bool:
    """Return whether a reference increases from ``first`` to ``last`` by more than ``SPREAD``."""
    return not first.is_meta and bool((last - first).max() > SPREAD)  # meta tensors have no numbers to compare


def _similarities_by_blocks(f: Features) -> Tensor:
    """Return the matrix of ``causal_similarities`` if references increase by more than ``SPREAD`` within the tokens.

    Blocks double in size, starting from single tokens. In each pair of blocks, the keys of the first block and the
    queries of the second block are scaled relative to the end of the first block. Their product fills one square
    below the diagonal. No exponent is above zero, so nothing overflows. No exponent is below that of the whole
    pair, ``R_j - R_i``, so a factor underflows only if the product does.
    """
    assert f.reference is not None
    n = f.q.shape[-2]
    padding = (1 << (n - 1).bit_length()) - n
    # Because blocks double in size, n is padded to a power of two. The added tokens have the last token's reference and
    # features of zero.
    ends = torch.cat([f.reference, f.reference[..., -1:, :].expand(*f.reference.shape[:-2], padding, -1)], -2)
    starts = torch.cat([ends[..., :1, :], ends[..., :-1, :]], -2)
    q, k = F.pad(f.q, (0, 0, 0, padding)), F.pad(f.k, (0, 0, 0, padding))
    result = torch.diag_embed((q * k).sum(-1))
    q = q * (starts - ends).exp()
    half = 1
    while half < n:
        # The shape of q and k becomes [..., pairs, 2, half, C]. In each pair of blocks, queries of the second block
        # attend to keys of the first.
        q, k = q.unflatten(-2, (-1, 2, half)), k.unflatten(-2, (-1, 2, half))
        blocks = result.unflatten(-2, (-1, 2, half)).unflatten(-1, (-1, 2, half))[..., :, 1, :, :, 0, :]
        blocks.diagonal(dim1=-4, dim2=-2).copy_((q[..., 1, :, :] @ k[..., 0, :, :].mT).movedim(-3, -1))
        # ``starts`` and ``ends``, [..., pairs, 2, C], hold the references (logarithms subtracted before exp) at the
        # start and end of each block. Queries are rescaled to the start of the joined block, keys to its end.
        starts, ends = starts.unflatten(-2, (-1, 2)), ends.unflatten(-2, (-1, 2))
        q = (q * (starts[..., :1, :] - starts).exp().unsqueeze(-2)).flatten(-4, -2)
        k = (k * (ends - ends[..., 1:, :]).exp().unsqueeze(-2)).flatten(-4, -2)
        starts, ends = starts[..., 0, :], ends[..., 1, :]
        half *= 2
    return result[..., :n, :n]
