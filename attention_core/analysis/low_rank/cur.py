"""What do a few columns and rows tell of a whole matrix? CUR and Nyström's formula, beside Nyström attention.

CUR approximates a matrix S by ``C U R``: C some of its columns, R some of its rows, U a small matrix between them.

- **Nyström's formula** takes ``U = A⁺``, the pseudo-inverse of what the chosen columns and rows have in common. With
  these put first, ``S = [A B; C D]`` becomes ``[A; C] A⁺ [A B] = [A B; C C A⁺ B]`` where A can be inverted: no entry of
  D is read. It is S itself where A has the rank of S.
- **The best middle** ``U = C⁺ S R⁺`` comes closest to S of all middles for the same columns and rows, and reads all of
  S.

Nyström attention keeps the form and not the formula: a column of softmax cannot be had by itself, as each of its
entries is divided by a sum over all keys. It puts softmax with landmarks in the place of all three factors.

Everything is in float64; of a pseudo-inverse, singular values under ``RCOND`` of the largest are dropped.

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
"""Ways to choose columns and rows: evenly spaced tokens, the token nearest to each landmark, the largest leverage
scores (shares of the m leading singular vectors, which take all of S to be known)."""


class Cur(CompactRepr):
    """One head's softmax made from some of its columns and rows.

    Attributes:
        softmax: the matrix S, ``[n, n]`` float64.
        columns: the chosen columns, ascending, ``[c]``.
        rows: the chosen rows, ascending, ``[r]``.
        formula: ``C A⁺ R``, ``[n, n]``.
        rank: singular values of S above ``RCOND`` of the largest.
        common_rank: the same of A, the entries that chosen columns and rows share.
        condition: the largest singular value of A over the least that is not dropped.
    """

    softmax: np.ndarray
    columns: np.ndarray
    rows: np.ndarray
    formula: np.ndarray
    rank: int
    common_rank: int
    condition: float


def look(qkv: QKV, attention: Attention, head: int, pick: str) -> Cur:
    """A head's softmax by Nyström's formula, from as many columns and rows as Nyström attention has landmarks.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: Nyström attention, of which landmarks and method count.
        head: the head.
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
    """``C A⁺ R``, ``[n, n]``: only the chosen columns C and rows R of S are read, A being what they share."""
    return s[:, columns] @ (exact_inverse(s[rows][:, columns]) @ s[rows])


def best_middle(s: Tensor, columns: Tensor, rows: Tensor) -> Tensor:
    """``C (C⁺ S R⁺) R``, ``[n, n]``: of all ``C U R`` the closest to S in the Frobenius norm."""
    left, right = _span(s[:, columns]), _span(s[rows].mT)
    return left @ (left.mT @ s @ right) @ right.mT


class Head(CompactRepr):
    """Queries, keys, ``[n, d]``, and softmax, ``[n, n]``, of one head, in float64."""

    q: Tensor
    k: Tensor
    softmax: Tensor

    @classmethod
    def of(cls, qkv: QKV, head: int) -> "Head":
        """A record's head, from 0."""
        q, k = qkv.q[head].double(), qkv.k[head].double()
        return cls(q=q, k=k, softmax=registry.get("softmax").weights(q, k))

    @cached_property
    def svd(self) -> tuple[Tensor, Tensor, Tensor]:
        """Left singular vectors as columns, singular values, right singular vectors as rows."""
        left, values, right = torch.linalg.svd(self.softmax)
        return left, values, right

    def picked(self, attention: Attention, pick: str) -> tuple[Tensor, Tensor]:
        """The columns and the rows to make softmax of, ascending, at most ``min(m, n)`` each.

        Args:
            attention: Nyström attention: how many landmarks m, and how they are found.
            pick: ``"even"``: tokens evenly spaced, the same for both; ``"nearest"``: of the tokens of each landmark the
                one nearest to it, keys for columns and queries for rows (a landmark of k-means may have none);
                ``"leverage"``: the columns and the rows that weigh most in the m leading singular vectors.
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
    """Of the tokens ``[n, d]`` behind each landmark the one nearest to it, ascending."""
    belongs = torch.from_numpy(membership(x, m, method)) > 0
    distance = torch.cdist(landmarks(x, m, method), x).masked_fill(~belongs, torch.inf)
    return distance.argmin(-1)[belongs.any(-1)].sort().values


def _largest(scores: Tensor, m: int) -> Tensor:
    return scores.argsort(descending=True, stable=True)[:m].sort().values


def _span(x: Tensor) -> Tensor:
    """An orthonormal basis, ``[n, rank]``, of what the columns ``[n, m]`` span."""
    basis, values, _ = torch.linalg.svd(x, full_matrices=False)
    return basis[:, values > RCOND * values[0]]


def landmark_count(attention: Attention) -> int:
    """How many landmarks Nyström attention with these settings has."""
    return int(attention.params.landmarks)  # type: ignore[attr-defined]
