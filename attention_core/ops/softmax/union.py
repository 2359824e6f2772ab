"""Softmax attention over the union of several patterns, computed piece by piece into one output.

A pattern is split into pieces: some queries with the keys they attend to, as views of the inputs. The output of each
piece is merged into the result by its log-sum-exp, exactly. With the log-sum-exp of the union, the backward pass of a
piece gives its contribution to the gradients, so the backward pass computes the same pieces again and stores none.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from attention_core.compact_repr import CompactRepr
from attention_core.ops.softmax.exact import ready_for_kernels
from attention_core.ops.softmax.masked import at_least_float32
from attention_core.ops.softmax.partial import Inputs, Part, part_forward, share_backward

with warnings.catch_warnings():
    # torch warns at the first sparse tensor that these are in beta. This call triggers the warning and ignores it; the
    # module uses sparse tensors only for products at given positions.
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], (1, 1))

View = Callable[[Tensor], Tensor]
Add = Callable[[Tensor, Tensor], Any]
Three = tuple[Tensor, Tensor, Tensor]


class Piece(CompactRepr):
    """Some queries and the keys they attend to; no pair is in two pieces.

    In the shapes, X is the number of all heads and x that of the piece's heads. Y counts its groups of r queries and c
    keys.

    Attributes:
        queries: returns a view ``[x, Y, r, e]`` of ``[X, n, e]`` that contains each token once; a copy with ``write``.
        keys: returns a view or copy ``[x, Y, c, e]`` of ``[X, n, e]``.
        add: adds ``[x, Y, c, e]`` to the tokens of ``[X, n, e]`` that ``keys`` returns.
        bias: ``[r, c]``, from ``lowest_bias``, which is added to the scores; None if every pair is allowed.
        causal: whether query i of the piece attends to its keys 0..i only.
        again: whether an earlier piece had the same queries. The first piece of a query must precede its other pieces.
        write: writes ``[x, Y, r, e]`` to the tokens of ``[X, n, e]`` that ``queries`` returns; needed if ``queries``
            returns a copy, which requires ``again`` to be false.
    """

    queries: View
    keys: View
    add: Add
    bias: Tensor | None = None
    causal: bool = False
    again: bool = False
    write: Add | None = None

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        """Return the output ``[x, Y, r, e]`` and the log-sum-exp ``[x, Y, r]`` of the piece."""
        return part_forward(self._inputs(q, k, v, scale))

    def add_gradients(
        self, into: Three, grad: Tensor, q: Tensor, k: Tensor, v: Tensor, union: Part, scale: float
    ) -> None:
        """Add the piece's gradients to those of q, k and v; ``union`` is the output and log-sum-exp of all pieces."""
        (dq, dk, dv), (out, lse), of = into, union, self.queries
        to_q, to_k, to_v = share_backward(self._inputs(q, k, v, scale), of(out), column(self, lse), of(grad))
        if self.again:
            of(dq).add_(to_q)
        else:
            put(self, dq, to_q)
        self.add(dk, to_k)
        self.add(dv, to_v)

    def _inputs(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Inputs:
        rows = self.queries(q)
        bias = None if self.bias is None else self.bias.expand(*rows.shape[:2], *self.bias.shape)
        return Inputs(rows, self.keys(k), self.keys(v), bias, self.causal, scale)


class Drawn(CompactRepr):
    """Queries of one head, each with its own set of keys; keys and values are not copied.

    Attributes:
        head: the index of the head.
        rows: the positions of the queries.
        places: the positions of their keys, ``int32 [r, ρ]``, ρ for each query.
        fresh: which of these keys are allowed, ``bool [r, ρ]``.
        again: as in ``Piece``.
    """

    head: int
    rows: slice
    places: Tensor
    fresh: Tensor
    again: bool = True

    def queries(self, x: Tensor) -> Tensor:
        """Return the rows of these queries, ``[1, 1, r, e]``."""
        return x[self.head : self.head + 1, None, self.rows]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        """See ``Piece``."""
        logits = self._logits(q, k, scale)
        lse = logits.logsumexp(-1)
        out = self._mixed(logits.sub_(lse.unsqueeze(-1)).exp_(), v)
        return out[None, None], lse[None, None]

    def add_gradients(
        self, into: Three, grad: Tensor, q: Tensor, k: Tensor, v: Tensor, union: Part, scale: float
    ) -> None:
        """See ``Piece``."""
        slope, out, lse = (at_least_float32(self.queries(x)[0, 0]) for x in (grad, union[0], union[1].unsqueeze(-1)))
        p = (self._logits(q, k, scale) - lse).exp_()
        delta = (slope * out).sum(-1, keepdim=True)
        to_logits = p * (self._products(grad, v) - delta) * scale
        self.queries(into[0])[0, 0].add_(self._mixed(to_logits, k))
        # Sort the pairs by key, so that the queries of each key are adjacent.
        places = self.places.flatten().long()
        order, ones = places.argsort(stable=True), torch.ones_like(places)
        counts = ones.new_zeros(k.shape[-2]).scatter_add_(0, places, ones)
        starts = counts.cumsum(0) - counts
        for place, what, weight in ((into[1], q, to_logits), (into[2], grad, p)):
            tokens, weights = at_least_float32(self.queries(what)[0, 0]), weight.flatten()[order]
            lists = order // self.places.shape[-1]
            place[self.head].add_(F.embedding_bag(lists, tokens, starts, mode="sum", per_sample_weights=weights))

    def _logits(self, q: Tensor, k: Tensor, scale: float) -> Tensor:
        logits = self._products(q, k).mul_(scale)
        return logits.masked_fill_(~self.fresh, torch.finfo(logits.dtype).min)

    def _products(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the products of each query's row of ``x`` with the rows of ``y`` at its keys, ``[r, ρ]``."""
        rows, each = self.places.shape
        x, y = at_least_float32(x[self.head, self.rows]), at_least_float32(y[self.head])
        # The sparse product below runs on the CPU only, and allows at most one entry per column in each row.
        if x.device.type != "cpu" or each > len(y):
            return (x @ y.mT).gather(-1, self.places.long())
        first = torch.arange(0, rows * each + 1, each, dtype=torch.int32, device=x.device)
        zeros = x.new_zeros(rows * each)
        wanted = torch.sparse_csr_tensor(first, self.places.flatten(), zeros, (rows, len(y)), check_invariants=False)
        return torch.sparse.sampled_addmm(wanted, x, y.mT, beta=0.0).values().view(rows, each)

    def _mixed(self, weights: Tensor, x: Tensor) -> Tensor:
        """Return the weighted sum of the rows of ``x`` at each query's keys, ``[r, e]``."""
        return F.embedding_bag(self.places, at_least_float32(x[self.head]), mode="sum", per_sample_weights=weights)


Pieces = Callable[..., Iterable[Piece | Drawn]]
"""``(queries [X, n, d], *, backward) -> pieces``; in the backward pass the gradients of keys add to their memory."""


def union_attention(pieces: Pieces, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return the attention of each query to the keys of all its pieces, ``[..., n, d_v]``; differentiable only once.

    Args:
        pieces: pieces that together contain every query at least once.
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
    """
    scale, shape = q.shape[-1] ** -0.5, v.shape
    q, k, v = ready_for_kernels(*(x.reshape(-1, *x.shape[-2:]) for x in (q, k, v)))
    out: Tensor = _Union.apply(q, k, v, pieces, scale)
    return out[..., : shape[-1]].reshape(shape)


class _Union(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, pieces: Pieces, scale: float) -> Tensor:  # noqa: ANN401 - torch's own context
        out: Tensor | None = None
        for piece in pieces(q, backward=False):
            if out is None:  # allocated only now, because ``pieces`` has freed its temporary tensors by its first yield
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
        (grad,) = ready_for_kernels(grad)
        dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for piece in ctx.pieces(q, backward=True):
            piece.add_gradients((dq, dk, dv), grad, q, k, v, (out, lse), ctx.scale)
            del piece
        return dq, dk, dv, None, None


def column(piece: Piece | Drawn, lse: Tensor) -> Tensor:
    """Return the entries of ``[X, n]`` that belong to the queries of a piece, a view ``[x, Y, r]``."""
    return piece.queries(lse.unsqueeze(-1)).squeeze(-1)


def put(piece: Piece | Drawn, into: Tensor, what: Tensor) -> None:
    """Write ``[x, Y, r, e]`` to the rows of ``[X, n, e]`` that belong to the queries of a piece."""
    if isinstance(piece, Piece) and piece.write is not None:
        piece.write(into, what)
    else:
        piece.queries(into).copy_(what)


def _merge(piece: Piece | Drawn, out: Tensor, lse: Tensor, found: Tensor, found_lse: Tensor) -> None:
    """Merge the output of a piece into that of earlier pieces for the same queries, in place."""
    if not piece.again:
        put(piece, out, found)
        put(piece, lse.unsqueeze(-1), found_lse.unsqueeze(-1))
        return
    place, known = piece.queries(out), column(piece, lse)
    total = torch.logaddexp(known, found_lse)
    old, new = ((x - total).exp_().unsqueeze(-1) for x in (known, found_lse))
    known.copy_(total)
    if place.dtype == old.dtype:
        place.mul_(old).addcmul_(found, new)
    else:  # with an output in half precision, the sum is rounded once, at the end
        place.copy_(place * old + found * new)


def among(pieces: Iterable[Piece], start: int, step: int = 1) -> Iterator[Piece]:
    """Yield the pieces applied to every ``step``-th token from ``start`` on."""

    def behind(view: View) -> View:
        return lambda x: view(x[:, start::step])

    def adding(add: Add) -> Add:
        return lambda into, what: add(into[:, start::step], what)

    def moved(piece: Piece) -> Piece:
        write = piece.write and adding(piece.write)
        return replace(
            piece, queries=behind(piece.queries), keys=behind(piece.keys), add=adding(piece.add), write=write
        )

    return map(moved, pieces)


def merging(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces with ``again`` set, because earlier pieces have the same queries."""
    return map(partial(replace, again=True), pieces)


def union_elements(n: int, d: int, *, rows: int, mask: int = 0, again: int = 0) -> int:
    """Return the peak number of elements of ``union_attention`` for one head of n tokens.

    Args:
        n: tokens.
        d: head size.
        rows: queries of the largest piece.
        mask: pairs of the largest bias.
        again: queries of the largest piece that is merged into others.
    """
    return n * (d + 1) + max(rows * (d + 1) + 5 * mask // 4, again * (d + 4))
