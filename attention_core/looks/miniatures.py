"""Which heads are there? Softmax's matrix of every head, small enough to see them all at once."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core import registry
from attention_core.inputs.record import QKV
from attention_core.looks.compare import keep_tokens, shown


def miniatures(layers: Sequence[QKV], *, causal: bool, special: bool = True, size: int = 24) -> Tensor:
    """Softmax's matrix of every layer and head, max-pooled so that single peaks stay visible.

    Args:
        layers: one record per layer, of the same tokens.
        causal: whether the future is hidden.
        special: whether tokens the tokenizer added are shown; without them rows keep their total mass.
        size: rows and columns of a miniature, at most; shorter inputs keep their n.

    Returns:
        ``[L, H, s, s]`` with ``s = min(size, n)``, each scaled so that its largest weight is one.
    """
    softmax = registry.get("softmax")
    small = []
    for qkv in layers:
        weights = keep_tokens(softmax.weights(qkv.q, qkv.k, causal=causal), shown(qkv, special=special))
        pooled = F.adaptive_max_pool2d(weights, min(size, weights.shape[-1]))
        small.append(pooled / pooled.amax((-2, -1), keepdim=True))
    return torch.stack(small)
