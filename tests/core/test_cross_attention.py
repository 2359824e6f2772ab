"""Attention to keys of another sequence, and to keys of which some are padding, for every variant that allows it."""

import pytest
import torch
from contract import PEAK_TOLERANCE, settings_of

import attention_core as ac
from attention_core.attention import Attention
from attention_core.benchmarking.counting import count
from attention_core.errors import NotCrossError, ShapeError

CROSS = [variant for variant in ac.all_variants() if variant.cross_reason is None]
BY_ROW = [variant for variant in CROSS if variant.key not in {"funnel", "landmark", "nystrom"}]
"""Variants in which a query's weights do not depend on the other queries."""
EACH = [pytest.param(Attention(v, p), id=str(Attention(v, p))) for v in CROSS for p in settings_of(v)]
EACH_BY_ROW = [pytest.param(Attention(v, p), id=str(Attention(v, p))) for v in BY_ROW for p in settings_of(v)]


def tensors(n, m, *, heads=2, d=6, d_v=5):
    draw = torch.Generator().manual_seed(100 * n + m)
    q, k, v = (
        torch.randn(2, heads, tokens, size, dtype=torch.float64, generator=draw)
        for tokens, size in ((n, d), (m, d), (m, d_v))
    )
    return q, k, v


@pytest.mark.parametrize("attention", EACH)
def test_the_algorithm_equals_the_matrix_with_more_or_fewer_keys_than_queries(attention):
    for n, m in ((1, 7), (7, 1), (5, 9), (9, 5), (70, 130), (130, 70)):
        q, k, v = tensors(n, m)
        found = attention.weights(q, k)
        assert found.shape == (2, 2, n, m)
        torch.testing.assert_close(attention.attend(q, k, v), found @ attention.values(v), atol=1e-8, rtol=1e-8)
        if attention.variant.rows_sum_to_one and not attention.variant.zero_rows:
            torch.testing.assert_close(found.sum(-1), torch.ones(2, 2, n, dtype=q.dtype), atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("attention", EACH_BY_ROW)
@pytest.mark.parametrize("n", [1, 5, 66])
def test_the_rows_of_fewer_queries_equal_those_of_the_full_set(attention, n):
    q, k, _ = tensors(70, 70)
    rows = attention.weights(q, k)[..., :n, :]
    torch.testing.assert_close(attention.weights(q[..., :n, :], k), rows, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("attention", EACH_BY_ROW)
def test_more_queries_than_keys_give_the_same_outputs_in_one_or_two_calls(attention):
    q, k, v = tensors(9, 5)
    parts = [attention.attend(part, k, v) for part in (q[..., :5, :], q[..., 5:, :])]
    if attention.key == "synthesizer" and attention.params.kind == "random":  # Weights depend only on the position.
        parts[1] = attention.attend(q, k, v)[..., 5:, :]
    torch.testing.assert_close(attention.attend(q, k, v), torch.cat(parts, -2), atol=1e-9, rtol=1e-9)


def test_nystrom_uses_its_landmarks_of_queries_and_of_keys():
    q, k, v = tensors(12, 20)
    attention = ac.get("nystrom", landmarks=4, inverse="exact")
    q_land, k_land = q.reshape(2, 2, 4, 3, 6).mean(-2), k.reshape(2, 2, 4, 5, 6).mean(-2)
    left, middle, right = ((a @ b.mT / 6**0.5).softmax(-1) for a, b in ((q, k_land), (q_land, k_land), (q_land, k)))
    wanted = left @ torch.linalg.pinv(middle) @ right @ v
    torch.testing.assert_close(attention.attend(q, k, v), wanted, atol=1e-9, rtol=1e-9)


def test_funnel_repeats_the_rows_of_pooled_queries():
    q, k, v = tensors(5, 9)
    pooled = torch.stack([q[..., 0, :], q[..., 1:3, :].mean(-2), q[..., 3:5, :].mean(-2)], -2)
    out = (pooled @ k.mT / 6**0.5).softmax(-1) @ v
    wanted = out[..., [0, 1, 1, 2, 2], :]
    torch.testing.assert_close(ac.get("funnel", stride=2).attend(q, k, v), wanted)


def test_gradients_reach_queries_keys_and_values_of_different_lengths():
    for variant in CROSS:
        attention = ac.get(variant.key)
        q, k, v = (x[:1, :, :, :].clone().requires_grad_() for x in tensors(4, 7, d_v=6))
        attention.attend(q, k, v).square().sum().backward()
        slow = [x.detach().clone().requires_grad_() for x in (q, k, v)]
        (attention.weights(*slow[:2]) @ attention.values(slow[2])).square().sum().backward()
        for fast, plain in zip((q, k, v), slow, strict=True):
            wanted = torch.zeros_like(fast) if plain.grad is None else plain.grad
            found = torch.zeros_like(fast) if fast.grad is None else fast.grad
            torch.testing.assert_close(found, wanted, atol=1e-7, rtol=1e-6, msg=variant.key)


@pytest.mark.parametrize("attention", EACH)
def test_the_cost_counts_the_products_with_all_keys(attention):
    for n, m in ((100, 509), (509, 100)):
        for heads in (1, 3) if attention.variant.couples_heads else (1,):
            q, k, v = (x[0].float() for x in tensors(n, m, heads=heads, d=16, d_v=16))
            found = count(lambda q=q, k=k, v=v: attention.attend(q, k, v))
            stated = attention.cost(n, 16, heads=heads, keys=m)
            assert found.multiply_adds == stated.multiply_adds, (n, m)
            assert found.peak_elements == pytest.approx(stated.peak_elements, rel=PEAK_TOLERANCE), (n, m)


def test_the_cost_of_unsupported_cross_attention_is_refused():
    with pytest.raises(NotCrossError):
        ac.get("local").cost(5, 8, keys=9)
    with pytest.raises(NotCrossError):
        ac.get("softmax").cost(5, 8, keys=9, causal=True)
    assert ac.get("local").cost(9, 8, keys=9) == ac.get("local").cost(9, 8)


@pytest.mark.parametrize("key", [v.key for v in ac.all_variants() if v.cross_reason is not None])
def test_variants_without_cross_attention_refuse_with_their_reason(key):
    q, k, v = tensors(5, 9)
    reason = ac.variant(key).cross_reason
    for call in (lambda: ac.get(key).weights(q, k), lambda: ac.get(key).attend(q, k, v)):
        with pytest.raises(NotCrossError, match="needs queries and keys of the same tokens") as caught:
            call()
        assert reason in str(caught.value)
    with pytest.raises(NotCrossError):
        ac.get(key).attend(q, q, q, key_mask=torch.ones(5, dtype=torch.bool))


def test_a_causal_mask_needs_as_many_queries_as_keys():
    q, k, v = tensors(5, 9)
    with pytest.raises(NotCrossError, match="there must be as many keys as queries"):
        ac.get("softmax").attend(q, k, v, causal=True)
    with pytest.raises(NotCrossError, match="a key mask is not allowed"):
        ac.get("softmax").weights(k, k, causal=True, key_mask=torch.ones(9, dtype=torch.bool))


@pytest.mark.parametrize("attention", EACH)
@pytest.mark.parametrize("n", [4, 8])
def test_hidden_keys_change_nothing_and_get_no_weight(attention, n):
    q, k, v = tensors(n, 8)
    mask = torch.tensor([[True] * 5 + [False] * 3, [False, True] * 4])
    found, out = attention.weights(q, k, key_mask=mask), attention.attend(q, k, v, key_mask=mask)
    for i, seen in enumerate(mask):
        assert not found[i][..., ~seen].any()
        shown = attention.weights(q[i : i + 1], k[i : i + 1, :, seen])[0]
        torch.testing.assert_close(found[i][..., seen], shown)
        torch.testing.assert_close(out[i], attention.attend(q[i : i + 1], *(x[i : i + 1, :, seen] for x in (k, v)))[0])


def test_softmax_with_padding_equals_torchs_own_mask():
    q, k, v = tensors(3, 8)
    mask = torch.tensor([True, False, True, True, False, True, True, False])
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask.expand(3, 8))
    torch.testing.assert_close(ac.get("softmax").attend(q, k, v, key_mask=mask), wanted)
    torch.testing.assert_close(ac.get("softmax").attend(q[0], k[0], v[0], key_mask=mask), wanted[0])


def test_outputs_and_weights_are_zero_if_all_keys_are_hidden():
    q, k, v = tensors(3, 4)
    mask = torch.tensor([[False] * 4, [True] * 4])
    out = ac.get("linear").attend(q, k, v, key_mask=mask)
    assert not out[0].any()
    torch.testing.assert_close(out[1], ac.get("linear").attend(q, k, v)[1])
    assert not ac.get("linear").weights(q, k, key_mask=mask)[0].any()


@pytest.mark.parametrize("attention", EACH)
def test_each_head_can_have_its_own_key_mask_unless_heads_are_coupled(attention):
    q, k, v = tensors(4, 8)
    mask = torch.tensor([[[True] * 5 + [False] * 3, [False, True] * 4], [[True] * 8, [False] * 3 + [True] * 5]])
    if attention.variant.couples_heads:
        for part in (slice(None), 0):
            with pytest.raises(ShapeError, match="unless the heads of the variant depend on each other"):
                attention.attend(q[part], k[part], v[part], key_mask=mask[part])
        return
    out, found = attention.attend(q, k, v, key_mask=mask), attention.weights(q, k, key_mask=mask)
    for at in ((0, 0), (0, 1), (1, 0), (1, 1)):
        one = [x[at][None] for x in (q, k, v)]
        torch.testing.assert_close(out[at], attention.attend(*one, key_mask=mask[at])[0])
        torch.testing.assert_close(found[at], attention.weights(*one[:2], key_mask=mask[at])[0])
    torch.testing.assert_close(attention.attend(q[0], k[0], v[0], key_mask=mask[0]), out[0])


@pytest.mark.parametrize(
    "mask",
    [torch.ones(*shape, dtype=torch.bool) for shape in ((5,), (1, 4), (3, 4), (2, 1, 4), (2, 2, 3, 4))]
    + [torch.ones(4)],
)
def test_a_key_mask_of_another_shape_or_type_is_refused(mask):
    q, k, v = tensors(3, 4)
    with pytest.raises(ShapeError, match="The key mask has the shape"):
        ac.get("softmax").attend(q, k, v, key_mask=mask)


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [((2, 4, 3), (2, 5, 4), (2, 5, 3)), ((2, 4, 3), (3, 5, 3), (3, 5, 3)), ((2, 4, 3), (2, 5, 3), (2, 4, 3)),
     ((4, 3), (0, 3), (0, 3)), ((0, 3), (4, 3), (4, 3)), ((3,), (3,), (3,))],
)  # fmt: skip
def test_mismatched_shapes_are_refused(q, k, v):
    with pytest.raises(ShapeError, match="do not match"):
        ac.get("softmax").attend(torch.ones(q), torch.ones(k), torch.ones(v))
