"""Tests of claims about the delta rule: its inverse, where it is unstable, and softmax as a delta rule."""

import numpy as np
import pytest
from reference import error, softmax
from trial import normal, synthetic, trial, upload

from attention_core import claims
from attention_core.claims import Verdict
from attention_core.claims.checks.delta import delta_unstable, inverse_within_one, softmax_delta_rule

HOLDS, PARTLY, FAILS = Verdict.HOLDS, Verdict.PARTLY, Verdict.FAILS


def unit(k):
    return k / np.linalg.norm(k, axis=-1, keepdims=True)


@pytest.mark.parametrize("n", [4, 31, 64])
def test_the_largest_entries_equal_those_of_the_inverse(n):
    k = normal(2, n, 8) * np.linspace(0.5, 2, n)[:, None].astype(np.float32)
    found = trial("inverse_within_one", upload(k))
    for head, own in enumerate(k.astype(np.float64)):
        mean = own / np.sqrt((own**2).sum(-1).mean())
        for kind, keys in ((inverse_within_one.UNIT, unit(own)), (inverse_within_one.FREE, mean)):
            for row in found.of(keys=kind, head=head):
                part = keys[: row.n]
                inverse = np.linalg.inv(np.eye(row.n) + np.tril(part @ part.T, -1))
                assert row.largest == pytest.approx(abs(np.tril(inverse, -1)).max())
    assert found.verdict is HOLDS
    assert 0 < found.numbers["unit"] < 1  # The diagonal would make it 1 for every input.
    assert {row.n for row in found.rows} >= {2, 4, n}


def test_entries_of_the_inverse_may_exceed_one_without_unit_keys():
    k = normal(1, 64, 4)
    k[:, ::2] *= 5
    assert trial("inverse_within_one", upload(k)).numbers["beyond"] == 100


def test_the_remaining_state_is_the_product_of_the_steps():
    k = normal(2, 20, 6)
    found = trial("delta_unstable", upload(k))
    for head, keys in enumerate(unit(k.astype(np.float64))):
        for strength in delta_unstable.STRENGTHS:
            left = np.eye(6)
            for i, key in enumerate(keys, 1):
                left = (np.eye(6) - strength * np.outer(key, key)) @ left
                if i in (10, 20):
                    after = delta_unstable.WHOLE if i == 20 else delta_unstable.HALF
                    [row] = found.of(strength=strength, head=head, after=after)
                    assert row.factor == pytest.approx(np.linalg.norm(left, 2))
    assert found.verdict is HOLDS
    assert found.numbers["within"] <= 1 + 1e-9
    assert found.numbers["far"] > found.numbers["half"] > 1


def test_a_rounding_error_is_not_shown_as_growth():
    rows = [
        delta_unstable.NormRow(strength=strength, after=after, head=0, factor=1 + 1e-15 if strength <= 2 else 3.0)
        for strength in delta_unstable.STRENGTHS
        for after in (delta_unstable.HALF, delta_unstable.WHOLE)
    ]
    found = delta_unstable.numbers(rows)
    assert found["within"] == 1
    assert claims.claim("delta_unstable").formatted_numbers(found)["within"] == "1"


def test_keys_of_norm_zero_are_untestable():
    found = trial("delta_unstable", upload(np.zeros((1, 20, 4), np.float32)))
    assert found.verdict is Verdict.UNTESTABLE
    assert "a key with norm 0" in found.why


def stepped(q, k, cap):
    """Return the matrix of the article's recurrence, by running it on V = I."""
    n, d = q.shape
    q, k = q / d**0.25, k / d**0.25
    state, rows, units = np.zeros((n, d)), [], np.eye(n)
    for t in range(1, n + 1):
        c = k[t - 1] - k[:t].mean(0)
        before = units[: t - 1].mean(0) if t > 1 else np.zeros(n)
        beta = min(1 / t, cap / (c @ c)) if c @ c else 1 / t
        state = (1 - 1 / t) * state - beta * np.outer(state @ c, c) + beta * np.outer(units[t - 1] - before, c)
        rows.append(state @ q[t - 1] + units[:t].mean(0))
    return np.stack(rows)


def first_order(q, k):
    """Return causal softmax to first order around equal logits: (1 + x - mean x) / t over the first t keys."""
    n, d = q.shape
    x, rows = q @ k.T / np.sqrt(d), np.zeros((n, n))
    for t in range(1, n + 1):
        seen = x[t - 1, :t]
        rows[t - 1, :t] = (1 + seen - seen.mean()) / t
    return rows


def test_the_errors_of_softmax_as_a_delta_rule_equal_their_formulas():
    q, k = 2 * normal(2, 24, 8), 3 * normal(2, 24, 8, seed=1)
    found = trial("softmax_delta_rule", upload(q, k))
    for head in range(2):
        exact = softmax(q[head], k[head], causal=True)
        wide = q[head].astype(np.float64), k[head].astype(np.float64)
        forms = {
            softmax_delta_rule.MEAN: np.tri(24) / np.arange(1, 25)[:, None],
            softmax_delta_rule.FIRST: first_order(*wide),
            softmax_delta_rule.FREE: stepped(*wide, np.inf),
            softmax_delta_rule.CAPPED: stepped(*wide, 1.0),
        }
        for form, matrix in forms.items():
            [row] = found.of(form=form, head=head)
            assert row.error == pytest.approx(error(matrix, exact), rel=1e-4)
        c = np.array([wide[1][i] - wide[1][: i + 1].mean(0) for i in range(24)]) / 8**0.25
        taken = (c**2).sum(-1) / np.arange(1, 25)
        assert row.unstable == pytest.approx(100 * (taken > 2 - 1 / np.arange(1, 25)).mean())
        assert row.unstable > 0


@pytest.mark.parametrize(
    ("sharpness", "verdict"),
    [
        (0.3, PARTLY),  # Small logits: both are near softmax, and the first-order expansion is nearer.
        (8.0, FAILS),
    ],
)
def test_softmax_is_close_to_a_delta_rule_for_small_logits(sharpness, verdict):
    assert trial("softmax_delta_rule", synthetic("gaussian", n=128, sharpness=sharpness)).verdict is verdict


def test_the_cap_does_not_decide_the_verdict():
    def judge(**errors):
        rows = [
            softmax_delta_rule.StepRow(form=getattr(softmax_delta_rule, form), head=0, error=error, unstable=0.0)
            for form, error in errors.items()
        ]
        return claims.claim("softmax_delta_rule").judge(rows)

    numbers, verdict = judge(MEAN=0.9, FIRST=0.6, FREE=0.4, CAPPED=9.0)
    assert (verdict, numbers["closer"], numbers["near"], numbers["capped_near"]) == (HOLDS, 100, 100, 0)
    assert judge(MEAN=0.9, FIRST=2.0, FREE=1.2, CAPPED=0.1)[1] is FAILS  # Worse than the mean of the values.
    numbers, verdict = judge(MEAN=0.9, FIRST=0.6, FREE=0.7, CAPPED=0.1)
    assert (verdict, numbers["closer"], numbers["near"], numbers["capped_near"]) == (FAILS, 0, 0, 100)


def test_the_sentences_name_the_bound_on_the_error():
    claim = claims.claim("softmax_delta_rule")
    written = f"{claim.bounds['near']:.0f}%"
    assert "The matrix error of the delta rule is at most {near}% in at least" in claim.rule
    assert f"at most {written} in {{capped_near}}%" in claim.details
