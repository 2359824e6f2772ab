"""Tests of every bound that a variant's on-screen text states: read from the text and compared with the matrix."""

import re

import pytest
import torch
from seeded import normal

import attention_core as ac


def only_match(words, pattern):
    """Return the only match of a pattern in a text."""
    [found] = re.findall(pattern, words)
    return found


def help_of(key, setting):
    return next(s.help for s in ac.variant(key).params.settings() if s.name == setting)


def opposing_inputs(n=32, d=8):
    """Return inputs that maximise a cosine weight: one key equals the query, and all others nearly oppose it."""
    q = normal(n, d)
    k = -q[:1] + normal(n, d, seed=1, size=0.3)
    k[0] = q[0]
    return q[:1].expand(n, d), k


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("q_k", [normal(2, 3, 40, 8), opposing_inputs()], ids=["even", "opposed"])
def test_cosine_weights_are_within_the_bound(q_k, causal):
    bound = only_match(ac.variant("cosine").note, r"a weight is at most (.*) times the mean weight\.")
    q, k = q_k
    A = ac.get("cosine").weights(q, k, causal=causal)
    cosines = torch.nn.functional.cosine_similarity(q[..., :, None, :], k[..., None, :, :], dim=-1)
    seen = torch.ones_like(A).tril() if causal else torch.ones_like(A)
    allowed = eval(bound, {"c": (cosines * seen).sum(-1) / seen.sum(-1)})
    times = A.amax(-1) * seen.sum(-1)
    assert (times <= allowed * (1 + 1e-12)).all()


def test_the_bound_of_cosine_weights_is_reached_above_two():
    q, k = opposing_inputs()
    times = float(ac.get("cosine").weights(q, k)[0].max()) * len(k)
    mean = float(torch.nn.functional.cosine_similarity(q[:1], k).mean())
    assert times == pytest.approx(2 / (1 + mean))
    assert times > 10


def test_taylor_gives_the_two_stated_logits_equal_weight():
    low, high = map(
        float, only_match(ac.variant("taylor2").note, r"logit of (-?\d+) gets the same weight as a logit of (-?\d+)")
    )
    q, k = torch.ones(3, 1, dtype=torch.float64), torch.tensor([[low], [high], [-low]], dtype=torch.float64)
    negative, positive, mirrored = ac.get("taylor2").weights(q, k)[0].tolist()
    assert negative == pytest.approx(positive, rel=1e-12)
    assert negative < 0.8 * mirrored  # This is not the case for the positive score of the same size.


def test_random_synthesizer_depends_on_positions_only():
    assert "all inputs share one matrix of logits" in ac.variant("synthesizer").summary
    A = ac.get("synthesizer", kind="random").weights(normal(12, 4), normal(12, 4, seed=1))
    other = ac.get("synthesizer", kind="random").weights(normal(12, 4, seed=2), normal(12, 4, seed=3))
    assert torch.equal(A, other)
    assert all((A[i] - A[j]).abs().max() > 0.01 for i in range(12) for j in range(i))


@pytest.mark.parametrize("causal", [False, True])
def test_log_n_scaling_equals_softmax_only_for_rows_with_base_length_keys(causal):
    assert "row" in ac.variant("softmax_log_n").note
    q, k = normal(2, 20, 4)
    A, S = (
        ac.get(key, **given).weights(q, k, causal=causal)
        for key, given in (("softmax_log_n", {"base_length": 8}), ("softmax", {}))
    )
    same = [bool(torch.allclose(a, s)) for a, s in zip(A, S, strict=True)]
    # The first causal row attends to one key, whose weight is 1 under any scale.
    assert same == ([i in (0, 7) for i in range(20)] if causal else [False] * 20)


@pytest.mark.parametrize("base_length", [2, 64, 4096])
def test_log_n_scaling_slows_the_growth_of_the_effective_number(base_length):
    assert "the effective number of keys grows more slowly with" in ac.variant("softmax_log_n").summary
    q, k = normal(2, 512, 4, size=1.5)
    attentions = ac.get("softmax_log_n", base_length=base_length), ac.get("softmax")
    scaled, plain = (
        [ac.metrics.entropy(each.weights(q[:n], k[:n])).exp().mean() for n in (32, 512)] for each in attentions
    )
    assert scaled[1] / scaled[0] < 0.9 * plain[1] / plain[0]


@pytest.mark.parametrize("causal", [False, True])
def test_queries_of_linear_attention_share_one_sum_only_without_a_mask(causal):
    assert "Without a mask, all queries use the same sum." in ac.variant("linear").summary
    attention, x = ac.get("linear"), normal(12, 4)
    sums = attention.anatomy(x, x, x, causal=causal)["key_sums"]
    assert bool((sums == sums[-1]).all()) != causal


@pytest.mark.parametrize("causal", [False, True])
def test_only_a_causal_query_attends_to_single_tokens_of_its_pool(causal):
    assert "With a causal mask, each query attends to earlier pools, and to the single tokens of its own pool." in (
        ac.variant("pooled").summary
    )
    pools = ac.get("pooled", stride=5).weights(*normal(2, 20, 4), causal=causal)[9::5].unflatten(-1, (4, 5))
    single = (pools.amax(-1) - pools.amin(-1)) > 1e-6  # Rows are the last queries of the pools 1 to 3.
    assert torch.equal(single, torch.eye(4, dtype=torch.bool)[1:] & causal)


@pytest.mark.parametrize("pool", ["mean", "conv", "max"])
def test_pooled_weights_are_equal_except_with_the_stated_pool(pool):
    bars = ac.get("pooled", stride=5, pool=pool).weights(*normal(2, 20, 4)).unflatten(-1, (4, 5))
    flat = bool(((bars.amax(-1) - bars.amin(-1)) < 1e-12).all())
    assert flat == (
        pool
        != only_match(
            ac.variant("pooled").note, r'get equal weights, except with "(\w+)", where the middle of the pool gets more'
        )
    )
    if not flat:
        assert (bars.argmax(-1) == 2).all()


@pytest.mark.parametrize("n", [1, 2, 5, 16, 50])
@pytest.mark.parametrize("levels", [1, 2, 3, 128])
def test_a_pyramid_has_no_more_pools_than_stated(n, levels):
    note = ac.variant("pyramid").note
    factor = int(only_match(note, r"is therefore at most (\d+) times “levels”"))
    assert factor == sum(
        map(int, only_match(note, r"(\d+), (\d+), (\d+) and (\d+) times as many segments as the setting “levels”"))
    )
    attention, x = ac.get("pyramid", levels=levels), normal(n, 4)
    pools = attention.variant.anatomy(x, x, x, attention.params, causal=False)["provenance"]
    assert len(pools) <= factor * levels
    assert len(pools) == factor * levels or n < 8 * levels
    assert len(pools) <= 4 * n


@pytest.mark.parametrize("causal", [False, True])
def test_a_bigbird_query_draws_no_more_keys_than_stated(causal):
    attention = ac.get("bigbird", window=1, global_tokens=1, random_keys=3)
    parts = attention.variant.primitives(normal(40, 4), normal(40, 4), attention.params, causal=causal)
    assert r"|R_i| \le \rho" in attention.variant.formula
    assert parts["random"].sum(-1).max() <= 3


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [3, 8])
def test_a_reformer_round_shows_no_more_tokens_than_stated(size, causal):
    assert "it therefore attends to at most 2c tokens" in help_of("reformer", "bucket_size")
    attention = ac.get("reformer", bucket_size=size, rounds=1)
    seen = attention.variant.pattern(normal(150, 6), normal(150, 6), attention.params, causal=causal)
    assert seen.sum(-1).max() <= 2 * size


def test_nonlocal_similarities_match_their_description():
    note = ac.variant("nonlocal").note
    normalised, *unnormalised = only_match(
        note,
        r'With "(\w+)", a softmax of dot products, rows sum to one\. '
        r'With "(\w+)" and "(\w+)", they generally do not\.',
    )
    assert {normalised, *unnormalised} == {"gaussian", "dot", "concat"}
    negative = only_match(
        note, r'With "(\w+)", weights can be negative, and the time for n tokens is proportional to n instead of n²\.'
    )
    for similarity in ("gaussian", "dot", "concat"):
        A = ac.get("nonlocal", similarity=similarity).weights(*normal(2, 20, 4))
        assert bool(torch.allclose(A.sum(-1), A.new_ones(20))) == (similarity == normalised)
        assert bool((A < 0).any()) == (similarity == negative)
