"""Tests of softmax as a gated delta rule, against its recurrence written out."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_core as ac


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def recurrence(q, k, v, cap=math.inf):
    """Return each token's output, the final outputs, and the norms of the state.

    ``A = A ((1 - 1/t) I - β c cᵀ) + β (v - v̄) cᵀ``, ``o = A q + v̄``.
    """
    n, d = k.shape
    q, k = q / d**0.25, k / d**0.25
    state, outs, sizes = torch.zeros(v.shape[-1], d, dtype=v.dtype), [], []
    for i in range(n):
        t = i + 1
        c = k[i] - k[:t].mean(0)
        before = v[:i].mean(0) if i else torch.zeros_like(v[0])
        beta = min(1 / t, cap / float(c @ c)) if float(c @ c) else 1 / t
        state = state @ ((1 - 1 / t) * torch.eye(d).double() - beta * torch.outer(c, c))
        state = state + beta * torch.outer(v[i] - before, c)
        outs.append(state @ q[i] + v[:t].mean(0))
        sizes.append(float(state.norm()))
    return torch.stack(outs), q @ state.T + v.mean(0), sizes


@given(
    st.sampled_from((1, 2, 5, 63, 64, 65, 140)),
    st.integers(1, 8),
    st.integers(1, 6),
    st.floats(0.1, 2.0),
    st.floats(0.1, 5.0),
    st.integers(0, 9),
)
def test_every_form_is_the_recurrence(n, d, d_v, cap, size, seed):
    q, k, v = size * normal(n, d, seed=seed), size * normal(n, d, seed=seed + 1), normal(n, d_v, seed=seed + 2)
    last, end, _ = recurrence(q, k, v, cap)
    a = ac.get("softmax_gdn", cap=cap)
    for causal, wanted in ((True, last), (False, end)):
        torch.testing.assert_close(a.attend(q, k, v, causal=causal), wanted, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(a.weights(q, k, causal=causal) @ v, wanted, rtol=1e-8, atol=1e-8)


def test_its_matrix_is_what_becomes_of_the_unit_matrix():
    q, k = normal(2, 70, 6), normal(2, 70, 6, seed=1)
    units = torch.eye(70).double().expand(2, 70, 70)
    a = ac.get("softmax_gdn")
    for causal in (False, True):
        torch.testing.assert_close(a.weights(q, k, causal=causal), a.attend(q, k, units, causal=causal))


def beyond_first_order(size):
    """Return the distance from softmax divided by the plain mean's distance, for keys of this size."""
    q, k, v = normal(40, 6), size * normal(40, 6, seed=1), normal(40, 3, seed=2)
    own, full = (ac.get(key).attend(q, k, v, causal=True) for key in ("softmax_gdn", "softmax"))
    flat = torch.stack([v[: i + 1].mean(0) for i in range(40)])
    return float((own - full).norm() / (flat - full).norm())


def test_it_is_softmax_to_first_order_in_the_keys():
    assert beyond_first_order(1e-4) == pytest.approx(beyond_first_order(1e-3) / 10, rel=0.05)
    assert beyond_first_order(1e-4) < 1e-3


def test_uncapped_steps_leave_the_stable_range_on_keys_of_trained_size():
    """Check the erased share ‖c‖²/t from the second token on: above 2, the state changes sign and grows."""
    q, k, v = normal(40, 8), 20 * normal(40, 8, seed=1), normal(40, 3, seed=2)
    free, held = recurrence(q, k, v)[2], recurrence(q, k, v, 1.0)[2]
    assert max(free) > 1e6 * max(held)
    parts = ac.get("softmax_gdn").anatomy(q, k, v, causal=True)
    square = parts["keys"].square().sum(-1, keepdim=True)
    assert (parts["uncapped"] * square).max() > 2
    assert (parts["strength"] * square).max() <= 1 + 1e-9
    assert (parts["strength"] <= parts["uncapped"]).all()


@pytest.mark.parametrize("cap", [0.1, 1.0, 2.0])
def test_step_by_step_is_the_causal_form(cap):
    a, (q, k, v) = ac.get("softmax_gdn", cap=cap), (normal(2, 70, 6), normal(2, 70, 6, seed=1), normal(2, 70, 3))
    decoder, outs = a.variant.decoder, []
    state = decoder.init_state(q[:, 0], v[:, 0], a.params)
    for i in range(70):
        out, state = decoder.step(state, q[:, i], k[:, i], v[:, i], a.params)
        outs.append(out)
    torch.testing.assert_close(torch.stack(outs, 1), a.attend(q, k, v, causal=True), rtol=1e-9, atol=1e-9)
