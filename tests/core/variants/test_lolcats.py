"""Tests of LoLCATs against its article's formula in float64, and of the smallest and largest window."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_core as ac


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def by_hand(q, k, window, *, causal):
    """Return the matrix row by row (Zhang and others 2024, equation 7).

    Without training, the factor is one and the features are those of Hedgehog.
    """
    q, k = q.numpy(), k.numpy()
    n, d = q.shape
    phi = [np.concatenate([softmax(x), softmax(-x)], -1) for x in (q, k)]
    A = np.zeros((n, n))
    for i in range(n):
        near = [j for j in range(n) if abs(i - j) < window and (j <= i or not causal)]
        far = [j for j in range(n) if abs(i - j) >= window and (j <= i or not causal)]
        logits = k[near] @ q[i] / d**0.5
        A[i, near] = np.exp(logits - logits.max(initial=-np.inf))
        A[i, far] = phi[1][far] @ phi[0][i]
    return torch.from_numpy(A / A.sum(-1, keepdims=True))


@given(
    n=st.integers(1, 90), window=st.integers(0, 100), d=st.integers(1, 6), d_v=st.integers(1, 4), causal=st.booleans()
)
def test_both_faces_are_the_formula(n, window, d, d_v, causal):
    q, k, v = normal(n, d, seed=n), normal(n, d, seed=n + 1), normal(n, d_v, seed=d)
    attention, A = ac.get("lolcats", window=window), by_hand(q, k, window, causal=causal)
    torch.testing.assert_close(attention.weights(q, k, causal=causal), A)
    torch.testing.assert_close(attention.attend(q, k, v, causal=causal), A @ v)


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_over_all_is_softmax_and_none_is_hedgehog(causal):
    q, k, v = normal(3, 2, 70, 6)
    for window, key in ((70, "softmax"), (1024, "softmax"), (0, "hedgehog")):
        lolcats, other = ac.get("lolcats", window=window), ac.get(key)
        torch.testing.assert_close(lolcats.weights(q, k, causal=causal), other.weights(q, k, causal=causal))
        torch.testing.assert_close(lolcats.attend(q, k, v, causal=causal), other.attend(q, k, v, causal=causal))
