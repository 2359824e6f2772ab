"""Memory and multiply-adds of generating text with each variant, compared with softmax and its key-value cache."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from attention_core import registry
from attention_core.attention import Attention
from attention_core.experiments.task import Load, load
from attention_core.variant import SOFTMAX

PATTERN_TOKENS = 256
"""Tokens at which the keys that a fixed pattern needs are counted; in an image, rounded up to whole rows.

The number of keys is constant if the count at twice as many tokens is equal.
"""
COUNTED_REACH = 128
"""Largest distance in tokens that the window or the stride spans while the keys of a fixed pattern are counted.

``PATTERN_TOKENS`` must exceed it together with the global tokens, so that more tokens need no more keys.
"""
MAX_SEARCH_LENGTH = 2**16
"""Longest text that ``cheaper_from`` tries. The search is fast, because it only evaluates cost formulas."""


@dataclass(frozen=True, kw_only=True)
class MemoryTask:
    """A task that computes the memory and the counted cost of generating with one variant.

    Attributes:
        word: a variant that can be causal or has a cache of its own, and its settings.
    """

    word: str
    heads: int
    d: int
    d_v: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """The memory that one variant keeps between tokens, compared with a key-value cache.

    Attributes:
        state_bytes: constant part for all heads, independent of the number of tokens.
        grown_bytes: additional bytes per token.
        token_bytes: bytes of one token's keys and values in a key-value cache.
        outgrown: the number of tokens from which the key-value cache is larger; None if it never is.
        cheaper: the number of tokens from which the causal form takes fewer multiply-adds than causal softmax. None if
            this is never so, or the variant cannot be causal.
    """

    variant: str
    state_bytes: int
    grown_bytes: int = 0
    token_bytes: int
    outgrown: int | None
    cheaper: int | None = None


def tasks(words: Sequence[str], *, heads: int, d: int, d_v: int) -> tuple[MemoryTask, ...]:
    """Return one task per variant.

    Args:
        words: causal variants and their settings.
        heads: H.
        d: size of queries and keys.
        d_v: size of values.
    """
    return tuple(MemoryTask(word=word, heads=heads, d=d, d_v=d_v) for word in words)


def run(task: MemoryTask, *, load: Load = load) -> tuple[MemoryRow]:
    """Measure the memory between two tokens, and count the multiply-adds of a whole text."""
    attention = registry.from_word(task.word)
    token_bytes = torch.float32.itemsize * task.heads * (task.d + task.d_v)
    state_bytes, grown_bytes = memory_bytes(attention, task.heads, task.d, task.d_v)
    return (
        MemoryRow(
            variant=task.word,
            state_bytes=state_bytes,
            grown_bytes=grown_bytes,
            token_bytes=token_bytes,
            outgrown=state_bytes // (token_bytes - grown_bytes) + 1 if grown_bytes < token_bytes else None,
            cheaper=None
            if attention.variant.causal_reason
            else cheaper_from(attention, task.heads, task.d, causal=True),
        ),
    )


def memory_bytes(
    attention: Attention, heads: int, d: int, d_v: int, dtype: torch.dtype = torch.float32
) -> tuple[int, int]:
    """Return the bytes that generation keeps for the next token: a constant part, and a part per past token.

    A variant with a decoder keeps the decoder's state after one step, in float32. Other variants keep a cache of their
    own, or keys and values, with the data type ``dtype``. If a fixed pattern needs a constant number of keys, only
    these are kept, otherwise all.
    """
    variant, itemsize = attention.variant, dtype.itemsize
    if variant.decoder is not None:
        generator = torch.Generator().manual_seed(0)
        q, k, v = (torch.randn(1, heads, size, generator=generator) for size in (d, d, d_v))
        init = variant.decoder.init_state(q, v, attention.params)
        return _storage_bytes(variant.decoder.step(init, q, k, v, attention.params)[1]), 0
    if variant.cache is not None:
        cache = variant.cache(heads, d, d_v, attention.params)
        return itemsize * cache.fixed, itemsize * cache.per_token
    token_bytes, keys = itemsize * heads * (d + d_v), constant_keys(attention)
    return (0, token_bytes) if keys is None else (keys * token_bytes, 0)


def constant_keys(attention: Attention) -> int | None:
    """Return how many keys generation with a fixed pattern needs after a long text; None if their number grows.

    The keys are counted on a mask with a shorter window and stride. For each token by which the window was shortened,
    ``dilation`` keys are added, times the columns of an image. In an image, the count is that at the start of a row.
    """
    p = attention.params
    dilation, columns = getattr(p, "dilation", 1), getattr(p, "columns", 0) or 1
    sizes = {name: getattr(p, name) for name in ("window", "stride") if hasattr(p, name)}
    short = {name: min(size, max(1, COUNTED_REACH // (dilation * columns))) for name, size in sizes.items()}
    pattern = replace(attention, params=replace(p, **short))
    n = columns * max(ceil(PATTERN_TOKENS / columns), 4)
    keys = needed_keys(pattern, n)
    if keys != needed_keys(pattern, 2 * n):
        return None
    return keys + dilation * columns * (sizes.get("window", 0) - short.get("window", 0))


def needed_keys(attention: Attention, n: int) -> int:
    """Return how many of the first n keys any of the next n tokens can attend to."""
    mask = attention.mask(2 * n, causal=True)
    return n if mask is None else int(mask[n:, :n].any(0).sum())


def cheaper_from(attention: Attention, heads: int, d: int, *, causal: bool) -> int | None:
    """Return the number of tokens from which on a variant takes fewer multiply-adds than softmax.

    Return None if this is never so up to ``MAX_SEARCH_LENGTH``.
    """
    lengths = range(1, MAX_SEARCH_LENGTH + 1)
    both = (attention, registry.get(SOFTMAX))

    def is_cheaper(n: int) -> bool:
        own, softmax = (each.cost(n, d, causal=causal, heads=heads).multiply_adds for each in both)
        return own < softmax

    first = bisect_left(lengths, True, key=is_cheaper)
    return lengths[first] if first < MAX_SEARCH_LENGTH else None


def _storage_bytes(state: object) -> int:
    """Return the bytes of the storages behind a state's tensors; a storage with several views counts once."""
    tensors = [leaf for leaf in tree_leaves(state) if isinstance(leaf, Tensor)]
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())
