"""Claims about softmax's series and about how sparse its rivals are."""

import numpy as np
import pytest
from trial import normal, softmax, synthetic, trial, upload

from attention_core import claims
from attention_core.claims import Verdict, centred_keys, linear_sparsity

HOLDS, PARTLY, FAILS = Verdict.HOLDS, Verdict.PARTLY, Verdict.FAILS


def series(q, k):
    x = q.astype(np.float64) @ np.swapaxes(k.astype(np.float64), -1, -2) / np.sqrt(q.shape[-1])
    parabola = 1 + x + x**2 / 2
    return parabola / parabola.sum(-1, keepdims=True)


def off(a, b):
    return 100 * np.linalg.norm(a - b, axis=(-2, -1)) / np.linalg.norm(b, axis=(-2, -1))


def test_keys_with_a_common_part_are_better_without_it():
    q, k = normal(3, 30, 8), normal(3, 30, 8, seed=1) + 2
    found = trial("centred_keys", upload(q, k))
    assert found.verdict is HOLDS
    wanted, centred = softmax(q, k), k - k.mean(1, keepdims=True, dtype=np.float64)
    for name, keys in ((centred_keys.GIVEN, k), (centred_keys.CENTRED, centred)):
        errors = [row.error for row in found.of(keys=name)]
        assert errors == pytest.approx(off(series(q, keys), wanted), rel=1e-5)
    assert found.numbers["centred"] < found.numbers["given"] / 2
    assert found.numbers["helped"] == 100
    assert found.numbers["moved"] < 1e-10


def test_keys_around_zero_have_nothing_to_gain():
    k = normal(2, 30, 8)
    k -= k.mean(1, keepdims=True)
    found = trial("centred_keys", upload(normal(2, 30, 8, seed=1), k))
    assert found.numbers["centred"] == pytest.approx(found.numbers["given"], rel=1e-3)


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, HOLDS),
        ({"helped": 74.9}, PARTLY),
        ({"centred": 2.0}, PARTLY),
        ({"centred": 2.0, "helped": 74.9}, FAILS),
        ({"moved": 2e-6}, FAILS),
    ],
)
def test_the_rule_of_the_series(changed, verdict):
    claim = claims.claim("centred_keys")
    assert (
        claim.verdict({"centred": 1.0, "given": 2.0, "helped": 75.0, "moved": 1e-6} | changed, claim.bounds) is verdict
    )


def test_where_all_tokens_weigh_the_same_there_is_no_series_to_judge():
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


def test_even_softmax_is_no_sparser():
    found = trial("linear_sparsity", upload(np.full((2, 20, 4), 1e-3, np.float32)))
    assert found.verdict is FAILS
    assert found.numbers["softmax"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [({}, HOLDS), ({"less": 89.9}, PARTLY), ({"hedgehog": 0.5}, PARTLY), ({"less": 89.9, "cosformer": 0.4}, FAILS)],
)
def test_the_rule_of_sparsity(changed, verdict):
    claim = claims.claim("linear_sparsity")
    found = {"softmax": 0.5, "linear": 0.9, "hedgehog": 0.8, "cosformer": 0.7, "less": 90.0} | changed
    assert claim.verdict(found, claim.bounds) is verdict
