"""Tests of the cost convention: the same mathematics costs the same, with any algorithm or kernel."""

import pytest
import torch
import torch.nn.functional as F

import attention_core as ac
from attention_core.benchmarking.counting import count

SCORED_IN_FULL = ("alibi", "entmax", "fox", "gqa", "selective", "sigmoid", "sink_logit", "softmax_log_n", "softpick")
"""Variants that compute every visible score once and mix the values once, as softmax does."""


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [7, 64, 512, 1000])
@pytest.mark.parametrize("key", SCORED_IN_FULL)
def test_variants_with_the_same_products_cost_the_same(key: str, n: int, causal: bool):
    softmax, other = (ac.get(name).cost(n, 64, causal=causal, heads=9) for name in ("softmax", key))
    assert other.multiply_adds == softmax.multiply_adds


@pytest.mark.parametrize("causal", [False, True])
def test_differential_costs_two_softmaxes(causal: bool):
    softmax, twice = (ac.get(key).cost(512, 64, causal=causal).multiply_adds for key in ("softmax", "differential"))
    assert twice == 2 * softmax


def test_a_causal_kernel_is_counted_without_the_blocks_it_skips():
    q, k, v = torch.randn(3, 2, 3, 512, 8)
    full, causal = (
        count(lambda hide=hide: F.scaled_dot_product_attention(q, k, v, is_causal=hide)).multiply_adds
        for hide in (False, True)
    )
    blocks = sum(64 * stop for stop in range(64, 513, 64))
    assert full == 6 * 2 * 8 * 512**2
    assert causal == 6 * 2 * 8 * blocks


def test_the_backward_pass_of_a_causal_kernel_is_counted_without_skipped_blocks():
    x = torch.randn(1, 1, 512, 8, requires_grad=True)

    def both(causal: bool) -> int:
        return count(lambda: F.scaled_dot_product_attention(x, x, x, is_causal=causal).sum().backward()).multiply_adds

    assert both(True) / both(False) == (1 + 1 / 8) / 2


def test_the_products_of_pairwise_distances_are_counted():
    assert count(lambda: torch.cdist(torch.randn(5, 7, 3), torch.randn(5, 2, 3))).multiply_adds == 5 * 7 * 2 * 3


def test_quantised_keys_count_their_k_means():
    n, d, codes = 1000, 64, 16
    cost = ac.get("quantised_keys", codes=codes).cost(n, d).multiply_adds
    assert cost - 2 * n * codes * d == pytest.approx(10 * n * codes * d, rel=0.01)


def test_both_second_order_series_state_the_same_complexity():
    assert ac.variant("taylor2").complexity == ac.variant("centred_taylor").complexity
    first, second = (ac.get(key).cost(2**16, 64).multiply_adds for key in ("taylor2", "centred_taylor"))
    assert first == pytest.approx(second, rel=0.01)
