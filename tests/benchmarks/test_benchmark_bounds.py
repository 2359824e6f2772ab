"""Tests of bounds: a bound does the arithmetic that its name says, and no more than the variant that it bounds."""

import pytest
import torch

from attention_core.benchmarking.counting import count
from benchmarks.bounds import BOUNDS
from benchmarks.cases import HEADS, cases
from benchmarks.measure import inputs
from benchmarks.subjects import subjects

D = 64
BOUNDED = [case for case in cases() if case.bound]
MULTIPLY_ADDS = {
    "pairs, reciprocals and their contraction": lambda n: n * n * D,
    "logits, best of an eighth, k values": lambda n: n * n * D + n * 32 * D,
    "two products of d²/2 features": lambda n: 2 * n * (1 + D + D * (D + 1) // 2) * D,
    "two products of d features": lambda n: 2 * n * D * D,
    "two products of 2 d features": lambda n: 2 * n * 2 * D * D,
    "projections, exponentials, two products": lambda n: 4 * n * 256 * D,
    "bare windows": lambda n: (n - 2 * 64) // 32 * 32 * 2 * (2 * 64 + 32) * D,
    "bare windows before": lambda n: (n - 64) // 32 * 32 * 2 * (64 + 32) * D,
    "bare chunks": lambda n: 2 * D * (n * 64 + (n - 64) * D),
    "bare chunks, forth and back": lambda n: 2 * D * (n * 64 + 2 * (n - 64) * D),
}
"""The multiply-adds of one head by the name of the bound, derived by hand."""


def calls(case, n):
    """Return the call of the variant and the call of its bound."""
    q, k, v = inputs(HEADS, n)
    own, bound, *_ = subjects([case], dict.fromkeys(case.peers, "left out"))
    assert (own.role, bound.role, bound.name) == ("variant", "bound", case.bound)
    return own.build(q, k, v, n), bound.build(q, k, v, n)


@pytest.mark.parametrize("case", BOUNDED, ids=lambda case: case.label)
@torch.no_grad()
def test_a_bound_has_the_stated_count_and_not_more_than_its_variant(case):
    n = 256
    own, bound = calls(case, n)
    adds = count(bound).multiply_adds
    assert adds == HEADS * MULTIPLY_ADDS[case.bound](n)
    assert adds <= count(own).multiply_adds


@pytest.mark.parametrize("case", BOUNDED, ids=lambda case: case.label)
def test_a_bound_runs_on_texts_shorter_than_its_blocks(case):
    for call in calls(case, 64):
        call()


def test_every_bound_belongs_to_a_case():
    assert {case.bound for case in BOUNDED} == BOUNDS.keys() == MULTIPLY_ADDS.keys()


def test_reciprocals_of_pairs_give_tanh():
    """Check the identity that the bound of additive attention uses."""
    x, y = torch.randn(2, 1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3
    assert torch.allclose(1 - 2 / (1 + (2 * x).exp() * (2 * y).exp()), (x + y).tanh(), atol=1e-12)
