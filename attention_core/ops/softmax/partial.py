"""Softmax attention to some of the keys, and the exact merge of several such results into attention to all their keys.

A result (``Part``) is an output and the log-sum-exp of its scores. The latter gives the weight of the output in the
merge.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.once_differentiable import once_differentiable
from attention_core.ops.softmax.exact import pad_for_kernels

Part = tuple[Tensor, Tensor]


class KernelInputs(NamedTuple):
    """The inputs of the attention kernel; X and Y are any leading axes, such as batch and heads.

    Attributes:
        q: ``[X, Y, n, d]``.
        k: ``[X, Y, n', d]``.
        v: ``[X, Y, n', d]``.
        bias: the numbers added to the scores, ``[X, Y, n, n']``; None for zeros.
        causal: whether query i attends to keys 0..i only.
        scale: the factor of the dot products.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    bias: Tensor | None
    causal: bool
    scale: float


def partial_attention(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, causal: bool = False) -> Part:
    """Return ``softmax(q kᵀ / √d) v`` and the logarithm of each row's normaliser, both with gradients.

    A row without keys gets a log-sum-exp so low that ``merge_partial_softmax`` gives it no weight.

    Args:
        q: ``[X, Y, n, d]``, with any two leading axes.
        k: ``[X, Y, n', d]``; q, k and v may be views whose rows overlap, and are not copied.
        v: ``[X, Y, n', d_v]``.
        mask: ``bool [n, n']`` or with leading axes that broadcast, true for allowed pairs.
        causal: whether query i attends to keys 0..i only; n must equal n'.

    Returns:
        The output ``[X, Y, n, d_v]`` and the log-sum-exp ``[X, Y, n, 1]``, the latter at least float32.
    """
    bias = None
    if mask is not None:
        bias = mask_bias(mask, q).expand(*q.shape[:2], *mask.shape[-2:])
    scale, d_v = q.shape[-1] ** -0.5, v.shape[-1]
    out, lse = _Partial.apply(*pad_for_kernels(q, k, v), bias, causal, scale)
    return out[..., :d_v], lse.unsqueeze(-1)


def mask_bias(mask: Tensor, q: Tensor) -> Tensor:
    """Return the bias for scores of the type of ``q``: the lowest finite number where ``mask`` forbids a pair, else 0.

    With -inf, a row without keys would be NaN.
    """
    return q.new_zeros(mask.shape).masked_fill_(~mask, torch.finfo(q.dtype).min)


def join_parts(parts: Iterable[Part], join: Callable[[list[Tensor]], Tensor]) -> Part:
    """Join the parts of groups of queries into one part; ``join`` puts tensors into the order of the tokens."""
    outputs, lse_parts = zip(*parts, strict=True)
    return join(list(outputs)), join(list(lse_parts))


def merge_partial_softmax(parts: Sequence[Part]) -> Tensor:
    """Return the attention over the union of the keys of all parts, which must share no pair, ``[..., n, d_v]``."""
    total = torch.logsumexp(torch.cat([lse for _, lse in parts], -1), -1, keepdim=True)
    (first_out, lse), *rest = parts
    out = first_out * (lse - total).exp()
    for part_out, lse in rest:
        out.addcmul_(part_out.to(out.dtype), (lse - total).exp())
    return out.to(first_out.dtype)


class _Partial(torch.autograd.Function):
    """Attention and its log-sum-exp, by the fused kernel if ``kernel_supports`` the inputs, otherwise by the formulas.

    ``scaled_dot_product_attention`` calls the same kernel, but torch has no public function for its log-sum-exp.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401 - torch's context object
        x = KernelInputs(*inputs)
        out, lse = partial_forward(x)
        ctx.save_for_backward(x.q, x.k, x.v, x.bias, out, lse)
        ctx.causal, ctx.scale = x.causal, x.scale
        return out, lse

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, grad_lse: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        q, k, v, bias, out, lse = ctx.saved_tensors
        x = KernelInputs(q, k, v, bias, ctx.causal, ctx.scale)
        backward = fused_backward if kernel_supports(x) else plain_backward
        return *backward(x, out, lse, grad, grad_lse), None, None, None


KERNEL_VERSIONS = ("2.13",)
"""Versions of torch whose private kernel was read and compared with the formulas; other versions may differ."""
KERNEL_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def kernel_supports(x: KernelInputs) -> bool:
    """Return whether the inputs meet all assumptions of torch's CPU kernel, which itself checks nothing.

    With other inputs, the kernel reads beyond their memory. It assumes plain CPU tensors of one floating-point type
    and one head size, a last axis with stride 1, at least one token each, and a bias of the shape of the scores.
    The strides of the other axes and the storage offset are free.
    """
    q, k, v, bias, *_ = x
    tensors = (q, k, v) if bias is None else (q, k, v, bias)
    lead, (n, d), keys = q.shape[:-2], q.shape[-2:], k.shape[-2]
    return (
        torch.__version__.startswith(tuple(f"{version}." for version in KERNEL_VERSIONS))
        and all(type(x) is Tensor and x.device.type == "cpu" and x.layout == torch.strided for x in tensors)
        and q.dtype in KERNEL_DTYPES
        and all(x.dtype == q.dtype and x.stride(-1) == 1 for x in tensors)
        and len(lead) == 2
        and min(n, keys, d) > 0
        and k.shape == v.shape == (*lead, keys, d)
        and (bias is None or bias.shape == (*lead, n, keys))
    )


def partial_forward(x: KernelInputs) -> tuple[Tensor, Tensor]:
    """Return output ``[X, Y, n, d]`` and log-sum-exp ``[X, Y, n]``, by the kernel if it supports the inputs."""
    return (fused_forward if kernel_supports(x) else plain_forward)(x)


def part_backward(x: KernelInputs, out: Tensor, lse: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients for q, k and v that a part contributes.

    ``out`` and ``lse`` are the output and log-sum-exp of the union of all parts, for this part's queries.
    """
    if kernel_supports(x):
        return _kernel_backward(x, out, lse, grad)
    return plain_backward(x, out, lse, grad, lse.new_zeros(()))


def fused_forward(x: KernelInputs) -> tuple[Tensor, Tensor]:
    """Return output and log-sum-exp from torch's CPU kernel."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out, lse = kernel(x.q, x.k, x.v, 0.0, x.causal, attn_mask=x.bias, scale=x.scale)
    return out, lse


def fused_backward(
    x: KernelInputs, out: Tensor, lse: Tensor, grad: Tensor, grad_lse: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients for q, k and v, although torch's CPU kernel supports no gradient of the log-sum-exp.

    The kernel subtracts ``Σ grad · out`` from the gradient of every row. One more column, with 1 in ``grad``,
    ``-grad_lse`` in ``out`` and 0 elsewhere, adds ``grad_lse``, which is the missing gradient.
    """
    d = x.v.shape[-1]
    q, k, v = (F.pad(y, (0, 1)) for y in (x.q, x.k, x.v))
    out = torch.cat([out, -grad_lse.unsqueeze(-1).to(out.dtype)], -1)
    to_q, to_k, to_v = _kernel_backward(x._replace(q=q, k=k, v=v), out, lse, F.pad(grad, (0, 1), value=1.0))
    return to_q[..., :d], to_k[..., :d], to_v[..., :d]


def _kernel_backward(x: KernelInputs, out: Tensor, lse: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    to_q, to_k, to_v = kernel(grad, x.q, x.k, x.v, out, lse, 0.0, x.causal, attn_mask=x.bias, scale=x.scale)
    return to_q, to_k, to_v


def plain_forward(x: KernelInputs) -> tuple[Tensor, Tensor]:
    """Return the results of ``fused_forward`` by the formulas, on any device; all scores are in memory."""
    logits = _logits(x)
    lse = logits.logsumexp(-1)
    return (logits - lse.unsqueeze(-1)).exp().to(x.v.dtype) @ x.v, lse


def plain_backward(
    x: KernelInputs, out: Tensor, lse: Tensor, grad: Tensor, grad_lse: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the results of ``fused_backward`` by the formulas."""
    p = (_logits(x) - lse.unsqueeze(-1)).exp()
    shift = grad_lse - (grad * out).sum(-1)
    grad_logits = (p * (grad @ x.v.mT + shift.unsqueeze(-1)) * x.scale).to(x.q.dtype)
    return grad_logits @ x.k, grad_logits.mT @ x.q, p.to(x.v.dtype).mT @ grad


def _logits(x: KernelInputs) -> Tensor:
    logits = (x.q @ x.k.mT * x.scale).to(torch.promote_types(x.q.dtype, torch.float32))
    if x.bias is not None:
        logits = logits + x.bias
    if x.causal:
        logits = logits.masked_fill(logits.new_ones(logits.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return logits
