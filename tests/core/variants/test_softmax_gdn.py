"""Tests of the gated delta rule derived from softmax: its order of approximation and the stability of its steps."""

import math

import pytest
import torch
from seeded import normal

import attention_core as ac
from attention_core.variants.gated.softmax_gdn import capped_weights


def test_matrix_is_the_output_for_the_identity():
    q, k = normal(2, 70, 6), normal(2, 70, 6, seed=1)
    units = torch.eye(70).double().expand(2, 70, 70)
    a = ac.get("softmax_gdn")
    for causal in (False, True):
        torch.testing.assert_close(a.weights(q, k, causal=causal), a.attend(q, k, units, causal=causal))


def beyond_first_order(size):
    """Return the distance from softmax, relative to that of the plain mean, with keys of this size."""
    q, k, v = normal(40, 6), size * normal(40, 6, seed=1), normal(40, 3, seed=2)
    own, full = (ac.get(key).attend(q, k, v, causal=True) for key in ("softmax_gdn", "softmax"))
    flat = torch.stack([v[: i + 1].mean(0) for i in range(40)])
    return float((own - full).norm() / (flat - full).norm())


def test_softmax_gdn_equals_softmax_to_first_order_in_the_keys():
    assert beyond_first_order(1e-4) == pytest.approx(beyond_first_order(1e-3) / 10, rel=0.05)
    assert beyond_first_order(1e-4) < 1e-3


def test_uncapped_steps_leave_the_stable_range_on_keys_of_trained_size():
    """Check that the state grows if ‖c‖²/t, the share that each step removes, exceeds 2 after the first token."""
    q, k, v = normal(40, 8), 20 * normal(40, 8, seed=1), normal(40, 3, seed=2)
    uncapped, capped = (capped_weights(q, k, cap, causal=True).abs().max() for cap in (math.inf, 1.0))
    assert uncapped > 1e6 * capped
    parts = ac.get("softmax_gdn").anatomy(q, k, v, causal=True)
    square = parts["keys"].square().sum(-1, keepdim=True)
    assert (parts["uncapped"] * square).max() > 2
    assert (parts["strength"] * square).max() <= 1 + 1e-9
    assert (parts["strength"] <= parts["uncapped"]).all()
