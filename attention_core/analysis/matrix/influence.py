"""The influence of each token on a variant's outputs. If a token changes an earlier output, the variant is not causal.

The query, key and value of one token are replaced by seeded random vectors of the same size, for every token in turn.
The outputs are compared with those of the original input, in float64.
"""

import numpy as np
import torch
from torch import Tensor

from attention_core.attention import Attention
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.ops.random import generator
from attention_core.ops.softmax.masked import safe_divisor

MAX_TOKENS = 256
"""Maximum tokens for one head, fewer for several: every token needs a separate run, and n runs of n² steps are n³."""
ROUNDING = 1e-9
"""Smallest change, as a share of the usual output size, that is not rounding. Float64 leaves rounding errors of about
1e-16; a real change this small comes from an equally small weight."""
MAX_NUMBERS = 2**22
"""Maximum numbers in memory, 8 bytes each, unless a single run needs more; it limits the tokens replaced per batch."""


class Influence(CompactRepr):
    """The changes of the outputs of one variant.

    Attributes:
        moved: ``float32 [n, n]``: row t, column i is the change of output i when token t is replaced, as a share of the
            root mean square size of the outputs; exactly 0 for rounding errors.
        causal: whether the variant ran in its causal form.
    """

    moved: np.ndarray
    causal: bool

    def earlier_changes(self, t: int) -> int:
        """Return the number of outputs before token t that change when token t is replaced."""
        return int(np.count_nonzero(self.moved[t, :t]))

    @property
    def leaking_share(self) -> float:
        """The share of pairs of a token and an earlier output in which replacing the token changes the output.

        It is 0 for a single token.
        """
        n = len(self.moved)
        return int(np.count_nonzero(np.tril(self.moved, -1))) / max(1, n * (n - 1) // 2)


def replaced_tokens(qkv: QKV, *, head: int | None) -> int:
    """Return how many of a record's tokens are replaced in turn: at most ``MAX_TOKENS``, fewer for several heads."""
    return min(qkv.n, int(MAX_TOKENS * (1 if head is not None else qkv.heads) ** (-1 / 3)))


def influence(qkv: QKV, attention: Attention, *, head: int | None) -> Influence:
    """Replace every token in turn and measure the changes of the outputs; the variant runs causally if it can.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``; only the first tokens are used (see ``replaced_tokens``).
        attention: the variant with its settings.
        head: index of the head; None for the concatenated outputs of all heads.
    """
    causal = attention.variant.causal_reason is None
    tokens = replaced_tokens(qkv, head=head)
    inputs = [x[:, :tokens].double() for x in qkv.tensors]
    replacements = [_random_like(x, index) for index, x in enumerate(inputs)]
    selected = slice(None) if head is None else slice(head, head + 1)
    if not attention.variant.couples_heads:
        inputs, replacements = ([x[selected] for x in group] for group in (inputs, replacements))
        selected = slice(None)
    heads, n, d = inputs[0].shape
    original = attention.attend(*inputs, causal=causal)[selected]
    output_size = safe_divisor(original.square().sum((0, -1)).mean().sqrt())
    numbers_per_run = 3 * heads * n * d + attention.cost(n, d, causal=causal, heads=heads).peak_elements
    moved = []
    for batch in torch.arange(n).split(max(1, MAX_NUMBERS // numbers_per_run)):
        changed = attention.attend(
            *(_replaced(x, other, batch) for x, other in zip(inputs, replacements, strict=True)), causal=causal
        )[:, selected]
        moved.append((changed - original).square().sum((1, -1)).sqrt() / output_size)
    changes = torch.cat(moved)
    return Influence(moved=changes.where(changes > ROUNDING, 0.0).float().numpy(), causal=causal)


def _random_like(x: Tensor, stream: int) -> Tensor:
    """Return random vectors, ``[H, n, d]``, all as long as the root mean square length of their head's vectors."""
    directions = torch.randn(x.shape, generator=generator(0, stream), dtype=x.dtype)
    size = x.square().sum(-1, keepdim=True).mean(-2, keepdim=True).sqrt()
    return directions / directions.norm(dim=-1, keepdim=True) * size


def _replaced(x: Tensor, replacement: Tensor, tokens: Tensor) -> Tensor:
    """Return a copy of ``x`` for each of b tokens, ``[b, H, n, d]``; each copy has one token from ``replacement``."""
    copies = x.expand(len(tokens), *x.shape).clone()
    copies[torch.arange(len(tokens)), :, tokens] = replacement[:, tokens].movedim(1, 0)
    return copies
