"""The peer ``flex_attention`` of torch, compiled. A peer is an implementation that the benchmark compares with ours.

A function of two positions defines which pairs are allowed; blocks without an allowed pair are skipped.
"""

from collections.abc import Callable
from functools import cache
from types import FunctionType

import torch
from torch import Tensor

from benchmarks.peers.adaptor import Built, Settings


@cache
def _compiled(*constants: int | None) -> Callable[..., Tensor]:
    """Return flex_attention for one pattern. With one code object per pattern, torch compiles its constants in."""
    from torch.nn.attention.flex_attention import BlockMask, flex_attention

    def attention(q: Tensor, k: Tensor, v: Tensor, blocks: BlockMask) -> Tensor:
        return flex_attention(q, k, v, block_mask=blocks)

    name = "_".join(map(str, ("flex", *constants)))
    code = attention.__code__.replace(co_name=name)
    return torch.compile(FunctionType(code, attention.__globals__, name, closure=attention.__closure__))


def flex(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build attention in a window. The setting ``stride`` adds strided keys, and ``sinks`` adds the first keys.

    The time includes neither the search for empty blocks nor the compilation.
    """
    from torch.nn.attention.flex_attention import create_block_mask

    w, stride, sinks = p["window"], p.get("stride"), p.get("sinks")

    def allowed(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        if stride is not None:
            return ((i - j).abs() <= w) | ((i - j) % stride == 0)
        if sinks is not None:
            return ((i - j).abs() < w) | (j < sinks)
        return (i - j).abs() <= w

    attention, n = _compiled(w, stride, sinks), q.shape[-2]
    blocks = create_block_mask(allowed, None, None, n, n, device="cpu")
    return Built(lambda: attention(q, k, v, blocks))
