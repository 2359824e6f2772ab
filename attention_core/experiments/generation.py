"""The memory that text generation needs: a growing key-value cache compared with smaller caches and constant states."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from attention_core import registry
from attention_core.experiments.task import Load, load


@dataclass(frozen=True, kw_only=True)
class MemoryTask:
    """A task that computes the memory of generating with one variant.

    Attributes:
        word: a variant with a decoder or a cache of its own, and its settings.
        heads: H.
        d: size of queries and keys.
        d_v: size of values.
    """

    word: str
    heads: int
    d: int
    d_v: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """The memory that one variant keeps between tokens, compared with a key-value cache.

    Attributes:
        variant: its word.
        state_bytes: constant part for all heads, independent of the number of tokens.
        grown_bytes: additional bytes per token.
        token_bytes: bytes of one token's keys and values in a key-value cache.
        outgrown: the number of tokens from which the key-value cache is larger; None if it never is.
    """

    variant: str
    state_bytes: int
    grown_bytes: int = 0
    token_bytes: int
    outgrown: int | None


def tasks(words: Sequence[str], *, heads: int, d: int, d_v: int) -> tuple[MemoryTask, ...]:
    """Return one task per variant.

    Args:
        words: variants with decoders or caches, and their settings.
        heads: H.
        d: size of queries and keys.
        d_v: size of values.
    """
    return tuple(MemoryTask(word=word, heads=heads, d=d, d_v=d_v) for word in words)


def run(task: MemoryTask, *, load: Load = load) -> tuple[MemoryRow]:
    """Measure the state of the variant's decoder after one float32 step, or read the sizes from its cache."""
    attention = registry.from_word(task.word)
    decoder, params = attention.variant.decoder, attention.params
    number = torch.float32.itemsize
    token = number * task.heads * (task.d + task.d_v)
    if decoder is not None:
        source = torch.Generator().manual_seed(0)
        q, k, v = (torch.randn(1, task.heads, size, generator=source) for size in (task.d, task.d, task.d_v))
        _, state = decoder.step(decoder.init_state(q, v, params), q, k, v, params)
        held, grown = _bytes(state), 0
    else:
        assert attention.variant.cache is not None, f"{task.word} has neither decoder nor cache"
        cache = attention.variant.cache(task.heads, task.d, task.d_v, params)
        held, grown = number * cache.fixed, number * cache.per_token
    outgrown = held // (token - grown) + 1 if grown < token else None
    return (MemoryRow(variant=task.word, state_bytes=held, grown_bytes=grown, token_bytes=token, outgrown=outgrown),)


def _bytes(state: object) -> int:
    """Return the bytes of the storages behind a state's tensors; a storage with several views counts once."""
    tensors = [leaf for leaf in tree_leaves(state) if isinstance(leaf, Tensor)]
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())
