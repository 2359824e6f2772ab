"""Small versions of softmax's attention matrix for every head of a model, so that one screen shows all heads."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from attention_core import registry
from attention_core.analysis.matrix.compare import select_tokens, shown_tokens
from attention_core.inputs.record import QKV


def softmax_matrices(layers: Sequence[QKV], *, causal: bool, special: bool) -> Iterator[Tensor]:
    """Yield softmax's matrices of each layer, ``[H, n', n']`` for the n' tokens shown.

    Args:
        layers: one record per layer, of the same tokens.
        causal: whether future keys are hidden.
        special: whether tokens that the tokenizer added are shown; if not, rows are rescaled to their total mass.
    """
    softmax = registry.get("softmax")
    for qkv in layers:
        yield select_tokens(softmax.weights(qkv.q, qkv.k, causal=causal), shown_tokens(qkv, special=special))


def miniatures(layers: Sequence[QKV], *, causal: bool, special: bool = True, size: int = 24) -> Tensor:
    """Return softmax's matrix of every layer and head, max-pooled so that single peaks stay visible.

    Args:
        layers: one record per layer, of the same tokens.
        causal: whether future keys are hidden.
        special: whether tokens that the tokenizer added are shown; if not, rows are rescaled to their total mass.
        size: maximum rows and columns of a miniature; shorter inputs keep their n.

    Returns:
        ``[L, H, s, s]`` with ``s = min(size, n)``, each scaled so that its largest weight is one. If the numbers of
        queries and keys differ, n is the larger one, and rows or columns are repeated.
    """
    matrices = softmax_matrices(layers, causal=causal, special=special)
    pooled = torch.stack([_max_pool_rows(_max_pool_rows(matrix, size).mT.contiguous(), size).mT for matrix in matrices])
    rows, cols = pooled.shape[-2:]
    if rows != cols:
        positions = torch.arange(max(rows, cols))
        pooled = pooled[..., positions * rows // len(positions), :][..., positions * cols // len(positions)]
    return pooled / pooled.amax((-2, -1), keepdim=True)


def _max_pool_rows(weights: Tensor, size: int) -> Tensor:
    """Return the maximum over the rows that each row of the smaller picture covers, ``[..., n, m]`` to ``[..., s, m]``.

    Covered rows may overlap by one. Applied along both axes, this is torch's adaptive max pooling in a quarter of the
    time, because the positions of the maxima are not computed.
    """
    n = weights.shape[-2]
    if n <= size:
        return weights
    first, last = (torch.arange(size) * n // size, (torch.arange(1, size + 1) * n - 1) // size)
    result = weights.index_select(-2, first)
    for step in range(1, int((last - first).max()) + 1):
        torch.maximum(result, weights.index_select(-2, torch.minimum(first + step, last)), out=result)
    return result
