"""Tests of block selection against its articles' rules, in loops over queries, blocks and keys."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from seeded import normal

import attention_core as ac
from attention_core.ops.blocks import key_blocks


def test_tied_blocks_are_selected_in_order():
    q, k = normal(12, 2), torch.ones(12, 2, dtype=torch.float64)
    seen = ac.get("blocks", block=3, blocks=1).weights(q, k) > 0
    assert seen[0].nonzero().flatten().tolist() == [0, 1, 2, 3, 4, 5]
    assert seen[11].nonzero().flatten().tolist() == [0, 1, 2, 9, 10, 11]


@given(
    scores=st.lists(st.lists(st.sampled_from([-math.inf, -1.0, 0.0, 0.5, 2.0]), min_size=7, max_size=7), min_size=1),
    m=st.integers(1, 7),
)
def test_the_top_blocks_are_the_first_of_a_stable_sort(scores, m):
    values, index = key_blocks.top_blocks(torch.tensor(scores), m)
    for row, found, at in zip(scores, values.tolist(), index.tolist(), strict=True):
        wanted = sorted(range(7), key=lambda b: -row[b])[:m]
        assert found == [row[b] for b in wanted]
        assert [b for b in at if row[b] > -math.inf] == [b for b in wanted if row[b] > -math.inf]
        assert len(set(at)) == m


def test_bound_is_an_upper_bound_and_tight_for_equal_keys():
    q, k = normal(20, 5), normal(20, 5, seed=1)
    bound = key_blocks.block_scorer(k, block=6, score=key_blocks.BOUND, rank=1, seed=0)(q, 4)
    best = torch.stack([x.amax(-1) for x in (q @ k.mT / 5**0.5).split(6, -1)], -1)
    assert (bound >= best - 1e-12).all()
    same = k[:1].expand(20, 5)
    bound = key_blocks.block_scorer(same, block=6, score=key_blocks.BOUND, rank=1, seed=0)(q, 4)
    torch.testing.assert_close(bound, (q @ same[:4].mT / 5**0.5))


@pytest.mark.parametrize("block", [3, 9])
def test_the_second_order_score_approximates_the_mass_for_small_logits(block):
    q, k = 0.005 * normal(18, 6), normal(18, 6, seed=1)
    found = key_blocks.block_scorer(k, block=block, score=key_blocks.SECOND, rank=1, seed=0)(q, 18 // block)
    mass = key_blocks.block_scorer(k, block=block, score=key_blocks.MASS, rank=1, seed=0)(q, 18 // block) - math.log(
        block
    )
    mean = key_blocks.block_scorer(k, block=block, score=key_blocks.MEAN, rank=1, seed=0)(q, 18 // block)
    assert (found - mass).abs().max() < 0.01 * (mean - mass).abs().max()


def test_best_blocks_have_the_most_mass():
    q, k, v = normal(3, 2, 45, 4)
    attention = ac.get("blocks", block=6, blocks=2)
    for causal in (False, True):
        parts = attention.anatomy(q, k, v, causal=causal)
        full = ac.get("softmax").weights(q, k, causal=causal)
        by_block = torch.stack([x.sum(-1) for x in full.split(6, -1)], -1)
        torch.testing.assert_close(parts["mass"], by_block)
        own = torch.arange(45)[:, None] // 6 == torch.arange(8)
        allowed = parts["scores"] > -math.inf
        assert not (allowed & own).any()
        for name, by in (("best", by_block), ("chosen", parts["scores"])):
            wanted = torch.zeros_like(parts[name])
            order = by.masked_fill(~allowed, -math.inf).topk(2)
            wanted.scatter_(-1, order.indices, order.values > -math.inf)
            assert torch.equal(parts[name], wanted), name


def test_many_queries_are_computed_in_several_slices(monkeypatch):
    q, k, v = normal(3, 2, 70, 4)
    attention = ac.get("blocks", block=5, blocks=3)
    whole = attention.attend(q, k, v, causal=True)
    monkeypatch.setattr(key_blocks, "CHOICES_PER_STEP", 30)
    monkeypatch.setattr(key_blocks, "PAIRS_PER_STEP", 100)
    assert len(key_blocks.query_slices(70, 3)) == 7
    torch.testing.assert_close(attention.attend(q, k, v, causal=True), whole)
