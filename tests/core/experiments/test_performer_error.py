import math
import statistics

import numpy as np
import pytest

import attention_core as ac
from attention_core.experiments import performer_error
from attention_core.experiments.performer_error import FEATURE_COUNTS, FEATURE_KINDS, SEEDS, TOKENS
from attention_core.inputs import SyntheticSource, SyntheticSpec
from attention_core.variants.kernel.performer import directions

SOURCE = SyntheticSource(SyntheticSpec(n=40, heads=2, d=8))


def medians(measure, ways, *, factor, causal=False):
    """Return the median over the seeds for each number of features."""
    found = {}
    for task in performer_error.tasks(SOURCE, head=1, factor=factor, kinds=ways, row_norms="chi", causal=causal):
        found[task.params.features] = statistics.median(getattr(row, measure) for row in performer_error.run(task))
    return found


@pytest.mark.parametrize("factor", [0.1, 1.0])
def test_the_effective_number_of_features_equals_its_formula(factor):
    """Compare the logarithms with the features themselves, which may overflow for large inputs."""
    q, k = (factor * x for x in SOURCE.load().tensors[:2])
    attention = ac.get("performer", features=16)
    p = attention.params
    W = directions(q, p)
    features = [((x @ W.mT) * 8**-0.25 - x.square().sum(-1, keepdim=True) / 2 / 8**0.5).double().exp() for x in (q, k)]
    terms = features[0] * features[1].sum(-2, keepdim=True)
    wanted = (terms.sum(-1).square() / terms.square().sum(-1)).median().item()
    assert performer_error.effective_features(q, k, attention) == (pytest.approx(wanted, rel=1e-4), p.features)
    assert performer_error.effective_features(q, k, attention.with_settings(kind="trig")) is None
    assert performer_error.effective_features(q, k, ac.get("linear")) is None
    assert 1 <= wanted <= 16


def test_tasks_start_with_few_features_and_try_each_kind():
    tasks = performer_error.tasks(SOURCE, head=0)
    assert [t.params.features for t in tasks] == sorted(t.params.features for t in tasks)
    assert {(t.params.features, t.params.kind, t.params.orthogonal) for t in tasks} == {
        (m, *way) for m in FEATURE_COUNTS for way in FEATURE_KINDS
    }


@pytest.mark.parametrize("way", [("positive", False), ("trig", True), ("hyperbolic", True)])
@pytest.mark.parametrize("measure", ["kernel", "matrix"])
def test_the_error_falls_with_the_square_root_of_features_for_small_logits(way, measure):
    found = medians(measure, [way], factor=0.05)
    slope = np.polyfit(np.log(list(found)), np.log(list(found.values())), 1)[0]
    assert -0.62 < slope < -0.4


def test_the_error_stays_large_for_large_logits():
    small, large = (medians("kernel", [("positive", True)], factor=factor) for factor in (0.05, 4.0))
    assert large[1024] > 0.5 > 0.1 > small[1024]
    assert large[1024] / large[8] > 3 * small[1024] / small[8]


def test_orthogonal_directions_have_a_smaller_error():
    for kind in ("hyperbolic", "trig"):
        free, orthogonal = (medians("kernel", [(kind, way)], factor=0.05) for way in (False, True))
        assert all(orthogonal[m] < 0.7 * free[m] for m in FEATURE_COUNTS)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["positive", "trig", "relu"])
def test_the_matrix_error_equals_that_of_the_variant(kind, causal):
    [task] = [
        t
        for t in performer_error.tasks(SOURCE, head=1, causal=causal, kinds=[(kind, True)], seed=3)
        if t.params.features == 64
    ]
    rows = performer_error.run(task)
    assert [row.seed for row in rows] == list(range(3, 3 + SEEDS))
    qkv = SOURCE.load()
    q, k = qkv.q[1].double(), qkv.k[1].double()
    own = ac.get("performer", kind=kind, seed=5).weights(q, k, causal=causal)
    full = ac.get("softmax").weights(q, k, causal=causal)
    assert rows[2].matrix == pytest.approx(float((own - full).norm() / full.norm()), rel=1e-6)


def test_the_factor_multiplies_every_logit():
    [task] = [
        t
        for t in performer_error.tasks(SOURCE, head=1, factor=0.25, kinds=[FEATURE_KINDS[0]])
        if t.params.features == 64
    ]
    qkv = SOURCE.load()
    q, k = qkv.q[1].double() / 2, qkv.k[1].double() / 2
    own, full = (ac.get(key).weights(q, k) for key in ("performer", "softmax"))
    assert performer_error.run(task)[0].matrix == pytest.approx(float((own - full).norm() / full.norm()))


def test_the_kernel_error_weights_all_rows_equally():
    [task] = [
        t
        for t in performer_error.tasks(SOURCE, head=0, causal=True, kinds=[FEATURE_KINDS[0]])
        if t.params.features == 32
    ]
    qkv = SOURCE.load()
    q, k = qkv.q[0].double(), qkv.k[0].double()
    attention = ac.get("performer", features=32)
    W = attention.variant.anatomy(q, k, k, attention.params, causal=False)["directions"]
    x, y = q / 8**0.25, k / 8**0.25
    a = (x @ W.mT - x.square().sum(-1, keepdim=True) / 2).exp()
    b = (y @ W.mT - y.square().sum(-1, keepdim=True) / 2).exp()
    true = (x @ y.mT).exp().tril()
    largest = true.amax(-1, keepdim=True)
    wanted = ((a @ b.mT).tril() / 32 - true) / largest
    assert performer_error.run(task)[0].kernel == pytest.approx(float(wanted.norm() / (true / largest).norm()))


def test_a_long_input_is_cut_and_seeds_beyond_the_last_restart_at_zero():
    source = SyntheticSource(SyntheticSpec(n=TOKENS + 20, heads=1, d=4))
    whole = source.load()
    short = ac.inputs.QKV(
        q=whole.q[:, :TOKENS],
        k=whole.k[:, :TOKENS],
        v=whole.v[:, :TOKENS],
        tokens=whole.tokens[:TOKENS],
        special=whole.special[:TOKENS],
        groups=whole.groups[:TOKENS],
        causal=False,
        scale=whole.scale,
        origin="",
        total_tokens=TOKENS,
    )
    task = performer_error.tasks(source, head=0, seed=2**31 - 2)[0]
    rows = performer_error.run(task)
    assert rows == performer_error.run(task, load=lambda source, tokens: short)
    assert [row.seed for row in rows[:4]] == [2**31 - 2, 2**31 - 1, 0, 1]


@pytest.mark.parametrize("n", [1, 2])
def test_inputs_of_one_and_two_tokens_have_finite_errors(n):
    source = SyntheticSource(SyntheticSpec(n=n, heads=1, d=4))
    for task in performer_error.tasks(source, head=0):
        assert all(math.isfinite(row.kernel) and math.isfinite(row.matrix) for row in performer_error.run(task))
        if n == 1 and task.params.kind == "positive":
            assert performer_error.run(task)[0].matrix == pytest.approx(0)
