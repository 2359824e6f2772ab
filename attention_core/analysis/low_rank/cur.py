"""CUR approximations of softmax: a matrix from a few of its columns and rows, compared with Nyström attention.

CUR approximates a matrix S by ``C U R``: C some of its columns, R some of its rows, U a small matrix between them.

- **Nyström's formula** takes ``U = A⁺``, the pseudo-inverse of the entries that chosen columns and rows share. With
  these first, ``S = [A B; C D]`` becomes ``[A; C] A⁺ [A B] = [A B; C C A⁺ B]`` if A is invertible: no entry of D is
  read. The result is S itself if A has the rank of S.
- **The best middle** ``U = C⁺ S R⁺`` gives the closest approximation to S for the same columns and rows, but reads all
  of S.

Nyström attention has the same form but another formula. A column of softmax cannot be computed alone, because each of
its entries is divided by a sum over all keys. Nyström attention uses softmax with landmarks for all three factors.

All computations are in float64. Pseudo-inverses drop singular values below ``RCOND`` of the largest.

Sources: Su 2021, https://kexue.fm/archives/8180; Xiong et al. 2021, arXiv 2102.03902; Wang and Zhang 2013, arXiv
1303.4207; for leverage scores Mahoney and Drineas 2009, "CUR matrix decompositions for improved data analysis".
"""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from attention_core import metrics, registry
from attention_core.analysis.masks.membership import membership
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.ops.low_rank.inverse import RCOND, exact_inverse
from attention_core.ops.low_rank.landmarks import landmarks
from attention_core.variant import Attention

PICKS = ("even", "nearest", "leverage")
"""Ways to choose columns and rows: evenly spaced tokens, the token nearest to each landmark, or the largest leverage
scores (shares of the m leading singular vectors, which need all of S)."""


class Cur(CompactRepr):
    """The softmax of one head, approximated from some of its columns and rows.

    Attributes:
        softmax: the matrix S, ``[n, n]`` float64.
        columns: indices of the chosen columns, ascending, ``[c]``.
        rows: indices of the chosen rows, ascending, ``[r]``.
        formula: the approximation ``C A⁺ R``, ``[n, n]``.
        rank: number of singular values of S above ``RCOND`` of the largest.
        common_rank: the same number for A, the entries that the chosen columns and rows share.
        condition: ratio of the largest singular value of A to the smallest that is not dropped.
    """

    softmax: np.ndarray
    columns: np.ndarray
    rows: np.ndarray
    formula: np.ndarray
    rank: int
    common_rank: int
    condition: float


def cur_approximation(qkv: QKV, attention: Attention, head: int, pick: str) -> Cur:
    """Approximate a head's softmax by Nyström's formula, with one column and row per landmark of Nyström attention.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: Nyström attention, whose number of landmarks and method are used.
        head: index of the head.
        pick: one of ``PICKS``.
    """
    of = Head.of(qkv, head)
    columns, rows = of.picked(attention, pick)
    common = metrics.singular_values(of.softmax[rows][:, columns])
    kept = common[common > RCOND * common[0]]
    return Cur(
        softmax=of.softmax.numpy(),
        columns=columns.numpy(),
        rows=rows.numpy(),
        formula=nystrom_formula(of.softmax, columns, rows).numpy(),
        rank=int((of.svd[1] > RCOND * of.svd[1][0]).sum()),
        common_rank=len(kept),
        condition=float(kept[0] / kept[-1]),
    )


def nystrom_formula(s: Tensor, columns: Tensor, rows: Tensor) -> Tensor:
    """Return ``C A⁺ R``, ``[n, n]``; reads only the chosen columns C and rows R of S, and A, the entries in both."""
    return s[:, columns] @ (exact_inverse(s[rows][:, columns]) @ s[rows])


def best_middle(s: Tensor, columns: Tensor, rows: Tensor) -> Tensor:
    """Return ``C (C⁺ S R⁺) R``, ``[n, n]``, the closest to S in the Frobenius norm among all ``C U R``."""
    left, right = _span(s[:, columns]), _span(s[rows].mT)
    return left @ (left.mT @ s @ right) @ right.mT


class Head(CompactRepr):
    """The queries and keys, ``[n, d]``, and the softmax, ``[n, n]``, of one head, in float64."""

    q: Tensor
    k: Tensor
    softmax: Tensor

    @classmethod
    def of(cls, qkv: QKV, head: int) -> "Head":
        """Return one head of a record, counted from 0."""
        q, k = qkv.q[head].double(), qkv.k[head].double()
        return cls(q=q, k=k, softmax=registry.get("softmax").weights(q, k))

    @cached_property
    def svd(self) -> tuple[Tensor, Tensor, Tensor]:
        """The left singular vectors as columns, singular values, and right singular vectors as rows."""
        left, values, right = torch.linalg.svd(self.softmax)
        return left, values, right

    def picked(self, attention: Attention, pick: str) -> tuple[Tensor, Tensor]:
        """Return the indices of the chosen columns and rows, ascending, at most ``min(m, n)`` each.

        Args:
            attention: Nyström attention, with the number m of landmarks and the method to find them.
            pick: ``"even"``: evenly spaced tokens, the same for both; ``"nearest"``: the token nearest to each landmark
                among its tokens, keys for columns and queries for rows (a k-means landmark may have no tokens);
                ``"leverage"``: the columns and rows with the largest weight in the m leading singular vectors.
        """
        n = len(self.softmax)
        m = min(landmark_count(attention), n)
        if pick == "even":
            even = (2 * torch.arange(m) + 1) * n // (2 * m)
            return even, even
        if pick == "nearest":
            method = str(attention.params.method)  # type: ignore[attr-defined]
            return _nearest(self.k, m, method), _nearest(self.q, m, method)
        left, _, right = self.svd
        return _largest(right[:m].square().sum(0), m), _largest(left[:, :m].square().sum(1), m)


def _nearest(x: Tensor, m: int, method: str) -> Tensor:
    """Return, for each landmark with tokens ``[n, d]``, the index of its token nearest to it, ascending."""
    belongs = torch.from_numpy(membership(x, m, method)) > 0
    distance = torch.cdist(landmarks(x, m, method), x).masked_fill(~belongs, torch.inf)
    return distance.argmin(-1)[belongs.any(-1)].sort().values


def _largest(scores: Tensor, m: int) -> Tensor:
    return scores.argsort(descending=True, stable=True)[:m].sort().values


def _span(x: Tensor) -> Tensor:
    """Return an orthonormal basis, ``[n, rank]``, of the span of the columns of ``[n, m]``."""
    basis, values, _ = torch.linalg.svd(x, full_matrices=False)
    return basis[:, values > RCOND * values[0]]


def landmark_count(attention: Attention) -> int:
    """Return the number of landmarks in the settings of Nyström attention."""
    return int(attention.params.landmarks)  # type: ignore[attr-defined]
