"""Tests of mixed chunk attention: squared ReLU within a chunk, linear outside; the contract tests cover the rest."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_core as ac
from attention_core.benchmarking.counting import count


def numbers(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def by_hand(q, k, chunk, *, causal):
    """Return the matrix entry by entry."""
    n, d = q.shape
    A = torch.zeros(n, n, dtype=q.dtype)
    for i in range(n):
        for j in range(n):
            x = q[i] @ k[j] / d**0.5
            own, earlier = i // chunk == j // chunk, j // chunk < i // chunk
            if own and (j <= i or not causal):
                A[i, j] += max(x, 0) ** 2 / chunk
            if earlier or not causal:
                A[i, j] += x / (i + 1 if causal else n)
    return A


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 40), chunk=st.integers(1, 50), causal=st.booleans())
def test_matrix_and_output_by_hand(n, chunk, causal):
    q, k, v = numbers(3, n, 4, seed=n)
    attention = ac.get("flash_mixed", chunk=chunk)
    A = by_hand(q, k, chunk, causal=causal)
    torch.testing.assert_close(attention.weights(q, k, causal=causal), A)
    torch.testing.assert_close(attention.attend(q, k, v, causal=causal), A @ v)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("chunk", [1, 5, 64, 70, 128])
def test_output_over_several_blocks(chunk, causal):
    q, k, v = numbers(3, 2, 301, 4)
    attention = ac.get("flash_mixed", chunk=chunk)
    A = attention.weights(q, k, causal=causal)
    torch.testing.assert_close(attention.attend(q, k, v, causal=causal), A @ v)


@pytest.mark.parametrize("causal", [False, True])
def test_within_one_chunk_it_is_squared_relu_and_the_linear_term(causal):
    q, k, v = numbers(3, 2, 30, 4)
    relu2 = ac.get("relu2", normalizer="fixed", base_length=64)
    linear = 0 if causal else q @ (k.mT @ v) / 2 / 30
    out = ac.get("flash_mixed", chunk=64).attend(q, k, v, causal=causal)
    torch.testing.assert_close(out, relu2.attend(q, k, v, causal=causal) + linear)


def test_no_chunk_before_its_own_lies_ahead():
    q, k, v = numbers(3, 40, 4)
    attention = ac.get("flash_mixed", chunk=8)
    before = attention.attend(q, k, v, causal=True)
    v[20] += 1.0  # In the chunk of tokens 16..23.
    moved = (attention.attend(q, k, v, causal=True) - before).abs().amax(-1) > 0
    assert not moved[:20].any()
    assert moved[24:].all()
    x = (q[20:24] @ k[20]).numpy()
    np.testing.assert_array_equal(moved[20:24], x > 0)


def test_negative_logits_weigh_across_chunks_only():
    q, k = numbers(2, 40, 4)
    A = ac.get("flash_mixed", chunk=8).weights(q, k, causal=True)
    own = torch.block_diag(*[torch.ones(8, 8)] * 5).bool()
    assert (A[own] >= 0).all()
    assert (A[~own] < 0).any()


@pytest.mark.parametrize("causal", [False, True])
def test_work_and_memory_double_with_the_length(causal):
    attention = ac.get("flash_mixed", chunk=64)
    found = []
    for n in (1024, 2048):
        q, k, v = numbers(3, n, 16).float()
        found.append(count(lambda q=q, k=k, v=v: attention.attend(q, k, v, causal=causal)))
    assert found[1].multiply_adds == 2 * found[0].multiply_adds
    assert found[1].peak_elements < 2.1 * found[0].peak_elements
