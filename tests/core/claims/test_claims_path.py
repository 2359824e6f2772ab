"""Tests of the claim that PaTH along the keys is DeltaNet."""

import numpy as np
import pytest
from trial import normal, trial, upload

from attention_core.claims import Verdict
from attention_core.claims.checks.delta import path_deltanet
from attention_core.variants.gated.path import RULES


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def system(q, k, w):
    """Return PaTH's matrix by the linear system in its paper."""
    n = len(q)
    inverse = np.linalg.inv(np.eye(n) + np.tril(w @ w.T, -1))
    return np.tril(q @ k.T) - np.tril(q @ w.T) @ inverse @ np.tril(w @ k.T, -1)


def test_differences_equal_those_of_the_matrices_in_the_paper():
    q, k = normal(2, 20, 6), normal(2, 20, 6, seed=1)
    found = trial("path_deltanet", upload(q, k))
    for head in range(2):
        queries, keys = (unit(x[head].astype(np.float64)) for x in (q, k))
        delta = np.tril(queries @ keys.T) @ np.linalg.inv(np.eye(20) + np.tril(keys @ keys.T, -1))
        turned = np.concatenate([-keys[:, 3:], keys[:, :3]], -1)
        for name, w in (
            (path_deltanet.NAMES["keys"], keys),
            (path_deltanet.NAMES["turned keys"], turned),
            (path_deltanet.NAMES["fixed"], np.full((20, 6), 6**-0.5)),
        ):
            apart = abs(system(queries, keys, w) - delta)
            for n in (2, 4, 8, 16, 20):
                [row] = found.of(along=name, head=head, n=n)
                assert row.difference == pytest.approx(apart[:n].max(), abs=1e-12)
    assert found.verdict is Verdict.HOLDS
    assert found.numbers["same"] < 1e-12
    assert min(found.numbers["turned"], found.numbers["fixed"]) > 0.1


def test_keys_of_norm_zero_give_a_difference_of_zero():
    assert trial("path_deltanet", upload(np.zeros((1, 20, 4), np.float32))).numbers["same"] == 0


def test_every_path_rule_has_a_name():
    assert set(path_deltanet.NAMES) == set(RULES)
