import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attention_core.ops.linear.features import SPREAD, Features, causal_similarities, exponential_features


def logarithms(n: int, size: float, seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    return tuple((size * torch.randn(2, n, 4, generator=source, dtype=torch.float64)).to(dtype) for _ in range(2))


def exact(a: Tensor, b: Tensor) -> Tensor:
    """Return rows of ``Σ_f e^{a_if + b_jf}`` over the visible keys, each divided by its sum; in float64 logarithms."""
    logits = (a.double()[:, :, None] + b.double()[:, None]).logsumexp(-1)
    hidden = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
    return logits.masked_fill(hidden, -torch.inf).softmax(-1)


@given(n=st.integers(1, 70), size=st.sampled_from([1.0, 10.0, 300.0]), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_exponential_features_of_any_size_give_the_exact_matrix(n: int, size: float, seed: int):
    a, b = logarithms(n, size, seed)
    similarity, _, _ = causal_similarities(exponential_features(a, b, causal=True))
    torch.testing.assert_close(similarity / similarity.sum(-1, keepdim=True), exact(a, b), rtol=1e-9, atol=1e-12)


def test_float32_is_accurate_with_logarithms_in_the_hundreds():
    a, b = logarithms(64, 300.0, dtype=torch.float32)
    f = exponential_features(a, b, causal=True)
    assert max(f.q.max(), f.k.max()) <= 1
    similarity, _, _ = causal_similarities(f)
    assert similarity.sum(-1).min() >= 1
    error = (similarity / similarity.sum(-1, keepdim=True) - exact(a, b)).abs().max()
    assert error < 1e-5  # The logarithms have a rounding error of 3e-5, of which this share is visible.


@pytest.mark.parametrize("rise", [0.5 * SPREAD, 3 * SPREAD])
def test_both_algorithms_equal_the_sum_over_features(rise: float):
    source = torch.Generator().manual_seed(1)
    n = 21
    q, k = (torch.randn(2, n, 4, generator=source, dtype=torch.float64) for _ in range(2))
    reference = torch.linspace(0, rise, n, dtype=torch.float64)[:, None] * torch.rand(4, generator=source)
    reference = reference.expand(2, n, 4)
    before = torch.full((2, 1, 4), -1.0, dtype=torch.float64)
    wanted = torch.einsum("bif,bjf,bijf->bij", q, k, (reference[:, None] - reference[:, :, None]).exp()).tril()
    found, early, late = causal_similarities(Features(q, k, reference), before)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(early, q * (before - reference).exp())
    torch.testing.assert_close(late, k * (reference - reference[:, -1:]).exp())


def test_a_single_reference_per_token_decays_all_features_equally():
    """Check one decay for all features, as in retention."""
    n, decay = 130, 0.4
    source = torch.Generator().manual_seed(2)
    q, k = (torch.rand(n, 3, generator=source, dtype=torch.float64) for _ in range(2))
    i = torch.arange(n, dtype=torch.float64)
    reference = -i[:, None] * torch.tensor(decay, dtype=torch.float64).log()
    found, _, _ = causal_similarities(Features(q, k, reference))
    torch.testing.assert_close(
        found, ((q @ k.mT) * decay ** (i[:, None] - i).clamp(min=0)).tril(), rtol=1e-10, atol=1e-12
    )


def test_similarities_without_reference_are_the_lower_triangle_of_the_product():
    q, k = torch.randn(2, 5, 3)
    assert torch.equal(causal_similarities(Features(q, k))[0], (q @ k.mT).tril())


@pytest.mark.parametrize("size", [1.0, 100.0])
def test_gradients_equal_those_of_the_exact_matrix(size: float):
    a, b = (x.requires_grad_() for x in logarithms(11, size))

    def matrix(a: Tensor, b: Tensor) -> Tensor:
        similarity, _, _ = causal_similarities(exponential_features(a, b, causal=True))
        return similarity / similarity.sum(-1, keepdim=True)

    weight = torch.randn(11, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    found = torch.autograd.grad((matrix(a, b) @ weight).sum(), (a, b))
    wanted = torch.autograd.grad((exact(a, b) @ weight).sum(), (a, b))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)
