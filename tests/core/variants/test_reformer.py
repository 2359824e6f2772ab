"""Tests that are specific to Reformer; the contract tests cover what all variants share."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from seeded import normal
from transformers import ReformerConfig
from transformers.models.reformer.modeling_reformer import LSHSelfAttention

import attention_core as ac
from attention_core.ops.random import normal as drawn

BOTH = pytest.mark.parametrize("causal", [False, True])


def pattern(attention, q, *, causal):
    return attention.variant.pattern(q, q, attention.params, causal=causal)


def shared_softmax(q, seen):
    """Return the softmax of ``q_i · q_j / |q_j|`` over the allowed pairs."""
    logits = torch.einsum("...id,...jd->...ij", q, q) / q.norm(dim=-1).unsqueeze(-2)
    return logits.masked_fill(~seen, -math.inf).softmax(-1)


def pairs_with_all_others(n, *, causal):
    seen = torch.ones(n, n).tril(-1).bool() if causal else ~torch.eye(n).bool()
    return seen | torch.diag_embed(~seen.any(-1))


def buckets(q, sizes, number, seed):
    """Return each token's bucket by the paper's formula.

    A bucket combines one hash per entry of ``sizes``; without entries there is one bucket.
    """
    total = torch.zeros(q.shape[:-1], dtype=torch.long)
    directions = drawn((q.shape[-1], sum(sizes) // 2), seed, q, number)
    for size, own in zip(sizes, directions.split([s // 2 for s in sizes], dim=1), strict=True):
        total = total * size + torch.cat([q @ own, -q @ own], -1).argmax(-1)
    return total.tolist()


def by_definition(q, c, rounds, seed, sizes_at, *, causal):
    """Return the pattern of one head ``[n, d]``, token by token."""
    n = len(q)
    seen = torch.zeros(n, n, dtype=torch.bool)
    for r in range(rounds):
        for i in range(n):
            if causal or i == 0:
                bucket = buckets(q[: i + 1] if causal else q, sizes_at(i), r, seed)
                in_order = sorted(range(len(bucket)), key=lambda t: (bucket[t], t))
            mates = [t for t in in_order if bucket[t] == bucket[i]] if causal else in_order
            chunk = {t: place // c for place, t in enumerate(mates)}
            for j in mates:
                seen[i, j] |= chunk[i] - chunk[j] in (0, 1)
    seen.fill_diagonal_(False)
    return seen | torch.diag_embed(~seen.any(-1))


def check_against_definition(q, v, c, rounds, sizes_at, *, causal):
    attention = ac.get("reformer", bucket_size=c, rounds=rounds, seed=5)
    seen = torch.stack([by_definition(head, c, rounds, 5, sizes_at, causal=causal) for head in q])
    assert torch.equal(pattern(attention, q, causal=causal), seen)
    wanted = shared_softmax(q, seen)
    torch.testing.assert_close(attention.weights(q, q, causal=causal), wanted)
    torch.testing.assert_close(attention.attend(q, q, v, causal=causal), wanted @ v)


@pytest.mark.parametrize(
    ("n", "c", "sizes"),
    [(1, 4, (2,)), (7, 2, (4,)), (9, 4, (2,)), (30, 8, (4,)), (37, 4, (4, 2)), (48, 4, (4, 4)), (16, 64, (2,))],
)
def test_the_output_equals_the_definition(n, c, sizes):
    check_against_definition(normal(2, n, 6), normal(2, n, 3, seed=1), c, 2, lambda i: sizes, causal=False)


@pytest.mark.parametrize("n", [1, 2, 9, 33, 40])
def test_the_causal_output_equals_the_definition(n):
    # Chunks of 4: one bucket up to position 8, then 4 buckets up to position 32, then 16.
    sizes_at = {range(8): (), range(8, 32): (4,), range(32, 128): (4, 4)}
    check_against_definition(
        normal(2, n, 6),
        normal(2, n, 3, seed=1),
        4,
        2,
        lambda i: next(sizes for stretch, sizes in sizes_at.items() if i in stretch),
        causal=True,
    )


def transformers_reformer(q, v, *, chunk, causal=False, bucket=None):
    """Return the output of transformers' module for the same queries and values."""
    heads, _n, d = q.shape
    config = ReformerConfig(
        hidden_size=2 * heads * d,
        num_attention_heads=heads,
        attention_head_size=d,
        lsh_attn_chunk_length=chunk,
        num_hashes=1,
        num_buckets=4,
        is_decoder=causal,
        attn_layers=["lsh"],
        lsh_attention_probs_dropout_prob=0.0,
    )
    module = LSHSelfAttention(config).double().eval()
    one, none = torch.eye(heads * d).double(), torch.zeros(heads * d, heads * d).double()
    module.query_key.weight.data, module.value.weight.data = torch.cat([one, none], 1), torch.cat([none, one], 1)
    hidden = torch.cat([x.transpose(0, 1).flatten(1) for x in (q, v)], -1)[None]
    with torch.no_grad():
        out = module(hidden, buckets=None if bucket is None else bucket[None]).hidden_states
    return out[0].unflatten(-1, (heads, d)).transpose(0, 1)


@BOTH
def test_a_text_of_one_chunk_equals_transformers(causal):
    q, v = normal(2, 3, 24, 8)
    out = ac.get("reformer", bucket_size=24, rounds=3).attend(q, q, v, causal=causal)
    wanted = transformers_reformer(q, v, chunk=64, causal=causal)
    torch.testing.assert_close(out, wanted, rtol=1e-5, atol=1e-5)


def test_transformers_with_the_same_buckets_differs_only_in_the_first_chunk():
    # In transformers, the chunk before the first is the last one. Here, as in the paper, it does not exist.
    q, v = normal(2, 3, 64, 8)
    attention = ac.get("reformer", bucket_size=8, rounds=1)
    anatomy = attention.variant.anatomy(q, q, v, attention.params, causal=False)
    wanted = transformers_reformer(q, v, chunk=8, bucket=anatomy["buckets"][:, 0])
    out = attention.attend(q, q, v)
    first = anatomy["chunks"][:, 0] == 0
    assert (first.sum(-1) == 8).all()
    torch.testing.assert_close(out[~first], wanted[~first], rtol=1e-5, atol=1e-5)
    assert ((out - wanted)[first].norm(dim=-1) > 1e-3).all()


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 150), t=st.integers(1, 149), c=st.integers(2, 12), seed=st.integers(0, 99))
def test_causal_outputs_do_not_change_when_text_is_appended(n, t, c, seed):
    q, v = normal(2, 2, n, 5, seed=seed)
    t = min(t, n - 1)
    attention = ac.get("reformer", bucket_size=c, rounds=2)
    for whole, part in (
        (attention.attend(q, q, v, causal=True), attention.attend(*(x[:, :t] for x in (q, q, v)), causal=True)),
        (pattern(attention, q, causal=True)[..., :t], pattern(attention, q[:, :t], causal=True)),
    ):
        torch.testing.assert_close(whole[:, :t], part)


@BOTH
def test_one_chunk_for_the_whole_text_gives_softmax_of_its_logits(causal):
    q, v = normal(2, 2, 50, 6)
    attention = ac.get("reformer", bucket_size=50, rounds=1)
    wanted = shared_softmax(q, pairs_with_all_others(50, causal=causal))
    torch.testing.assert_close(attention.weights(q, q, causal=causal), wanted)
    torch.testing.assert_close(attention.attend(q, q, v, causal=causal), wanted @ v)
    anatomy = attention.variant.anatomy(q, q, v, attention.params, causal=causal)
    torch.testing.assert_close(anatomy["all_pairs"], wanted)


@BOTH
def test_another_round_adds_pairs(causal):
    # Without the pairs of a token with itself: a token that attends to another one no longer attends to itself.
    q, two = normal(2, 200, 8), ~torch.eye(200).bool()
    found = [pattern(ac.get("reformer", rounds=r), q, causal=causal) & two for r in range(1, 6)]
    for fewer, more in itertools.pairwise(found):
        assert not (fewer & ~more).any()
        assert more.sum() > fewer.sum()


@BOTH
def test_round_allows_two_chunks_at_most(causal):
    q = normal(2, 300, 8)
    for rounds in (1, 3):
        most = pattern(ac.get("reformer", bucket_size=8, rounds=rounds), q, causal=causal).sum(-1).max()
        assert 8 <= most <= rounds * 16


@BOTH
def test_similar_distant_tokens_share_a_bucket(causal):
    # The second half repeats the first, slightly changed and in another order: 150 pairs of near copies.
    first, shuffled = normal(150, 16), torch.randperm(150, generator=torch.Generator().manual_seed(1))
    q = torch.cat([first, (first + 0.1 * normal(150, 16, seed=2))[shuffled]])
    copy, original = torch.arange(150, 300), shuffled
    seen = pattern(ac.get("reformer", rounds=4), q, causal=causal)
    by_chance = seen[150:, :150].double().mean()
    assert seen[copy, original].double().mean() > max(0.8, 3 * by_chance)


def test_keys_are_ignored_and_all_heads_hash_alike():
    q, v = normal(2, 40, 6).unsqueeze(1).expand(2, 3, 40, 6)
    attention = ac.get("reformer")
    assert torch.equal(attention.attend(q, q, v), attention.attend(q, v, v))
    assert torch.equal(attention.weights(q, q), attention.weights(q, v))
    seen = pattern(attention, q, causal=False)
    assert torch.equal(seen[0], seen[2])  # All heads hash by the same directions.


@BOTH
def test_token_attends_to_itself_only_without_other_keys(causal):
    q, v = normal(2, 60, 6)
    seen = pattern(ac.get("reformer", bucket_size=4), q, causal=causal)
    itself = seen.diagonal()
    assert torch.equal(itself, seen.sum(-1) == itself.long())
    assert itself[0] == causal
    out = ac.get("reformer", bucket_size=4).attend(q, q, v, causal=causal)
    torch.testing.assert_close(out[itself], v[itself], rtol=0, atol=0)


@BOTH
def test_zero_vectors_give_finite_outputs_and_gradients(causal):
    q, v = normal(2, 30, 6)
    q[::3] = 0
    q.requires_grad_()
    out = ac.get("reformer", bucket_size=4).attend(q, q, v, causal=causal)
    (grad,) = torch.autograd.grad(out.square().sum(), q)
    assert out.isfinite().all()
    assert grad.isfinite().all()


@BOTH
def test_anatomy_is_consistent(causal):
    q, v = normal(2, 2, 90, 6)
    attention = ac.get("reformer", bucket_size=4, rounds=3)
    inside = attention.variant.anatomy(q, q, v, attention.params, causal=causal)
    assert inside["buckets"].shape == inside["order"].shape == inside["chunks"].shape == (2, 3, 90)
    in_order = inside["buckets"].gather(-1, inside["order"])
    assert (in_order.diff() >= 0).all()
    assert (inside["order"].diff()[in_order.diff() == 0] > 0).all()
    assert (inside["chunks"].gather(-1, inside["order"]).diff() >= 0).all()
    assert max(chunk.bincount().max() for chunk in inside["chunks"].flatten(0, 1)) == 4
    seen, missed = pattern(attention, q, causal=causal), inside["missed"]
    assert missed.any()
    assert not (missed & seen).any()
    assert not missed.diagonal(dim1=-2, dim2=-1).any()
    together = (inside["buckets"].unsqueeze(-1) == inside["buckets"].unsqueeze(-2)).any(1)
    if causal:
        assert not missed.triu().any()
        together[:, :32] = True  # Earlier tokens were hashed with fewer buckets.
    assert not (missed & ~together).any()
    if not causal:
        assert torch.equal(missed, together & ~seen & ~torch.eye(90).bool())
