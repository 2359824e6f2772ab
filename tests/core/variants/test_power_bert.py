"""Tests that are specific to PoWER-BERT; the contract tests cover what all variants share."""

import pytest
import reference
import torch
from seeded import normal

import attention_core as ac

softmax = ac.get("softmax")


def survivors(q, k, **changed):
    attention = ac.get("power_bert", **changed)
    return attention.variant.anatomy(q, k, k, attention.params, causal=False)["survivors"]


@pytest.mark.parametrize("size", [1, 12, 20])
def test_survivors_are_equal_in_float32_and_float64(size):
    q, k = (size * normal(1, 16, 16, seed=seed).float() for seed in (1, 2))
    received = reference.softmax(q, k).sum((0, 1))
    for count in range(1, 16):
        ranked = sorted(range(16), key=lambda j: (-received[j], j))
        assert survivors(q, k, keep=count / 16).tolist() == sorted(ranked[:count])


@pytest.mark.parametrize(
    ("n", "keep", "count"), [(1, 0.05, 1), (9, 0.05, 1), (7, 0.5, 4), (33, 0.5, 17), (100, 0.3, 30), (10, 1.0, 10)]
)
def test_a_share_of_the_tokens_and_at_least_one_token_survives(n, keep, count):
    q, k = normal(2, 3, n, 4)
    assert survivors(q, k, keep=keep).shape == (count,)
    rows = ac.get("power_bert", keep=keep).weights(q, k).sum(-1)
    assert ((rows - 1).abs() < 1e-9).sum(-1).tolist() == [count] * 3
    assert (rows == 0).sum(-1).tolist() == [n - count] * 3


def test_larger_keep_is_closer_to_softmax():
    q, k, v = normal(3, 2, 60, 6)
    exact = softmax.attend(q, k, v)
    errors = [(ac.get("power_bert", keep=s).attend(q, k, v) - exact).norm().item() for s in (0.1, 0.4, 0.7, 1.0)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.5 * exact.norm()
    assert errors[-1] < 1e-9


def test_earlier_of_equal_tokens_survives():
    q = torch.zeros(2, 20, 4, dtype=torch.float64)
    assert survivors(q, q, keep=0.35).tolist() == list(range(7))
    assert survivors(q[0], q[0], keep=0.35).tolist() == list(range(7))


def test_the_most_attended_token_survives_and_the_least_attended_is_dropped():
    q, k = normal(2, 1, 30, 4)
    q[..., 0], k[..., 0] = 3.0, 0.0
    k[:, 17, 0], k[:, 4, 0] = 50.0, -50.0
    assert 17 in survivors(q, k, keep=0.05)
    assert 4 not in survivors(q, k, keep=0.95)


def test_survivors_are_shared_by_heads_not_by_examples():
    q, k = normal(2, 2, 3, 40, 6)
    attention = ac.get("power_bert")
    assert attention.variant.couples_heads
    chosen = survivors(q, k)
    assert chosen.shape == (2, 20)
    # Each head alone would choose other tokens.
    alone = torch.stack([survivors(q[0, h], k[0, h]) for h in range(3)])
    assert not any(torch.equal(alone[h], chosen[0]) for h in range(3))
    # A changed head changes the choice of its own example only.
    other = q.clone()
    other[0, 2] *= 8
    moved = survivors(other, k)
    assert not torch.equal(moved[0], chosen[0])
    assert torch.equal(moved[1], chosen[1])
    for b in range(2):
        assert torch.equal(survivors(q[b], k[b]), chosen[b])
        torch.testing.assert_close(attention.weights(q, k)[b], attention.weights(q[b], k[b]))


def test_inputs_without_a_head_axis_have_one_head():
    q, k, v = normal(3, 30, 6)
    attention = ac.get("power_bert")
    torch.testing.assert_close(attention.attend(q, k, v), attention.attend(q[None], k[None], v[None])[0])
    torch.testing.assert_close(attention.weights(q, k), attention.weights(q[None], k[None])[0])
    assert torch.equal(survivors(q, k), survivors(q[None], k[None]))


@pytest.mark.parametrize("n", [5, 300, 1100])
def test_significance_by_blocks_equals_that_of_the_whole_matrix(n):
    q, k, v = normal(3, 2, 2, n, 4)
    attention = ac.get("power_bert")
    found = attention.variant.anatomy(q, k, v, attention.params, causal=False)["significance"]
    torch.testing.assert_close(found, torch.from_numpy(reference.softmax(q, k).sum((1, 2))))
    torch.testing.assert_close(found.sum(-1), torch.full((2,), 2.0 * n, dtype=torch.float64))


def test_dropped_queries_get_no_gradient_and_dropped_keys_and_values_do():
    q, k, v = (x.requires_grad_() for x in normal(3, 2, 30, 6))
    stay = survivors(q.detach(), k.detach())
    gone = torch.ones(30, dtype=torch.bool).index_fill(0, stay, False)
    of_q, of_k, of_v = torch.autograd.grad(ac.get("power_bert").attend(q, k, v).square().sum(), (q, k, v))
    assert not of_q[:, gone].any()
    assert (of_q[:, stay].norm(dim=-1) > 0).all()
    assert (of_k[:, gone].norm(dim=-1) > 0).all()
    assert (of_v[:, gone].norm(dim=-1) > 0).all()
