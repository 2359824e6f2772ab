"""The sizes of steps: larger on a GPU, tested on the CPU, and with all heads of a short text on a CPU."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import attention_core as ac
from attention_core.attention import Attention
from attention_core.benchmarking.counting import count
from attention_core.ops import gpu_steps


class OperationCount(TorchDispatchMode):
    """Counts torch's operations."""

    def __init__(self) -> None:
        """Start at zero."""
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Count the operation and run it."""
        self.count += 1
        return func(*args, **(kwargs or {}))


def gradients(attention: Attention, x: Tensor, *, causal: bool) -> tuple[Tensor, ...]:
    """Return the output and the gradients of the sum of its squares."""
    leaves = [y.clone().requires_grad_() for y in x]
    out = attention.attend(*leaves, causal=causal)
    grads = torch.autograd.grad(out.square().sum(), leaves, allow_unused=True, materialize_grads=True)
    return out.detach(), *grads


@pytest.mark.parametrize("numbers", [2**9, 2**13, 2**24])
@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
def test_results_do_not_depend_on_the_size_of_steps(monkeypatch, variant, numbers):
    x = torch.randn(3, 1, 2, 150, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    attention = Attention(variant, variant.params())
    for causal in (False, True)[: 1 if variant.causal_reason else 2]:
        expected = attention.attend(*x, causal=causal), *gradients(attention, x, causal=causal)
        with monkeypatch.context() as patch:
            patch.setattr(gpu_steps, "is_gpu", lambda device: True)
            patch.setattr(gpu_steps, "GPU_NUMBERS", numbers)
            result = attention.attend(*x, causal=causal), *gradients(attention, x, causal=causal)
        for actual, want in zip(result, expected, strict=True):
            torch.testing.assert_close(actual, want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "word", ["alibi", "entmax", "local", "linear", "performer", "retention", "scalar_decay", "deltanet", "efficient"]
)
@pytest.mark.parametrize("causal", [False, True])
def test_a_gpu_runs_fewer_operations(monkeypatch, word, causal):
    q = torch.randn(1, 4, 2048, 8, generator=torch.Generator().manual_seed(0))
    attention = ac.get(word)
    with OperationCount() as on_cpu:
        attention.attend(q, q, q, causal=causal)
    monkeypatch.setattr(gpu_steps, "is_gpu", lambda device: True)
    with OperationCount() as on_gpu:
        attention.attend(q, q, q, causal=causal)
    assert on_gpu.count < on_cpu.count / 2


@pytest.mark.parametrize("word", ["local", "atrous", "sink", "longformer", "sparse", "additive", "performer"])
def test_a_cpu_computes_all_heads_of_a_short_text_together(word):
    operations = []
    for heads in (1, 8):
        q = torch.randn(heads, 64, 64, generator=torch.Generator().manual_seed(0))
        with OperationCount() as counted:
            ac.get(word).attend(q, q, q)
        operations.append(counted.count)
    assert operations[0] == operations[1] > 0


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
def test_a_short_text_needs_no_more_memory_on_a_gpu_than_its_matrices(monkeypatch, variant):
    n, d = 64, 8
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(0))
    attention = Attention(variant, variant.params())
    monkeypatch.setattr(gpu_steps, "is_gpu", lambda device: True)
    assert count(lambda: attention.attend(x, x, x)).peak_elements < 16 * n * n * d


@pytest.mark.parametrize(("numbers", "per_pair"), [(7, 0), (7, 3), (1, 1), (0, 0), (2**30, 1)])
def test_a_step_has_at_most_the_numbers_of_a_gpu_step(numbers, per_pair):
    size = gpu_steps.step_size(1, torch.device("cuda"), numbers=numbers, per_pair=per_pair)
    limit = gpu_steps.GPU_NUMBERS
    assert size == 1 or (size * numbers <= limit and size**2 * per_pair <= limit)
    assert (size + 1) * max(1, numbers) > limit or (size + 1) ** 2 * per_pair > limit


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_steps_on_a_cpu_keep_their_size(device):
    assert gpu_steps.step_size(5, torch.device(device), numbers=1) == 5
