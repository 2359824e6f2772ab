"""Tests that are specific to each low-rank variant; the contract tests cover what all variants share."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import FunnelConfig
from transformers.models.funnel.modeling_funnel import FunnelAttentionStructure

import attention_core as ac
from attention_core.errors import NotCausalError
from attention_core.metrics import relative_error, truncated_svd_error
from attention_core.ops.low_rank.landmarks import LLOYD_ROUNDS, METHODS

WINDOWED = [
    *(("linformer", {"projection": projection}) for projection in ("mean", "conv")),
    *(("pooled", {"pool": pool}) for pool in ("mean", "conv", "max")),
    ("pyramid", {}),
    ("funnel", {}),
]
FULL_BUDGET = {"linformer": {"rank": 64}, "pooled": {"stride": 1}, "pyramid": {"levels": 64}, "funnel": {"stride": 1}}
LEAKING = [
    *((key, settings) for key, settings in WINDOWED if key != "pooled"),
    ("linformer", {"projection": "gaussian"}),
    ("linformer", {"projection": "gaussian", "share": False}),
    *(("landmark", {"method": method}) for method in METHODS),
]
ALL = [*LEAKING, *((key, settings) for key, settings in WINDOWED if key == "pooled")]
softmax = ac.get("softmax")


def numbers(*shape, seed=0, smooth=False):
    """Return N(0, 1) numbers in float64, or a random walk along the tokens."""
    x = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return x.cumsum(-2) / shape[-2] ** 0.5 * 2 if smooth else x


def rows_softmax(logits):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def split_means(x, m):
    return np.stack([piece.mean(-2) for piece in np.array_split(x, m, axis=-2)], -2)


@pytest.mark.parametrize("n", [1, 5, 33, 64])
@pytest.mark.parametrize(("key", "settings"), WINDOWED)
def test_with_its_full_budget_it_is_softmax(key, settings, n):
    q, k, v = numbers(3, 2, n, 4)
    attention = ac.get(key, **settings, **FULL_BUDGET[key])
    assert attention.variant.approximates == "softmax"
    torch.testing.assert_close(attention.weights(q, k), softmax.weights(q, k))
    torch.testing.assert_close(attention.attend(q, k, v), softmax.attend(q, k, v))


@pytest.mark.parametrize(("key", "settings"), WINDOWED)
def test_on_a_smooth_text_more_budget_is_closer_to_softmax(key, settings):
    q, k = numbers(2, 8, 64, 4, smooth=True)
    budget = ac.registry.variant(key).budget
    ladder = [1, 4, 16, 64] if budget.name in ("rank", "levels") else [64, 16, 4, 1]
    exact = softmax.weights(q, k)
    errors = [
        float(relative_error(ac.get(key, **settings, **{budget.name: value}).weights(q, k), exact).mean())
        for value in ladder
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.3
    assert errors[-1] < 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_landmark_with_every_token_is_softmax_twice_not_softmax(method):
    q, k = numbers(2, 2, 17, 4)
    attention = ac.get("landmark", landmarks=17, method=method)
    S = softmax.weights(q, k)
    torch.testing.assert_close(attention.weights(q, k), S @ S)
    assert attention.variant.approximates is None
    assert (relative_error(S @ S, S) > 0.1).all()


@pytest.mark.parametrize(("key", "settings"), LEAKING)
def test_it_leaks_and_says_so(key, settings):
    q, k, v = numbers(3, 1, 24, 4)
    attention = ac.get(key, **settings)
    before = attention.attend(q, k, v)
    for x in (k, v):
        x[:, -1] += 3.0
    assert (attention.attend(q, k, v) - before)[:, 0].abs().max() > 1e-3
    with pytest.raises(NotCausalError) as refused:
        attention.attend(q, k, v, causal=True)
    assert attention.variant.causal_reason in str(refused.value)


def test_funnel_hides_no_later_query():
    q, k, v = numbers(3, 1, 9, 4)
    attention = ac.get("funnel", stride=4)
    before = attention.attend(q, k, v)
    q[:, 4] += 3.0
    moved = (attention.attend(q, k, v) - before).abs().amax((0, -1)) > 1e-6
    assert moved.tolist() == [False] + 4 * [True] + 4 * [False]


@pytest.mark.parametrize(("key", "settings"), ALL)
def test_its_rank_is_its_budget_and_its_error_above_the_svds(key, settings):
    q, k = numbers(2, 4, 48, 16, smooth=True)
    attention = ac.get(key, **settings)
    parts = attention.variant.anatomy(q, k, k, attention.params, causal=False)
    inner, A = parts["left"].shape[-1], attention.weights(q, k)
    assert inner == {"linformer": 16, "landmark": 16, "pooled": 12, "pyramid": 18, "funnel": 13}[key]
    assert (torch.linalg.matrix_rank(A) <= inner).all()
    exact = softmax.weights(q, k)
    assert (relative_error(A, exact) >= truncated_svd_error(exact, inner)).all()


@pytest.mark.parametrize(("key", "settings"), ALL)
def test_its_factors_multiply_to_its_matrix(key, settings):
    q, k, v = numbers(3, 2, 21, 4)
    attention = ac.get(key, **settings)
    parts = attention.variant.anatomy(q, k, v, attention.params, causal=False)
    torch.testing.assert_close(parts["left"] @ parts["right"], attention.weights(q, k))


@pytest.mark.parametrize(("key", "settings"), WINDOWED)
def test_its_provenance_shares_out_every_token(key, settings):
    q, k, v = numbers(3, 2, 21, 4)
    attention = ac.get(key, **settings)
    provenance = attention.variant.anatomy(q, k, v, attention.params, causal=False)["provenance"]
    torch.testing.assert_close(provenance.sum(-1), torch.ones(len(provenance), dtype=torch.float64))
    assert (provenance >= 0).all()
    # Each token is in one pool; for the pyramid, in one pool of each size.
    assert ((provenance > 0).sum(0) == (4 if key == "pyramid" else 1)).all()


@pytest.mark.parametrize("n", [7, 16, 37])
def test_linformer_mean_by_hand(n):
    q, k, v = (x.numpy() for x in numbers(3, 2, n, 4))
    S = rows_softmax(q @ np.swapaxes(split_means(k, 5), -1, -2) / 2)
    out = ac.get("linformer", rank=5).attend(*map(torch.from_numpy, (q, k, v)))
    np.testing.assert_allclose(out, S @ split_means(v, 5), atol=1e-12)


def test_linformer_gaussian_by_hand():
    q, k, v = numbers(3, 2, 30, 4)
    attention = ac.get("linformer", rank=6, projection="gaussian", share=False)
    parts = attention.variant.anatomy(q, k, v, attention.params, causal=False)
    E, Fv = parts["provenance"].numpy(), parts["right"].numpy()
    S = rows_softmax(q.numpy() @ np.swapaxes(E @ k.numpy(), -1, -2) / 2)
    np.testing.assert_allclose(attention.attend(q, k, v), S @ (Fv @ v.numpy()), atol=1e-12)
    assert not np.allclose(E, Fv)
    assert (attention.weights(q, k) < 0).any()


def test_linformer_shares_its_projection_or_not():
    q, k, v = numbers(3, 30, 4)
    for share in (True, False):
        attention = ac.get("linformer", rank=6, projection="gaussian", share=share)
        parts = attention.variant.anatomy(q, k, v, attention.params, causal=False)
        assert torch.equal(parts["provenance"], parts["right"]) is share


def test_linformer_gaussian_keeps_inner_products_on_average():
    x = numbers(1, 12, 4)
    gram, seeds = torch.zeros(12, 12, dtype=torch.float64), 600
    for seed in range(seeds):
        attention = ac.get("linformer", rank=8, projection="gaussian", seed=seed)
        E = attention.variant.anatomy(x, x, x, attention.params, causal=False)["provenance"]
        gram += E.T @ E / seeds
    # An entry of EᵀE has standard deviation √(2/8) on the diagonal, √(1/8) elsewhere.
    assert (gram - torch.eye(12, dtype=torch.float64)).abs().max() < 5 * (2 / 8 / seeds) ** 0.5


def lloyd(x, m):
    """Return the k-means centres, computed row by row from the segment means; a centre without rows stays unchanged."""
    centres = split_means(x, m)
    for _ in range(LLOYD_ROUNDS):
        nearest = np.array([np.argmin([np.linalg.norm(row - centre) for centre in centres]) for row in x])
        centres = np.stack([x[nearest == c].mean(0) if (nearest == c).any() else centres[c] for c in range(m)])
    return centres


@pytest.mark.parametrize(("n", "m"), [(7, 3), (32, 8), (50, 16)])
@pytest.mark.parametrize(("method", "means"), [("segment_means", split_means), ("kmeans", lloyd)])
def test_landmark_by_hand(method, means, n, m):
    q, k, v = (x.numpy() for x in numbers(3, n, 4))
    to, back = rows_softmax(q @ means(k, m).T / 2), rows_softmax(means(q, m) @ k.T / 2)
    out = ac.get("landmark", landmarks=m, method=method).attend(*map(torch.from_numpy, (q, k, v)))
    np.testing.assert_allclose(out, to @ back @ v, atol=1e-12)


def conv1d_by_triangle(x, width):
    window = torch.tensor([1, 2, 3, 3, 2, 1], dtype=x.dtype) / 12
    return F.conv1d(x, window.expand(x.shape[1], 1, width), stride=width, groups=x.shape[1])


@pytest.mark.parametrize(
    ("attention", "for_keys", "for_values"),
    [
        (ac.get("pooled", stride=6), F.avg_pool1d, F.avg_pool1d),
        (ac.get("pooled", stride=6, pool="max"), F.max_pool1d, F.avg_pool1d),
        (ac.get("pooled", stride=6, pool="conv"), conv1d_by_triangle, conv1d_by_triangle),
        (ac.get("linformer", rank=4, projection="conv"), conv1d_by_triangle, conv1d_by_triangle),
    ],
)
def test_pooling_is_torchs_own_before_attention(attention, for_keys, for_values):
    q, k, v = numbers(3, 2, 24, 4)
    expected = F.scaled_dot_product_attention(q, for_keys(k.mT, 6).mT, for_values(v.mT, 6).mT)
    torch.testing.assert_close(attention.attend(q, k, v), expected)


def test_pooled_weighs_the_tokens_of_a_last_short_pool_alike():
    q, k = numbers(2, 2, 10, 4)
    A = ac.get("pooled", stride=4).weights(q, k)
    for first, last in ((0, 3), (4, 6), (7, 9)):
        torch.testing.assert_close(A[..., first], A[..., last])
    assert (A[..., 3] != A[..., 4]).all()


def pooled_causally(q, k, v, stride, pool):
    """Return the causal output row by row.

    A query attends to the pooled key and value of each earlier pool, and to the tokens of its own pool up to itself.
    """
    n, d = q.shape
    rows = []
    for i in range(n):
        start = i - i % stride
        keys, values = [], []
        for first in range(0, start, stride):
            its_keys, its_values = k[first : first + stride], v[first : first + stride]
            ramp = np.array([min(t + 1, stride - t) for t in range(stride)], float)
            shares = ramp / ramp.sum() if pool == "conv" else np.full(stride, 1 / stride)
            keys.append(its_keys.max(0) if pool == "max" else shares @ its_keys)
            values.append(shares @ its_values)
        keys, values = np.stack([*keys, *k[start : i + 1]]), np.stack([*values, *v[start : i + 1]])
        rows.append(rows_softmax(keys @ q[i] / d**0.5) @ values)
    return np.stack(rows)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 23])
@pytest.mark.parametrize("pool", ["mean", "conv", "max"])
@pytest.mark.parametrize("stride", [1, 3, 4, 256])
def test_causal_pooled_by_hand(n, pool, stride):
    q, k, v = numbers(3, n, 4)
    expected = pooled_causally(*(x.numpy() for x in (q, k, v)), stride, pool)
    attention = ac.get("pooled", stride=stride, pool=pool)
    np.testing.assert_allclose(attention.attend(q, k, v, causal=True), expected, atol=1e-12)
    np.testing.assert_allclose(attention.weights(q, k, causal=True) @ v, expected, atol=1e-12)


@pytest.mark.parametrize("stride", [1, 4, 5, 16])
def test_causal_pooled_can_decode(stride):
    q, k, v = numbers(3, 2, 40, 4)
    attention = ac.get("pooled", stride=stride)
    whole, matrix = attention.attend(q, k, v, causal=True), attention.weights(q, k, causal=True)
    for t in range(1, 40):
        torch.testing.assert_close(attention.attend(*(x[:, :t] for x in (q, k, v)), causal=True), whole[:, :t])
        torch.testing.assert_close(attention.weights(q[:, :t], k[:, :t], causal=True), matrix[:, :t, :t])


@pytest.mark.parametrize("n", [1, 5, 33])
@pytest.mark.parametrize("pool", ["mean", "conv", "max"])
def test_causal_pooled_of_single_tokens_or_in_one_pool_is_causal_softmax(n, pool):
    q, k, v = numbers(3, 2, n, 4)
    for stride in (1, 33):
        found = ac.get("pooled", stride=stride, pool=pool).attend(q, k, v, causal=True)
        torch.testing.assert_close(found, softmax.attend(q, k, v, causal=True))


@pytest.mark.parametrize("levels", [1, 2])
def test_pyramid_is_torchs_adaptive_pooling_before_attention(levels):
    q, k, v = numbers(3, 2, 48, 4)
    keys, values = (
        torch.cat([F.adaptive_avg_pool1d(x.mT, size * levels).mT for size in (1, 3, 6, 8)], -2) for x in (k, v)
    )
    expected = F.scaled_dot_product_attention(q, keys, values)
    torch.testing.assert_close(ac.get("pyramid", levels=levels).attend(q, k, v), expected)


def test_pyramid_keeps_sizes_beyond_n_once():
    x = numbers(1, 2, 4)
    attention = ac.get("pyramid")
    provenance = attention.variant.anatomy(x, x, x, attention.params, causal=False)["provenance"]
    assert provenance.tolist() == [[0.5, 0.5], [1, 0], [0, 1]]


@pytest.mark.parametrize("halvings", [1, 2, 3])
def test_funnel_pools_the_queries_transformers_pools(halvings):
    q, k, v = numbers(3, 2, 25, 4)
    theirs = FunnelAttentionStructure(FunnelConfig(pooling_type="mean", separate_cls=True, truncate_seq=False))
    short = q
    for _ in range(halvings):
        short = theirs.pool_tensor(short, mode="mean", stride=2)
    stride = 2**halvings
    attention = ac.get("funnel", stride=stride)
    parts = attention.variant.anatomy(q, k, v, attention.params, causal=False)
    torch.testing.assert_close(parts["provenance"] @ q, short)
    answer = F.scaled_dot_product_attention(short, k, v)
    expected = torch.cat([answer[:, :1], answer[:, 1:].repeat_interleave(stride, 1)], 1)
    torch.testing.assert_close(attention.attend(q, k, v), expected)


def test_funnel_leaves_the_first_token_its_own_row():
    q, k = numbers(2, 2, 12, 4)
    A = ac.get("funnel", stride=256).weights(q, k)
    torch.testing.assert_close(A[:, 0], softmax.weights(q, k)[:, 0])
    torch.testing.assert_close(A[:, 1:], A[:, 1:2].expand(-1, 11, -1))
