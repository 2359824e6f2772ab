import pytest
import torch
from torch import Tensor

from attention_core.ops.softmax.partial import (
    KERNEL_DTYPES,
    KernelInputs,
    fused_backward,
    fused_forward,
    kernel_supports,
    merge_partial_softmax,
    partial_attention,
    plain_backward,
    plain_forward,
)


def inputs(n: int = 13, m: int = 17, d: int = 4, d_v: int = 4, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    source = torch.Generator().manual_seed(0)
    shapes = ((2, 3, n, d), (2, 3, m, d), (2, 3, m, d_v))
    return [torch.randn(s, generator=source, dtype=torch.float64).to(dtype).requires_grad_() for s in shapes]


def kernel_accepts(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> bool:
    return kernel_supports(KernelInputs(q, k, v, bias, False, 1.0))


def by_definition(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    logits = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    return logits.softmax(-1) @ v, logits.logsumexp(-1, keepdim=True)


@pytest.mark.parametrize("d_v", [4, 3, 6])
def test_output_logsumexp_and_gradients_equal_the_definition(d_v: int):
    q, k, v = inputs(d_v=d_v)
    mask = torch.rand(13, 17, generator=torch.Generator().manual_seed(1)) < 0.6
    mask[:, 0] = True
    found, wanted = partial_attention(q, k, v, mask=mask), by_definition(q, k, v, mask)
    slopes = [torch.randn(x.shape, generator=torch.Generator().manual_seed(2), dtype=x.dtype) for x in wanted]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)
    grads = torch.autograd.grad(found, (q, k, v), slopes)
    for one, other in zip(grads, torch.autograd.grad(wanted, (q, k, v), slopes), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


def test_causal_attention_equals_the_definition():
    q, k, v = inputs(m=13)
    mask = torch.ones(13, 13, dtype=torch.bool).tril()
    for one, other in zip(partial_attention(q, k, v, causal=True), by_definition(q, k, v, mask), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_any_partition_of_the_keys_merges_to_full_attention(parts: int):
    q, k, v = inputs()
    owner = torch.randint(parts, (13, 17), generator=torch.Generator().manual_seed(3))
    out = merge_partial_softmax([partial_attention(q, k, v, mask=owner == part) for part in range(parts)])
    wanted, _ = by_definition(q, k, v, torch.ones(13, 17, dtype=torch.bool))
    torch.testing.assert_close(out, wanted)
    slope = out.detach().sin()
    found = torch.autograd.grad(out, (q, k, v), slope)
    for one, other in zip(found, torch.autograd.grad(wanted, (q, k, v), slope), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_row_without_keys_has_no_weight(dtype: torch.dtype):
    q, k, v = inputs(dtype=dtype)
    nothing = torch.zeros(13, 17, dtype=torch.bool)
    everything = ~nothing
    nothing[3:] = True
    everything[3:] = False
    out = merge_partial_softmax([partial_attention(q, k, v, mask=nothing), partial_attention(q, k, v, mask=everything)])
    wanted, _ = by_definition(*(x.double() for x in (q, k, v)), torch.ones(13, 17, dtype=torch.bool))
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), wanted, rtol=0, atol=100 * torch.finfo(dtype).eps)
    assert all(g.isfinite().all() for g in torch.autograd.grad(out.sum(), (q, k, v)))


@pytest.mark.parametrize("causal", [False, True])
def test_plain_formulas_equal_the_fused_kernel(causal: bool):
    """Check the formulas that run on devices without the CPU kernel."""
    q, k, v = (x.detach() for x in inputs(m=13))
    bias = torch.randn(13, 13, generator=torch.Generator().manual_seed(4), dtype=q.dtype).expand(2, 3, 13, 13)
    x = KernelInputs(q, k, v, bias if not causal else None, causal, 0.3)
    here, there = (run(x) for run in (fused_forward, plain_forward))
    for one, other in zip(here, there, strict=True):
        torch.testing.assert_close(one, other)
    out, lse = here
    rest = (x, out, lse, out.sin(), lse.cos())
    for one, other in zip(fused_backward(*rest), plain_backward(*rest), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", KERNEL_DTYPES)
def test_the_kernel_runs_if_all_assumptions_hold(dtype: torch.dtype):
    """Check the installed version of torch as well; another version must first be read and compared."""
    q, k, v = (x.detach() for x in inputs(dtype=dtype))
    assert kernel_accepts(q, k, v)
    assert kernel_accepts(q, k, v, q.new_zeros(13, 17).expand(2, 3, 13, 17))
    assert kernel_accepts(q[:, :, 1:, 1:], k[:, :, ::2, :3], v[:, :, ::2, 1:]), "offsets and strides of other axes"


def as_other_subclass(q: Tensor) -> Tensor:
    return q.as_subclass(type("Other", (Tensor,), {}))


@pytest.mark.parametrize("at", [0, 1, 2], ids="qkv")
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.mT.contiguous().mT,
        lambda x: x[..., :1].expand_as(x),
        lambda x: x.repeat_interleave(2, -1)[..., ::2],
        lambda x: x.half(),
        lambda x: x.to("meta"),
        lambda x: x.to_sparse(),
        lambda x: x[..., :3],
        lambda x: x[0],
        lambda x: x[:1],
        lambda x: x[:, :, :0],
        lambda x: x.long(),
        as_other_subclass,
    ],
    ids=[
        "last axis strided",
        "expanded",
        "gaps",
        "type",
        "device",
        "sparse",
        "size",
        "axes",
        "lead",
        "empty",
        "whole",
        "subclass",
    ],
)
def test_the_kernel_does_not_run_if_an_assumption_fails(change, at: int):
    x = [y.detach() for y in inputs(m=13)]
    assert kernel_accepts(*x)
    x[at] = change(x[at])
    assert not kernel_accepts(*x)


@pytest.mark.parametrize("bias", [torch.zeros(13, 17), torch.zeros(2, 3, 13, 1), torch.zeros(2, 3, 17, 13).mT.float()])
def test_the_kernel_does_not_run_with_a_bias_of_another_shape_type_or_order(bias: Tensor):
    q, k, v = (x.detach() for x in inputs())
    assert not kernel_accepts(q, k, v, bias)


def test_other_torch_versions_use_the_formulas(monkeypatch: pytest.MonkeyPatch):
    q, k, v = inputs(m=13)
    wanted = partial_attention(q, k, v, causal=True)
    monkeypatch.setattr(torch, "__version__", "2.130.0")
    monkeypatch.setattr("attention_core.ops.softmax.partial.fused_forward", None)
    monkeypatch.setattr("attention_core.ops.softmax.partial.fused_backward", None)
    found = partial_attention(q, k, v, causal=True)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)
    slopes = [x.detach().cos() for x in wanted]
    for one, other in zip(
        torch.autograd.grad(found, (q, k, v), slopes), torch.autograd.grad(wanted, (q, k, v), slopes), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("at", [(0,), (1,), (2,), (0, 1, 2)])
def test_inputs_with_a_strided_last_axis_equal_the_definition(at: tuple[int, ...], causal: bool):
    q, k, v = (x.detach() for x in inputs(m=13, n=13))
    mask = torch.ones(13, 13, dtype=torch.bool)
    strided = [x.mT.contiguous().mT if i in at else x for i, x in enumerate((q, k, v))]
    found = partial_attention(*strided, causal=causal)
    for one, other in zip(found, by_definition(q, k, v, mask.tril() if causal else mask), strict=True):
        torch.testing.assert_close(one, other)
