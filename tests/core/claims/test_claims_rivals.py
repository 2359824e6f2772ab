"""Tests of claims about the series of softmax and about the sparsity of its alternatives."""

import numpy as np
import pytest
from reference import softmax
from trial import normal, synthetic, trial, upload

from attention_core.claims import Verdict
from attention_core.claims.checks.linear import linear_sparsity
from attention_core.claims.checks.softmax import centred_keys

HOLDS, FAILS = Verdict.HOLDS, Verdict.FAILS


def series(q, k):
    x = q.astype(np.float64) @ np.swapaxes(k.astype(np.float64), -1, -2) / np.sqrt(q.shape[-1])
    parabola = 1 + x + x**2 / 2
    return parabola / parabola.sum(-1, keepdims=True)


def percent_error(a, b):
    return 100 * np.linalg.norm(a - b, axis=(-2, -1)) / np.linalg.norm(b, axis=(-2, -1))


def softmax_series(q, k):
    """Return softmax to second order around equal logits, from its derivatives.

    The formula is p (1 + c + (c² - mean c²) / 2), p = 1/n.
    """
    x = q.astype(np.float64) @ np.swapaxes(k.astype(np.float64), -1, -2) / np.sqrt(q.shape[-1])
    c = x - x.mean(-1, keepdims=True)
    return (1 + c + (c**2 - (c**2).mean(-1, keepdims=True)) / 2) / q.shape[-2]


def test_the_errors_of_the_three_series_equal_their_formulas():
    q, k = normal(3, 30, 8), normal(3, 30, 8, seed=1) + 2
    found = trial("centred_keys", upload(q, k))
    assert found.verdict is HOLDS
    wanted, centred = softmax(q, k), k - k.mean(1, keepdims=True, dtype=np.float64)
    for name, matrix in (
        (centred_keys.SOFTMAX, softmax_series(q, k)),
        (centred_keys.EXPONENTIAL, series(q, k)),
        (centred_keys.CENTRED, series(q, centred)),
    ):
        errors = [row.error for row in found.of(series=name)]
        assert errors == pytest.approx(percent_error(matrix, wanted), rel=1e-5)
    assert found.numbers["closer"] == 100
    assert found.numbers["own"] == pytest.approx(np.median(percent_error(softmax_series(q, k), wanted)), rel=1e-5)
    assert found.numbers["exponential"] == pytest.approx(np.median(percent_error(series(q, k), wanted)), rel=1e-5)


def test_the_series_of_softmax_is_less_accurate_for_large_logits():
    # Its entries grow with the square of the logits; each row of the other series is divided by its sum.
    found = trial("centred_keys", upload(4 * normal(2, 30, 8), normal(2, 30, 8, seed=1)))
    assert found.numbers["own"] > found.numbers["exponential"]
    assert found.verdict is FAILS


def test_uniform_attention_is_untestable_for_series():
    found = trial("centred_keys", upload(np.zeros((1, 12, 4), np.float32), normal(1, 12, 4)))
    assert found.verdict is Verdict.UNTESTABLE


def test_sharp_softmax_is_sparser_than_every_linear_attention():
    found = trial("linear_sparsity", synthetic("gaussian", n=60, heads=2, d=8, sharpness=3.0))
    assert found.verdict is HOLDS
    assert len(found.rows) == 2 * (1 + len(linear_sparsity.LINEAR))
    qkv = synthetic("gaussian", n=60, heads=2, d=8, sharpness=3.0).load()
    weights = softmax(qkv.q.numpy(), qkv.k.numpy())
    wanted = (abs(weights).mean(-1) / np.sqrt((weights**2).mean(-1))).mean(-1)
    rows = found.of(variant=linear_sparsity.SOFTMAX)
    assert [row.sparsity for row in rows] == pytest.approx(wanted, rel=1e-5)


def test_softmax_over_nearly_equal_logits_is_not_sparser_than_linear_attention():
    found = trial("linear_sparsity", upload(np.full((2, 20, 4), 1e-3, np.float32)))
    assert found.verdict is FAILS
    assert found.numbers["softmax"] == pytest.approx(1)
