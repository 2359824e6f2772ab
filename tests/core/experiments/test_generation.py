"""Tests of decoder memory, against the sizes of states and a cache that is filled."""

import pytest
import torch

import attention_core as ac
from attention_core.experiments import generation
from attention_core.experiments.generation import MemoryTask
from attention_core.registry import recurrent, smaller_caches


def memory_row(word, heads=3, d=8, d_v=8):
    [row] = generation.run(MemoryTask(word=word, heads=heads, d=d, d_v=d_v))
    return row


def test_recurrent_variants_and_smaller_caches_are_listed():
    keys = {variant.key for variant in recurrent()}
    assert keys >= {"linear", "cosine", "taylor2", "performer", "retention", "deltanet", "gla", "kda", "heavy_hitters"}
    assert {variant.key for variant in smaller_caches()} == {"gqa", "mla", "quantised_keys"}
    tasks = generation.tasks(["linear", "cosine"], heads=2, d=4, d_v=6)
    assert [t.word for t in tasks] == ["linear", "cosine"]
    assert {(t.heads, t.d, t.d_v) for t in tasks} == {(2, 4, 6)}


@pytest.mark.parametrize(("heads", "d", "d_v"), [(1, 4, 4), (3, 8, 5), (2, 64, 64)])
def test_state_sizes_equal_their_formulas(heads, d, d_v):
    pairs = 1 + d + d * (d + 1) // 2
    assert memory_row("linear", heads, d, d_v).state_bytes == 4 * heads * d * (d_v + 1)
    assert memory_row("cosine", heads, d, d_v).state_bytes == 4 * heads * (d + 1) * (d_v + 1)
    assert memory_row("taylor2", heads, d, d_v).state_bytes == 4 * heads * pairs * (d_v + 1)
    retention = memory_row("retention", heads, d, d_v).state_bytes
    assert 0 <= retention - 4 * heads * d * (d_v + 1) <= 4 * heads
    m = 16
    performer = memory_row(f"performer~features~{m}", heads, d, d_v).state_bytes
    # The sums, one reference per feature, and the directions, which all heads share.
    assert 4 * (heads * m * (d_v + 1) + m * d) <= performer <= 4 * (heads * m * (d_v + 2) + 2 * max(m, d) * d)


@pytest.mark.parametrize("word", ["linear", "taylor2", "performer"])
def test_the_cache_outgrows_the_state_at_the_reported_length(word):
    row = memory_row(word)
    token = torch.zeros(1, 3, 1, 8).nbytes * 2
    assert row.token_bytes == token
    n = row.outgrown
    assert (n - 1) * token <= row.state_bytes < n * token


@pytest.mark.parametrize(
    ("word", "once", "each"),
    [
        ("gqa~groups~1", 0, 64),
        ("gqa~groups~3", 0, 192),
        ("mla~rank~4", 4 * 3 * 4 * 16, 32),
        ("quantised_keys", 3264, 0),
    ],
)
def test_sizes_of_smaller_caches_follow_from_their_settings(word, once, each):
    row = memory_row(word)  # 3 heads of 8: a token takes 192 bytes.
    assert (row.state_bytes, row.grown_bytes, row.token_bytes) == (once, each, 192)
    if each == 192:
        assert row.outgrown is None
    else:
        n = row.outgrown
        assert (n - 1) * 192 <= once + (n - 1) * each
        assert n * 192 > once + n * each


def test_heavy_hitters_have_a_cache_of_fixed_size():
    row, bits = memory_row("heavy_hitters~recent~5~heavy~3"), 4
    assert row.grown_bytes == 0
    assert row.state_bytes == 3 * 8 * (bits * 16 + 8 + 8)  # Keys and values, received attention, positions.


def test_the_state_does_not_grow_with_the_number_of_tokens():
    linear = ac.get("linear")
    decoder, p = linear.variant.decoder, linear.params
    q, k, v = torch.randn(3, 1, 3, 8, generator=torch.Generator().manual_seed(0))
    state = decoder.init_state(q, v, p)
    for _ in range(5):
        _, state = decoder.step(state, q, k, v, p)
    assert generation._storage_bytes(state) == memory_row("linear").state_bytes


def test_views_of_one_tensor_are_counted_once():
    whole = torch.zeros(10)
    assert generation._storage_bytes((whole[:2], whole[2:], {"more": torch.zeros(3), "none": None})) == 52


@pytest.mark.parametrize(
    ("word", "fixed", "each"),
    [
        ("softmax", 0, 192),
        ("local~window~8", 8 * 192, 0),
        ("sink~window~8~sinks~2", 9 * 192, 0),
        ("atrous", 0, 192),
        ("topk~k~8", 0, 192),
    ],
)
def test_other_variants_cache_the_keys_that_later_tokens_need(word, fixed, each):
    row = memory_row(word)  # 3 heads of 8: a token takes 192 bytes.
    assert (row.state_bytes, row.grown_bytes) == (fixed, each)


@pytest.mark.parametrize(
    "word",
    [
        "local~window~300",
        "local~window~300~columns~1",
        "local~window~140~columns~2",
        "sink~window~300~sinks~64",
        "longformer~window~140~dilation~2~global_tokens~5",
        "bigbird~window~300~random_keys~0",
    ],
)
def test_a_window_longer_than_the_counted_text_needs_a_constant_number_of_keys(word):
    attention = ac.from_word(word)
    assert generation.constant_keys(attention) == generation.needed_keys(attention, 600) < 500
    assert generation.needed_keys(attention, 700) == generation.needed_keys(attention, 600)


@pytest.mark.parametrize(("window", "columns"), [(200, 4), (2, 3), (2, 5), (20, 16), (10, 24), (3, 300)])
def test_the_keys_of_a_square_window_are_those_of_its_rows(window, columns):
    attention, rows = ac.get("local", window=window, columns=columns), window + 2
    assert generation.constant_keys(attention) == window * columns
    if columns < 300:
        assert generation.needed_keys(attention, rows * columns) == window * columns


@pytest.mark.parametrize("word", ["atrous~stride~600", "atrous~stride~4096", "sparse~stride~4096", "bigbird"])
def test_the_keys_of_a_stride_longer_than_the_counted_text_grow(word):
    assert generation.constant_keys(ac.from_word(word)) is None


def test_the_keys_of_the_widest_window_are_not_counted_one_by_one():
    assert generation.constant_keys(ac.get("local", window=4096)) == 4096
    assert generation.constant_keys(ac.get("longformer", window=4096, dilation=64, global_tokens=64)) == 4096 * 64 + 64


def test_local_attention_needs_only_the_keys_of_its_window():
    assert generation.needed_keys(ac.get("local", window=8), 100) == 8
    assert generation.needed_keys(ac.get("local", window=8), 5) == 5
    assert generation.needed_keys(ac.get("softmax"), 100) == 100


def test_cheaper_from_returns_the_length_from_which_a_variant_costs_less_than_softmax():
    softmax, linear = ac.get("softmax"), ac.get("linear")
    n = generation.cheaper_from(linear, 3, 8, causal=True)
    ratios = {
        m: linear.cost(m, 8, causal=True).multiply_adds / softmax.cost(m, 8, causal=True).multiply_adds
        for m in (1, 2, n - 1, n, 2 * n, 1024)
    }
    assert all((ratio < 1) == (m >= n) for m, ratio in ratios.items())
    assert generation.cheaper_from(ac.get("pooled"), 4, 16, causal=True) == 5
    assert generation.cheaper_from(softmax, 3, 8, causal=True) is None
    assert generation.cheaper_from(ac.get("differential"), 4, 8, causal=True) is None


def test_without_a_mask_linear_attention_is_cheaper_if_the_text_is_longer_than_a_key():
    # Softmax takes 2 n² d multiply-adds, and linear attention 2 n d (d + 1).
    assert generation.cheaper_from(ac.get("linear"), 1, 8, causal=False) == 10


@pytest.mark.parametrize("attention", [ac.get(v.key) for v in ac.all_variants() if not v.causal_reason], ids=str)
def test_a_variant_stays_cheaper_than_softmax_at_longer_texts(attention):
    def is_cheaper(n):
        own, full = (each.cost(n, 32, causal=True).multiply_adds for each in (attention, ac.get("softmax")))
        return own < full

    first = generation.cheaper_from(attention, 1, 32, causal=True)
    if first is None:
        assert not is_cheaper(generation.MAX_SEARCH_LENGTH)
    else:
        assert not is_cheaper(first - 1)
        assert all(map(is_cheaper, (*range(first, first + 600), 4096, generation.MAX_SEARCH_LENGTH)))
