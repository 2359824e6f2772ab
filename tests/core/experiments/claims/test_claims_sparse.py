"""Claims about sparse attention: what it costs, how far it reaches, what time it takes and what it loses."""

import numpy as np
import pytest
from trial import error, normal, ruled, saved, softmax, synthetic, trial, upload

from attention_core import registry
from attention_core.experiments import claims
from attention_core.experiments.claims import Verdict, near_diagonal, sparse_costs, sparse_time, two_layers
from attention_core.inputs import SyntheticSpec, from_synthetic

HOLDS, PARTLY, FAILS = Verdict.HOLDS, Verdict.PARTLY, Verdict.FAILS


@pytest.mark.parametrize("causal", [False, True])
def test_in_a_long_text_atrous_costs_a_kth_and_local_grows_with_n(causal):
    found = trial("sparse_costs", upload(normal(2, 256, 8), causal=causal))
    assert found.verdict is HOLDS
    assert found.numbers["saving"] == pytest.approx(sparse_costs.K)
    full, atrous = ({row["n"]: row["multiply_adds"] for row in found.of(part=part)} for part in ("full", "atrous"))
    assert all(adds == 2 * n * n * 8 for n, adds in full.items())
    assert atrous[256] == 2 * (256 // sparse_costs.K) ** 2 * 8 * sparse_costs.K
    # Blocks of 32 queries see k keys ahead of them and, where the future is open, k behind them too.
    assert found.numbers["cheaper"] == pytest.approx(256 / (32 + sparse_costs.K * (1 if causal else 2)), rel=0.03)


def test_in_a_short_text_the_window_is_still_the_text():
    found = trial("sparse_costs", upload(normal(1, 32, 8)))
    assert found.numbers["local"] == pytest.approx(2)
    assert found.verdict is PARTLY


def test_in_a_tiny_text_neither_is_true():
    assert trial("sparse_costs", upload(normal(1, 6, 8))).verdict is FAILS


def test_an_algorithm_that_computes_all_pairs_fails(monkeypatch):
    monkeypatch.setitem(sparse_costs.ATTENTIONS, "atrous", registry.get("softmax"))
    assert trial("sparse_costs", upload(normal(1, 256, 8))).verdict is PARTLY
    monkeypatch.setitem(sparse_costs.ATTENTIONS, "local", registry.get("softmax"))
    assert trial("sparse_costs", upload(normal(1, 256, 8))).verdict is FAILS


@pytest.mark.parametrize(
    ("saving", "local", "verdict"), [(3.81, 1.2, HOLDS), (3.79, 1.2, PARTLY), (4.19, 1.21, PARTLY), (4.21, 1.21, FAILS)]
)
def test_costs_bounds(saving, local, verdict):
    assert ruled("sparse_costs", {}, saving=saving, local=local) is verdict


@pytest.mark.parametrize("n", [16, 17, 37, 64])
@pytest.mark.parametrize("causal", [False, True])
def test_local_then_atrous_connects_all(n, causal):
    found = trial("two_layers", upload(normal(2, n, 8), causal=causal))
    assert (found.verdict, found.numbers["two"]) == (HOLDS, 100)
    assert found.numbers["one"] < 100


def test_shares_are_those_of_the_patterns():
    n, r = 37, two_layers.stride(37)
    found = trial("two_layers", upload(normal(1, n, 8)))
    away = np.subtract.outer(np.arange(n), np.arange(n))
    local, atrous = abs(away) < r, away % r == 0
    assert found.numbers["one"] == pytest.approx(100 * local.mean())
    assert found.numbers["local"] == pytest.approx(100 * (abs(away) <= 2 * (r - 1)).mean())
    assert found.numbers["atrous"] == pytest.approx(100 * atrous.mean())
    assert found.numbers["keys"] == pytest.approx(100 * (local.mean() + atrous.mean()))
    [two] = found.of(stack=two_layers.MIXED, layers=2)
    assert two["share"] == pytest.approx(100 * (local.astype(int) @ atrous.astype(int) > 0).mean())


@pytest.mark.parametrize(("sharpness", "verdict"), [(20.0, PARTLY), (1000.0, FAILS)])
def test_weights_that_fade_to_nothing_connect_nothing(sharpness, verdict):
    found = trial("two_layers", synthetic("locally_correlated", sharpness=sharpness))
    assert found.verdict is verdict
    assert found.numbers["two"] < 100


def test_too_narrow_a_window_leaves_gaps():
    qkv = from_synthetic(SyntheticSpec(n=64, heads=1))
    narrow = registry.get("local", window=2), registry.get("atrous", stride=8)
    wrong = two_layers.followed(two_layers.MIXED, narrow, qkv)
    others = trial("two_layers", synthetic("locally_correlated", n=64, heads=1)).rows
    rows = wrong + [row for row in others if row["stack"] != two_layers.MIXED]
    numbers, verdict = claims.claim("two_layers").judge(rows)
    # Of every eight distances the window bridges the five from -2 to 2.
    assert numbers["two"] == pytest.approx(100 * 5 / 8, abs=3)
    assert verdict is FAILS


@pytest.mark.parametrize(("two", "verdict"), [(100, HOLDS), (99.9, PARTLY), (90, PARTLY), (89.9, FAILS)])
def test_layers_bounds(two, verdict):
    assert ruled("two_layers", {}, two=two) is verdict


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(sparse_time, "LENGTHS", (1024,))
    monkeypatch.setattr(sparse_time, "ROUNDS", 3)


def timed(verdict, source):
    """A trial that ends so, of a few: whatever else the machine does may spoil one."""
    return next((found for found in (trial("sparse_time", source) for _ in range(5)) if found.verdict is verdict), None)


@pytest.mark.usefixtures("quick")
def test_in_a_long_text_sparse_attention_is_faster():
    found = timed(HOLDS, upload(normal(2, 512, 64)))
    assert found
    assert (found.numbers["own"], found.numbers["longest"]) == (512, 1024)
    assert {row["ratio"] for row in found.of(variant="Softmax")} == {1}
    assert {(row["variant"], row["n"]) for row in found.rows} == {
        (title, n) for title in ("Softmax", "Local", "Atrous") for n in (512, 1024)
    }


@pytest.mark.usefixtures("quick")
def test_in_a_short_text_it_is_slower_and_in_a_long_one_not():
    # A few blocks of queries at the text's edges cost more calls than they save work.
    found = timed(PARTLY, upload(normal(1, 56, 64)))
    assert found
    assert found.numbers["here"] > 1.1 > found.numbers["long"]


@pytest.mark.usefixtures("quick")
def test_what_is_slower_at_every_length_fails(monkeypatch):
    monkeypatch.setattr(sparse_time, "SPARSE", ("taylor2",))
    assert timed(FAILS, upload(normal(1, 64, 64)))


@pytest.mark.usefixtures("quick")
def test_calls_that_would_take_too_long_are_left_out(monkeypatch):
    monkeypatch.setattr(sparse_time, "LONGEST", 1e-9)
    found = trial("sparse_time", upload(normal(1, 64, 16)))
    assert {row["n"] for row in found.rows} == {64}
    assert found.numbers["longest"] == 64
    claim = claims.claim("sparse_time")
    assert "no other length" in claim.sentence(found.numbers)
    assert claim.sentence(found.numbers).count("{own}") == 1
    assert "{longest}" in claim.sentence({**found.numbers, "longest": 1024})


def test_of_a_few_tokens_long_inputs_are_timed_all_the_same(monkeypatch):
    # Two tokens' time is overhead; taken for the work of two it would rule all others out.
    monkeypatch.setattr(sparse_time, "ROUNDS", 3)
    monkeypatch.setattr(sparse_time, "LENGTHS", (*sparse_time.LENGTHS[:2],))
    found = trial("sparse_time", upload(normal(4, 3, 32)))
    assert {row["n"] for row in found.rows} == {3, 32, 512}


def test_the_slower_of_the_two_counts_by_its_median():
    def rows(title, n, *ratios, own=False):
        return [{"variant": title, "n": n, "own": own, "ms": 1.0, "ratio": ratio} for ratio in ratios]

    found = [
        *rows("Local", 64, 0.5, 0.6, 9.0, own=True), *rows("Atrous", 64, 1.0, 1.1, 7.0, own=True),
        *rows("Local", 2048, 0.1), *rows("Atrous", 2048, 0.3),
    ]  # fmt: skip
    numbers, verdict = claims.claim("sparse_time").judge(found)
    assert numbers == {"here": 1.1, "long": 0.3, "worst": 1.1, "own": 64, "longest": 2048}
    assert verdict is HOLDS


@pytest.mark.parametrize(("worst", "long", "verdict"), [(1.1, 1.1, HOLDS), (1.2, 1.1, PARTLY), (1.2, 1.11, FAILS)])
def test_times_bounds(worst, long, verdict):
    assert ruled("sparse_time", {}, worst=worst, long=long) is verdict


@pytest.mark.parametrize(
    ("kind", "sharpness", "verdict"),
    [
        ("locally_correlated", 4.0, HOLDS),  # near the diagonal, and little is elsewhere
        ("locally_correlated", 1.0, PARTLY),  # near the diagonal, but half is elsewhere
        ("periodic", 1.0, PARTLY),  # spread evenly, but a window of one period sees one of each
        ("gaussian", 1.0, FAILS),
        ("needle", 1.0, FAILS),
    ],
)
def test_windows_lose_little_where_attention_is_local(kind, sharpness, verdict):
    assert trial("near_diagonal", saved(kind, sharpness=sharpness)).verdict is verdict


def test_a_synthetic_sequence_is_no_trained_attention():
    found = trial("near_diagonal", synthetic("locally_correlated"))
    assert found.verdict is Verdict.UNTESTABLE
    assert "trained models; choose a text" in found.why


@pytest.mark.parametrize("causal", [False, True])
def test_mass_and_error_follow_their_definitions(causal):
    q, k, v = (normal(1, 48, 8, seed=seed) for seed in range(3))
    found = trial("near_diagonal", upload(q, k, v, causal=causal))
    assert found.numbers["window"] == 3
    for first, end in ((0, ""), (1, "_rest")):
        n = 48 - first
        full = softmax(q[:, first:], k[:, first:], causal=causal)[0]
        near = abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 3
        local = full * near / (full * near).sum(-1, keepdims=True)
        even = softmax(0 * q[:, first:], k[:, first:], causal=causal)[0]
        assert found.numbers["mass" + end] == pytest.approx(100 * full[near].sum() / n, rel=1e-4)
        assert found.numbers["even" + end] == pytest.approx(100 * even[near].sum() / n, rel=1e-4)
        err = error(local @ v[0, first:], full @ v[0, first:])
        assert found.numbers["error" + end] == pytest.approx(100 * err, rel=1e-3)
    assert found.numbers["first"] == pytest.approx(100 * softmax(q, k, causal=causal)[0, :, 0].mean(), rel=1e-4)


@pytest.mark.parametrize("causal", [False, True])
def test_a_sink_on_the_first_token_hides_attention_that_is_near_the_diagonal(causal):
    # Each token sees itself and, far more, the first one.
    q = np.concatenate([40 * np.eye(40), np.full((40, 1), 8.0)], 1).astype(np.float32)[None]
    k = np.concatenate([np.eye(40), np.zeros((40, 1))], 1).astype(np.float32)[None]
    q[0, 0], k[0, 0] = 0, 0
    k[0, 0, -1] = 8
    found = trial("near_diagonal", upload(q, k, v=normal(1, 40, 4), causal=causal))
    assert found.verdict is PARTLY
    assert found.numbers["first"] > 90
    assert found.numbers["mass"] < found.numbers["even"]
    assert found.numbers["error"] > 25
    assert found.numbers["mass_rest"] > 90
    assert found.numbers["error_rest"] < 25


def test_tokens_that_see_only_themselves_lose_nothing():
    alone = np.broadcast_to(40 * np.eye(32, dtype=np.float32), (2, 32, 32))
    found = trial("near_diagonal", upload(alone))
    assert found.verdict is HOLDS
    for attention in (near_diagonal.MEASURED, near_diagonal.REST):
        assert min(row["mass"] for row in found.of(attention=attention)) == pytest.approx(100)
    assert found.numbers["mass"] == found.numbers["mass_rest"] == pytest.approx(100)
    assert found.numbers["error"] == pytest.approx(0, abs=1e-3)
    assert found.numbers["error_rest"] == pytest.approx(0, abs=1e-3)


def test_the_middle_head_counts():
    near, far = 40 * np.eye(32, dtype=np.float32), np.zeros((32, 32), np.float32)
    v = normal(3, 32, 4)
    heads = {"local": np.stack([near, near, far]), "even": np.stack([near, far, far])}
    assert trial("near_diagonal", upload(heads["local"], v=v)).verdict is HOLDS
    assert trial("near_diagonal", upload(heads["even"], v=v)).verdict is FAILS
    assert trial("near_diagonal", upload(heads["even"], v=v), head=0).verdict is HOLDS


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, HOLDS),
        ({"mass": 23.9}, PARTLY),
        ({"error": 25.1}, PARTLY),
        ({"mass_rest": 23.9}, PARTLY),
        ({"error_rest": 25.1}, PARTLY),
        ({"mass": 23.9, "error": 25.1, "mass_rest": 23.9}, PARTLY),
        ({"mass": 23.9, "error": 25.1, "mass_rest": 23.9, "error_rest": 25.1}, FAILS),
    ],
)
def test_diagonals_bounds(changed, verdict):
    least = {"even": 12, "mass": 24, "error": 25, "even_rest": 12, "mass_rest": 24, "error_rest": 25}
    assert ruled("near_diagonal", least, **changed) is verdict
