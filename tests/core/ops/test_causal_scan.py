import pytest
import torch
from torch import Tensor

from attention_core.benchmarking.counting import count
from attention_core.ops.linear.causal_scan import (
    CHUNK,
    apply_normaliser,
    causal_attention,
    empty_state,
    scan_step,
    with_ones,
)
from attention_core.ops.linear.features import Features, exponential_features


def positive(n: int, lead: tuple[int, ...] = (2,), dtype: torch.dtype = torch.float64) -> list[Tensor]:
    source = torch.Generator().manual_seed(n)
    return [torch.rand(*lead, n, size, generator=source, dtype=dtype).requires_grad_() for size in (4, 4, 3)]


def by_definition(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    matrix = (q @ k.mT).tril()
    return matrix / matrix.sum(-1, keepdim=True) @ v


@pytest.mark.parametrize("n", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
@pytest.mark.parametrize("mode", ["chunked", "cumsum"])
def test_outputs_and_gradients_equal_the_definition(n: int, mode: str):
    q, k, v = positive(n)
    out, wanted = causal_attention(Features(q, k), v, mode=mode, normalise=True), by_definition(q, k, v)
    torch.testing.assert_close(out, wanted)
    slope = torch.randn(out.shape, generator=torch.Generator().manual_seed(0), dtype=out.dtype)
    found = torch.autograd.grad(out, (q, k, v), slope)
    for one, other in zip(found, torch.autograd.grad(wanted, (q, k, v), slope), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


def test_custom_backward_passes_gradcheck(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("attention_core.ops.linear.causal_scan.CHUNK", 4)
    assert torch.autograd.gradcheck(
        lambda q, k, v: causal_attention(Features(q, k), v, mode="chunked", normalise=True), positive(9, ())
    )


def test_gradient_is_finite_where_a_row_is_zero():
    q, k, v = positive(5)
    with torch.no_grad():
        q[:, 2] = 0
    out = causal_attention(Features(q, k), v, mode="chunked", normalise=True)
    assert not out[:, 2].any()
    assert all(g.isfinite().all() for g in torch.autograd.grad(out.sum(), (q, k, v)))


def training_peak(n: int, *, referenced: bool) -> int:
    q, k, v = positive(n, (1,), torch.float32)

    def call() -> None:
        f = exponential_features(q, k, causal=True) if referenced else Features(q, k)
        out = causal_attention(f, v, mode="chunked", normalise=True)
        torch.autograd.grad(out, (q, k, v), out.detach())

    return count(call).peak_elements


def test_training_memory_is_outputs_gradients_and_one_state():
    """Check that training stores the output, its normaliser and three gradients, for any number of states."""
    per_token = (training_peak(2048, referenced=False) - training_peak(1024, referenced=False)) / 1024
    assert per_token <= (3 + 1) + (4 + 4 + 3) + 0.01
    all_states = 4 * (3 + 1)
    assert per_token < all_states


def test_training_memory_with_references_is_one_state_per_chunk():
    per_token = (training_peak(2048, referenced=True) - training_peak(1024, referenced=True)) / 1024
    features, output, gradients, state = 4 + 4 + 4, 3, 4 + 4 + 3, 4 * (3 + 1) + 4
    assert per_token <= features + output + gradients + state / CHUNK


@pytest.mark.parametrize("referenced", [False, True])
def test_scan_step_accepts_chunks_of_any_size(referenced: bool):
    q, k, v = (x.detach() for x in positive(50))
    f = exponential_features(9 * q, 9 * k, causal=True) if referenced else Features(q, k)
    whole = causal_attention(f, v, mode="chunked", normalise=True)
    for sizes in ([50], [1] * 50, [7, 13, 30]):
        state, outs = empty_state(4, v[:, 0], normalise=True, references=4 * referenced), []
        for start, size in zip(torch.tensor([0, *sizes[:-1]]).cumsum(0).tolist(), sizes, strict=True):
            piece = slice(start, start + size)
            features = Features(*(None if x is None else x[:, piece] for x in f))
            out, state = scan_step(state, features, with_ones(v[:, piece]))
            outs.append(apply_normaliser(out))
        torch.testing.assert_close(torch.cat(outs, 1), whole, rtol=1e-10, atol=1e-12)


def test_unnormalised_attention_equals_the_masked_product():
    q, k, v = positive(70)
    for mode in ("chunked", "cumsum"):
        out = causal_attention(Features(q, k), v, mode=mode, normalise=False)
        torch.testing.assert_close(out, (q @ k.mT).tril() @ v)
