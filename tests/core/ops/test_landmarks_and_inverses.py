"""Tests of landmarks and pseudo-inverses."""

from itertools import pairwise

import torch

from attention_core.ops.low_rank.inverse import exact_inverse, inverse_steps
from attention_core.ops.low_rank.landmarks import landmarks


def attention(m: int, lead: tuple[int, ...] = (3,)) -> torch.Tensor:
    return torch.randn(*lead, m, m, generator=torch.Generator().manual_seed(m), dtype=torch.float64).softmax(-1)


def test_clusters_do_not_depend_on_token_positions():
    source = torch.Generator().manual_seed(0)
    centres = 20 * torch.randn(4, 3, generator=source)
    owner = torch.cat([torch.arange(4), torch.randint(4, (60,), generator=source)]).repeat_interleave(2)
    x = centres[owner] + 0.01 * torch.randn(len(owner), 3, generator=source)
    found = landmarks(x, 8, "kmeans")
    assert torch.cdist(x, found).amin(-1).max() < 0.5 * torch.cdist(x, landmarks(x, 8, "segment_means")).amin(-1).max()
    assert torch.equal(found, landmarks(x, 8, "kmeans"))


def test_clusters_do_not_depend_on_other_heads():
    x = torch.randn(2, 3, 40, 5, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(landmarks(x, 6, "kmeans")[1, 2], landmarks(x[1, 2], 6, "kmeans"))


def test_equal_tokens_do_not_move_the_centres():
    x = torch.ones(10, 3, requires_grad=True)
    found = landmarks(x, 4, "kmeans")
    torch.testing.assert_close(found, torch.ones(4, 3))
    assert torch.autograd.grad(found.sum(), x)[0].isfinite().all()


def test_each_step_cubes_the_residual():
    a = attention(8)
    steps = list(inverse_steps(a, 6))
    assert len(steps) == 7
    residuals = [torch.eye(8, dtype=a.dtype) - a @ v for v in steps]
    for e, following in pairwise(residuals):
        torch.testing.assert_close(following, 0.75 * e @ e @ e + 0.25 * e @ e @ e @ e, rtol=1e-8, atol=1e-10)
        assert torch.linalg.matrix_norm(following, 2).max() <= 1 + 1e-9


def test_starting_value_depends_on_its_own_matrix_only():
    a, b = attention(6, ()), 5 * attention(6, ()).square()
    together = list(inverse_steps(torch.stack([a, b]), 3))[-1]
    torch.testing.assert_close(together[0], list(inverse_steps(a, 3))[-1])


def test_exact_inverse_satisfies_the_penrose_equations():
    a = attention(9)
    a[:, 4] = a[:, 5]  # Rank 8.
    z = exact_inverse(a)
    for found, wanted in ((a @ z @ a, a), (z @ a @ z, z), ((a @ z).mT, a @ z), ((z @ a).mT, z @ a)):
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-8)


def test_exact_inverse_ignores_rounding_errors():
    u, _ = torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64))
    a = u @ torch.diag(torch.tensor([1.0, 0.5, 0.1, 1e-12, 1e-15], dtype=torch.float64)) @ u.mT
    assert exact_inverse(a).abs().max() < 11
