"""Tests of claims about the approximation error of cosine attention, Linformer, Nyström and Performer."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from reference import error, softmax
from trial import normal, synthetic, trial, upload

import attention_core as ac
from attention_core import claims
from attention_core.claims import Verdict
from attention_core.claims.checks.linear import cosine_closest
from attention_core.claims.checks.low_rank import (
    linformer_rank,
    nystrom_all_landmarks,
    nystrom_beats_performer,
    nystrom_deterministic,
    six_iterations,
)
from attention_core.formatting import format_readable
from attention_core.inputs import SyntheticSource
from attention_core.variants.low_rank import nystrom

HOLDS, PARTLY, FAILS = Verdict.HOLDS, Verdict.PARTLY, Verdict.FAILS


def arrays(source: SyntheticSource):
    qkv = source.load()
    return qkv.q.numpy(), qkv.k.numpy(), qkv.v.numpy()


@pytest.mark.parametrize(
    ("kind", "sharpness", "verdict"),
    [
        ("gaussian", 0.1, HOLDS),  # The logits are so small that only the first order counts.
        ("gaussian", 1.0, FAILS),  # Closer in most pairings, but closest in no head.
        ("gaussian", 4.0, FAILS),
        ("low_rank", 0.2, FAILS),  # Small logits, large cosines: worse than uniform attention.
    ],
)
def test_cosine_is_the_closest_kernel_only_for_small_logits(kind, sharpness, verdict):
    assert trial("cosine_closest", synthetic(kind, sharpness=sharpness)).verdict is verdict


@pytest.mark.parametrize("causal", [False, True])
def test_the_errors_of_cosine_attention_equal_their_formulas(causal):
    q, k, v = normal(2, 30, 8), normal(2, 30, 8, seed=1), normal(2, 30, 8, seed=2)
    found = trial("cosine_closest", upload(q, k, v, causal=causal))
    units = [x.astype(np.float64) / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k)]
    own = 1 + units[0] @ units[1].swapaxes(-1, -2)
    own = np.tril(own) if causal else own
    own /= own.sum(-1, keepdims=True)
    exact = softmax(q, k, causal=causal)
    for head in range(2):
        [matrix] = found.of(kernel=cosine_closest.COSINE, of=cosine_closest.MATRIX, head=head)
        [output] = found.of(kernel=cosine_closest.COSINE, of=cosine_closest.OUTPUT, head=head)
        assert matrix.error == pytest.approx(error(own[head], exact[head]), rel=1e-4)
        assert output.error == pytest.approx(error(own[head] @ v[head], exact[head] @ v[head]), rel=1e-4)


@pytest.mark.parametrize("key", ["cosine_closest", "nystrom_beats_performer"])
def test_uniform_attention_has_no_closest_kernel(key):
    found = trial(key, upload(np.zeros((1, 300, 4))))
    assert found.verdict is Verdict.UNTESTABLE
    assert "sharper" in found.why


@pytest.mark.parametrize(("close", "verdict"), [(0, FAILS), (1, PARTLY), (2, PARTLY), (3, HOLDS)])
def test_the_share_of_heads_where_cosine_is_closest_decides_the_verdict(close, verdict):
    # For logits of this size, 1 + cos is the closest; for logits sixteen times larger, it is not.
    scale = np.array([1.0] * close + [4.0] * (5 - close), np.float32)[:, None, None]
    found = trial("cosine_closest", upload(scale * normal(1, 60, 8), scale * normal(1, 60, 8, seed=5)))
    assert found.numbers["heads"] == pytest.approx(20 * close)
    assert found.verdict is verdict


def test_the_chance_level_is_one_over_the_number_of_kernels():
    assert claims.claim("cosine_closest").bounds["chance"] == round(100 / 6)
    assert len(cosine_closest.KERNELS) == 6


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        ("block_topics", HOLDS),  # Neighbours are similar, so their mean represents them at any length.
        ("clustered", PARTLY),  # Few directions, but neighbours have nothing in common.
        ("gaussian", FAILS),  # There are no few dominant directions.
    ],
)
def test_linformers_rank_is_sufficient_for_similar_neighbours(kind, verdict):
    assert trial("linformer_rank", synthetic(kind)).verdict is verdict


def test_the_error_and_the_floor_of_linformer_equal_their_formulas():
    q, k = normal(1, 64, 8), normal(1, 64, 8, seed=1)
    found = trial("linformer_rank", upload(q, k))
    rank = int(found.numbers["rank"])
    assert (rank, found.numbers["longest"]) == (4, 64)
    assert min(row.n for row in found.rows) >= 4 * rank
    exact = softmax(q, k)[0]
    means = np.kron(np.eye(rank), np.full((1, 16), 1 / 16))
    assert found.numbers["error"] == pytest.approx(error(softmax(q[0], means @ k[0]) @ means, exact), rel=1e-5)
    values = np.linalg.svd(exact, compute_uv=False)
    floor = np.sqrt((values[rank:] ** 2).sum() / (values**2).sum())
    assert found.numbers["floor"] == pytest.approx(floor, rel=1e-5)
    assert found.numbers["uniform"] == pytest.approx(error(np.full((64, 64), 1 / 64), exact), rel=1e-5)
    assert found.numbers["shortest"] == 4 * rank


def test_any_rank_is_sufficient_for_uniform_attention():
    found = trial("linformer_rank", upload(np.zeros((1, 64, 4))))
    assert found.verdict is HOLDS
    assert found.numbers["exponent"] == pytest.approx(0, abs=1e-9)


def test_linformer_has_the_same_rank_at_every_length():
    rows = trial("linformer_rank", synthetic("gaussian", n=64, heads=1)).rows
    assert {row.rank for row in rows} == {32}
    assert {row.n // 32 for row in rows} == set(linformer_rank.LENGTH_FACTORS)


@pytest.mark.parametrize("source", [synthetic("gaussian", n=60), synthetic("low_rank", sharpness=0.2)])
def test_nystrom_with_all_tokens_as_landmarks_equals_softmax_despite_bad_conditioning(source):
    found = trial("nystrom_all_landmarks", source)
    assert found.verdict is HOLDS
    q, k, _ = arrays(source)
    conditions = [np.log10(np.linalg.cond(head)) for head in softmax(q, k)]
    # Beyond 16 digits, a condition number is rounding error.
    assert np.log10(found.numbers["condition"]) == pytest.approx(min(max(conditions), 15.65), abs=0.1)
    fewer = [row.error for row in found.rows if row.landmarks < found.numbers["tokens"]]
    assert min(fewer) > 1e3 * found.numbers["error"]


def test_a_long_input_is_cut_to_its_first_tokens():
    q = normal(1, 300, 4)
    found = trial("nystrom_all_landmarks", upload(q))
    assert found.numbers["tokens"] == nystrom_all_landmarks.MAX_TOKENS == 256
    assert found.rows == trial("nystrom_all_landmarks", upload(q[:, :256])).rows


def test_nystrom_with_the_iterative_inverse_only_does_not_equal_softmax(monkeypatch):
    monkeypatch.setitem(nystrom_all_landmarks.INVERSES, nystrom_all_landmarks.EXACT, "iterative")
    found = trial("nystrom_all_landmarks", synthetic("gaussian", n=60))
    assert found.verdict is FAILS
    assert found.numbers["error"] >= found.numbers["iterated"] > 0.01


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        (synthetic("locally_correlated", n=512), HOLDS),  # The landmarks' matrix is nearly the identity.
        (synthetic("gaussian", sharpness=0.1), PARTLY),  # The attention is close nevertheless.
        (synthetic("gaussian", n=128, sharpness=4.0), PARTLY),  # A better inverse makes attention worse.
        (synthetic("low_rank", n=512), FAILS),
    ],
)
def test_six_iterations_are_enough_if_landmarks_differ(source, verdict):
    assert trial("six_iterations", source).verdict is verdict


def test_the_residual_and_the_error_equal_their_formulas():
    q, k = normal(1, 128, 8), normal(1, 128, 8, seed=1)
    found = trial("six_iterations", upload(q, k))
    landmarks = [x[0].astype(np.float64).reshape(64, 2, 8).mean(1) for x in (q, k)]
    middle = softmax(*landmarks)
    v = middle.T / (np.abs(middle).sum(0).max() * np.abs(middle).sum(1).max())
    eye = np.eye(64)
    for step in range(1, 13):
        av = middle @ v
        v = v @ (13 * eye - av @ (15 * eye - av @ (7 * eye - av))) / 4
        [row] = found.of(of=six_iterations.RESIDUAL, iteration=step)
        assert row.error == pytest.approx(np.linalg.norm(eye - middle @ v) / 8, rel=1e-3, abs=1e-4)
    own = ac.get("nystrom", landmarks=64).weights(torch.tensor(q), torch.tensor(k))[0].double().numpy()
    assert found.numbers["error"] == pytest.approx(error(own, softmax(q, k)[0]), rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "sharpness", "verdict"),
    [
        ("locally_correlated", 1.0, HOLDS),
        ("gaussian", 0.1, PARTLY),  # Closer in every head, but not closer than uniform attention.
    ],
)
def test_nystrom_is_better_than_performer_for_similar_neighbours(kind, sharpness, verdict):
    found = trial("nystrom_beats_performer", synthetic(kind, n=256, sharpness=sharpness))
    assert found.verdict is verdict
    assert found.numbers["features"] == 128


def test_nystrom_loses_to_performer_if_segment_means_represent_no_token():
    alternating = 2.4 * (-1.0) ** np.arange(256)[:, None] * np.eye(32)[:4, None]
    found = trial("nystrom_beats_performer", upload(alternating + 0.1 * normal(4, 256, 32)))
    assert found.verdict is FAILS
    assert found.numbers["performer"] < 0.3 * found.numbers["nystrom"]
    assert found.numbers["nystrom"] > 0.9 * found.numbers["uniform"]


def test_the_errors_of_nystrom_and_performer_equal_their_formulas():
    source = synthetic("locally_correlated", n=300, d=16, heads=1)
    found = trial("nystrom_beats_performer", source)
    assert found.numbers["features"] == 64
    q, k, _ = (torch.tensor(x) for x in arrays(source))
    exact = softmax(q.numpy(), k.numpy())

    def errs(key, **settings):
        return error(ac.get(key, **settings).weights(q, k).double().numpy(), exact)

    drawn = [errs("performer", features=64, seed=seed) for seed in range(5)]
    assert found.numbers["performer"] == pytest.approx(np.median(drawn), rel=1e-5)
    assert found.numbers["nystrom"] == pytest.approx(errs("nystrom", landmarks=64), rel=1e-5)
    assert [row.error for row in found.of(variant=nystrom_beats_performer.PERFORMER, times=4)] == pytest.approx(drawn)


def test_performer_changes_with_its_seed_and_nystrom_does_not():
    source = synthetic("locally_correlated", n=64, heads=2)
    found = trial("nystrom_deterministic", source)
    assert found.verdict is HOLDS
    assert (found.numbers["nystrom"], found.numbers["runs"]) == (0, 5)
    q, k, v = (torch.tensor(x) for x in arrays(source))
    outs = [ac.get("performer", seed=seed).attend(q, k, v).double().numpy() for seed in range(5)]
    changes = [100 * error(out[head], outs[0][head]) for out in outs[1:] for head in range(2)]
    assert found.numbers["performer"] == pytest.approx(np.median(changes), rel=1e-5)


def test_the_seed_does_not_matter_if_queries_and_keys_are_zero():
    found = trial("nystrom_deterministic", upload(np.zeros((1, 20, 4)), v=normal(1, 20, 4)))
    assert found.verdict is PARTLY
    assert found.numbers["performer"] < 1e-3


def test_the_claim_fails_if_the_output_of_nystrom_changes():
    rows = trial("nystrom_deterministic", synthetic("gaussian", n=40)).rows
    moved = [replace(row, change=0.3) if row.variant == nystrom_deterministic.NYSTROM else row for row in rows]
    numbers, verdict = claims.claim("nystrom_deterministic").judge(moved)
    assert numbers["nystrom"] == pytest.approx(30)
    assert verdict is FAILS


@pytest.mark.parametrize(
    ("key", "words", "size", "share"),
    [("six_iterations", "64 landmarks", 64, 2), ("nystrom_beats_performer", "64 landmarks", 64, 4)],
)
def test_a_claim_uses_only_the_number_of_landmarks_in_its_statement(key, words, size, share, monkeypatch):
    made = []
    module = {"six_iterations": six_iterations, "nystrom_beats_performer": nystrom_beats_performer}[key]
    make = nystrom.landmarks
    monkeypatch.setattr(nystrom, "landmarks", lambda *asked: (made.append(out := make(*asked)), out)[1])
    claim = claims.claim(key)
    assert words in claim.statement
    assert size == module.LANDMARKS
    for n in (size * share - 1, size * share, size * share + 1):
        found = trial(key, upload(normal(1, n, 8)))
        if n < size * share:
            assert (found.verdict, made) == (Verdict.UNTESTABLE, [])
            assert found.why == f"At least {size * share} tokens are needed, but this input has {n}."
        else:
            assert found.verdict is not Verdict.UNTESTABLE
            assert {landmarks.shape[-2] for landmarks in made} == {size}


def test_linformer_is_judged_at_ranks_above_one():
    q, k = torch.tensor(normal(1, 16, 8)), torch.tensor(normal(1, 16, 8, seed=1))
    torch.testing.assert_close(ac.get("linformer", rank=1).weights(q, k), torch.full((1, 16, 16), 1 / 16))
    assert trial("linformer_rank", upload(normal(1, 63, 8))).verdict is Verdict.UNTESTABLE
    assert {row.rank for row in trial("linformer_rank", upload(normal(1, 64, 8))).rows} == {linformer_rank.MIN_RANK}


def head_with_sink(sink):
    """Return queries and keys of a bidirectional head; the first token attracts attention with strength ``sink``."""
    q, k = normal(1, 256, 8), normal(1, 256, 8, seed=1)
    q[..., 0], k[..., 0] = sink, 0
    k[:, 0] = [1, 0, 0, 0, 0, 0, 0, 0]
    return q, k


@pytest.mark.parametrize("key", ["linformer_rank", "six_iterations", "nystrom_beats_performer"])
def test_a_causal_model_is_untestable_if_it_would_attend_to_later_tokens(key):
    q, k = head_with_sink(0)
    weights = softmax(q, k)
    share = 100 * np.triu(weights, 1).sum() / weights.sum()
    assert share > 10
    found = trial(key, upload(q, k, causal=True))
    assert found.verdict is Verdict.UNTESTABLE
    assert f"{format_readable(share, 3)}% of its attention would be on tokens after the query" in found.why
    assert trial(key, upload(q, k)).verdict is not Verdict.UNTESTABLE


@pytest.mark.parametrize("key", ["linformer_rank", "six_iterations", "nystrom_beats_performer"])
def test_a_note_gives_the_small_share_of_attention_on_later_tokens(key):
    q, k = head_with_sink(24)
    weights = softmax(q, k)
    share = 100 * np.triu(weights, 1).sum() / weights.sum()
    assert 0 < share < 10
    found, plain = (trial(key, upload(q, k, causal=causal)) for causal in (True, False))
    assert found.verdict is plain.verdict is not Verdict.UNTESTABLE
    assert found.numbers["future"] == pytest.approx(share, rel=1e-3)
    assert "Without the mask, {future}% of its attention" in sentences_of(key, found)
    assert plain.numbers["future"] == 0
    assert "Without the mask" not in sentences_of(key, plain)


@pytest.mark.parametrize("causal", [True, False])
def test_nystrom_with_all_landmarks_is_judged_on_a_causal_model_without_its_mask(causal):
    q, k = normal(1, 40, 8), normal(1, 40, 8, seed=1)
    weights = softmax(q, k)
    found = trial("nystrom_all_landmarks", upload(q, k, causal=causal))
    assert found.verdict is HOLDS
    share = 100 * np.triu(weights, 1).sum() / weights.sum()
    assert found.numbers["future"] == pytest.approx(share if causal else 0, rel=1e-5)
    assert ("measured without its mask" in sentences_of("nystrom_all_landmarks", found)) == causal


@pytest.mark.parametrize("causal", [True, False])
def test_performer_uses_the_causal_mask_and_nystrom_does_not(causal):
    q, k, v = normal(1, 40, 8), normal(1, 40, 8, seed=1), normal(1, 40, 8, seed=2)
    found = trial("nystrom_deterministic", upload(q, k, v, causal=causal))
    assert found.verdict is HOLDS
    tensors = [torch.tensor(x) for x in (q, k, v)]
    outs = [ac.get("performer", seed=seed).attend(*tensors, causal=causal).double().numpy() for seed in range(5)]
    changes = [100 * error(out, outs[0]) for out in outs[1:]]
    assert found.numbers["performer"] == pytest.approx(np.median(changes), rel=1e-5)


def sentences_of(key, found):
    """Return the sentences of a claim for its numbers."""
    return " ".join(claims.claim(key).sentences(found.numbers))


def test_each_head_is_compared_with_the_median_over_its_own_seeds():
    def row(variant, head, error, seed=None):
        return nystrom_beats_performer.FeaturesRow(
            times=4, features=64, n=256, future=0.0, variant=variant, head=head, seed=seed, error=error
        )

    name = nystrom_beats_performer
    rows = [row(name.PERFORMER, 0, e, i) for i, e in enumerate((0.2, 0.3, 0.4))]
    rows += [row(name.PERFORMER, 1, e, i) for i, e in enumerate((0.7, 0.8, 0.9))]
    rows += [row(name.NYSTROM, 0, 0.35), row(name.NYSTROM, 1, 0.85), *(row(name.UNIFORM, h, 1.0) for h in (0, 1))]
    assert name.numbers(rows)["wins"] == 0.0, (
        "0.35 loses to 0.3 and 0.85 to 0.8, although 0.35 is below the median of all six"
    )
