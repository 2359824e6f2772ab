"""Tests of claims about landmarks: the inverse between two softmaxes, and means of neighbours against clusters."""

import re
from dataclasses import replace

import numpy as np
import pytest
from reference import error, softmax
from trial import normal, synthetic, trial, upload

from attention_core import claims
from attention_core.claims import Verdict, landmark_errors
from attention_core.claims.checks.low_rank import landmark_inverse, segment_means

HOLDS, PARTLY, FAILS = Verdict.HOLDS, Verdict.PARTLY, Verdict.FAILS
KEYS = ("landmark_inverse", "segment_means")


def means(x, m):
    """Return the segment means of ``[n, d]`` for an m that divides n."""
    return x.reshape(m, -1, x.shape[-1]).mean(1)


def clusters(x, m):
    """Return the centres after four rounds of k-means from segment means."""
    centres = means(x, m)
    for _ in range(4):
        nearest = np.linalg.norm(x[:, None] - centres, axis=-1).argmin(-1)
        centres = np.stack([x[nearest == i].mean(0) if (nearest == i).any() else centres[i] for i in range(m)])
    return centres


def iterated(a, rounds=6):
    v, eye = a.T / (np.abs(a).sum(0).max() * np.abs(a).sum(1).max()), np.eye(len(a))
    for _ in range(rounds):
        av = a @ v
        v = v @ (13 * eye - av @ (15 * eye - av @ (7 * eye - av))) / 4
    return v


def between(q, own_q, own_k, k, inverse):
    return softmax(q, own_k) @ inverse(softmax(own_q, own_k)) @ softmax(own_q, k)


def pair(heads=2, n=32, d=8):
    return 2 * normal(heads, n, d).astype(np.float64), normal(heads, n, d, seed=1).astype(np.float64)


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        (synthetic("locally_correlated"), HOLDS),
        (synthetic("clustered"), PARTLY),  # Means of different neighbours resemble each other: no exact inverse.
        (synthetic("gaussian", sharpness=4.0), FAILS),  # Means represent none of their tokens.
    ],
)
def test_the_inverse_helps_if_landmarks_represent_their_tokens(source, verdict):
    assert trial("landmark_inverse", source).verdict is verdict


@pytest.mark.parametrize(
    ("kind", "sharpness", "verdict"),
    [
        ("block_topics", 1.0, HOLDS),
        ("gaussian", 4.0, PARTLY),  # Clusters are no better, and both are worse than uniform attention.
        ("periodic", 1.0, FAILS),  # Similar tokens are a period apart.
    ],
)
def test_means_of_neighbours_are_sufficient_for_similar_neighbours(kind, sharpness, verdict):
    assert trial("segment_means", synthetic(kind, sharpness=sharpness)).verdict is verdict


@pytest.mark.parametrize("share", landmark_errors.TOKENS_PER_LANDMARK)
def test_the_errors_of_the_three_inverses_equal_their_formulas(share):
    q, k = pair()
    found = trial("landmark_inverse", upload(q.astype(np.float32), k.astype(np.float32)))
    inverses = {
        landmark_inverse.DOUBLE: lambda a: np.eye(len(a)),
        landmark_inverse.ITERATED: iterated,
        landmark_inverse.EXACT: lambda a: np.linalg.pinv(a, rcond=1e-10),
    }
    m = 32 // share
    for head in range(2):
        exact = softmax(q[head], k[head])
        for form, inverse in inverses.items():
            [row] = found.of(form=form, share=share, head=head)
            own = between(q[head], means(q[head], m), means(k[head], m), k[head], inverse)
            assert row.landmarks == m
            assert row.error == pytest.approx(error(own, exact), rel=2e-3)
        [row] = found.of(form=landmark_errors.UNIFORM, share=share, head=head)
        assert row.error == pytest.approx(error(np.full((32, 32), 1 / 32), exact), rel=1e-5)


@pytest.mark.parametrize("share", landmark_errors.TOKENS_PER_LANDMARK)
def test_the_errors_of_both_kinds_of_landmarks_equal_their_formulas(share):
    q, k = pair()
    found = trial("segment_means", upload(q.astype(np.float32), k.astype(np.float32)))
    m = 32 // share
    for head in range(2):
        exact = softmax(q[head], k[head])
        for form, centres in ((segment_means.SEGMENTS, means), (segment_means.CLUSTERS, clusters)):
            [row] = found.of(form=form, share=share, head=head)
            own = between(q[head], centres(q[head], m), centres(k[head], m), k[head], iterated)
            assert row.error == pytest.approx(error(own, exact), rel=2e-3)


def test_the_numbers_are_computed_with_one_landmark_for_every_four_tokens():
    source = synthetic("locally_correlated", n=70, heads=3)
    inverse, kinds = (trial(key, source) for key in KEYS)
    assert inverse.numbers["landmarks"] == kinds.numbers["landmarks"] == 17

    def errors(found, **where):
        return np.array([row.error for row in found.of(share=4, **where)])

    double, iterations, exact = (errors(inverse, form=form) for form in landmark_inverse.FORMS)
    assert inverse.numbers["iterated_wins"] == pytest.approx(100 * (iterations < double).mean())
    assert inverse.numbers["exact_wins"] == pytest.approx(100 * (exact < double).mean())
    assert inverse.numbers["double"] == np.median(double)
    ratio = errors(kinds, form="means of neighbouring tokens") / errors(kinds, form="k-means centres")
    assert kinds.numbers["ratio"] == pytest.approx(np.median(ratio), rel=1e-4)
    assert kinds.numbers["most"] == pytest.approx(np.quantile(ratio, 0.75), rel=1e-4)
    d, m = 32, 17
    plain = 4 * 70 * m * d + 2 * m * m * d + 24 * m**3
    assert kinds.numbers["times"] == pytest.approx((plain + 2 * 2 * 4 * 70 * m * d) / plain)


def head_with_sink(sink):
    """Return queries and keys of a bidirectional head; the first token attracts attention with strength ``sink``."""
    q, k = normal(1, 64, 8), normal(1, 64, 8, seed=1)
    q[..., 0], k[..., 0] = sink, 0
    k[:, 0] = [1, 0, 0, 0, 0, 0, 0, 0]
    return q, k


@pytest.mark.parametrize("key", KEYS)
def test_a_causal_model_is_judged_only_if_it_hardly_attends_to_later_tokens(key):
    ahead = trial(key, upload(*head_with_sink(0), causal=True))
    assert ahead.verdict is Verdict.UNTESTABLE
    assert "cannot be causal, but this model is causal" in ahead.why
    q, k = head_with_sink(24)
    weights = softmax(q, k)
    found, plain = (trial(key, upload(q, k, causal=causal)) for causal in (True, False))
    assert found.verdict is plain.verdict is not Verdict.UNTESTABLE
    assert found.numbers["future"] == pytest.approx(100 * np.triu(weights, 1).sum() / weights.sum(), rel=1e-3)
    assert plain.numbers["future"] == 0
    sentences = [" ".join(claims.claim(key).sentences(each.numbers)) for each in (found, plain)]
    assert ["was measured without its mask" in each for each in sentences] == [True, False]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("n", [16, 19, 64])
def test_the_claim_is_judged_with_the_number_of_landmarks_in_its_rule(key, n):
    assert re.search(r"\bone (landmark )?for every four tokens", claims.claim(key).rule)
    found = trial(key, upload(normal(1, n, 8)))
    assert found.numbers["landmarks"] == n // 4
    assert trial(key, upload(normal(1, 15, 8))).verdict is Verdict.UNTESTABLE


@pytest.mark.parametrize("key", KEYS)
def test_uniform_attention_is_untestable_for_landmarks(key):
    found = trial(key, upload(np.zeros((1, 20, 4))))
    assert found.verdict is Verdict.UNTESTABLE


def test_errors_at_the_level_of_rounding_count_as_equal():
    rows = trial("segment_means", synthetic("gaussian", n=16, heads=1)).rows
    errors = {"means of neighbouring tokens": 3e-8, "k-means centres": 0.0}
    rounded = [replace(row, error=errors.get(row.form, 1.0)) for row in rows]
    numbers, verdict = claims.claim("segment_means").judge(rounded)
    assert numbers["ratio"] == pytest.approx(1.03)
    assert verdict is HOLDS


def test_both_inverses_are_compared_with_the_double_softmax():
    def rows(**errors):
        return [
            landmark_errors.LandmarkRow(share=4, landmarks=8, future=0.0, form=form, head=head, error=error)
            for form, each in errors.items()
            for head, error in enumerate(each)
        ]

    errors = {
        landmark_inverse.DOUBLE: [0.5] * 4,
        landmark_errors.UNIFORM: [1.0] * 4,
        landmark_inverse.ITERATED: [0.4, 0.4, 0.6, 0.6],
        landmark_inverse.EXACT: [0.55, 0.55, 0.55, 0.3],
    }
    found = landmark_inverse.numbers(rows(**errors))
    assert (found["iterated_wins"], found["exact_wins"]) == (50.0, 25.0)
