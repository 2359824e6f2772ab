"""Tests of claims about cost and form: memory, linear cost, normalisation, three algorithms."""

from dataclasses import replace

import numpy as np
import pytest
from trial import normal, synthetic, trial, upload

import attention_core as ac
from attention_core import claims
from attention_core.claims import Verdict
from attention_core.claims.checks.linear import double_softmax, linear_cost, three_algorithms
from attention_core.claims.checks.softmax import memory_quadruples
from attention_core.ops.linear.causal_scan import CHUNK

HOLDS, PARTLY, FAILS = Verdict.HOLDS, Verdict.PARTLY, Verdict.FAILS


def judge(key, rows):
    return claims.claim(key).judge(rows)[1]


def test_memory_of_scores_quadruples_and_a_fused_kernel_stores_no_scores():
    found = trial("memory_quadruples", upload(normal(3, 64, 8)))
    assert found.verdict is HOLDS
    assert found.numbers["factor"] == pytest.approx(4)
    assert found.numbers["fused"] == pytest.approx(2)
    assert found.numbers["elements"] == 64**2
    for row in found.of(variant=memory_quadruples.MATRIX):
        assert row.largest == row.n**2
    for row in found.of(variant=memory_quadruples.FUSED):
        assert row.largest == row.n * 8


def test_the_quadrupling_claim_fails_if_memory_only_doubles():
    rows = trial("memory_quadruples", upload(normal(1, 64, 8))).rows
    fused = [row.largest for row in rows if row.variant == memory_quadruples.FUSED]
    doubling = [replace(row, largest=fused.pop(0)) if row.variant == memory_quadruples.MATRIX else row for row in rows]
    assert judge("memory_quadruples", doubling) is FAILS


def test_linear_attention_is_cheaper_if_tokens_outnumber_the_head_size():
    found = trial("linear_cost", upload(normal(2, 64, 8)))
    assert found.verdict is HOLDS
    n, d = 64, 8
    [full], [linear] = found.of(variant=linear_cost.FULL, n=n), found.of(variant=linear_cost.LINEAR, n=n)
    assert full.multiply_adds == 2 * n * n * d
    # Keys times values and ones, and queries times both.
    assert linear.multiply_adds == 2 * n * d * (d + 1)
    assert linear.peak < full.peak
    assert found.numbers["work"] == pytest.approx(1)
    assert found.numbers["full"] == pytest.approx(2)
    assert found.numbers["saved"] == pytest.approx(n / (d + 1))


def test_linear_attention_costs_more_than_full_attention_on_a_short_input():
    found = trial("linear_cost", upload(normal(1, 16, 64)))
    assert found.verdict is PARTLY
    assert found.numbers["saved"] < 1


def test_the_linear_cost_claim_fails_for_full_attention(monkeypatch):
    monkeypatch.setitem(linear_cost.ATTEND, linear_cost.LINEAR, linear_cost.ATTEND[linear_cost.FULL])
    assert trial("linear_cost", upload(normal(1, 64, 8))).verdict is FAILS


def test_rows_of_double_softmax_sum_to_one_without_a_causal_mask():
    q, k = normal(2, 40, 8), normal(2, 40, 8, seed=1)
    found = trial("double_softmax", upload(q, k))
    assert found.verdict is HOLDS
    assert found.numbers["off"] == found.numbers["used"] < 1e-5
    features = np.exp(q) / np.exp(q).sum(-1, keepdims=True)
    positions = np.exp(k) / np.exp(k).sum(-2, keepdims=True)
    cut = np.tril(features @ positions.swapaxes(-1, -2)).sum(-1)
    assert found.numbers["hidden"] == pytest.approx(cut.min(), rel=1e-5)
    elu = [np.where(x > 0, x + 1, np.exp(x)) for x in (q, k)]
    assert found.numbers["other"] == pytest.approx((elu[0] @ elu[1].swapaxes(-1, -2)).sum(-1).max(), rel=1e-5)


def test_rows_of_double_softmax_need_a_division_under_a_causal_mask():
    found = trial("double_softmax", upload(normal(2, 40, 8), causal=True))
    assert found.verdict is PARTLY
    assert found.numbers["off"] < 1e-5
    assert found.numbers["used"] == pytest.approx(1 - found.numbers["hidden"])


@pytest.mark.parametrize("product", [double_softmax.DOUBLE, double_softmax.LANDMARKS])
def test_the_double_softmax_claim_fails_for_a_product_with_other_row_sums(product):
    found = trial("double_softmax", upload(normal(2, 40, 8)))
    undivided = [row.sum for row in found.of(product=double_softmax.OTHER)]
    others = [row for row in found.rows if row.product != product]
    wrong = [replace(row, sum=total) for row, total in zip(found.of(product=product), undivided, strict=True)]
    assert judge("double_softmax", [*others, *wrong]) is FAILS


@pytest.mark.parametrize("source", [upload(normal(2, 128, 32)), upload(normal(2, 100, 7)), synthetic("needle", n=40)])
def test_three_algorithms_agree_and_cumsum_saves_memory_beyond_d_squared_tokens(source):
    found = trial("three_algorithms", source)
    assert found.verdict is HOLDS
    assert found.numbers["difference"] < 1e-5
    size = found.numbers["size"]
    assert (found.numbers["short"], found.numbers["long"]) == (size**2 // 2, 2 * size**2)
    assert {row.algorithm for row in found.rows} == set(three_algorithms.ALGORITHMS)
    states = [row.elements / row.n for row in found.of(algorithm=three_algorithms.CUMSUM)]
    assert min(states) >= size * (size + 1)
    for row in found.of(algorithm=three_algorithms.MATRIX):
        assert row.elements >= row.n**2


@pytest.mark.parametrize(
    ("key", "cost"), [("memory_quadruples", "largest"), ("linear_cost", "peak"), ("three_algorithms", "elements")]
)
def test_costs_are_counted_for_one_head(key, cost):
    source = upload(normal(3, 128, 8))

    def counted(head):
        return [getattr(row, cost) for row in trial(key, source, head).rows]

    assert counted(None) == pytest.approx(counted(1), rel=0.02)


@pytest.mark.parametrize(("n", "d"), [(71, 32), (512, 5), (512, 1), (72, 32), (512, 6)])
def test_the_three_algorithms_need_more_than_one_chunk_to_be_judged(n, d):
    found = trial("three_algorithms", upload(normal(1, n, d)))
    if n < 72 or d < 6:
        assert found.verdict is Verdict.UNTESTABLE
        assert (
            "At least 72 tokens are needed"
            if n < 72
            else f"For head size {d}, this check uses at most 2 × {d}² = {2 * d * d} tokens."
        ) in found.why
    else:
        assert found.verdict is HOLDS
        assert found.numbers["long"] == 72 > CHUNK


def test_the_three_algorithms_claim_fails_if_one_is_not_causal(monkeypatch):
    monkeypatch.setitem(three_algorithms.ALGORITHMS, "in chunks", ac.get("linear").attend)
    assert trial("three_algorithms", upload(normal(1, 128, 8))).verdict is FAILS


def test_the_three_algorithms_claim_holds_partly_if_cumsum_stores_the_matrix(monkeypatch):
    matrix = three_algorithms.ALGORITHMS[three_algorithms.MATRIX]
    monkeypatch.setitem(three_algorithms.ALGORITHMS, three_algorithms.CUMSUM, matrix)
    found = trial("three_algorithms", upload(normal(1, 128, 8)))
    assert found.numbers["below"] == found.numbers["above"] == 1
    assert found.verdict is PARTLY


def test_the_experiment_text_states_the_chunk_size_of_the_algorithm():
    assert f"chunks of {CHUNK} tokens" in claims.claim("three_algorithms").experiment
