"""Tests of variants with smaller caches against their articles' rules in loops, and against softmax."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from seeded import normal

import attention_core as ac
from attention_core.ops.random import generator
from attention_core.variant import Cache
from attention_core.variants.cache import mla
from attention_core.variants.cache.heavy_hitters import slot_to_evict
from attention_core.variants.cache.quantised_keys import initial_codes

FULL = ac.get("softmax")


def close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-11)


def softmax(q, k, mask):
    """Return the softmax of one head over the pairs of a mask, computed with loops."""
    matrix = torch.zeros(len(q), len(k), dtype=q.dtype)
    for i in range(len(q)):
        each = {j: math.exp(float(q[i] @ k[j]) / math.sqrt(q.shape[1])) for j in range(len(k)) if mask[i][j]}
        for j, x in each.items():
            matrix[i, j] = x / sum(each.values())
    return matrix


def allowed_pairs(n, *, causal):
    return [[j <= i or not causal for j in range(n)] for i in range(n)]


# Grouped queries


@given(st.integers(1, 7), st.integers(1, 9), st.integers(1, 12), st.booleans())
@settings(max_examples=25)
def test_each_group_shares_the_mean_of_its_keys_and_values(heads, groups, n, causal):
    q, k, v = normal(heads, n, 3, seed=heads), normal(heads, n, 3, seed=n), normal(heads, n, 2, seed=groups)
    sizes = [heads // min(groups, heads)] * min(groups, heads)
    for i in range(heads - sum(sizes)):
        sizes[i] += 1  # The longer groups come first.
    attention, first = ac.get("gqa", groups=groups), 0
    matrix, out = attention.weights(q, k, causal=causal), attention.attend(q, k, v, causal=causal)
    for size in sizes:
        group = range(first, first + size)
        key, value = (sum(x[h] for h in group) / size for x in (k, v))
        for h in group:
            wanted = softmax(q[h], key, allowed_pairs(n, causal=causal))
            close(matrix[h], wanted)
            close(out[h], wanted @ value)
        first += size


# Latent attention


@given(st.integers(1, 4), st.integers(1, 14), st.integers(1, 5), st.integers(1, 25))
@settings(max_examples=25)
def test_latents_are_the_truncated_singular_value_decomposition(heads, n, d, rank):
    q, k, v = normal(heads, n, d, seed=n), normal(heads, n, d, seed=d), normal(heads, n, 2, seed=rank)

    def low_rank(x):
        u, s, vt = torch.linalg.svd(torch.cat(list(x), -1), full_matrices=False)
        low = sum(s[i] * torch.outer(u[:, i], vt[i]) for i in range(min(rank, len(s))))
        return low.split(x.shape[-1], -1)

    attention = ac.get("mla", rank=rank)
    matrix, out = attention.weights(q, k), attention.attend(q, k, v)
    for h, (key, value) in enumerate(zip(low_rank(k), low_rank(v), strict=True)):
        wanted = softmax(q[h], key, allowed_pairs(n, causal=False))
        torch.testing.assert_close(matrix[h], wanted, rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(out[h], wanted @ value, rtol=1e-7, atol=1e-9)


def test_the_latents_of_a_long_text_use_all_its_tokens():
    n, p = 2 * mla.TOKENS_PER_CHUNK + 3, mla.MlaParams(rank=4)
    q, k, v = (normal(2, n, 3, seed=seed) for seed in range(3))
    found, wanted = (each(q, k, v, p, causal=False) for each in (mla.attend, mla.definition))
    torch.testing.assert_close(found, wanted, rtol=1e-7, atol=1e-9)


def test_keys_of_lower_rank_are_exact_and_differentiable():
    few = normal(20, 2) @ normal(2, 12, seed=1)  # Rank 2: all 10 other singular values are equal to zero.
    k = few.unflatten(-1, (3, 4)).transpose(0, 1).requires_grad_()
    q = normal(3, 20, 4, seed=2)
    found = ac.get("mla", rank=3).weights(q, k)
    torch.testing.assert_close(found, FULL.weights(q, k))
    [slope] = torch.autograd.grad(found.square().sum(), k)
    assert slope.isfinite().all()


def test_anatomy_has_singular_values_and_errors():
    q, k, v = normal(3, 3, 10, 4)
    parts = ac.get("mla", rank=5).anatomy(q, k, v)
    torch.testing.assert_close(parts["key_sizes"], torch.linalg.svdvals(torch.cat(list(k), -1)))
    torch.testing.assert_close(parts["value_sizes"], torch.linalg.svdvals(torch.cat(list(v), -1)))
    exact = FULL.weights(q, k)
    assert {1, 10} <= set(parts["ranks"].tolist()) <= set(range(1, 11))
    for rank, found in zip(parts["ranks"].tolist(), parts["errors"], strict=True):
        error = (ac.get("mla", rank=rank).weights(q, k) - exact).norm() / exact.norm()
        torch.testing.assert_close(found, error, rtol=1e-6, atol=1e-9)
    alone = ac.get("mla").anatomy(*normal(3, 20, 4))
    assert (alone["key_sizes"] > 0).sum() == alone["ranks"].max() == 4


# Quantised keys


def test_codes_converge_to_key_clusters():
    from attention_core.variants.cache.quantised_keys import quantise

    centres = 10 * normal(4, 3)
    k = centres.repeat(5, 1) + 0.01 * normal(20, 3, seed=1)
    for seed in range(5):
        codes, nearest = quantise(k, ac.get("quantised_keys", codes=4, seed=seed).params)
        assert len(set(nearest.tolist())) == 4
        for heap in range(4):
            torch.testing.assert_close(codes[nearest[heap]], k[heap::4].mean(0))


@pytest.mark.parametrize(("n", "distinct", "codes"), [(1, 1, 1), (12, 12, 12), (12, 12, 40), (30, 5, 5), (30, 5, 8)])
def test_one_code_per_distinct_key_gives_softmax(n, distinct, codes):
    q, v, pool = normal(2, n, 3), normal(2, n, 2, seed=1), normal(2, distinct, 3, seed=2)
    k = pool.repeat_interleave(-(-n // distinct), -2)[..., :n, :]
    for seed in range(4):
        attention = ac.get("quantised_keys", codes=codes, seed=seed)
        close(attention.weights(q, k), FULL.weights(q, k))
        close(attention.attend(q, k, v), FULL.attend(q, k, v))


# Heavy hitters


def test_zero_heavy_hitters_give_a_window_and_ties_evict_the_later_token():
    q, k = normal(12, 3), normal(12, 3, seed=1)
    window = ac.get("heavy_hitters", recent=4, heavy=0).weights(q, k, causal=True)
    close(window, ac.get("local", window=3).weights(q, k, causal=True))
    alike = ac.get("heavy_hitters", recent=1, heavy=2).weights(q, torch.zeros_like(k), causal=True)
    assert (alike[-1] > 0).nonzero().flatten().tolist() == [0, 1, 11]


def test_decoder_equals_attend_with_a_constant_cache():
    q, k, v = normal(3, 2, 30, 4)
    attention = ac.get("heavy_hitters", recent=3, heavy=4)
    decoder, p = attention.variant.decoder, attention.params
    state = decoder.init_state(q[:, 0], v[:, 0], p)
    for t, wanted in enumerate(attention.attend(q, k, v, causal=True).unbind(-2)):
        out, state = decoder.step(state, q[:, t], k[:, t], v[:, t], p)
        close(out, wanted)
        assert state.keys.shape == (2, 7, 4)
        assert sorted(j for j in state.positions[0].tolist() if j >= 0)[-3:] == list(range(max(0, t - 2), t + 1))


# All variants


def test_cache_sizes_per_token():
    def cache_size(word, heads=6, d=8, d_v=4):
        attention = ac.registry.from_word(word)
        return attention.variant.cache(heads, d, d_v, attention.params)

    assert cache_size("gqa~groups~1") == Cache(per_token=12)
    assert cache_size("gqa~groups~6") == cache_size("gqa~groups~64") == Cache(per_token=72)
    assert cache_size("mla~rank~5") == Cache(per_token=10, fixed=6 * 5 * (8 + 4))
    assert cache_size("mla~rank~40").per_token == 40 + 24  # Values have 24 columns in total.
    assert cache_size("quantised_keys~codes~16") == Cache(per_token=0, fixed=6 * 16 * 13)


@pytest.mark.parametrize("seed", range(8))
def test_first_codes_are_drawn_in_proportion_to_the_squared_distance(seed):
    k, attention = normal(40, 3, seed=seed), ac.get("quantised_keys", codes=6, seed=seed)
    draws = torch.rand(6, generator=generator(seed), dtype=torch.float64).tolist()
    chosen = [int(draws[0] * 40)]
    for draw in draws[1:]:
        squared = [min(float(((key - k[c]) ** 2).sum()) for c in chosen) for key in k]
        total, place = 0.0, -1
        while total <= draw * sum(squared):
            place += 1
            total += squared[place]
        chosen.append(place)
    assert initial_codes(k, attention.params).tolist() == chosen


def test_the_latest_of_tied_heavy_hitters_is_evicted():
    received = torch.tensor([2.0, 1.0, 1.0, 5.0, 3.0], dtype=torch.float64)
    position = torch.tensor([0, 1, 2, 3, 4])
    assert slot_to_evict(received, position, slot=4, heavy=4).tolist() == [2]
    assert slot_to_evict(received, torch.tensor([0, 2, 1, 3, 4]), slot=4, heavy=4).tolist() == [1]
    received[4] = 1.0  # The token that leaves the window ties with the heavy tokens and is the latest.
    assert slot_to_evict(received, position, slot=4, heavy=4).tolist() == [4]


def test_64_groups_equal_softmax_up_to_64_heads_only():
    for heads, same in ((64, True), (65, False)):
        q, k = torch.randn(2, heads, 5, 4, generator=torch.Generator().manual_seed(heads), dtype=torch.float64)
        grouped, full = ac.get("gqa", groups=64).weights(q, k), ac.get("softmax").weights(q, k)
        assert torch.allclose(grouped, full, rtol=0, atol=1e-12) == same
    assert "at least as many groups as heads" in ac.get("gqa").variant.params.settings()[0].help
