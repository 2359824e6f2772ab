"""Softmax attention over some of the keys, and the exact union of several such parts by their log-sum-exp."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from attention_core.algorithms.exact import one_head_size

Part = tuple[Tensor, Tensor]


def partial_attention(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, causal: bool = False) -> Part:
    """``softmax(q kᵀ / √d) v`` with the logarithm of each row's normaliser, both with gradient.

    A row that sees no key gets a log-sum-exp so low that ``merged`` gives it no weight.

    Args:
        q: ``[X, Y, n, d]``.
        k: ``[X, Y, n', d]``; q, k and v may be views whose rows overlap, and are not copied.
        v: ``[X, Y, n', d_v]``.
        mask: ``bool [n, n']`` or with leading axes that broadcast, true = may look.
        causal: whether query i sees keys 0..i only; n must equal n'.

    Returns:
        The output ``[X, Y, n, d_v]`` and the log-sum-exp ``[X, Y, n, 1]``, the latter at least float32.
    """
    bias = None
    if mask is not None:
        # Finite, so that a row without keys stays free of NaN.
        bias = q.new_zeros(mask.shape).masked_fill_(~mask, torch.finfo(q.dtype).min)
        bias = bias.expand(*q.shape[:2], *bias.shape[-2:])
    scale, d_v = q.shape[-1] ** -0.5, v.shape[-1]
    out, lse = _Partial.apply(*one_head_size(q, k, v), bias, causal, scale)
    return out[..., :d_v], lse.unsqueeze(-1)


def placed(groups: Iterable[Part], place: Callable[[list[Tensor]], Tensor]) -> Part:
    """One part of several groups of queries: outputs and log-sum-exps, each put into the tokens' order by ``place``."""
    outs, lses = zip(*groups, strict=True)
    return place(list(outs)), place(list(lses))


def merged(parts: Sequence[Part]) -> Tensor:
    """The attention over the union of the parts' keys, each pair in one part only, ``[..., n, d_v]``."""
    total = torch.logsumexp(torch.cat([lse for _, lse in parts], -1), -1, keepdim=True)
    (first, lse), *rest = parts
    out = first * (lse - total).exp()
    for o, lse in rest:
        out.addcmul_(o.to(out.dtype), (lse - total).exp())
    return out.to(first.dtype)


class _Partial(torch.autograd.Function):
    """Attention and its log-sum-exp, by the fused kernel on a CPU and by the plain formulas on other devices.

    The kernel is the one behind ``scaled_dot_product_attention``, for whose log-sum-exp torch has no public name.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's own context
        q: Tensor,
        k: Tensor,
        v: Tensor,
        bias: Tensor | None,
        causal: bool,
        scale: float,
    ) -> tuple[Tensor, Tensor]:
        forward = fused if q.device.type == "cpu" else plain
        out, lse = forward(q, k, v, bias, causal, scale)
        ctx.save_for_backward(q, k, v, bias, out, lse)
        ctx.causal, ctx.scale = causal, scale
        return out, lse

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, grad_lse: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        backward = fused_backward if grad.device.type == "cpu" else plain_backward
        q, k, v, bias, out, lse = ctx.saved_tensors
        return *backward(grad, grad_lse, q, k, v, bias, out, lse, ctx.causal, ctx.scale), None, None, None


def fused(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp by torch's CPU kernel."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out, lse = kernel(q, k, v, 0.0, causal, attn_mask=bias, scale=scale)
    return out, lse


def fused_backward(
    grad: Tensor,
    grad_lse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    out: Tensor,
    lse: Tensor,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients by torch's CPU kernel, which knows no gradient of the log-sum-exp.

    It subtracts ``Σ grad · out`` from every row's gradient; one more column, with 1 in ``grad``, ``-grad_lse`` in
    ``out`` and 0 elsewhere, makes it subtract ``grad_lse`` too little, which is that gradient.
    """
    d = v.shape[-1]
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    q, k, v = (F.pad(x, (0, 1)) for x in (q, k, v))
    grad = F.pad(grad, (0, 1), value=1.0)
    out = torch.cat([out, -grad_lse.unsqueeze(-1).to(out.dtype)], -1)
    grads = kernel(grad, q, k, v, out, lse, 0.0, causal, attn_mask=bias, scale=scale)
    return tuple(g[..., :d] for g in grads)


def plain(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """The same as ``fused`` by the formulas, on any device; holds the scores of the part."""
    logits = _logits(q, k, bias, causal, scale)
    lse = logits.logsumexp(-1)
    return (logits - lse.unsqueeze(-1)).exp().to(v.dtype) @ v, lse


def plain_backward(
    grad: Tensor,
    grad_lse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    out: Tensor,
    lse: Tensor,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The same as ``fused_backward`` by the formulas."""
    p = (_logits(q, k, bias, causal, scale) - lse.unsqueeze(-1)).exp()
    shift = grad_lse - (grad * out).sum(-1)
    grad_logits = (p * (grad @ v.mT + shift.unsqueeze(-1)) * scale).to(q.dtype)
    return grad_logits @ k, grad_logits.mT @ q, p.to(v.dtype).mT @ grad


def _logits(q: Tensor, k: Tensor, bias: Tensor | None, causal: bool, scale: float) -> Tensor:
    logits = (q @ k.mT * scale).to(torch.promote_types(q.dtype, torch.float32))
    if bias is not None:
        logits = logits + bias
    if causal:
        logits = logits.masked_fill(logits.new_ones(logits.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return logits
