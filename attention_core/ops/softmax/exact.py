"""Exact softmax attention by torch's fused kernel, whose memory grows like n instead of n²."""

import torch.nn.functional as F
from torch import Tensor


def exact_attention(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, causal: bool = False, scale: float | None = None
) -> Tensor:
    """Return ``softmax(scale q kᵀ) v``, ``[..., n, d_v]``, by torch's fused kernel, without an n x n matrix.

    Every row of the mask must allow at least one key.

    Args:
        q: ``[..., n, d]``. Views with overlapping rows are not copied if q, k and v have two leading axes, d = d_v, and
            rows without gaps.
        k: ``[..., n', d]``.
        v: ``[..., n', d_v]``.
        mask: ``bool [..., n, n']``, true for allowed pairs.
        causal: whether query i attends to keys 0..i only; n must equal n'.
        scale: logit scale, ``1/√d`` when None.
    """
    d, d_v = q.shape[-1], v.shape[-1]
    scale = d**-0.5 if scale is None else scale
    q, k, v = pad_for_kernels(q, k, v)
    lead = q.shape[:-2]
    if mask is not None and mask.ndim > 2:
        mask = mask.expand(*lead, *mask.shape[-2:])
    if len(lead) != 2:  # the fused kernels need exactly two leading axes, [B, H, n, d]
        q, k, v = (x.reshape(-1, 1, *x.shape[-2:]) for x in (q, k, v))
        mask = mask if mask is None or mask.ndim == 2 else mask.reshape(-1, 1, *mask.shape[-2:])
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale)
    return out.reshape(*lead, *out.shape[-2:])[..., :d_v]


def pad_for_kernels(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors padded by zeros to the largest last axis, with a stride of 1; copy only if necessary.

    The fused kernels need one size and a packed last axis; otherwise torch falls back to the n x n form. The zeros
    change no result.
    """
    widest = max(x.shape[-1] for x in tensors)
    return tuple(
        F.pad(x, (0, widest - x.shape[-1])) if x.shape[-1] < widest else x if x.stride(-1) == 1 else x.contiguous()
        for x in tensors
    )
