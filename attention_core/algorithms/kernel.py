"""Kernel attention: a feature map makes the similarity a product, so keys and values can be summed up before any query.

Source: Katharopoulos et al. 2020, arXiv 2006.16236.
"""

from torch import Tensor

from attention_core.algorithms.causal_scan import (
    CHUNK,
    State,
    causal_attention,
    causal_multiply_adds,
    divided,
    fold,
    with_ones,
)
from attention_core.algorithms.features import Features
from attention_core.algorithms.masked import nonzero
from attention_core.algorithms.triangle import triangle


def similarities(f: Features, *, causal: bool) -> Tensor:
    """``φ(q_i) · φ(k_j)`` of every pair, ``[..., n, n]``, zero where a causal form hides the key.

    Args:
        f: features of the queries and keys; made for the causal form when ``causal``.
        causal: whether query i sees keys 0..i only.
    """
    return triangle(f)[0] if causal else f.q @ f.k.mT


def kernel_attention(f: Features, v: Tensor, *, causal: bool, mode: str = "chunked", normalise: bool = True) -> Tensor:
    """The similarities, rows over their sum, times ``v`` in O(n C d_v), ``[..., n, d_v]``, in the type of ``v``.

    A row whose similarities sum to zero (all its features vanish) is a zero row.

    Args:
        f: features of the queries and keys; made for the causal form when ``causal``.
        v: ``[..., n, d_v]``.
        causal: whether query i sees keys 0..i only.
        mode: the causal algorithm, ``"chunked"`` or ``"cumsum"``.
        normalise: whether rows are divided by their sum.
    """
    values = v.to(f.q.dtype)
    if causal:
        return causal_attention(f, values, mode=mode, normalise=normalise).to(v.dtype)
    out = f.q @ (f.k.mT @ values)
    if normalise:
        out /= nonzero(f.q @ f.k.sum(-2, keepdim=True).mT)
    return out.to(v.dtype)


def kernel_step(state: State, f: Features, v: Tensor) -> tuple[Tensor, State]:
    """One token of the causal form, features ``[..., 1, C]`` and value ``[..., d_v]``: its output, the next state."""
    out, state = fold(state, f, with_ones(v.unsqueeze(-2).to(f.q.dtype)))
    return divided(out).squeeze(-2).to(v.dtype), state


def kernel_cost(
    n: int, features: int, d_v: int, *, causal: bool, mode: str = "chunked", normalise: bool = True, referenced: bool
) -> tuple[int, int]:
    """Multiply-adds and peak elements of ``kernel_attention`` for one head, or of its decoder (``"recurrent"``).

    Args:
        n: tokens.
        features: C.
        d_v: value size.
        causal: whether query i sees keys 0..i only.
        mode: the causal algorithm.
        normalise: whether rows are divided by their sum.
        referenced: whether the causal features carry references.
    """
    C, columns = features, d_v + normalise
    if not causal:
        return n * C * (d_v + columns), n * (2 * C + d_v + 2 * normalise) + C * d_v
    adds = causal_multiply_adds(n, C, d_v, mode=mode, normalise=normalise, referenced=referenced)
    features_held = n * C * (2 + referenced)
    if mode == "recurrent":
        elements = 2 * n * d_v + 4 * C * columns
    elif mode == "cumsum":
        elements = features_held + n * columns + 2 * n * C * columns
    elif referenced or not normalise:
        elements = features_held + 2 * n * d_v
    else:
        # What a chunk holds besides: its square, the one before it, and a few of its outputs.
        c = min(n, CHUNK)
        elements = features_held + n * columns + 2 * c * c + 4 * c * columns
    return adds, elements
