"""What generating holds: a key-value cache that grows with every token, beside the states that stay as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from attention_core import registry
from attention_core.experiments.task import Load, load


@dataclass(frozen=True, kw_only=True)
class HeldTask:
    """What one variant's decoder holds.

    Attributes:
        word: a variant with a decoder, and its settings.
        heads: H.
        d: size of queries and keys.
        d_v: size of values.
    """

    word: str
    heads: int
    d: int
    d_v: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRow:
    """What one variant's decoder keeps for the next token, beside a key-value cache.

    Attributes:
        variant: its word.
        state_bytes: of all heads.
        token_bytes: what a cache keeps of one token, its keys and values.
        outgrown: the number of tokens from which on the cache holds more than the state.
    """

    variant: str
    state_bytes: int
    token_bytes: int
    outgrown: int


def tasks(words: Sequence[str], *, heads: int, d: int, d_v: int) -> tuple[HeldTask, ...]:
    """One per variant with a decoder.

    Args:
        words: variants with decoders, and their settings.
        heads: H.
        d: size of queries and keys.
        d_v: size of values.
    """
    return tuple(HeldTask(word=word, heads=heads, d=d, d_v=d_v) for word in words)


def run(task: HeldTask, *, load: Load = load) -> tuple[HeldRow]:
    """Take one step in float32 and weigh what the decoder keeps for the next."""
    attention = registry.from_word(task.word)
    decoder, params = attention.variant.decoder, attention.params
    assert decoder is not None, f"{task.word} has no decoder"
    source = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, task.heads, size, generator=source) for size in (task.d, task.d, task.d_v))
    _, state = decoder.step(decoder.init_state(q, v, params), q, k, v, params)
    held, token = _bytes(state), k.nbytes + v.nbytes
    return (HeldRow(variant=task.word, state_bytes=held, token_bytes=token, outgrown=held // token + 1),)


def _bytes(state: object) -> int:
    """Bytes of the memory that a state's tensors stand in, each counted once however many views there are."""
    tensors = [leaf for leaf in tree_leaves(state) if isinstance(leaf, Tensor)]
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())
