"""Tests of Mesa as a least-squares problem, of its limits and of its precision."""

import pytest
import torch
from seeded import normal

import attention_core as ac


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def decay_factors(k, gate, decay, root):
    """Return the factor ``[n]`` by which each token reduces the weights of earlier errors, by the on-screen rules."""
    n = len(k)
    if gate == "constant":
        return torch.full((n,), decay, dtype=k.dtype)
    if gate == "harmonic":
        return torch.tensor([1 - 1 / t for t in range(1, n + 1)], dtype=k.dtype)
    return (torch.sigmoid(k) ** (1 / root)).log().mean(-1).exp()


def check(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("settings", [{}, {"decay": 0.9}, {"gate": "harmonic"}])
def test_state_is_the_least_squares_solution(settings):
    """Check that the gradient of the weighted squared errors is zero at the state that the queries read."""
    n, d, ridge = 40, 5, 0.3
    k, v = normal(n, d), normal(n, 3, seed=1)
    a = ac.get("mesa", ridge=ridge, **settings)
    alpha = decay_factors(k, a.params.gate, a.params.decay, 16.0)
    every = unit(normal(d, d, seed=2))
    for i in (0, 7, n - 1):
        # d additional queries read the state after token i.
        state = torch.linalg.solve(
            every, torch.stack([a.attend(query.expand(i + 1, d), k[: i + 1], v[: i + 1])[-1] for query in every])
        ).requires_grad_()
        weight = torch.stack([alpha[j + 1 : i + 1].prod() for j in range(i + 1)])
        errors = (v[: i + 1] - unit(k[: i + 1]) @ state).square().sum(-1)
        (slope,) = torch.autograd.grad((weight * errors).sum() + ridge * state.square().sum(), state)
        assert slope.abs().max() < 1e-10


def test_a_large_ridge_gives_linear_attention_divided_by_the_ridge():
    q, k = normal(30, 6), normal(30, 6, seed=1)
    found = 100 * ac.get("mesa", ridge=100.0, decay=0.5).weights(q, k, causal=True)
    linear = ac.get("scalar_decay", decay=0.5).weights(unit(q) * 6**0.5, unit(k), causal=True)
    assert (found - linear).abs().max() < 0.03 * linear.abs().max()


def test_a_smaller_ridge_lets_keys_read_their_own_values_more_exactly():
    k, v = normal(30, 12), normal(30, 4, seed=1)
    off = [(ac.get("mesa", ridge=ridge).attend(k, k, v) - v).norm() for ridge in (0.1, 1.0, 10.0, 100.0)]
    assert off == sorted(off)
    assert off[-1] - off[0] > 1


def test_float32_is_accurate_over_a_long_text():
    q, k, v = (x.float() for x in (normal(4000, 16), normal(4000, 16, seed=1), normal(4000, 8, seed=2)))
    for a in (ac.get("mesa"), ac.get("mesa", decay=0.9)):
        wanted = a.attend(q.double(), k.double(), v.double(), causal=True)
        torch.testing.assert_close(a.attend(q, k, v, causal=True).double(), wanted, rtol=1e-4, atol=1e-5)
