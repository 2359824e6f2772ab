import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_core.ops.linear.scans import prefix_scan, running_max, running_sum


@given(n=st.integers(1, 70), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_running_max_equals_cummax(n: int, seed: int):
    x = torch.randn(2, n, 3, generator=torch.Generator().manual_seed(seed))
    assert torch.equal(running_max(x), x.cummax(-2).values)


@given(n=st.integers(1, 70), jump=st.sampled_from([0.0, 1.0, 300.0]), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_running_sum_decays_with_the_reference(n: int, jump: float, seed: int):
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(2, n, 3, generator=source, dtype=torch.float64)
    reference = (jump * torch.rand(2, n, 3, generator=source, dtype=torch.float64)).cumsum(-2)
    found = running_sum(x, reference)
    state = torch.zeros(2, 3, dtype=torch.float64)
    before = reference[:, 0]
    for i in range(n):
        state = state * (before - reference[:, i]).exp() + x[:, i]
        before = reference[:, i]
        torch.testing.assert_close(found[:, i], state, rtol=1e-12, atol=1e-12)


def test_running_sum_without_reference_equals_cumsum():
    x = torch.randn(5, 4)
    assert torch.equal(running_sum(x, dim=0), x.cumsum(0))


def test_running_sum_is_differentiable():
    source = torch.Generator().manual_seed(0)
    x = torch.randn(9, 2, generator=source, dtype=torch.float64, requires_grad=True)
    reference = torch.rand(9, 2, generator=source, dtype=torch.float64).cumsum(0)
    assert torch.autograd.gradcheck(lambda x: running_sum(x, reference), x)


@given(st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=40))
@settings(max_examples=30, deadline=None)
def test_prefix_scan_keeps_the_order(words: list[str]):
    # The product of 2 x 2 matrices depends on their order.
    letters = {"a": torch.tensor([[1.0, 1.0], [0.0, 1.0]]), "b": torch.tensor([[1.0, 0.0], [1.0, 1.0]])}
    matrices = torch.stack(
        [torch.linalg.multi_dot([letters[c] for c in w]) if len(w) > 1 else letters[w] for w in words]
    )
    (found,) = prefix_scan(lambda x, y: ((x[0] @ y[0]) % 97,), (matrices,))
    product = torch.eye(2)
    for i, matrix in enumerate(matrices):
        product = (product @ matrix) % 97
        assert torch.equal(found[i], product)
