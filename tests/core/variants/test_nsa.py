"""Tests of native sparse attention against its paper's three branches, in loops over queries, blocks and keys."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_core as ac

OPEN = {"compressed": "gate_compressed", "selected": "gate_selected", "near": "gate_window"}


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def softmax(logits):
    """Return the softmax of a dict of logits."""
    total = sum(math.exp(x) for x in logits.values())
    return {at: math.exp(x) / total for at, x in logits.items()}


def branches(q, k, *, block, blocks, window, causal):
    """Return the matrix of each branch, computed query by query."""
    n, d = k.shape
    found = {name: torch.zeros(n, n, dtype=k.dtype) for name in OPEN}
    cut = [list(range(start, min(start + block, n))) for start in range(0, n, block)]
    ends = [start + block - 1 for start in range(0, n, block)]
    logits = (q @ k.T / math.sqrt(d)).tolist()
    for i in range(n):
        seen = [b for b in range(len(cut)) if not causal or ends[b] <= i]
        means = {b: sum(logits[i][j] for j in cut[b]) / len(cut[b]) for b in range(len(cut))}
        for b, weight in softmax({b: means[b] for b in seen}).items():
            found["compressed"][i, cut[b]] = weight / len(cut[b])
        own = i // block
        rivals = sorted((b for b in range(len(cut)) if (b < own if causal else b != own)), key=lambda b: -means[b])
        chosen = [j for b in (own, *rivals[:blocks]) for j in cut[b] if not causal or j <= i]
        close = [j for j in range(n) if abs(i - j) < window and (not causal or j <= i)]
        for name, keys in (("selected", chosen), ("near", close)):
            for j, weight in softmax({j: logits[i][j] for j in keys}).items():
                found[name][i, j] = weight
    return found


def check(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-11)


@given(
    st.integers(1, 40),
    st.integers(1, 7),
    st.integers(1, 12),
    st.integers(0, 4),
    st.integers(1, 20),
    st.tuples(*[st.sampled_from((0.0, 0.3, 1.0))] * 3),
    st.booleans(),
)
@settings(max_examples=40)
def test_both_faces_are_the_sum_of_the_branches(n, d, block, blocks, window, gates, causal):
    q, k, v = normal(n, d, seed=n), normal(n, d, seed=d + 50), normal(n, 3, seed=block)
    a = ac.get("nsa", block=block, blocks=blocks, window=window, **dict(zip(OPEN.values(), gates, strict=True)))
    parts = branches(q, k, block=block, blocks=blocks, window=window, causal=causal)
    wanted = sum(gate * parts[name] for gate, name in zip(gates, OPEN, strict=True))
    check(a.weights(q, k, causal=causal), wanted)
    check(a.attend(q, k, v, causal=causal), wanted @ v)


@pytest.mark.parametrize("causal", [False, True])
def test_its_parts_are_the_branches(causal):
    q, k = normal(30, 6), normal(30, 6, seed=1)
    parts = ac.get("nsa", block=4, blocks=2, window=5).anatomy(q, k, k, causal=causal)
    for name, wanted in branches(q, k, block=4, blocks=2, window=5, causal=causal).items():
        check(parts[name], wanted)


def test_a_block_has_no_mean_before_its_last_token():
    a = ac.get("nsa", block=8, gate_compressed=1.0, gate_selected=0.0, gate_window=0.0)
    q, k = normal(20, 6), normal(20, 6, seed=1)
    found = a.weights(q, k, causal=True)
    assert not found[:7].any()
    check(found[7, :8], torch.full((8,), 1 / 8, dtype=q.dtype))
    assert not found[:, 16:].any()
    check(found[7:].sum(-1), torch.ones(13, dtype=q.dtype))


def test_rows_sum_to_what_the_gates_do():
    a = ac.get("nsa", gate_compressed=0.2, gate_selected=0.7, gate_window=0.4)
    q, k = normal(40, 6), normal(40, 6, seed=1)
    for causal, first in ((False, 1.3), (True, 1.1)):
        sums = a.weights(q, k, causal=causal).sum(-1)
        check(sums[7:], torch.full((33,), 1.3, dtype=q.dtype))
        check(sums[:7], torch.full((7,), first, dtype=q.dtype))


def test_closed_gates_let_nothing_through_and_may_all_be_closed():
    a = ac.get("nsa", gate_compressed=0.0, gate_selected=0.0, gate_window=0.0)
    q, k = normal(20, 6), normal(20, 6, seed=1)
    for causal in (False, True):
        assert not a.weights(q, k, causal=causal).any()
        assert not a.attend(q, k, k, causal=causal).any()
        assert not a.variant.pattern(q, k, a.params, causal=causal).any()
    assert a.cost(1024, 16).multiply_adds == 0
