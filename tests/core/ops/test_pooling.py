import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from seeded import normal

from attention_core.ops.low_rank.pooling import (
    Run,
    even_segments,
    pool,
    pooling_matrix,
    spread,
    spreading_matrix,
    strided_segments,
)

tokens = st.integers(1, 40)


@settings(max_examples=80, deadline=None)
@given(tokens, st.integers(1, 50))
def test_segments_equal_numpy_array_split(n, m):
    x = normal(2, n, 3)
    segments = even_segments(n, m)
    pieces = np.array_split(x.numpy(), min(m, n), axis=1)
    assert [size for number, size in segments for _ in range(number)] == [piece.shape[1] for piece in pieces]
    np.testing.assert_allclose(pool(x, segments), np.stack([p.mean(1) for p in pieces], 1), atol=1e-14)
    np.testing.assert_array_equal(pool(x, segments, "max"), np.stack([p.max(1) for p in pieces], 1))
    y = normal(2, min(m, n), 3)
    repeated = [np.repeat(y.numpy()[:, i : i + 1], piece.shape[1], 1) for i, piece in enumerate(pieces)]
    np.testing.assert_array_equal(spread(y, segments), np.concatenate(repeated, 1))


@settings(max_examples=60, deadline=None)
@given(tokens, st.integers(1, 50))
def test_strided_segments_are_the_fewest_within_the_stride(n, stride):
    segments = strided_segments(n, stride)
    longest = max(size for _, size in segments)
    assert longest <= stride
    assert sum(number for number, _ in segments) == -(-n // stride)


def test_no_tokens_make_no_segments():
    assert even_segments(0, 4) == strided_segments(0, 4) == ()


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
def test_pooling_equals_torch_if_the_width_divides_n(width):
    x = normal(2, 5 * width, 3)
    segments, channels = even_segments(5 * width, 5), x.mT
    torch.testing.assert_close(pool(x, segments), F.avg_pool1d(channels, width).mT)
    torch.testing.assert_close(pool(x, segments, "max"), F.max_pool1d(channels, width).mT)
    window = {1: [1], 2: [1, 1], 3: [1, 2, 1], 4: [1, 2, 2, 1], 7: [1, 2, 3, 4, 3, 2, 1]}[width]
    kernel = (torch.tensor(window, dtype=torch.float64) / sum(window)).expand(3, 1, -1)
    torch.testing.assert_close(pool(x, segments, "conv"), F.conv1d(channels, kernel, stride=width, groups=3).mT)


@pytest.mark.parametrize("how", ["mean", "conv"])
@pytest.mark.parametrize("segments", [even_segments(11, 4), (Run(1, 1), *strided_segments(10, 4))])
def test_pooling_matrices_equal_the_reshapes(segments, how):
    x, y = normal(2, 11, 3), normal(2, 4, 3)
    P = pooling_matrix(segments, x, how)
    torch.testing.assert_close(P @ x, pool(x, segments, how))
    torch.testing.assert_close(P.sum(-1), torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(spreading_matrix(segments, y) @ y, spread(y, segments))
    torch.testing.assert_close(P @ spreading_matrix(segments, y), torch.eye(4, dtype=torch.float64))


@pytest.mark.parametrize("how", ["mean", "conv"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_long_segments_are_accurate_in_low_precision(dtype, how):
    segments, x = even_segments(2001, 2), torch.ones(1, 2001, 2, dtype=dtype)
    torch.testing.assert_close(pool(x, segments, how), x[:, :2], rtol=torch.finfo(dtype).eps, atol=0)
    P, exact = (pooling_matrix(segments, like, how) for like in (x, normal(1)))
    torch.testing.assert_close(P.double(), exact, rtol=torch.finfo(dtype).eps, atol=0)


def test_gradients_equal_finite_differences():
    segments = (Run(1, 1), *even_segments(7, 3))
    x, y = normal(2, 8, 2).requires_grad_(), normal(2, 4, 2).requires_grad_()
    for how in ("mean", "conv", "max"):
        assert torch.autograd.gradcheck(lambda x, how=how: pool(x, segments, how), (x,))
    assert torch.autograd.gradcheck(lambda y: spread(y, segments), (y,))
