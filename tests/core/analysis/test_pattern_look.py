"""Tests of patterns, reach and hash order on a record, against the variants' own masks and plain loops."""

import numpy as np
import pytest

import attention_core as ac
from attention_core.analysis.masks.pattern import has_pattern, hash_order, pattern
from attention_core.analysis.masks.stack import reach, two_step_path
from attention_core.errors import NotCausalError

QKV = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=48, heads=3))


def test_a_path_of_two_layers_leads_to_the_farthest_key_through_a_token_between():
    local, atrous = (pattern(QKV, ac.from_word(word), head=0, causal=False).allowed for word in ("local", "atrous"))
    first = reach([local, atrous], 2, causal=False).first
    for query in (0, 20, 47):
        key, middle = two_step_path(local, atrous, query)
        assert first[query, key] == 2
        assert abs(key - query) == max(abs(np.flatnonzero(first[query] == 2) - query))
        assert local[middle, key]
        assert atrous[query, middle]
        assert middle != query
    assert two_step_path(local, np.eye(48, dtype=bool), 20) is None
    assert two_step_path(np.eye(48, dtype=bool), atrous, 20) is None


def test_a_fixed_pattern_equals_its_mask_and_counts_its_pairs():
    found = pattern(QKV, ac.get("local", window=5), head=0, causal=False)
    assert np.array_equal(found.allowed, ac.get("local", window=5).mask(48).numpy())
    assert found.pairs == 48 * 11 - 5 * 6
    assert found.possible == 48 * 48
    assert (found.farthest, found.diameter) == (5, 10)
    causal = pattern(QKV, ac.get("local", window=5), head=0, causal=True)
    assert (causal.pairs, causal.possible) == (48 * 6 - 15, 48 * 49 // 2)


@pytest.mark.parametrize(
    ("word", "step", "farthest"),
    [
        ("atrous~stride~8", 8, 40),
        ("atrous~stride~100", 0, 0),
        ("local~window~5", 1, 5),
        ("longformer~window~2~dilation~3~global_tokens~0", 3, 6),
    ],
)
def test_the_step_of_a_pattern_divides_all_its_distances(word, step, farthest):
    found = pattern(QKV, ac.from_word(word), head=0, causal=False)
    queries, keys = found.allowed.nonzero()
    assert (
        (found.step, found.farthest)
        == (step, farthest)
        == (np.gcd.reduce(abs(queries - keys)), max(abs(queries - keys)))
    )


def test_all_heads_give_the_union_of_patterns_and_the_mean_count():
    topk = ac.get("topk", k=4)
    each = [pattern(QKV, topk, head=head, causal=False) for head in range(3)]
    together = pattern(QKV, topk, head=None, causal=False)
    assert np.array_equal(together.allowed, np.any([p.allowed for p in each], 0))
    assert together.pairs == np.mean([p.pairs for p in each]) == 48 * 4
    assert np.array_equal(together.primitives["kept"], together.allowed)


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
@pytest.mark.parametrize("causal", [False, True])
def test_every_variant_has_a_pattern_or_refuses_a_causal_mask(variant, causal):
    if causal and variant.causal_reason:
        with pytest.raises(NotCausalError):
            pattern(QKV, ac.get(variant.key), head=1, causal=causal)
        return
    found = pattern(QKV, ac.get(variant.key), head=1, causal=causal)
    assert bool(found.primitives) == has_pattern(variant)
    assert not (causal and np.triu(found.allowed, 1).any())
    if not has_pattern(variant):
        assert found.pairs == found.possible
        assert found.diameter == 1


def test_a_stack_repeats_its_layers():
    local, atrous = (pattern(QKV, ac.get(*a), head=0, causal=False).allowed for a in (["local"], ["atrous"]))
    assert np.array_equal(
        reach([local, atrous], 3, causal=False).first, reach([local, atrous, local], 3, causal=False).first
    )
    followed = reach([atrous], 5, causal=False)
    assert followed.complete is None
    assert len(followed.shares) == 6
    assert followed.shares[1:] == (1 / 8,) * 5
    assert followed.shares[0] == 1 / 48


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("number", [0, 1])
def test_each_pair_of_a_round_has_exactly_one_kind(causal, number):
    attention = ac.get("reformer", rounds=2, bucket_size=4)
    found = hash_order(QKV, attention, number, head=2, causal=causal)
    assert found.rounds == 2
    assert sorted(found.order) == list(range(48))
    counts = sum(part.astype(int) for part in found.parts.values())
    assert counts.max() == 1, "no pair is of two kinds"
    seen = attention.variant.pattern(QKV.q, QKV.k, attention.params, causal=causal)[2].numpy()
    assert np.array_equal(counts.astype(bool) & ~found.parts["missed"], seen)
    assert not (found.parts["missed"] & seen).any()
    inside = attention.variant.anatomy(QKV.q, QKV.k, QKV.v, attention.params, causal=causal)
    bucket = inside["buckets"][2, number].numpy()
    assert (np.diff(bucket[found.order]) >= 0).all()
    assert (bucket[:, None] == bucket)[found.parts["bucket"] | found.parts["missed"]].all()
    chunk = inside["chunks"][2, number].numpy()
    if not causal:
        near = np.isin(chunk[:, None] - chunk, (0, 1)) & ~np.eye(48, dtype=bool)
        assert np.array_equal(found.parts["chunk"], seen & near & (bucket[:, None] != bucket))
        assert found.parts["round"].any()
    chunk = chunk[found.order]
    assert list(found.borders) == [i for i in range(1, 48) if chunk[i] != chunk[i - 1]]


def test_a_round_beyond_the_last_gives_the_last_and_only_reformer_has_rounds():
    attention = ac.get("reformer", rounds=2)
    last = hash_order(QKV, attention, 1, head=0, causal=False)
    assert np.array_equal(hash_order(QKV, attention, 9, head=0, causal=False).order, last.order)
    for key in ("softmax", "local", "topk", "power_bert", "nystrom"):
        assert hash_order(QKV, ac.get(key), 0, head=0, causal=False) is None


def test_a_causal_stack_is_complete_when_every_earlier_token_is_reached():
    chain = np.eye(6, dtype=bool) | np.eye(6, k=-1, dtype=bool)
    assert reach([chain], 2, causal=True).complete == 5
    assert reach([chain], 2, causal=False).complete is None
