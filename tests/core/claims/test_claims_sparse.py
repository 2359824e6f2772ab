"""Tests of claims about sparse attention: its cost, its reach, its time and its error."""

from functools import partial

import numpy as np
import pytest
import torch
from reference import error, softmax
from trial import normal, saved, synthetic, trial, upload

from attention_core import claims, registry
from attention_core.benchmarking.counting import count
from attention_core.claims import Verdict
from attention_core.claims.checks.sparse import near_diagonal, sparse_costs, sparse_time, two_layers
from attention_core.inputs import SyntheticSpec, from_synthetic

HOLDS, PARTLY, FAILS = Verdict.HOLDS, Verdict.PARTLY, Verdict.FAILS


@pytest.mark.parametrize("causal", [False, True])
def test_atrous_attention_costs_one_kth_and_local_grows_linearly_on_long_inputs(causal):
    found = trial("sparse_costs", upload(normal(2, 256, 8), causal=causal))
    assert found.verdict is HOLDS
    assert found.numbers["saving"] == pytest.approx(sparse_costs.K)
    full, atrous = (
        {row.n: row.multiply_adds for row in found.of(variant=name)}
        for name in (sparse_costs.FULL, sparse_costs.ATROUS)
    )
    assert all(adds == 2 * n * n * 8 for n, adds in full.items())
    assert atrous[256] == 2 * (256 // sparse_costs.K) ** 2 * 8 * sparse_costs.K
    # Blocks of 32 queries attend to k keys on each side; a causal input is counted without its mask, too.
    assert found.numbers["cheaper"] == pytest.approx(256 / (32 + sparse_costs.K * 2), rel=0.03)


def test_local_attention_grows_quadratically_on_a_short_input():
    found = trial("sparse_costs", upload(normal(1, 32, 8)))
    assert found.numbers["local"] == pytest.approx(2)
    assert found.verdict is PARTLY


def test_the_sparse_cost_claim_fails_on_a_tiny_input():
    assert trial("sparse_costs", upload(normal(1, 6, 8))).verdict is FAILS


def test_the_sparse_cost_claim_fails_for_algorithms_that_compute_all_pairs(monkeypatch):
    monkeypatch.setitem(sparse_costs.ATTENTIONS, sparse_costs.ATROUS, registry.get("softmax"))
    assert trial("sparse_costs", upload(normal(1, 256, 8))).verdict is PARTLY
    monkeypatch.setitem(sparse_costs.ATTENTIONS, sparse_costs.LOCAL, registry.get("softmax"))
    assert trial("sparse_costs", upload(normal(1, 256, 8))).verdict is FAILS


@pytest.mark.parametrize("n", [16, 17, 37, 64])
@pytest.mark.parametrize("causal", [False, True])
def test_a_local_and_an_atrous_layer_connect_all_tokens(n, causal):
    found = trial("two_layers", upload(normal(2, n, 8), causal=causal))
    assert (found.verdict, found.numbers["two"]) == (HOLDS, 100)
    assert found.numbers["one"] < 100


def test_connected_shares_equal_those_of_the_patterns():
    n, r = 37, two_layers.stride(37)
    found = trial("two_layers", upload(normal(1, n, 8)))
    away = np.subtract.outer(np.arange(n), np.arange(n))
    local, atrous = abs(away) < r, away % r == 0
    assert found.numbers["one"] == pytest.approx(100 * local.mean())
    assert found.numbers["local"] == pytest.approx(100 * (abs(away) <= 2 * (r - 1)).mean())
    assert found.numbers["atrous"] == pytest.approx(100 * atrous.mean())
    assert found.numbers["keys"] == pytest.approx(100 * (local.mean() + atrous.mean()))
    [two] = found.of(stack=two_layers.MIXED, layers=2)
    assert two.share == pytest.approx(100 * (local.astype(int) @ atrous.astype(int) > 0).mean())


@pytest.mark.parametrize(("sharpness", "verdict"), [(20.0, PARTLY), (1000.0, FAILS)])
def test_weights_that_underflow_to_zero_connect_no_tokens(sharpness, verdict):
    found = trial("two_layers", synthetic("locally_correlated", sharpness=sharpness))
    assert found.verdict is verdict
    assert found.numbers["two"] < 100


def test_a_window_narrower_than_the_stride_leaves_gaps():
    qkv = from_synthetic(SyntheticSpec(n=64, heads=1))
    narrow = registry.get("local", window=2), registry.get("atrous", stride=8)
    wrong = two_layers.reach_rows(two_layers.MIXED, narrow, qkv)
    others = trial("two_layers", synthetic("locally_correlated", n=64, heads=1)).rows
    rows = [*wrong, *(row for row in others if row.stack != two_layers.MIXED)]
    numbers, verdict = claims.claim("two_layers").judge(rows)
    # The window bridges five of every eight distances: those from -2 to 2.
    assert numbers["two"] == pytest.approx(100 * 5 / 8, abs=3)
    assert verdict is FAILS


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(sparse_time, "LENGTHS", (256, 1024))
    monkeypatch.setattr(sparse_time, "ROUNDS", 3)


@pytest.fixture
def times(monkeypatch, quick):
    """Return a mapping from each timed function to its time in ms at n tokens, which a clock in the claim shows.

    At first, all times are those of full attention.
    """
    table = dict.fromkeys(sparse_time.ATTENTIONS, lambda n: 1e-5 * n**2)

    class Clock:
        def seconds(self, call, repeats):
            return 1e-3 * call()

    def call(name, q, k, v, *, causal):
        return lambda: table[name](q.shape[-2])

    monkeypatch.setattr(sparse_time, "CpuClock", Clock)
    monkeypatch.setattr(sparse_time, "timed_call", call)
    return table


@pytest.mark.usefixtures("quick")
def test_each_function_is_timed_at_each_length():
    found = trial("sparse_time", upload(normal(2, 256, 64)))
    assert (found.numbers["own"], found.numbers["longest"]) == (256, 1024)
    assert {row.ratio for row in found.of(variant=sparse_time.FULL)} == {1}
    assert {(row.variant, row.n) for row in found.rows} >= {
        *((name, 256) for name in sparse_time.ATTENTIONS),
        (sparse_time.LOCAL, 1024),
    }
    held, masked = (found.of(variant=name, n=256) for name in (sparse_time.MATRIX, sparse_time.MASKED))
    assert [row.unmasked for row in masked] == [b.ms / a.ms for a, b in zip(held, masked, strict=True)]


@pytest.mark.parametrize(("ms", "verdict"), [(0.004, PARTLY), (0.002, FAILS), (0.02, HOLDS)])
def test_the_verdict_depends_on_whether_local_and_sparse_attention_are_slower_than_full_attention(times, ms, verdict):
    # Full attention takes 0.66 ms at the input's 256 tokens, and 10.5 ms at 1,024 tokens.
    times |= {sparse_time.LOCAL: lambda n: ms * n, sparse_time.SPARSE: lambda n: ms * n}
    times[sparse_time.ATROUS] = lambda n: 0.001 * n
    found = trial("sparse_time", upload(normal(2, 256, 64)))
    assert found.numbers["local"] == found.numbers["sparse"] == pytest.approx(ms * 1024 / 10.48576)
    assert found.numbers["local_here"] == pytest.approx(ms * 256 / 0.65536)
    assert found.verdict is verdict


@pytest.mark.parametrize(("atrous", "masked", "verdict"), [(0.9, 0.95, HOLDS), (1.1, 0.95, PARTLY), (0.9, 0.8, PARTLY)])
def test_the_claim_holds_only_if_atrous_attention_is_faster_and_a_mask_saves_no_time(times, atrous, masked, verdict):
    for name, ratio in ((sparse_time.LOCAL, 2), (sparse_time.SPARSE, 2), (sparse_time.ATROUS, atrous)):
        times[name] = lambda n, ratio=ratio: ratio * 1e-5 * n**2
    times[sparse_time.MASKED] = lambda n: masked * 1e-5 * n**2
    found = trial("sparse_time", upload(normal(1, 64, 64)))
    assert (found.numbers["atrous"], found.numbers["masked"]) == (pytest.approx(atrous), pytest.approx(masked))
    assert found.verdict is verdict


@pytest.mark.parametrize("causal", [False, True])
def test_the_masked_matrix_equals_local_attention(causal):
    q, k, v = (torch.from_numpy(normal(1, 80, 8, seed=seed)) for seed in range(3))
    outs = {name: sparse_time.timed_call(name, q, k, v, causal=causal)() for name in sparse_time.ATTENTIONS}
    torch.testing.assert_close(outs[sparse_time.MATRIX], outs[sparse_time.FULL])
    torch.testing.assert_close(outs[sparse_time.MASKED], outs[sparse_time.LOCAL])
    assert not torch.allclose(outs[sparse_time.LOCAL], outs[sparse_time.FULL])


@pytest.mark.parametrize("causal", [False, True])
def test_the_masked_matrix_is_as_large_as_the_unmasked_one(causal):
    q, k, v = (torch.from_numpy(normal(1, 256, 8, seed=seed)) for seed in range(3))
    held = {name: count(sparse_time.timed_call(name, q, k, v, causal=causal)) for name in sparse_time.ATTENTIONS}
    assert held[sparse_time.MASKED].multiply_adds == held[sparse_time.MATRIX].multiply_adds == 2 * 256**2 * 8
    for name, counts in held.items():
        assert (counts.peak_elements > 256**2) == (name in (sparse_time.MATRIX, sparse_time.MASKED))


def test_a_variant_is_not_timed_at_lengths_that_would_take_too_long(monkeypatch):
    # On this clock, holding the scores takes 0.01 s at 64 tokens, and everything else takes no time.
    class Clock:
        def seconds(self, call, repeats):
            held = call.__name__ == "held"
            return (call() if held else 1e-6) * 1.0

    def call(name, q, k, v, *, causal):
        def held():
            return 0.01 * (q.shape[-2] / 64) ** 2

        return held if name in (sparse_time.MATRIX, sparse_time.MASKED) else lambda: 0

    monkeypatch.setattr(sparse_time, "CpuClock", Clock)
    monkeypatch.setattr(sparse_time, "timed_call", call)
    found = trial("sparse_time", upload(normal(1, 64, 4)))
    assert {row.n for row in found.of(variant=sparse_time.LOCAL)} == {64, 128, 512, 1024}
    # 0.04 s at 128 tokens, 0.64 s at 512.
    assert {row.n for row in found.of(variant=sparse_time.MASKED)} == {64, 128}
    assert (found.numbers["matrix"], found.numbers["longest"]) == (128, 1024)


@pytest.mark.usefixtures("quick")
def test_only_the_input_length_is_timed_if_longer_inputs_take_too_long(monkeypatch):
    monkeypatch.setattr(sparse_time, "MAX_SECONDS", 1e-9)
    found = trial("sparse_time", upload(normal(1, 64, 16)))
    assert {row.n for row in found.rows} == {64}
    assert found.numbers["longest"] == 64


def test_longer_inputs_are_timed_even_if_the_input_has_two_tokens(monkeypatch):
    # The time for two tokens is overhead; a projection from it would exclude long inputs.
    monkeypatch.setattr(sparse_time, "ROUNDS", 1)
    found = trial("sparse_time", upload(normal(4, 2, 32)))
    assert {row.n for row in found.rows} == {2, *sparse_time.LENGTHS}


def test_the_verdict_uses_the_median_ratio_of_each_variant():
    def rows(name, n, *ratios, own=False):
        unmasked = 0.5 if name == sparse_time.MASKED else None
        row = partial(sparse_time.TimeRow, variant=name, n=n, own=own, ms=1.0, unmasked=unmasked)
        return [row(ratio=ratio) for ratio in ratios]

    found = []
    for i, name in enumerate(sparse_time.ATTENTIONS):
        found += [*rows(name, 64, 0.5, 1.0 + i, 9.0, own=True), *rows(name, 2048, 0.1 * (i + 1))]
    numbers, verdict = claims.claim("sparse_time").judge(found)
    expected = {"local_here": 4.0, "sparse_here": 5.0, "atrous_here": 6.0, "local": 0.4, "sparse": 0.5, "atrous": 0.6}
    assert numbers == pytest.approx(
        {**expected, "held": 0.2, "masked": 0.5, "matrix": 2048, "own": 64, "longest": 2048}
    )
    shorter = [row for row in found if row.n == 64 or row.variant not in (sparse_time.MATRIX, sparse_time.MASKED)]
    numbers, _ = claims.claim("sparse_time").judge(shorter)
    assert (numbers["held"], numbers["masked"], numbers["matrix"], numbers["longest"]) == (2.0, 0.5, 64, 2048)
    assert verdict is PARTLY


@pytest.mark.parametrize(
    ("kind", "sharpness", "verdict"),
    [
        ("locally_correlated", 4.0, HOLDS),  # Near the diagonal, with little elsewhere.
        ("locally_correlated", 1.0, PARTLY),  # Near the diagonal, but half is elsewhere.
        ("periodic", 1.0, PARTLY),  # Spread evenly, but a window of one period has one of each.
        ("gaussian", 1.0, FAILS),
        ("needle", 1.0, FAILS),
    ],
)
def test_windows_keep_most_of_the_attention_near_the_diagonal(kind, sharpness, verdict):
    assert trial("near_diagonal", saved(kind, sharpness=sharpness)).verdict is verdict


def test_a_synthetic_sequence_is_untestable_for_the_near_diagonal_claim():
    found = trial("near_diagonal", synthetic("locally_correlated"))
    assert found.verdict is Verdict.UNTESTABLE
    assert "trained models. Choose a text" in found.why


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
    # Each token attends to itself and, far more, to the first one.
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


def test_tokens_that_attend_only_to_themselves_have_no_window_error():
    diagonal = np.broadcast_to(40 * np.eye(32, dtype=np.float32), (2, 32, 32))
    found = trial("near_diagonal", upload(diagonal))
    assert found.verdict is HOLDS
    for attention in (near_diagonal.ALL_TOKENS, near_diagonal.REST):
        assert min(row.mass for row in found.of(attention=attention)) == pytest.approx(100)
    assert found.numbers["mass"] == found.numbers["mass_rest"] == pytest.approx(100)
    assert found.numbers["error"] == pytest.approx(0, abs=1e-3)
    assert found.numbers["error_rest"] == pytest.approx(0, abs=1e-3)


def test_the_median_head_decides_the_near_diagonal_verdict():
    near, far = 40 * np.eye(32, dtype=np.float32), np.zeros((32, 32), np.float32)
    v = normal(3, 32, 4)
    heads = {"local": np.stack([near, near, far]), "even": np.stack([near, far, far])}
    assert trial("near_diagonal", upload(heads["local"], v=v)).verdict is HOLDS
    assert trial("near_diagonal", upload(heads["even"], v=v)).verdict is FAILS
    assert trial("near_diagonal", upload(heads["even"], v=v), head=0).verdict is HOLDS
