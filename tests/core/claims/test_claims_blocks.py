"""Tests of second-order block scores compared with mean keys: better cases, failures, and the measured mass."""

import math

import numpy as np
import pytest
from reference import softmax
from trial import normal, synthetic, trial, upload

from attention_core.claims import Verdict
from attention_core.claims.checks.sparse import second_order_blocks

KEY = "second_order_blocks"


def captured(q, k, score, chosen, *, causal):
    """Return the share of attention on own and chosen blocks, query by query."""
    n, found = len(q), []
    full = softmax(q, k, causal=causal)
    for i in range(n):
        own = i // 8
        rivals = [b for b in range(-(-n // 8)) if (b < own if causal else b != own)]
        if len(rivals) <= chosen:
            continue
        logits = {b: k[8 * b : 8 * b + 8].astype(float) @ q[i] / math.sqrt(q.shape[1]) for b in rivals}
        order = sorted(rivals, key=lambda b: (-score(logits[b]), b))[:chosen]
        found.append(sum(full[i, 8 * b : 8 * b + 8].sum() for b in (own, *order)))
    return 100 * np.mean(found)


SCORES = {
    second_order_blocks.MEAN: np.mean,
    second_order_blocks.SECOND: lambda x: x.mean() + x.var() / 2,
    second_order_blocks.MASS: lambda x: np.log(np.exp(x).sum()),
}


@pytest.mark.parametrize("causal", [False, True])
def test_the_captured_mass_equals_a_loop_over_queries_and_blocks(causal):
    q, k = 2 * normal(2, 51, 8), normal(2, 51, 8, seed=1)
    found = trial(KEY, upload(q, k, causal=causal))
    for name, score in SCORES.items():
        for chosen in (1, 4):
            rows = found.of(score=name, chosen=chosen)
            for row in rows:
                wanted = captured(q[row.head], k[row.head], score, chosen, causal=causal)
                assert row.mass == pytest.approx(wanted, rel=1e-4), (name, chosen)
            assert len(rows) == 2


def test_the_second_order_score_is_better_for_gaussian_inputs():
    found = trial(KEY, synthetic("gaussian", n=128, d=16, heads=4))
    assert found.verdict is Verdict.HOLDS
    assert found.numbers["mean"] < found.numbers["second"] <= found.numbers["best"] + 1e-9


def second_order_failure():
    """Return queries and keys of two heads in which second-order scores miss the block with the most attention."""
    k = np.zeros((2, 48, 2), np.float32)
    k[:, :8, 0] = 0.5
    k[:, 8::2, 0] = -6  # Logits of -6 and 0: a mean of -3, a variance of 9, and less attention than 0.5 throughout.
    q = np.zeros_like(k)
    q[..., 0] = math.sqrt(2)
    return q, k


def test_the_second_order_score_fails_if_logits_spread_below_their_mean():
    found = trial(KEY, upload(*second_order_failure()))
    assert found.verdict is Verdict.FAILS
    assert found.numbers["loses"] == 100


def test_a_head_with_equal_weights_counts_as_neither_win_nor_loss():
    q, k = second_order_failure()
    q[0] = 0
    found = trial(KEY, upload(q, k))
    assert found.verdict is Verdict.FAILS
    assert (found.numbers["wins"], found.numbers["loses"]) == (0, 50)


def test_uniform_attention_is_untestable_for_block_scores():
    found = trial(KEY, upload(np.zeros((1, 64, 4), np.float32), normal(1, 64, 4)))
    assert found.verdict is Verdict.UNTESTABLE
    assert "contain the same share of softmax's weight in every head" in found.why
