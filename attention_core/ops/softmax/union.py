"""Softmax attention over the union of several patterns, computed piece by piece into one output.

A pattern is split into pieces. A piece consists of some queries and the keys that they attend to. The output of each
piece is merged exactly into the result by its log-sum-exp. In the backward pass, a piece's part of the gradients
follows from its own inputs and from the output and log-sum-exp of the union. Pieces are therefore not stored: the
backward pass computes them again.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.compact_repr import CompactRepr
from attention_core.ops.once_differentiable import once_differentiable
from attention_core.ops.softmax.exact import pad_for_kernels
from attention_core.ops.softmax.masked import at_least_float32
from attention_core.ops.softmax.partial import KernelInputs, Part, part_backward, partial_forward

with warnings.catch_warnings():
    # At the first sparse tensor, torch warns that sparse tensors are in beta. The warning is triggered and
    # ignored here, because the module uses sparse tensors only for products at given positions.
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], (1, 1))

TensorView = Callable[[Tensor], Tensor]
Add = Callable[[Tensor, Tensor], Any]
Gradients = tuple[Tensor, Tensor, Tensor]


class Piece(CompactRepr):
    """Some queries and the keys they attend to; no pair is in two pieces.

    In the shapes, X is the number of all heads and x the number of heads in the piece. The piece has Y groups of r
    queries and c keys, and e is the size of a token's vector.

    Attributes:
        queries: returns a view ``[x, Y, r, e]`` of ``[X, n, e]`` that contains each token once, or a copy (see
            ``write``).
        keys: returns a view or copy ``[x, Y, c, e]`` of ``[X, n, e]``.
        add: adds ``[x, Y, c, e]`` to the tokens of ``[X, n, e]`` that ``keys`` returns.
        bias: ``[r, c]``, from ``mask_bias``, which is added to the scores; None if every pair is allowed.
        causal: whether query i of the piece attends to its keys 0..i only.
        merges: False for the first piece of its queries, True for every later one.
        write: writes ``[x, Y, r, e]`` to the tokens of ``[X, n, e]`` that ``queries`` returns; needed if
            ``queries`` returns a copy, which requires ``merges`` to be false.
    """

    queries: TensorView
    keys: TensorView
    add: Add
    bias: Tensor | None = None
    causal: bool = False
    merges: bool = False
    write: Add | None = None

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        """Return the output ``[x, Y, r, e]`` and the log-sum-exp ``[x, Y, r]`` of the piece."""
        return partial_forward(self._inputs(q, k, v, scale))

    def add_gradients(
        self, grads: Gradients, grad: Tensor, q: Tensor, k: Tensor, v: Tensor, union: Part, scale: float
    ) -> None:
        """Add the piece's gradients to those of q, k and v; ``union`` is the output and log-sum-exp of all pieces."""
        (dq, dk, dv), (out, lse), rows_of = grads, union, self.queries
        to_q, to_k, to_v = part_backward(self._inputs(q, k, v, scale), rows_of(out), lse_rows(self, lse), rows_of(grad))
        if self.merges:
            rows_of(dq).add_(to_q)
        else:
            write_rows(self, dq, to_q)
        self.add(dk, to_k)
        self.add(dv, to_v)

    def _inputs(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> KernelInputs:
        rows = self.queries(q)
        bias = None if self.bias is None else self.bias.expand(*rows.shape[:2], *self.bias.shape)
        return KernelInputs(rows, self.keys(k), self.keys(v), bias, self.causal, scale)


class ScatteredPiece(CompactRepr):
    """Queries of one head, each with its own set of keys; keys and values are not copied.

    An earlier piece must have the same queries.

    Attributes:
        head: the index of the head.
        rows: the positions of the queries.
        positions: the positions of the ρ keys of each of the r queries, ``int32 [r, ρ]``.
        allowed: which of these keys are allowed, ``bool [r, ρ]``.
    """

    head: int
    rows: slice
    positions: Tensor
    allowed: Tensor
    merges: ClassVar[bool] = True

    def queries(self, x: Tensor) -> Tensor:
        """Return the rows of these queries, ``[1, 1, r, e]``."""
        return x[self.head : self.head + 1, None, self.rows]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        """Return the output and the log-sum-exp, as ``Piece.attend``."""
        logits = self._logits(q, k, scale)
        lse = logits.logsumexp(-1)
        out = self._weighted_sums(logits.sub_(lse.unsqueeze(-1)).exp_(), v)
        return out[None, None], lse[None, None]

    def add_gradients(
        self, grads: Gradients, grad: Tensor, q: Tensor, k: Tensor, v: Tensor, union: Part, scale: float
    ) -> None:
        """Add the piece's gradients to those of q, k and v, as ``Piece.add_gradients``."""
        tensors = grad, union[0], union[1].unsqueeze(-1)
        grad_rows, out, lse = (at_least_float32(self.queries(x)[0, 0]) for x in tensors)
        p = (self._logits(q, k, scale) - lse).exp_()
        row_dots = (grad_rows * out).sum(-1, keepdim=True)
        to_logits = p * (self._products(grad, v) - row_dots) * scale
        self.queries(grads[0])[0, 0].add_(self._weighted_sums(to_logits, k))
        # Sort the pairs by key, so that the queries that attend to the same key are adjacent.
        positions = self.positions.flatten().long()
        order, ones = positions.argsort(stable=True), torch.ones_like(positions)
        counts = ones.new_zeros(k.shape[-2]).scatter_add_(0, positions, ones)
        starts = counts.cumsum(0) - counts
        for target, source, weight in ((grads[1], q, to_logits), (grads[2], grad, p)):
            tokens, weights = at_least_float32(self.queries(source)[0, 0]), weight.flatten()[order]
            queries = order // self.positions.shape[-1]
            target[self.head].add_(F.embedding_bag(queries, tokens, starts, mode="sum", per_sample_weights=weights))

    def _logits(self, q: Tensor, k: Tensor, scale: float) -> Tensor:
        logits = self._products(q, k).mul_(scale)
        return logits.masked_fill_(~self.allowed, torch.finfo(logits.dtype).min)

    def _products(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the dot products of each query's row of ``x`` with the rows of ``y`` at its ρ keys, ``[r, ρ]``."""
        rows, keys_per_query = self.positions.shape
        x, y = at_least_float32(x[self.head, self.rows]), at_least_float32(y[self.head])
        # The sparse product below runs on the CPU only. It fails if ``positions`` has more columns than there are keys.
        if x.device.type != "cpu" or keys_per_query > len(y):
            return (x @ y.mT).gather(-1, self.positions.long())
        row_starts = torch.arange(0, rows * keys_per_query + 1, keys_per_query, dtype=torch.int32, device=x.device)
        zeros = x.new_zeros(rows * keys_per_query)
        pattern = torch.sparse_csr_tensor(
            row_starts, self.positions.flatten(), zeros, (rows, len(y)), device=x.device, check_invariants=False
        )
        return torch.sparse.sampled_addmm(pattern, x, y.mT, beta=0.0).values().view(rows, keys_per_query)

    def _weighted_sums(self, weights: Tensor, x: Tensor) -> Tensor:
        """Return the weighted sum of the rows of ``x`` at each query's keys, ``[r, e]``."""
        return F.embedding_bag(self.positions, at_least_float32(x[self.head]), mode="sum", per_sample_weights=weights)


Pieces = Callable[..., Iterable[Piece | ScatteredPiece]]
"""``(queries [X, n, d], *, backward) -> pieces``; with ``backward``, a piece also needs memory for gradients."""


def union_attention(pieces: Pieces, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return the attention of each query to the keys of all its pieces, ``[..., n, d_v]``; differentiable only once.

    Args:
        pieces: pieces that together contain every query at least once.
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
    """
    scale, shape = q.shape[-1] ** -0.5, v.shape
    q, k, v = pad_for_kernels(*(x.reshape(-1, *x.shape[-2:]) for x in (q, k, v)))
    out: Tensor = _Union.apply(q, k, v, pieces, scale)
    return out[..., : shape[-1]].reshape(shape)


class _Union(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, pieces: Pieces, scale: float) -> Tensor:  # noqa: ANN401 - torch's context object
        out: Tensor | None = None
        for piece in pieces(q, backward=False):
            if out is None:  # allocated only after the first yield, because ``pieces`` needs memory before it
                out = q.new_empty(v.shape)
                lse = q.new_empty(q.shape[:-1], dtype=torch.promote_types(q.dtype, torch.float32))
            _merge(piece, out, lse, *piece.attend(q, k, v, scale))
            del piece  # to free its bias before the next piece is computed
        assert out is not None
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.pieces, ctx.scale = pieces, scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        q, k, v, out, lse = ctx.saved_tensors
        (grad,) = pad_for_kernels(grad)
        dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for piece in ctx.pieces(q, backward=True):
            piece.add_gradients((dq, dk, dv), grad, q, k, v, (out, lse), ctx.scale)
            del piece
        return dq, dk, dv, None, None


def lse_rows(piece: Piece | ScatteredPiece, lse: Tensor) -> Tensor:
    """Return the entries of ``[X, n]`` that belong to the queries of a piece, a view ``[x, Y, r]``."""
    return piece.queries(lse.unsqueeze(-1)).squeeze(-1)


def write_rows(piece: Piece | ScatteredPiece, target: Tensor, source: Tensor) -> None:
    """Write ``[x, Y, r, e]`` to the rows of ``[X, n, e]`` that belong to the queries of a piece."""
    if isinstance(piece, Piece) and piece.write is not None:
        piece.write(target, source)
    else:
        piece.queries(target).copy_(source)


def _merge(piece: Piece | ScatteredPiece, out: Tensor, lse: Tensor, piece_out: Tensor, piece_lse: Tensor) -> None:
    """Merge the output of a piece into that of earlier pieces for the same queries, in place."""
    if not piece.merges:
        write_rows(piece, out, piece_out)
        write_rows(piece, lse.unsqueeze(-1), piece_lse.unsqueeze(-1))
        return
    target, known_lse = piece.queries(out), lse_rows(piece, lse)
    total = torch.logaddexp(known_lse, piece_lse)
    old, new = ((x - total).exp_().unsqueeze(-1) for x in (known_lse, piece_lse))
    known_lse.copy_(total)
    if target.dtype == old.dtype:
        target.mul_(old).addcmul_(piece_out, new)
    else:  # in half precision: the sum is computed in float32 and rounded once
        target.copy_(target * old + piece_out * new)


def pieces_of_slice(pieces: Iterable[Piece], start: int, step: int = 1) -> Iterator[Piece]:
    """Convert pieces of the slice ``x[:, start::step]`` to pieces of the whole ``x``."""

    def slice_view(view: TensorView) -> TensorView:
        return lambda x: view(x[:, start::step])

    def slice_add(add: Add) -> Add:
        return lambda target, source: add(target[:, start::step], source)

    def slice_piece(piece: Piece) -> Piece:
        write = piece.write and slice_add(piece.write)
        return replace(
            piece, queries=slice_view(piece.queries), keys=slice_view(piece.keys), add=slice_add(piece.add), write=write
        )

    return map(slice_piece, pieces)


def mark_merged(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces with ``merges`` set, because earlier pieces have the same queries."""
    return map(partial(replace, merges=True), pieces)


def union_elements(n: int, d: int, *, rows: int, mask: int = 0, merged_rows: int = 0) -> int:
    """Return the peak number of elements of ``union_attention`` for one head of n tokens.

    Args:
        n: tokens.
        d: head size.
        rows: queries of the largest piece.
        mask: pairs of the largest bias.
        merged_rows: queries of the largest piece that is merged into others.
    """
    return n * (d + 1) + max(rows * (d + 1) + 5 * mask // 4, merged_rows * (d + 4))
