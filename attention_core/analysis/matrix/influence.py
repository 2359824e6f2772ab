"""What moves when one token is replaced? In a causal variant nothing before it; where something does, it leaks.

Token t's query, key and value are all replaced by seeded random vectors of like size, for every t in turn, and the
outputs are compared with those of the untouched input, in float64.
"""

import numpy as np
import torch
from torch import Tensor

from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.ops.linear.causal_scan import nonzero
from attention_core.ops.random import generator
from attention_core.variant import Attention

MOST = 256
"""Tokens at most for one head, fewer for several: every token takes a run of its own, and n runs of n² steps are n³."""
ROUNDING = 1e-9
"""Of an output's usual size: a smaller move is rounding, of which float64 leaves about 1e-16 here; a real one of this
size is one of a weight that small."""
ALIVE = 2**22
"""Numbers alive at once, 8 bytes each, unless a single run needs more: as many tokens are replaced side by side."""


class Influence(CompactRepr):
    """What moves in one variant.

    Attributes:
        moved: ``float32 [n, n]``: row t, column i is how far output i moves when token t is replaced, as a share of
            the outputs' root mean square size; exactly 0 where that is no more than rounding.
        causal: whether the variant ran in its causal form.
    """

    moved: np.ndarray
    causal: bool

    def before(self, t: int) -> int:
        """How many outputs before token t move when it is replaced."""
        return int(np.count_nonzero(self.moved[t, :t]))

    @property
    def share(self) -> float:
        """Share of all pairs of a token and an earlier output in which the output moves; 0 for a single token."""
        n = len(self.moved)
        return int(np.count_nonzero(np.tril(self.moved, -1))) / max(1, n * (n - 1) // 2)


def replaced_tokens(qkv: QKV, *, head: int | None) -> int:
    """Return how many of a record's tokens are replaced in turn: ``MOST`` of one head, fewer of several."""
    return min(qkv.n, int(MOST * (1 if head is not None else qkv.heads) ** (-1 / 3)))


def influence(qkv: QKV, attention: Attention, *, head: int | None, seed: int = 0) -> Influence:
    """Replace every token in turn; the variant runs causally if it can.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``; the first tokens are used, ``MOST`` of them for one head.
        attention: the variant with its settings.
        head: the head looked at; None for all of them, their outputs side by side.
        seed: of what tokens are replaced by.
    """
    causal = attention.variant.causal_reason is None
    tokens = replaced_tokens(qkv, head=head)
    inputs = [x[:, :tokens].double() for x in qkv.tensors]
    others = [_like(x, seed, place) for place, x in enumerate(inputs)]
    looked = slice(None) if head is None else slice(head, head + 1)
    if not attention.variant.couples_heads:
        inputs, others = ([x[looked] for x in group] for group in (inputs, others))
        looked = slice(None)
    heads, n, d = inputs[0].shape
    before = attention.attend(*inputs, causal=causal)[looked]
    usual = nonzero(before.square().sum((0, -1)).mean().sqrt())
    numbers = 3 * heads * n * d + attention.cost(n, d, causal=causal, heads=heads).peak_elements
    moved = []
    for some in torch.arange(n).split(max(1, ALIVE // numbers)):
        after = attention.attend(
            *(_replaced(x, other, some) for x, other in zip(inputs, others, strict=True)), causal=causal
        )[:, looked]
        moved.append((after - before).square().sum((1, -1)).sqrt() / usual)
    sizes = torch.cat(moved)
    return Influence(moved=sizes.where(sizes > ROUNDING, 0.0).float().numpy(), causal=causal)


def _like(x: Tensor, seed: int, place: int) -> Tensor:
    """Random directions, each as long as its head's vectors are in root mean square, ``[H, n, d]``."""
    drawn = torch.randn(x.shape, generator=generator(seed, place), dtype=x.dtype)
    size = x.square().sum(-1, keepdim=True).mean(-2, keepdim=True).sqrt()
    return drawn / drawn.norm(dim=-1, keepdim=True) * size


def _replaced(x: Tensor, other: Tensor, tokens: Tensor) -> Tensor:
    """One copy of ``x`` for each of the tokens, in which that token is the other's, ``[b, H, n, d]``."""
    copies = x.expand(len(tokens), *x.shape).clone()
    copies[torch.arange(len(tokens)), :, tokens] = other[:, tokens].movedim(1, 0)
    return copies
