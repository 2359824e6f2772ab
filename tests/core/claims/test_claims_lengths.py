"""Tests of claims about the future, longer texts, and the sums of linear attention."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from reference import softmax
from trial import normal, synthetic, trial, upload

from attention_core import claims
from attention_core.claims import Verdict
from attention_core.claims.checks.linear import drowning, running_sums
from attention_core.claims.checks.low_rank import pooling_leaks
from attention_core.claims.checks.softmax import log_n_scale, relu2_normaliser
from attention_core.experiments import causal_modes

HOLDS, PARTLY, FAILS = Verdict.HOLDS, Verdict.PARTLY, Verdict.FAILS


def test_pooled_variants_leak_with_masked_weights_and_only_nystrom_with_masked_pools():
    found = trial("pooling_leaks", upload(normal(2, 40, 8)))
    assert found.verdict is PARTLY
    assert (found.numbers["leaking"], found.numbers["pooled"], found.numbers["moved"]) == (6, 6, 0)
    back = {row.variant: row.back for row in found.of(mask=pooling_leaks.ON_WEIGHTS)}
    # Linformer's 16 segments of 40 tokens have 2 or 3 tokens; after the cut, only the last segment contains the last
    # token.
    assert 1 <= back["Linformer"] <= 2
    assert (back["Softmax"], back["Local"], back["Linear"]) == (0, 0, 0)
    assert {row.back for row in found.of(mask=pooling_leaks.NO_MASK, variant="Softmax")} == {39}
    hidden = {row.variant: row.back for row in found.of(mask=pooling_leaks.ON_POOLS)}
    assert {variant for variant, back in hidden.items() if back} == {"Nyström"}
    assert found.numbers["left"] == 1
    assert claims.claim("pooling_leaks").theorem


def test_a_masked_pool_is_visible_after_its_last_token():
    q, k, v = (torch.from_numpy(normal(2, 10, 4, seed=seed)).double() for seed in range(3))
    attention = pooling_leaks.registry.get("pooled", stride=4)
    weights = pooling_leaks.masked_matrix(attention, pooling_leaks.ON_POOLS, q, k, v)
    out, blind = weights @ v, (weights == 0).all(-1)
    # Ten tokens in three pools of 4, 3 and 3.
    ends = np.array([4, 7, 10])
    keys, values = (np.stack([x[:, a:b].mean(1) for a, b in ((0, 4), (4, 7), (7, 10))], 1) for x in (k, v))
    for i in range(10):
        seen = (ends <= i + 1).sum()
        expected = softmax(q.numpy()[:, i : i + 1], keys[:, :seen]) @ values[:, :seen] if seen else 0
        np.testing.assert_allclose(out[:, i : i + 1], expected + np.zeros((2, 1, 4)), atol=1e-12)
        assert blind[:, i].tolist() == [i < 3] * 2


@pytest.mark.parametrize("key", ["landmark", "nystrom"])
def test_masked_pools_equal_the_causal_mask_with_one_landmark_per_token(key):
    q, k, v = (torch.from_numpy(normal(1, 9, 4, seed=seed)).double() for seed in range(3))
    attention = pooling_leaks.registry.get(key, landmarks=9, **({"iterations": 12} if key == "nystrom" else {}))
    weights = pooling_leaks.masked_matrix(attention, pooling_leaks.ON_POOLS, q, k, v)
    causal = softmax(q.numpy(), k.numpy(), causal=True)
    expected = causal if key == "nystrom" else causal @ causal
    np.testing.assert_allclose(weights @ v, expected @ v.numpy(), atol=1e-8)
    assert not (weights == 0).all(-1).any()


def test_nystrom_with_masked_landmarks_and_exact_inverse_does_not_leak(monkeypatch):
    monkeypatch.setattr(pooling_leaks, "inverse_steps", lambda a, iterations: iter([torch.linalg.inv(a)]))
    found = trial("pooling_leaks", upload(normal(1, 40, 8)))
    assert found.numbers["left"] == 0


def test_queries_without_a_visible_key_are_counted():
    found = trial("pooling_leaks", upload(normal(1, 40, 8)))
    blind = {row.variant: row.blind for row in found.of(mask=pooling_leaks.ON_POOLS)}
    # Ten pools of four keys. Funnel has eleven query pools: one for the first token, and ten whose outputs are at
    # their last tokens.
    assert (blind["Pooled keys"], blind["Funnel"]) == (3, 40 - 11)
    assert (found.numbers["fewest"], found.numbers["most"]) == (min(blind.values()), max(blind.values()))
    assert found.numbers["n"] == 40


@pytest.mark.parametrize("n", [8, 12, 24, 33])
def test_pooling_leaks_on_short_inputs_too(n):
    found = trial("pooling_leaks", upload(normal(1, n, 8)))
    assert found.verdict is PARTLY
    assert found.of(mask=pooling_leaks.ON_WEIGHTS, variant="Linformer")[0].back >= 1


def test_leaks_are_untestable_if_no_weight_depends_on_the_last_token():
    q, k = normal(1, 40, 8), normal(1, 40, 8, seed=1)
    q[:, -1] = k[:, -1] = 0
    found = trial("pooling_leaks", upload(q, k))
    assert found.verdict is Verdict.UNTESTABLE
    assert "no weight depends on the last token" in found.why
    assert trial("pooling_leaks", upload(0 * q, normal(1, 40, 8))).verdict is Verdict.UNTESTABLE
    k[:, -1] = 1
    assert trial("pooling_leaks", upload(q, k)).verdict is PARTLY


def test_a_leak_of_a_variant_without_pooling_is_counted(monkeypatch):
    # Efficient attention applies softmax over positions: it does not pool, but its column sums depend on later tokens.
    monkeypatch.setattr(pooling_leaks, "WITHOUT_POOLING", ("softmax", "efficient"))
    found = trial("pooling_leaks", upload(normal(1, 40, 8)))
    assert (found.numbers["moved"], found.verdict) == (1, PARTLY)


def test_softmax_with_masked_weights_equals_causal_softmax():
    q, k, v = (torch.from_numpy(normal(1, 9, 4, seed=seed)).double() for seed in range(3))
    weights = pooling_leaks.masked_matrix(pooling_leaks.registry.get("softmax"), pooling_leaks.ON_WEIGHTS, q, k, v)
    np.testing.assert_allclose(weights, softmax(q.numpy(), k.numpy(), causal=True), rtol=1e-9)
    assert not (weights == 0).all(-1).any()


def sums(*exponents, n=64):
    """Return heads whose squared positive logits sum to ``n^a``: eight keys count for a = 0, and all for a = 1."""
    k = np.ones((len(exponents), n, 1), np.float32)
    k[np.array(exponents) == 0, 8:] = -1
    return upload(np.ones_like(k), k)


def test_sums_of_a_few_keys_do_not_grow_with_n():
    found = trial("relu2_normaliser", sums(0, 0))
    assert found.verdict is HOLDS
    assert found.numbers["exponent"] == pytest.approx(0, abs=1e-6)
    assert [row.growth for row in found.of(growing=relu2_normaliser.SUMS)] == pytest.approx([1] * 10)


def test_sums_of_equal_keys_grow_as_n():
    found = trial("relu2_normaliser", sums(1, 1))
    assert (found.verdict, found.numbers["slower"]) == (FAILS, 0)
    assert found.numbers["exponent"] == pytest.approx(1)
    own, divisor = (
        [row.growth for row in found.of(growing=name, head=0)]
        for name in (relu2_normaliser.SUMS, relu2_normaliser.DIVISOR)
    )
    assert own == pytest.approx(divisor)


def test_a_quarter_of_slowly_growing_heads_gives_a_partial_verdict():
    found = trial("relu2_normaliser", sums(0, 1, 1, 1))
    assert (found.verdict, found.numbers["slower"]) == (PARTLY, 25)
    assert trial("relu2_normaliser", sums(0, 1, 1, 1, 1)).verdict is FAILS
    assert trial("relu2_normaliser", sums(0, 1, 1, 1), head=0).verdict is HOLDS


@pytest.mark.parametrize("causal", [False, True])
def test_growth_is_the_ratio_of_geometric_means_of_row_sums(causal):
    q, k = abs(normal(1, 40, 4)), normal(1, 40, 4, seed=1)
    k[:, 0] = 1  # Every query then has a positive logit, also the first query.
    found = trial("relu2_normaliser", upload(q, k, causal=causal))
    squares = np.maximum(q[0].astype(np.float64) @ k[0].T.astype(np.float64), 0) ** 2
    own = found.of(growing=relu2_normaliser.SUMS)
    sums = [(np.tril(squares) if causal else squares)[: row.n, : row.n].sum(-1) for row in own]
    means = np.exp([np.log(each).mean() for each in sums])
    assert [row.growth for row in own] == pytest.approx(means / means[0])


def test_the_curve_exponent_is_fitted_to_the_median_growth():
    def grown(head, exponent, *, scale=1.0):
        return [
            relu2_normaliser.GrowthRow(
                growing=relu2_normaliser.SUMS, n=n, head=head, growth=scale * (n / 16) ** exponent
            )
            for n in (16, 32, 64)
        ]

    rows = [*grown(0, 0.2), *grown(1, 0.6), *grown(2, 1.0, scale=0.5)]
    medians = [np.median([row.growth for row in rows if row.n == n]) for n in (16, 32, 64)]
    found = relu2_normaliser.numbers(rows)
    assert found["exponent"] == pytest.approx(0.6)
    assert found["curve"] == pytest.approx(np.polyfit(np.log([16, 32, 64]), np.log(medians), 1)[0])
    assert found["curve"] != pytest.approx(found["exponent"], abs=0.01)


def test_independent_gaussians_grow_as_n():
    found = trial("relu2_normaliser", synthetic("gaussian", heads=2, d=16))
    assert found.numbers["exponent"] == pytest.approx(1, abs=0.1)
    assert found.verdict is FAILS


def test_heads_without_positive_logits_are_left_out_or_make_the_claim_untestable():
    q = np.ones((2, 32, 1), np.float32)
    k = np.stack([q[0], -q[0]])
    assert {row.head for row in trial("relu2_normaliser", upload(q, k)).rows} == {0}
    found = trial("relu2_normaliser", upload(q, -q))
    assert found.verdict is Verdict.UNTESTABLE
    assert found.why.startswith(
        "No head has positive logits at two or more lengths, so the growth of squared ReLU's row sums cannot be "
        "measured."
    )


@pytest.mark.parametrize(("sharpness", "verdict"), [(1.0, FAILS), (3.0, PARTLY), (5.0, HOLDS)])
def test_the_log_n_scale_stabilizes_the_entropy_of_sharp_logits_only(sharpness, verdict):
    found = trial("log_n_scale", synthetic("gaussian", heads=2, d=16, sharpness=sharpness))
    assert found.verdict is verdict
    assert found.numbers["scaled"] < found.numbers["plain"]
    assert found.numbers["scaled_beyond"] < found.numbers["plain_beyond"]
    assert found.numbers["squared"] < 1e-6 < found.numbers["softmax"]
    assert found.numbers["base"] == 128


def test_the_entropy_of_uniform_attention_grows_with_log_n():
    found = trial("log_n_scale", upload(np.zeros((1, 64, 4), np.float32)))
    for name in ("plain", "scaled", "plain_beyond", "scaled_beyond"):
        assert found.numbers[name] == pytest.approx(1)
    assert found.verdict is FAILS


@pytest.mark.parametrize("causal", [False, True])
def test_entropies_equal_those_of_the_scaled_logits(causal):
    q, k = normal(1, 64, 8), 3 * normal(1, 64, 8, seed=1)
    found = trial("log_n_scale", upload(q, k, causal=causal))
    base = found.numbers["base"]
    # The base length is in the middle of the lengths.
    lengths = sorted({row.n for row in found.rows})
    assert sum(n < base for n in lengths) == sum(n > base for n in lengths) > 1
    kept = {}
    for n in lengths:
        seen = np.arange(1, n + 1)[:, None] if causal else n
        scale = np.log(np.maximum(seen, 2)) / np.log(base)
        for name, factor in ((log_n_scale.PLAIN, 1.0), (log_n_scale.SCALED, scale)):
            weights = softmax(factor * q[0, :n].astype(np.float64), k[0, :n], causal=causal)
            expected = -(weights * np.log(weights + 1e-300)).sum(-1).mean()
            assert found.of(variant=name, n=n)[0].entropy == pytest.approx(expected, rel=1e-4)
            kept[name, n] = expected
    for name, end in ((log_n_scale.PLAIN, "plain"), (log_n_scale.SCALED, "scaled")):
        for part, side in (("", [n for n in lengths if n <= base]), ("_beyond", [n for n in lengths if n >= base])):
            slope = np.polyfit(np.log(side), [kept[name, n] for n in side], 1)[0]
            assert found.numbers[end + part] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_the_log_n_claim_fails_if_the_factor_changes_squared_relu():
    # The factor changes softmax, so with softmax in this role the claim cannot hold, however steady the entropy is.
    rows = trial("log_n_scale", synthetic("gaussian", heads=2, d=16, sharpness=5.0)).rows
    stand_in = {log_n_scale.PLAIN: log_n_scale.SQUARED, log_n_scale.SCALED: log_n_scale.SCALED_SQUARED}
    others = [row for row in rows if row.variant in stand_in]
    numbers, verdict = claims.claim("log_n_scale").judge(
        [*others, *(replace(row, variant=stand_in[row.variant]) for row in others)]
    )
    assert numbers["squared"] == numbers["softmax"] > 0.1
    assert verdict is FAILS


def sink(n, heads=5):
    """Return queries and keys; the first key weighs 1,000 times as much as others in softmax, 4 times in plain sums."""
    q, k = 1 + 0.1 * normal(heads, n, 8), 0.5 * normal(heads, n, 8, seed=1)
    k[:, 0] = 2.5
    return q, k


def test_early_tokens_drown_in_plain_sums_and_decay_prefers_other_tokens():
    q, k = sink(128)
    found = trial("drowning", upload(q, k))
    assert found.verdict is HOLDS
    assert found.numbers["fall"] == pytest.approx(1, abs=0.2)
    assert found.numbers["softmax_fall"] < 0.3
    features = [np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q.astype(float), k.astype(float))]
    similarity = np.tril(features[0] @ features[1].swapaxes(-1, -2))
    # Half of a weight remains after a quarter of the 128 tokens.
    faded = similarity * 0.5 ** (np.subtract.outer(np.arange(128), np.arange(128)) / 32)
    exact = softmax(q, k, causal=True)
    for name, weights in ((drowning.PLAIN, similarity), (drowning.DECAYED, faded), (drowning.SOFTMAX, exact)):
        share = weights / weights.sum(-1, keepdims=True)
        for n in (16, 64, 128):
            rows = range(n - n // 4, n)
            early = np.mean([share[:, i, :4].sum(-1) for i in rows], 0)
            late = np.mean([share[:, i, i - 3 : i + 1].sum(-1) for i in rows], 0)
            for of, part in ((drowning.EARLY, early), (drowning.LATE, late)):
                measured = [row.share for row in found.of(of=of[name], n=n)]
                assert measured == pytest.approx(100 * part, rel=1e-4)
    heaviest = [[set(np.argsort(row)[-32:]) for row in weights[:, -1]] for weights in (similarity, faded)]
    common = [100 * len(plain & decayed) / 32 for plain, decayed in zip(*heaviest, strict=True)]
    assert found.numbers["kept"] == pytest.approx(np.median(common))


def test_the_drowning_claim_holds_partly_if_softmax_weights_fall_too():
    found = trial("drowning", upload(normal(5, 128, 8), normal(5, 128, 8, seed=1)))
    assert found.numbers["fall"] == pytest.approx(1, abs=0.1)
    assert found.numbers["softmax_fall"] == pytest.approx(1, abs=0.2)
    assert found.numbers["kept"] <= 50
    assert found.verdict is PARTLY


@pytest.mark.parametrize("n", [16, 32, 128])
def test_decay_selects_other_tokens_among_similar_ones_at_any_length(n):
    assert trial("drowning", upload(1 + 1e-3 * normal(1, n, 8))).numbers["kept"] <= 50


def lasting(n, heavy):
    """Return an upload whose heavy keys exceed the others so much that the decay does not hide them."""
    k = -4 * np.ones((1, n, 4), np.float32)
    k[:, heavy] = 1e4
    return upload(np.ones_like(k), k)


def test_decay_has_no_effect_if_it_keeps_the_heaviest_tokens():
    # Every fourth token is heavy, so that the early share falls like that of all tokens, under softmax as well.
    found = trial("drowning", lasting(64, np.arange(0, 64, 4)))
    assert found.numbers["kept"] == 100
    assert found.numbers["fall"] > 0.8
    assert found.numbers["softmax_fall"] > 0.8
    assert found.verdict is FAILS


def test_keys_far_larger_than_all_others_do_not_drown():
    found = trial("drowning", lasting(16, np.arange(4)))
    assert found.numbers["early"] > 99
    assert found.numbers["kept"] == 100
    assert found.verdict is FAILS


def test_the_drowning_claim_holds_partly_if_only_decay_matters():
    k = normal(2, 64, 8)
    k[:, 0] = 1e4
    found = trial("drowning", upload(normal(2, 64, 8, seed=1), k))
    assert found.numbers["fall"] < 0.1
    assert found.numbers["kept"] <= 50
    assert found.verdict is PARTLY


def test_plain_sums_in_place_of_decay_change_no_weights(monkeypatch):
    own = drowning.attentions
    monkeypatch.setattr(drowning, "attentions", lambda n: {**own(n), drowning.DECAYED: own(n)[drowning.PLAIN]})
    found = trial("drowning", upload(*sink(128)))
    late, decayed_late = (found.of(of=drowning.LATE[name]) for name in (drowning.PLAIN, drowning.DECAYED))
    assert [row.share for row in decayed_late] == [row.share for row in late]
    assert found.numbers["kept"] == 100
    assert found.verdict is PARTLY


def test_running_sums_give_equal_gradients_and_save_more_memory_for_larger_heads():
    found = trial("running_sums", upload(normal(2, 64, 32)))
    assert found.verdict is HOLDS
    assert found.numbers["difference"] < 1e-12
    # The states alone are 64 matrices of 32 x 33 numbers, 4 bytes each.
    assert found.numbers["states"] > 64 * 32 * 33 * 4 / 1024 > 2 * found.numbers["states"] / found.numbers["times"]
    assert [row.size for row in found.of(algorithm=running_sums.NAMES[running_sums.SUMS])] == [4, 8, 16, 32]
    assert (found.numbers["smallest"], found.numbers["size"], found.numbers["n"]) == (4, 32, 64)
    sums, states = (found.of(algorithm=name) for name in running_sums.NAMES.values())
    ratios = [b.kib / a.kib for a, b in zip(sums, states, strict=True)]
    slope = np.polyfit(np.log([4, 8, 16, 32]), np.log(ratios), 1)[0]
    assert found.numbers["growth"] == pytest.approx(slope)
    assert found.numbers["times"] == ratios[-1]


def test_running_sums_use_the_largest_power_of_two_as_length():
    assert trial("running_sums", upload(normal(1, 100, 4))).numbers["n"] == 64
    assert trial("running_sums", synthetic("gaussian", n=20, d=4, heads=1)).numbers["n"] == 512


@pytest.mark.parametrize(("d", "n", "verdict"), [(32, 64, HOLDS), (256, 16, HOLDS), (2, 64, FAILS), (1, 64, FAILS)])
def test_running_sums_save_memory_except_for_tiny_heads(d, n, verdict):
    assert trial("running_sums", upload(normal(1, n, d))).verdict is verdict


def test_key_and_value_sizes_are_halved_together():
    assert running_sums.sizes(32, 8) == [(4, 1), (8, 2), (16, 4), (32, 8)]
    assert running_sums.sizes(2, 1) == [(1, 1), (2, 1)]
    assert running_sums.sizes(1, 1) == [(1, 1)]


def test_a_memory_ratio_independent_of_head_size_gives_a_partial_verdict():
    rows = trial("running_sums", upload(normal(1, 64, 32))).rows
    sums = [row.kib for row in rows if row.algorithm == running_sums.NAMES[running_sums.SUMS]]
    tenfold = [
        replace(row, kib=10 * sums.pop(0)) if row.algorithm == running_sums.NAMES[running_sums.STATES] else row
        for row in rows
    ]
    numbers, verdict = claims.claim("running_sums").judge(tenfold)
    assert numbers["growth"] == pytest.approx(0)
    assert numbers["times"] == pytest.approx(10)
    assert verdict is PARTLY


def test_the_running_sums_claim_fails_for_an_algorithm_with_other_gradients(monkeypatch):
    def off(attention, algorithm):
        compute = causal_modes.causal_forward(attention, algorithm)
        return (lambda q, k, v: compute(q, 1.001 * k, v)) if algorithm == running_sums.SUMS else compute

    monkeypatch.setattr(running_sums, "causal_forward", off)
    found = trial("running_sums", upload(normal(1, 64, 32)))
    assert 1e-6 < found.numbers["difference"] < 1e-2
    assert found.verdict is FAILS


def test_gradients_of_zero_have_no_difference():
    # With one feature or equal values, the gradients of queries and keys are only rounding errors.
    for source in (upload(normal(1, 64, 1)), upload(normal(1, 64, 32), v=np.ones((1, 64, 32), np.float32))):
        assert trial("running_sums", source).numbers["difference"] < 1e-12


def test_each_mask_counts_its_own_leaks():
    def row(variant, mask, back, *, pools=True, blind=0):
        return pooling_leaks.LeakRow(variant=variant, mask=mask, pools=pools, back=back, blind=blind, n=40)

    found = pooling_leaks.numbers(
        [
            *(row(name, pooling_leaks.NO_MASK, 39) for name in "abc"),
            *(row(name, pooling_leaks.ON_WEIGHTS, back) for name, back in (("a", 5), ("b", 7), ("c", 0))),
            row("a", pooling_leaks.ON_POOLS, 0, blind=3),
            row("b", pooling_leaks.ON_POOLS, 4, blind=1),
            row("c", pooling_leaks.ON_POOLS, 0, blind=9),
            row("plain", pooling_leaks.ON_WEIGHTS, 2, pools=False),
        ]
    )
    assert (found["leaking"], found["pooled"], found["back"]) == (2, 3, 7)
    assert (found["moved"], found["others"]) == (1, 1)
    assert (found["left"], found["fewest"], found["most"]) == (1, 1, 9)
