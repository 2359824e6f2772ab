"""Tests of the pairs that hash rounds find, against loops over the variant's own pattern."""

import math
from dataclasses import replace

import numpy as np
import pytest

import attention_core as ac
from attention_core.experiments import hash_rounds
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec

SOURCE = SyntheticSource(SyntheticSpec(n=40, heads=2, d=8))
BOTH = pytest.mark.parametrize("causal", [False, True])


def row(word, rounds, seed=0, *, causal=False, source=SOURCE):
    [task] = hash_rounds.tasks(source, word, head=1, causal=causal, rounds=[rounds])
    return next(r for r in hash_rounds.run(task) if r.seed == seed)


@BOTH
@pytest.mark.parametrize("rounds", [1, 3])
def test_pairs_mass_and_error_are_the_patterns(rounds, causal):
    qkv = SOURCE.load(None)
    found = row("reformer~bucket_size~4", rounds, seed=2, causal=causal)
    a = ac.get("reformer", bucket_size=4, rounds=rounds, seed=2)
    seen = a.variant.pattern(qkv.q, qkv.k, a.params, causal=causal)[1].numpy()
    full = a.variant.reference(qkv.q, qkv.k, a.params, causal=causal)[1].numpy()
    looks = [(i, j) for i in range(40) for j in range(40) if i != j and seen[i, j]]
    assert found.pairs == pytest.approx(len(looks) / (780 if causal else 1560))
    assert found.mass == pytest.approx((full * seen).sum() / 40, rel=1e-5)
    off = a.weights(qkv.q, qkv.k, causal=causal)[1].numpy() - full
    assert found.error == pytest.approx(np.linalg.norm(off) / np.linalg.norm(full), rel=1e-5)


@BOTH
def test_more_rounds_find_more_and_never_less(causal):
    rows = [row("reformer~bucket_size~2", rounds, causal=causal) for rounds in (1, 2, 4, 8, 16)]
    for measure in ("pairs", "mass"):
        values = [getattr(r, measure) for r in rows]
        assert values == sorted(values)
        assert values[0] < values[-1] <= 1 + 1e-6


def test_one_chunk_finds_all():
    found = row("reformer~bucket_size~64", 1)
    assert (found.pairs, found.mass) == (1, pytest.approx(1))
    assert found.error < 1e-6


def test_tasks_are_the_same_whatever_the_rounds_chosen():
    tasks = hash_rounds.tasks(SOURCE, "reformer~rounds~5~seed~3", head=0)
    assert tasks == hash_rounds.tasks(SOURCE, "reformer~seed~3", head=0)
    assert [task.rounds for task in tasks] == list(range(1, 17))
    assert [r.seed for r in hash_rounds.run(tasks[0])] == [3, 4, 5, 6, 7]


def test_seeds_go_round_and_a_single_token_is_no_trouble():
    [task] = hash_rounds.tasks(SOURCE, "reformer~seed~9998", head=0, rounds=[1])
    assert [r.seed for r in hash_rounds.run(task)] == [9998, 9999, 0, 1, 2]
    for causal in (False, True):
        found = row("reformer", 2, causal=causal, source=SyntheticSource(SyntheticSpec(n=1, heads=2, d=8)))
        assert (found.pairs, found.mass) == (0, 1)


def anatomy(a, n, *, causal):
    qkv = replace(SOURCE, spec=replace(SOURCE.spec, n=n)).load(None)
    parts = a.variant.anatomy(qkv.q[0], qkv.k[0], qkv.v[0], a.params, causal=causal)
    seen = a.variant.pattern(qkv.q[0], qkv.k[0], a.params, causal=causal).numpy()
    return {name: part.numpy() for name, part in parts.items()}, seen


@BOTH
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_finders_count_the_rounds_and_are_the_pattern(n, causal):
    a = ac.get("reformer", bucket_size=3, rounds=3)
    parts, seen = anatomy(a, n, causal=causal)
    found, start = hash_rounds.rounds_per_pair(parts, causal=causal), hash_rounds.last_stretch(n, a, causal=causal)
    assert (start > 0) is (causal and n > 6)
    two = ~np.eye(n, dtype=bool)
    assert np.array_equal((found > 0)[start:], (seen & two)[start:])
    for i in range(n):
        for j in range(n):
            wanted = sum(
                parts["chunks"][r][i] - parts["chunks"][r][j] in (0, 1)
                and (not causal or (j < i and parts["buckets"][r][i] == parts["buckets"][r][j]))
                for r in range(3)
            )
            assert found[i, j] == (wanted if i != j else 0)


def test_likeness_is_the_mean_cosine():
    rng = np.random.default_rng(0)
    x, buckets = rng.normal(size=(12, 5)), rng.integers(0, 3, 12)
    groups = {True: [], False: []}
    for i in range(12):
        for j in range(i):
            cosine = x[i] @ x[j] / np.linalg.norm(x[i]) / np.linalg.norm(x[j])
            groups[bool(buckets[i] == buckets[j])].append(cosine)
    wanted = [np.mean(groups[True]), np.mean(groups[False])]
    np.testing.assert_allclose(hash_rounds.bucket_similarity(x, buckets), wanted)
    assert math.isnan(hash_rounds.bucket_similarity(x, np.arange(12))[0])
    assert math.isnan(hash_rounds.bucket_similarity(x, np.zeros(12, int))[1])
    assert hash_rounds.bucket_similarity(np.zeros((2, 3)), np.zeros(2, int))[0] == 0


def test_the_hash_brings_the_alike_together():
    a = ac.get("reformer", bucket_size=4)
    parts, _ = anatomy(a, 400, causal=False)
    q = replace(SOURCE, spec=replace(SOURCE.spec, n=400)).load(None).q[0].numpy()
    inside, outside = hash_rounds.bucket_similarity(q, parts["buckets"][0])
    assert inside > outside + 0.3
