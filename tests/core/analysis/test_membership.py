"""Tests of the tokens behind a landmark: shares that reproduce the landmarks, and the variance that averages lose."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention_core.analysis.masks.membership import landmark_drift, lost_variance, membership
from attention_core.ops.low_rank.landmarks import landmarks


def vectors(n, d=5, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


@given(n=st.integers(1, 40), m=st.integers(1, 50))
def test_segment_means_equal_the_membership_shares_times_the_tokens(n, m):
    x = vectors(n)
    shares = membership(x, m, "segment_means")
    np.testing.assert_allclose(shares @ x.numpy(), landmarks(x, m, "segment_means").numpy(), atol=1e-6)
    np.testing.assert_allclose(shares.sum(-1), 1)
    assert ((shares > 0).sum(0) == 1).all(), "every token belongs to one landmark"
    assert landmark_drift(x, m, "segment_means") == pytest.approx(0, abs=1e-12)


@given(n=st.integers(2, 40), m=st.integers(1, 39), seed=st.integers(0, 20))
def test_k_means_assigns_each_token_to_its_nearest_landmark(n, m, seed):
    x = vectors(n, seed=seed)
    m = min(m, n - 1)
    centres = landmarks(x.double(), m, "kmeans").numpy()
    apart = np.linalg.norm(x.double().numpy()[:, None] - centres, axis=-1)
    own = membership(x, m, "kmeans").argmax(0)
    np.testing.assert_allclose(apart[np.arange(n), own], apart.min(-1), rtol=1e-5)


def test_k_means_finds_distant_clusters_at_any_token_positions():
    x = torch.tensor([[0.0, 0], [90, 90], [0, 1], [91, 90], [1, 0], [90, 91]])
    shares = membership(x, 2, "kmeans")
    assert {frozenset(np.flatnonzero(row)) for row in shares} == {frozenset({0, 2, 4}), frozenset({1, 3, 5})}
    assert landmark_drift(x, 2, "kmeans") == pytest.approx(0, abs=1e-6)
    assert lost_variance(x, shares).sum() < 0.001 < lost_variance(x, membership(x, 2, "segment_means")).sum()


def test_landmark_drift_is_the_next_step_of_k_means_before_convergence():
    x = vectors(60, seed=3)
    shares = torch.from_numpy(membership(x, 6, "kmeans"))
    centres = landmarks(x.double(), 6, "kmeans")
    assert landmark_drift(x, 6, "kmeans") == pytest.approx(
        float((shares @ x.double() - centres).norm() / centres.norm())
    )
    assert landmark_drift(x, 6, "kmeans") > 0


@pytest.mark.parametrize(("m", "expected"), [(4, [0.0] * 4), (2, [1 / 20, 1 / 20]), (1, [1.0])])
def test_the_lost_variance_is_the_share_of_variance_within_each_segment(m, expected):
    x = torch.tensor([[0.0], [1.0], [3.0], [4.0]])  # The variance is 10 in total, 0.5 within each pair.
    assert lost_variance(x, membership(x, m, "segment_means")) == pytest.approx(expected)


def test_one_token_loses_no_variance():
    assert lost_variance(vectors(1), membership(vectors(1), 8, "segment_means")) == [0]
