"""Tests that are specific to each low-rank variant; the contract tests cover what all variants share."""

import pytest
import torch
import torch.nn.functional as F
from transformers import FunnelConfig
from transformers.models.funnel.modeling_funnel import FunnelAttentionStructure

import attention_core as ac
from attention_core.errors import NotCausalError
from attention_core.metrics import relative_error, truncated_svd_error
from attention_core.ops.low_rank.landmarks import METHODS

WINDOWED = [
    *(("linformer", {"projection": projection}) for projection in ("mean", "conv")),
    *(("pooled", {"pool": pool}) for pool in ("mean", "conv", "max")),
    ("pyramid", {}),
    ("funnel", {}),
]
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


@pytest.mark.parametrize(("key", "settings"), WINDOWED)
def test_a_larger_budget_is_closer_to_softmax_on_smooth_inputs(key, settings):
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


@pytest.mark.parametrize(("key", "settings"), LEAKING)
def test_non_causal_variants_leak_and_refuse_a_causal_mask(key, settings):
    q, k, v = numbers(3, 1, 24, 4)
    attention = ac.get(key, **settings)
    before = attention.attend(q, k, v)
    for x in (k, v):
        x[:, -1] += 3.0
    assert (attention.attend(q, k, v) - before)[:, 0].abs().max() > 1e-3
    with pytest.raises(NotCausalError) as refused:
        attention.attend(q, k, v, causal=True)
    assert attention.variant.causal_reason in str(refused.value)


@pytest.mark.parametrize(("key", "settings"), ALL)
def test_the_rank_is_within_the_budget_and_the_error_above_the_svd(key, settings):
    q, k = numbers(2, 4, 48, 16, smooth=True)
    attention = ac.get(key, **settings)
    parts = attention.variant.anatomy(q, k, k, attention.params, causal=False)
    inner, A = parts["left"].shape[-1], attention.weights(q, k)
    assert inner == {"linformer": 16, "landmark": 16, "pooled": 12, "pyramid": 18, "funnel": 13}[key]
    assert (torch.linalg.matrix_rank(A) <= inner).all()
    exact = softmax.weights(q, k)
    assert (relative_error(A, exact) >= truncated_svd_error(exact, inner)).all()


@pytest.mark.parametrize(("key", "settings"), WINDOWED)
def test_provenance_covers_every_token(key, settings):
    q, k, v = numbers(3, 2, 21, 4)
    attention = ac.get(key, **settings)
    provenance = attention.variant.anatomy(q, k, v, attention.params, causal=False)["provenance"]
    torch.testing.assert_close(provenance.sum(-1), torch.ones(len(provenance), dtype=torch.float64))
    assert (provenance >= 0).all()
    # Each token is in one pool; for the pyramid, in one pool of each size.
    assert ((provenance > 0).sum(0) == (4 if key == "pyramid" else 1)).all()


def test_linformer_share_uses_one_projection_for_keys_and_values():
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


def test_pyramid_uses_segments_of_single_tokens_only_once():
    x = numbers(1, 2, 4)
    attention = ac.get("pyramid")
    provenance = attention.variant.anatomy(x, x, x, attention.params, causal=False)["provenance"]
    assert provenance.tolist() == [[0.5, 0.5], [1, 0], [0, 1]]


@pytest.mark.parametrize("halvings", [1, 2, 3])
def test_funnel_pools_the_same_queries_as_transformers(halvings):
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
