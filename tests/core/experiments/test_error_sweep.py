"""Tests of the error experiment: independent formulas, lower bounds, budgets, the order of rows, determinism."""

import functools
import math
from pathlib import Path

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_core as ac
from attention_core.experiments import error
from attention_core.experiments.error import MEASURES, ErrorTask
from attention_core.inputs import synthetic
from attention_core.inputs.source import SyntheticSource, TextSource
from attention_core.inputs.synthetic import SyntheticSpec

TEXT = (Path(__file__).parents[3] / "app" / "texts" / "english.txt").read_text("utf-8")
SMALL = SyntheticSource(SyntheticSpec(n=20, d=8, heads=3))
ALL = [variant.key for variant in ac.all_variants()]
KINDS = [kind.key for kind in synthetic.KINDS]
SLACK = 1e-6
"""Tolerance for matrices in float32."""


@functools.cache
def real():
    return TextSource(TEXT, "minilm", 2).load()


def sweep(source, n, words, **how):
    qkv = source.load() if not isinstance(source, TextSource) else real()
    return [row for task in error.tasks(source, n, words, **how) for row in error.run(task, load=lambda *_: qkv)]


def rows_below_floor(rows):
    return [r for r in rows if r.floor is not None and math.isfinite(r.matrix) and r.matrix < r.floor - SLACK]


@pytest.mark.parametrize("causal", [False, True])
def test_no_variant_lies_below_its_floor_on_a_real_head(causal):
    rows = sweep(TextSource(TEXT, "minilm", 2), real().n, ALL, head=3, causal=causal)
    assert {r.variant for r in rows} >= {v.key for v in ac.all_variants() if not (causal and v.causal_reason)}
    assert rows_below_floor(rows) == []
    kinds = {r.floor_kind for r in rows if r.floor is not None and r.floor > 0.05}
    assert kinds == ({"keys"} if causal else {"rank", "keys"})


def test_size_negative_mass_and_hidden_weight_follow_their_definitions():
    [*_, local] = sweep(SMALL, 20, ["local~window~2"], head=1)
    [nystrom] = (row for row in sweep(SMALL, 20, ["nystrom"], head=1) if row.value == 8)
    qkv = SMALL.load()
    exact, v = ac.get("softmax").weights(qkv.q, qkv.k)[1].numpy(), qkv.v[1].numpy()
    own = ac.get("nystrom", landmarks=8).weights(qkv.q, qkv.k)[1].numpy()
    assert nystrom.negative_mass == pytest.approx(-own[own < 0].sum() / np.abs(own).sum(), abs=SLACK)
    assert nystrom.size == pytest.approx(np.linalg.norm(own @ v) / np.linalg.norm(exact @ v), rel=1e-5)
    far = np.abs(np.subtract.outer(np.arange(20), np.arange(20))) > local.value
    assert local.mass == pytest.approx(exact[far].sum() / 20, abs=SLACK)


@settings(max_examples=120, deadline=None)
@given(
    key=st.sampled_from(ALL),
    n=st.integers(1, 24),
    d=st.integers(1, 9),
    seed=st.integers(0, 99),
    sharpness=st.sampled_from([0.0, 0.5, 2.0, 12.0]),
    kind=st.sampled_from(KINDS),
    step=st.integers(0, 9),
    causal=st.booleans(),
)
def test_no_variant_lies_below_its_floor_on_random_inputs(key, n, d, seed, sharpness, kind, step, causal):
    spec = SyntheticSpec(kind=kind, n=n, d=2 * d, heads=1, sharpness=sharpness, seed=seed)
    attention = ac.get(key)
    steps = error.budget_variants(attention, n)
    causal = causal and attention.variant.causal_reason is None
    task = ErrorTask(source=SyntheticSource(spec), word=steps[step % len(steps)].word, causal=causal)
    assert rows_below_floor(error.run(task)) == []


@pytest.mark.parametrize("causal", [False, True])
def test_the_uniform_baseline_is_the_mean_of_the_values(causal):
    task = ErrorTask(source=SMALL, word="softmax", head=1, causal=causal, is_uniform=True, with_floors=False)
    [row] = error.run(task)
    qkv = SMALL.load()
    q, k, v = (x[1].double().numpy() for x in (qkv.q, qkv.k, qkv.v))
    exact = reference.softmax(q, k, causal=causal)
    mean = np.stack([v[: i + 1 if causal else 20].mean(0) for i in range(20)])
    rows = np.tril(np.ones((20, 20))) / np.arange(1, 21)[:, None] if causal else np.full((20, 20), 1 / 20)
    assert row.output == pytest.approx(reference.error(mean, exact @ v), rel=1e-5)
    assert row.matrix == pytest.approx(reference.error(rows, exact), rel=1e-5)
    assert row.mass == pytest.approx(np.abs(rows - exact).sum(-1).mean() / 2, rel=1e-5)
    logs = np.log(np.where(rows > 0, rows, 1) / np.where(exact > 0, exact, 1))
    assert row.kl == pytest.approx((rows * logs).sum(-1).mean(), rel=1e-4)
    assert (row.variant, row.word, row.reference) == ("uniform", "uniform", "softmax")


def test_each_measure_equals_its_formula():
    [row] = error.run(ErrorTask(source=SMALL, word="linear", head=2))
    qkv = SMALL.load()
    q, k, v = (x[2].double().numpy() for x in (qkv.q, qkv.k, qkv.v))
    exact, own = reference.softmax(q, k), ac.get("linear").weights(qkv.q, qkv.k)[2].double().numpy()
    out, right = own @ v, exact @ v
    heavy = [[set(np.argsort(-m[i])[:10]) for i in range(20)] for m in (own, exact)]
    cosines = (out * right).sum(-1) / np.linalg.norm(out, axis=-1) / np.linalg.norm(right, axis=-1)
    expected = {
        "matrix": reference.error(own, exact),
        "mass": np.abs(own - exact).sum(-1).mean() / 2,
        "kl": (own * np.log(own / exact)).sum(-1).mean(),
        "missed": 1 - np.mean([len(a & b) / 10 for a, b in zip(*heavy, strict=True)]),
        "output": reference.error(out, right),
        "turn": 1 - cosines.mean(),
    }
    assert {m: getattr(row, m) for m in MEASURES} == pytest.approx(expected, rel=1e-4)
    assert row.multiply_adds == ac.get("linear").cost(20, 8).multiply_adds


def test_the_cost_of_coupled_heads_is_divided_among_them():
    rows = error.run(ErrorTask(source=SMALL, word="mla~rank~4"))
    assert {row.multiply_adds for row in rows} == {ac.get("mla", rank=4).cost(20, 8, heads=3).multiply_adds // 3}


@pytest.mark.parametrize("causal", [False, True])
def test_reformer_is_compared_with_softmax_of_its_own_logits(causal):
    [row] = error.run(ErrorTask(source=SMALL, word="reformer~rounds~16", head=0, causal=causal))[:1]
    qkv = SMALL.load()
    q, v = qkv.q[0].double().numpy(), qkv.v[0].double().numpy()
    logits = q @ (q / np.linalg.norm(q, axis=-1, keepdims=True)).T
    hidden = np.triu(np.ones((20, 20)), 1) if causal else np.zeros((20, 20))
    logits[(hidden + np.eye(20)) > 0] = -np.inf
    if causal:
        logits[0, 0] = 0.0
    own_softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    own = ac.get("reformer", rounds=16).weights(qkv.q, qkv.k, causal=causal)[0].double().numpy()
    assert row.reference == "reformer"
    assert row.matrix == pytest.approx(reference.error(own, own_softmax), abs=1e-5)
    assert row.output == pytest.approx(reference.error(own @ v, own_softmax @ v), abs=1e-5)
    [baseline] = error.run(
        ErrorTask(source=SMALL, word="reformer", head=0, causal=causal, is_uniform=True, with_floors=False)
    )
    assert baseline.reference == "reformer"
    assert baseline.matrix != pytest.approx(row.matrix)


def test_a_random_variant_is_drawn_from_its_seed_and_the_next_ones():
    task = ErrorTask(source=SMALL, word="performer~seed~7", head=0)
    rows = error.run(task)
    assert [r.seed for r in rows] == [7, 8, 9, 10, 11]
    assert len({r.matrix for r in rows}) == 5
    torch.manual_seed(123)
    assert error.run(task) == rows
    assert error.run(ErrorTask(source=SMALL, word="performer~seed~9", head=0))[0].matrix == rows[2].matrix


@pytest.mark.parametrize(
    ("word", "repeats"),
    [
        ("blocks", 1),
        ("blocks~score~true mass~seed~3", 1),
        ("blocks~score~random indexer", 5),
        ("bigbird", 5),
        ("bigbird~random_keys~0", 1),
        ("nonlocal", 1),
        ("nonlocal~similarity~concat", 5),
    ],
)
def test_a_variant_is_repeated_only_with_settings_that_use_random_numbers(word, repeats):
    rows = error.run(ErrorTask(source=SMALL, word=word, head=0))
    assert len(rows) == repeats
    assert (rows[0].seed is None) == (repeats == 1)


def test_seeds_beyond_the_last_restart_at_zero():
    high = next(s.high for s in ac.get("bigbird").variant.params.settings() if s.name == "seed")
    seeds = [a.params.seed for a in error.seed_variants(ac.get("bigbird", seed=int(high)))]
    assert seeds == [high, 0, 1, 2, 3]


@pytest.mark.parametrize("key", ["nystrom", "performer", "power_bert", "reformer", "local"])
def test_a_single_head_gives_the_same_row_as_among_all_heads(key):
    every = error.run(ErrorTask(source=SMALL, word=key))
    assert {r.head for r in every} == {0, 1, 2}
    alone = error.run(ErrorTask(source=SMALL, word=key, head=1))
    assert list(alone) == [r for r in every if r.head == 1]


def test_budget_values_start_at_zero_if_zero_is_allowed():
    for variant in ac.all_variants():
        if (budget := variant.budget) is not None and budget.low == 0:
            assert error.budget_values(budget, 20) == (0, 1, 2, 4, 8, 16, 20)
    assert {v.key for v in ac.all_variants() if v.budget is not None and v.budget.low == 0} >= {"blocks", "lolcats"}


def test_budget_values_double_up_to_n_and_include_the_chosen_value():
    budget = ac.get("local").variant.budget
    assert error.budget_values(budget, 20) == (1, 2, 4, 8, 16, 20)
    assert error.budget_values(budget, 1) == (1,)
    assert error.budget_values(budget, 10**6)[-1] == budget.high
    assert [a.params.window for a in error.budget_variants(ac.get("local", window=11), 20)] == [1, 2, 4, 8, 11, 16, 20]
    assert [a.params.window for a in error.budget_variants(ac.get("local", window=300), 20)][-2:] == [20, 300]
    keep = ac.get("power_bert").variant.budget
    shares = error.budget_values(keep, 20)
    assert (shares[0], shares[-1], len(shares)) == (keep.low, keep.high, error.BUDGET_STEPS)
    assert error.budget_variants(ac.get("linear"), 20) == (ac.get("linear"),)


@pytest.mark.parametrize(("n", "stops"), [(1, (1,)), (8, (8,)), (9, (8, 9)), (40, (8, 16, 32, 40))])
def test_lengths_double_up_to_n(n, stops):
    assert error.doubling_lengths(n) == stops


def test_every_variant_has_an_early_task_and_no_task_is_repeated():
    words = ["softmax", "local", "nystrom", "linear"]
    found = error.tasks(SMALL, 512, words)
    assert found[0].is_uniform
    assert len(set(found)) == len(found)
    assert {ac.from_word(t.word).key for t in found[1:14]} == set(words)
    assert {t.word for t in found[1:]} == {a.word for w in words for a in error.budget_variants(ac.get(w), 512)}


def test_non_causal_variants_are_left_out_and_reformer_has_its_own_baseline():
    found = error.tasks(SMALL, 20, ["softmax", "nystrom", "reformer"], causal=True)
    assert {ac.from_word(t.word).key for t in found} == {"softmax", "reformer"}
    assert [t.word for t in found if t.is_uniform] == ["softmax", "reformer"]
    assert all(t.causal for t in found)


def test_length_tasks_cut_or_extend_the_input():
    found = error.length_tasks(SMALL, (40, 8), ["local~window~4"], head=0)
    rows = [row for task in found for row in error.run(task)]
    assert [(r.variant, r.n) for r in rows] == [("uniform", 8), ("local", 8), ("uniform", 40), ("local", 40)]
    assert rows[1].matrix < rows[3].matrix
    assert rows[1].floor is None
