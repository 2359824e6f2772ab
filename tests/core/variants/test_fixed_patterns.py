"""Tests that are specific to local, atrous and sparse attention, and of the relations between them."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import attention_core as ac


def inputs(n: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    source = torch.Generator().manual_seed(n)
    return [torch.randn(2, 3, n, 4, generator=source, dtype=dtype) for _ in range(3)]


def same_as_softmax(attention: ac.Attention, n: int) -> None:
    q, k, v = inputs(n)
    for causal in (False, True):
        torch.testing.assert_close(
            attention.attend(q, k, v, causal=causal), ac.get("softmax").attend(q, k, v, causal=causal)
        )


def pairs(n: int, rule) -> Tensor:
    return torch.tensor([[bool(rule(i, j)) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("n", [1, 5, 64, 130])
def test_local_with_a_window_as_long_as_the_text_is_full_attention(n: int):
    same_as_softmax(ac.get("local", window=max(n - 1, 1)), n)
    same_as_softmax(ac.get("local", window=4096), n)


@pytest.mark.parametrize("n", [1, 5, 64, 130])
def test_atrous_with_stride_one_is_full_attention(n: int):
    same_as_softmax(ac.get("atrous", stride=1), n)


@pytest.mark.parametrize("n", [1, 5, 64, 130])
@pytest.mark.parametrize(
    "settings",
    [
        {"stride": 1},
        {"window": 4096},
        {"pattern": "fixed", "stride": 4096},
        {"pattern": "fixed", "stride": 1},
        {"pattern": "fixed", "stride": 3, "summary": 64},
    ],
)
def test_sparse_that_allows_all_is_full_attention(n: int, settings: dict[str, object]):
    same_as_softmax(ac.get("sparse", **settings), n)


def test_atrous_with_a_stride_beyond_the_text_leaves_each_token_alone():
    q, k, v = inputs(9)
    torch.testing.assert_close(ac.get("atrous", stride=9).attend(q, k, v), v)


@pytest.mark.parametrize("n", [1, 7, 40])
@pytest.mark.parametrize(
    ("attention", "rule"),
    [
        (ac.get("local", window=3), lambda i, j: abs(i - j) <= 3),
        (ac.get("atrous", stride=5), lambda i, j: (i - j) % 5 == 0),
        (ac.get("sparse", window=2, stride=7), lambda i, j: abs(i - j) <= 2 or (i - j) % 7 == 0),
        (ac.get("sparse", pattern="fixed", stride=6, summary=2), lambda i, j: i // 6 == j // 6 or j % 6 >= 4),
    ],
    ids=["local", "atrous", "strided", "fixed"],
)
def test_masks_say_what_the_definition_says(attention: ac.Attention, rule, n: int):
    assert torch.equal(attention.mask(n), pairs(n, rule))
    assert torch.equal(attention.mask(n, causal=True), pairs(n, lambda i, j: j <= i and rule(i, j)))


SETTINGS = [
    ("local", {"window": 1}),
    ("local", {"window": 20}),
    ("local", {"window": 100}),
    ("atrous", {"stride": 2}),
    ("atrous", {"stride": 37}),
    ("sparse", {"window": 3, "stride": 5}),
    ("sparse", {"window": 40, "stride": 3}),
    ("sparse", {"window": 1, "stride": 1000}),
    ("sparse", {"pattern": "fixed", "stride": 7, "summary": 2}),
    ("sparse", {"pattern": "fixed", "stride": 200}),
    ("sparse", {"pattern": "fixed", "stride": 2, "summary": 2}),
]


@pytest.mark.parametrize("n", [63, 64, 65, 203])
@pytest.mark.parametrize(("key", "settings"), SETTINGS)
def test_output_equals_torchs_attention_with_the_mask(key: str, settings: dict[str, object], n: int):
    q, k, v = inputs(n)
    attention = ac.get(key, **settings)
    for causal in (False, True):
        wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=attention.mask(n, causal=causal))
        torch.testing.assert_close(attention.attend(q, k, v, causal=causal), wanted)


@pytest.mark.parametrize("r", [1, 2, 5, 16])
@pytest.mark.parametrize("n", [1, 16, 50])
def test_sparse_with_window_equal_to_stride_is_the_union_of_local_and_atrous(n: int, r: int):
    for causal in (False, True):
        union = ac.get("local", window=r).mask(n, causal=causal) | ac.get("atrous", stride=r).mask(n, causal=causal)
        assert torch.equal(ac.get("sparse", window=r, stride=r).mask(n, causal=causal), union)


@pytest.mark.parametrize("w", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 7, 40, 41])
def test_local_then_atrous_connects_every_pair(n: int, w: int):
    def reached(r: int) -> Tensor:
        steps = ac.get("atrous", stride=r).mask(n).float() @ ac.get("local", window=w).mask(n).float()
        return steps > 0

    assert reached(w + 1).all()
    inner = slice(w, max(n - w, w))
    assert reached(2 * w + 1)[:, inner].all()
    if n > 2 * w + 2:
        assert not reached(2 * w + 2).all()


@pytest.mark.parametrize(("key", "settings"), [("local", {"window": 16}), ("atrous", {"stride": 16}), ("sparse", {})])
def test_rows_without_much_to_see_stay_exact_in_float32(key: str, settings: dict[str, object]):
    """Check that logits in the thousands in one part of a row do not hide the other part."""
    q, k, v = (x.float() for x in inputs(70))
    attention = ac.get(key, **settings)
    for causal in (False, True):
        found = attention.attend(60 * q, 60 * k, v, causal=causal).double()
        wanted = attention.weights(60 * q.double(), 60 * k.double(), causal=causal) @ v.double()
        torch.testing.assert_close(found, wanted, rtol=0, atol=2e-3)
