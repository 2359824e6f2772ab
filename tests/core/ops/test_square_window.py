"""Tests of square windows: each pixel attends to the pixels at most w rows and columns away."""

import itertools

import pytest
import torch

import attention_core as ac


@pytest.mark.parametrize(("n", "columns", "window"), [(48, 8, 1), (50, 8, 2), (49, 7, 6), (20, 1, 3), (7, 30, 2)])
@pytest.mark.parametrize("causal", [False, True])
def test_a_pixel_attends_to_a_square(n, columns, window, causal):
    q, k, v = torch.randn(3, 2, n, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    local = ac.get("local", window=window, columns=columns)
    near = torch.zeros(n, n, dtype=torch.bool)
    for i, j in itertools.product(range(n), repeat=2):
        (a, b), (c, d) = divmod(i, columns), divmod(j, columns)
        near[i, j] = max(abs(a - c), abs(b - d)) <= window and (j <= i or not causal)
    logits = (q @ k.mT / 5**0.5).masked_fill(~near, -torch.inf)
    torch.testing.assert_close(local.attend(q, k, v, causal=causal), logits.softmax(-1) @ v)
    torch.testing.assert_close(local.weights(q, k, causal=causal), logits.softmax(-1))
    assert torch.equal(local.mask(n, causal=causal), near)
