import pytest
import torch
from torch import Tensor

import attention_core as ac
from attention_core.variants.sparse.topk import GROUPING_RATIO, LONG, kth_largest


def inputs(n: int) -> list[Tensor]:
    source = torch.Generator().manual_seed(n)
    return [torch.randn(2, n, 4, generator=source, dtype=torch.float64) for _ in range(3)]


def test_keys_tied_with_the_kth_are_selected():
    q = torch.ones(1, 5, 1, dtype=torch.float64)
    k = torch.tensor([3.0, 1.0, 2.0, 2.0, 2.0], dtype=torch.float64)[None, :, None]
    attention = ac.get("topk", k=2)
    matrix = attention.weights(q, k)
    assert (matrix > 0).tolist() == [[[True, False, True, True, True]] * 5]
    v = torch.randn(1, 5, 3, dtype=torch.float64)
    torch.testing.assert_close(attention.attend(q, k, v), matrix @ v)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n", [LONG - 1, LONG, LONG + 50])
def test_gathered_values_equal_the_matrix_with_ties(n: int, tied: bool, causal: bool):
    q, k, v = inputs(n)
    q, k = (x.round() if tied else x for x in (q, k))
    attention = ac.get("topk", k=5)
    kept = (attention.weights(q, k, causal=causal) > 0).sum(-1)
    assert (kept > 5).any() == tied
    torch.testing.assert_close(attention.attend(q, k, v, causal=causal), attention.weights(q, k, causal=causal) @ v)


def test_equal_keys_are_all_selected():
    q, _, v = inputs(6)
    torch.testing.assert_close(
        ac.get("topk", k=1).attend(q, torch.zeros_like(q), v), v.mean(-2, keepdim=True).expand_as(v)
    )


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("extra", [-1, 0, 1, GROUPING_RATIO - 1, 500])
@pytest.mark.parametrize("kind", ["all apart", "ties", "few seen"])
def test_the_kth_largest_equals_that_of_the_sorted_row(size: int, extra: int, kind: str):
    # If a row has at least GROUPED keys per selected key, groups of keys are examined first.
    n = GROUPING_RATIO * size + extra
    logits = torch.randn(2, 5, n, generator=torch.Generator().manual_seed(n))
    if kind == "ties":
        logits = logits.round()
    if kind == "few seen":
        logits[..., size // 2 :] = -torch.inf
    wanted = logits.sort(-1, descending=True).values[..., size - 1 : size]
    assert torch.equal(kth_largest(logits, size), wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_half_precision_pattern_uses_unrounded_scores(dtype):
    q, k = (x.to(dtype) for x in inputs(64)[:2])
    attention = ac.get("topk", k=5)
    found = attention.variant.pattern(q, k, attention.params, causal=False)
    exact = q.double() @ k.double().mT
    wanted = exact >= exact.topk(5).values[..., -1:]
    assert torch.equal(found, wanted)
    rounded = q @ k.mT
    assert not torch.equal(rounded >= rounded.topk(5).values[..., -1:], wanted), "rounded scores tie and keep more"
