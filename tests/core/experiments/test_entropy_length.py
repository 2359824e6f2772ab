import math

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.benchmarking.counting import count
from attention_core.experiments import entropy_length
from attention_core.experiments.lengths import measured_lengths
from attention_core.inputs import SyntheticSource, SyntheticSpec, from_synthetic

SPEC = SyntheticSpec(heads=3, d=16, n=40)
SOURCE = SyntheticSource(SPEC)


def sweep(words, *, source=SOURCE, longest=40, causal=False, seeds=1):
    tasks = entropy_length.tasks(source, words, longest=longest, causal=causal, seeds=seeds)
    return [row for task in tasks for row in entropy_length.run(task)]


@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_the_entropy_of_uniform_attention_is_log_n(n):
    rows = sweep(["softmax"], source=SyntheticSource(SyntheticSpec(sharpness=0.0, heads=2)), longest=n)
    for row in rows:
        assert row.entropy == pytest.approx(math.log(row.n), abs=1e-6)
        assert row.normalised == (None if row.n == 1 else pytest.approx(1, abs=1e-6))


def test_the_entropy_of_uniform_causal_attention_is_the_mean_of_the_logarithms():
    rows = sweep(["softmax"], source=SyntheticSource(SyntheticSpec(sharpness=0.0, heads=2)), causal=True)
    for row in rows:
        assert row.entropy == pytest.approx(math.lgamma(row.n + 1) / row.n, abs=1e-6)
        assert row.normalised == pytest.approx(1, abs=1e-6)


def test_the_entropy_of_one_hot_attention_is_zero():
    record = from_synthetic(SyntheticSpec(n=8, d=8, heads=1))
    sure = ac.inputs.QKV(**{**vars(record), "q": 1e4 * torch.eye(8)[None], "k": torch.eye(8)[None]})
    (task,) = [t for t in entropy_length.tasks(SOURCE, ["softmax"], longest=8) if t.n == 8]
    (row,) = entropy_length.run(task, load=lambda source, tokens: sure)
    assert (row.entropy, row.normalised) == (0.0, 0.0)


def test_the_log_n_scale_makes_entropy_grow_more_slowly_around_its_base_length():
    rows = sweep(["softmax", "softmax_log_n~base_length~64"], longest=256)
    by = {(row.variant, row.n, row.head): row.entropy for row in rows}
    for head in range(3):
        plain, scaled = (
            {n: by[w, n, head] for n in measured_lengths(256)} for w in ("softmax", "softmax_log_n~base_length~64")
        )
        assert scaled[64] == pytest.approx(plain[64], abs=1e-5)
        assert scaled[16] > plain[16]
        assert scaled[256] < plain[256]


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
@pytest.mark.parametrize("causal", [False, True])
def test_entropy_and_sparsity_are_computed_from_absolute_weights(variant, causal):
    task = entropy_length.EntropyTask(source=SOURCE, variant=variant.key, n=24, longest=24, causal=causal, seed=0)
    if causal and variant.causal_reason:
        with pytest.raises(ac.LabError, match="cannot be causal"):
            entropy_length.run(task)
        return
    qkv = SOURCE.load(24)
    mass = np.abs(ac.get(variant.key).weights(qkv.q, qkv.k, causal=causal).double().numpy())
    total = mass.sum(-1, keepdims=True)
    p = np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)
    nats = -np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(-1)
    seen = np.arange(1, 25) if causal else np.full(24, 24)
    for head, row in enumerate(entropy_length.run(task)):
        assert row.entropy == pytest.approx(nats[head].mean(), abs=2e-4)
        assert row.normalised == pytest.approx((nats[head] / np.log(np.maximum(seen, 2)))[seen > 1].mean(), abs=2e-4)
        root = np.sqrt((mass[head] ** 2).sum(-1) * seen)
        sparse = np.divide(mass[head].sum(-1), root, out=np.zeros(24), where=root > 0)
        assert row.sparsity == pytest.approx(sparse.mean(), abs=2e-4)


def test_row_sums_are_reported_with_entropies_that_do_not_depend_on_them():
    rows = sweep(["softmax", "sigmoid", "differential~taken~0.25"])
    for row in rows:
        if row.variant == "softmax":
            assert (row.row_low, row.row_high) == pytest.approx((1, 1), abs=1e-6)
        elif row.variant == "sigmoid":
            assert row.row_low < row.row_high
        else:
            assert (row.row_low, row.row_high) == pytest.approx((0.75, 0.75), abs=1e-6)


def test_rows_are_tidy_and_short_lengths_come_first():
    rows = sweep(["softmax", "local~window~3"], seeds=2)
    keys = [(row.n, row.seed, row.variant, row.head) for row in rows]
    assert len(set(keys)) == len(keys) == len(measured_lengths(40)) * 2 * 2 * 3
    assert [k[0] for k in keys] == sorted(k[0] for k in keys)
    assert {row.seed for row in rows} == {0, 1}


def test_equal_tasks_give_equal_rows_and_seeds_differ():
    state = torch.random.get_rng_state()
    first, again = (sweep(["softmax", "performer", "reformer"], seeds=2) for _ in range(2))
    assert first == again
    assert torch.equal(state, torch.random.get_rng_state())
    values = {row.seed: row.entropy for row in first if (row.n, row.head, row.variant) == (40, 0, "softmax")}
    assert values[0] != values[1]


def test_only_the_matrix_of_one_head_is_in_memory_at_once():
    task = entropy_length.EntropyTask(
        source=SyntheticSource(SyntheticSpec(heads=8, d=4)), variant="softmax", n=256, longest=256, causal=False, seed=0
    )
    record = task.source.load(256)
    counted = count(lambda: entropy_length.run(task, load=lambda source, tokens: record))
    assert counted.largest_elements <= 256**2
    assert counted.peak_elements < 5 * 256**2


def test_coupled_heads_that_do_not_fit_are_rejected(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    task = entropy_length.EntropyTask(
        source=SyntheticSource(SyntheticSpec(heads=16, d=4)),
        variant="power_bert",
        n=2048,
        longest=2048,
        causal=False,
        seed=0,
    )
    with pytest.raises(ac.LabError, match="up to 1024 tokens, but the input has 2048"):
        entropy_length.run(task)
