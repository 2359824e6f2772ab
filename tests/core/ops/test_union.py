"""Tests of patterns assembled from pieces: exact softmax over their pairs, its gradients, and little memory."""

import sys

import pytest
import torch
import torch.nn.functional as F
from contract import any_settings
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_core as ac
from attention_core.attention import Attention
from attention_core.benchmarking.counting import count
from attention_core.benchmarking.timing import prepare
from attention_core.ops.pattern.pieces import piece_slices
from benchmarks.cases import cases

UNIONS = [v.key for v in ac.all_variants() if hasattr(sys.modules[v.module], "union_attention")]


@pytest.mark.parametrize("key", ["local", *UNIONS])
@given(data=st.data(), n=st.integers(1, 260), heads=st.integers(1, 9), causal=st.booleans())
@settings(max_examples=25, deadline=None)
def test_output_and_gradients_equal_those_of_the_explicit_matrix(key, data, n, heads, causal):
    variant = ac.variant(key)
    attention = Attention(variant, data.draw(any_settings(variant, most=300, text=True)))
    draws = torch.randn(4, heads, n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    q, k, v = (x.requires_grad_() for x in draws[:3].unbind(0))
    by_attend, by_matrix = attention.attend(q, k, v, causal=causal), attention.weights(q, k, causal=causal) @ v
    torch.testing.assert_close(by_attend, by_matrix)
    wanted = torch.autograd.grad(by_matrix, (q, k, v), draws[3])
    for one, other in zip(torch.autograd.grad(by_attend, (q, k, v), draws[3]), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@given(heads=st.integers(1, 20), blocks=st.integers(1, 50), most=st.integers(0, 2000))
def test_piece_slices_cover_every_block_once_within_the_limit(heads, blocks, most):
    seen = torch.zeros(heads, blocks)
    for some, chosen in piece_slices(heads, blocks, most):
        piece = seen[some, chosen.start : chosen.stop]
        assert 1 <= piece.numel() <= max(1, most)
        piece += 1
    assert (seen == 1).all()


FIXED = [case for case in cases() if case.attention(case.settings_at(512)).variant.mask is not None]


def peak(attend, n, mode):
    """Return the peak bytes of eight heads, counted as in ``benchmarks``."""
    q, k, v = torch.randn(3, 1, 8, n, 64, generator=torch.Generator().manual_seed(n))
    with torch.set_grad_enabled(mode == "backward"):
        return count(prepare(attend, q, k, v, mode=mode, causal=False), unit=torch.uint8).peak_elements


@pytest.mark.parametrize("n", [512, 2048])
@pytest.mark.parametrize(("mode", "most"), [("forward", 1.25), ("backward", 3.0)])
@pytest.mark.parametrize("case", FIXED, ids=lambda case: case.label)
def test_memory_of_fixed_patterns_is_close_to_the_fused_kernel(case, mode, most, n):
    full = 4 * 8 * n * (65 if mode == "forward" else 4 * 64 + 1)
    assert peak(case.attention(case.settings_at(n)), n, mode) <= most * full


def test_the_fused_kernel_peak_is_the_baseline():
    q, k, v = torch.randn(3, 1, 8, 512, 64)
    assert count(lambda: F.scaled_dot_product_attention(q, k, v), unit=torch.uint8).peak_elements == 4 * 8 * 512 * 65
    assert peak(ac.get("softmax"), 512, "backward") == 4 * 8 * 512 * (4 * 64 + 1)
