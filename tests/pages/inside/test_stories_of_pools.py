"""Tests of the stories of variants that mix tokens: Linformer and pooled keys."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from driver import board
from stories import data, drawn_words, head, open_step, said, softmax

import attention_core as ac
from pages.inside import pooling
from pages.inside.pooling import best_error_sentence, pools_sentence
from pages.inside.reference import untrained
from pages.inside.stories import linformer, pooled


def arrays(**changes):
    return [x.numpy() for x in head(**changes)[:2]]


def test_pools_and_weights_follow_the_formula():
    q, k = arrays()
    means = k.reshape(6, 4, 8).mean(1)
    left = softmax(q @ means.T / 8**0.5)
    i, r = np.unravel_index(left.argmax(), left.shape)
    at = open_step(ac.get("pooled"), 1)
    assert said(at, r"(\d+) tokens become \*\*(\d+) keys.*combines ([\d.]+) tokens") == (24, 6, 4)
    assert drawn_words(at).count('<div style="flex:4 1 0') == 6
    at = open_step(ac.get("pooled"), 2, again=at)
    exact = softmax(q @ k.T / 8**0.5)[i, 4 * r : 4 * r + 4].sum()
    expected = (i, round(100 * left[i, r]), 4 * r, 4 * r + 3, round(100 * exact))
    assert (
        said(at, r"\(token (\d+)\) gives (\d+)%.*tokens (\d+) to (\d+)\).*Softmax gives (\d+)% to these tokens")
        == expected
    )
    assert f"{left[i, r]:.1%}" in drawn_words(at)
    at.selectbox(key="inside.pooled.2.query").set_value(3).run()
    assert f"{left[3].max():.1%}" in drawn_words(at)


def test_the_best_possible_error_is_that_of_the_best_weights():
    q, k = arrays(sharpness=6.0)
    S = softmax(q @ k.T / 8**0.5)
    P = np.kron(np.eye(6), np.full((1, 4), 0.25))
    A = softmax(q @ (P @ k).T / 8**0.5) @ P
    best = np.linalg.lstsq(P.T, S.T, rcond=None)[0].T @ P
    off = [round(100 * np.linalg.norm(x - S) / np.linalg.norm(S)) for x in (best, A)]
    assert off[1] > off[0]
    at = open_step(ac.get("pooled"), 3, sharpness=6.0)
    found = said(at, r"would be (\d+)%\..*?it is (\d+)%.*rank (\d+),.* instead of (\d+)\.")
    assert found == (*off, 6, 24)
    fine = open_step(ac.get("pooled", stride=1), 3, again=at)
    text = " ".join(m.value for m in fine.markdown)
    assert "would be 0%, because R has as many linearly independent rows as there are tokens." in text


def test_a_leak_names_its_tokens_and_counts_the_future():
    q, k = arrays()
    left = softmax(q @ k.reshape(6, 4, 8).mean(1).T / 8**0.5)
    own = [left[i, i // 4] / left[i, : i // 4 + 1].sum() for i in range(24)]
    ahead = [share * (3 - i % 4) / 4 for i, share in enumerate(own)]
    at = open_step(ac.get("pooled"), 4)
    first, last, query, token = said(
        at, r"pool of tokens (\d+) to (\d+), query “t(\d+)” .* from the later token “t(\d+)”\."
    )
    assert (first % 4, last - first, query, token) == (0, 3, first, last)
    assert said(at, r"an average of (\d+)% .* largest such share is (\d+)%") == (
        round(100 * np.mean(ahead)),
        round(100 * max(ahead)),
    )
    assert said(at, r"nothing leaks, but (\d+) of (\d+) queries have no key left") == (3, 24)


def test_queries_that_keep_a_key_are_reported():
    single = data(ac.get("pooled"), parts={"provenance": np.eye(24)})
    assert pooling.masked_pools_sentence(single).endswith("nothing leaks, and each query still has a key.")
    pairs = data(ac.get("pooled"), parts={"provenance": np.kron(np.eye(12), np.full((1, 2), 0.5))})
    assert pooling.masked_pools_sentence(pairs).endswith("nothing leaks, but 1 of 24 queries has no key left.")


def test_a_single_token_becomes_a_single_key():
    assert pools_sentence(1, 1, 1.0, 1, 1) == "The only token becomes **1 key**."
    assert pools_sentence(3, 1, 2.5, 3, 3).startswith("All tokens become **1 key**. This key combines 2.5 tokens")


def causal_left(q, k):
    """Return each query's weights on the pools (of four tokens) before its own, and on its pool's tokens up to it."""
    own = (np.arange(24) // 4 == np.arange(24)[:, None] // 4) & np.tri(24, dtype=bool)
    data = np.hstack([np.arange(6) < np.arange(24)[:, None] // 4, own])
    logits = q @ np.vstack([k.reshape(6, 4, 8).mean(1), k]).T / 8**0.5
    return softmax(np.where(data, logits, -np.inf))


def test_causal_queries_see_earlier_pools_and_the_tokens_of_their_own():
    q, k = arrays()
    left = causal_left(q, k)
    at = open_step(ac.get("pooled"), 1, causal=True)
    assert said(at, r"(\d+) tokens form \*\*(\d+) pools\*\* of (\d+).*at most (\d+) keys") == (24, 6, 4, 9)
    assert drawn_words(at).count('class="token-pools"') == 2
    at = open_step(ac.get("pooled", stride=7), 1, again=at, causal=True)
    assert said(at, r"at most (\d+) keys instead of (\d+).*last pool .* has only (\d+) tokens") == (9, 24, 3)
    at = open_step(ac.get("pooled"), 2, again=at, causal=True)
    i, r = np.unravel_index(left[:, :6].argmax(), (24, 6))
    exact = softmax(np.where(np.tri(24), q @ k.T / 8**0.5, -np.inf))[i, 4 * r : 4 * r + 4].sum()
    words = r"\(token (\d+)\) gives (\d+)%.*tokens (\d+) to (\d+)\).*gives (\d+)% to these tokens.*average, (\d+)% of"
    assert said(at, words) == (
        i,
        round(100 * left[i, r]),
        4 * r,
        4 * r + 3,
        round(100 * exact),
        round(100 * left[:, 6:].sum() / 24),
    )
    for step in (1, 2):
        alone = pooled.steps(data(ac.get("pooled", stride=64), causal=True))[step - 1].findings
        assert alone == "One pool holds all tokens, so no query has an earlier pool."


@pytest.mark.parametrize(
    ("n", "stride", "words"),
    [
        (8, 4, "8 tokens form **2 pools** of 4 tokens. A query attends to at most 5 keys instead of 8."),
        (10, 4, "The last pool (group of tokens with one mean key) has only 2 tokens."),
        (9, 4, "The last pool (group of tokens with one mean key) has only 1 token."),
        (8, 1, "8 tokens form **8 pools** of 1 token. A query attends to at most 8 keys instead of 8."),
    ],
)
def test_causal_pools_of_one_token_use_the_singular(n, stride, words):
    found = pooled.steps(data(ac.get("pooled", stride=stride), causal=True, n=n))[0].findings
    assert words in found
    assert ("The last pool" in found) == ("last" in words)


def test_the_sizes_of_pools_are_named():
    assert pools_sentence(24, 6, 4.0, 4, 4) == (
        "24 tokens become **6 keys**. On average, each of these keys combines 4.0 tokens (effective number). "
        "Each pool has 4 tokens."
    )
    assert pools_sentence(24, 5, 4.8, 4, 5).endswith(" Each pool has 4 or 5 tokens.")
    assert pools_sentence(24, 24, 1.0, 1, 1).endswith(" Each pool has 1 token.")
    assert pools_sentence(24, 1, 24.0, 24, 24) == (
        "All tokens become **1 key**. This key combines 24.0 tokens (effective number)."
    )
    assert pooled.steps(data(ac.get("pooled", stride=5)))[0].findings == pools_sentence(24, 5, 4.8, 4, 5)


@pytest.mark.parametrize(
    ("stride", "sharpness", "more"), [(4, 1.0, True), (12, 1.0, True), (24, 1.0, False), (4, 0.0, False)]
)
def test_a_pool_has_more_weight_than_others_only_if_no_other_has_as_much(stride, sharpness, more):
    found = pooled.steps(data(ac.get("pooled", stride=stride), sharpness=sharpness))[1].findings
    assert (", more than to any other pool. Softmax gives" in found) == more
    assert ("). Softmax gives" in found) != more


@pytest.mark.parametrize(
    ("word", "causal", "single"),
    [
        ("pooled~stride~1", False, True),
        ("pooled~stride~1", True, True),
        ("pooled~stride~2", False, False),
        ("linformer~rank~24~projection~mean", False, True),
        ("linformer~rank~23~projection~mean", False, False),
    ],
)
def test_pools_of_one_token_have_the_weights_of_softmax(word, causal, single):
    step_data = data(ac.from_word(word), causal=causal)
    story = pooled if word.startswith("pooled") else linformer
    assert (
        story.steps(step_data)[1].findings == "Each pool has one token, so the weights are those of softmax."
    ) == single
    assert np.allclose(step_data.weights, step_data.reference, atol=1e-6) == single


@pytest.mark.parametrize("causal", [False, True])
def test_a_causal_query_does_not_attend_to_pools_only(causal):
    mechanism = pooled.steps(data(ac.get("pooled"), causal=causal))[1].mechanism
    assert mechanism.startswith(
        "Each query attends to the keys of earlier pools"
        if causal
        else "Each query attends to the keys of pools (groups of combined tokens)."
    )
    assert ("and to the keys of the single tokens of its own pool." in mechanism) == causal


def test_the_best_possible_error_of_the_causal_variant_includes_only_earlier_pools():
    q, k = arrays(sharpness=6.0)
    P = np.kron(np.eye(6), np.full((1, 4), 0.25))
    S = softmax(np.where(np.tri(24), q @ k.T / 8**0.5, -np.inf))
    best = S.copy()
    for i in range(24):
        start = i - i % 4
        best[i, :start] = S[i, :start].reshape(-1, 4).mean(-1).repeat(4)
    own = causal_left(q, k) @ np.vstack([P, np.eye(24)])
    off = tuple(round(100 * np.linalg.norm(x - S) / np.linalg.norm(S)) for x in (best, own))
    assert 0 < off[0] < off[1]
    at = open_step(ac.get("pooled"), 3, causal=True, sharpness=6.0)
    assert said(at, r"the pooled keys, .* would be (\d+)%\. .* it is (\d+)%") == off


def test_both_masks_are_compared():
    at = open_step(ac.get("pooled"), 4, causal=True)
    # Six pools of four leak 3 + 2 + 1 pairs each, of 24 * 23 / 2 pairs.
    assert said(
        at, r"\(token (\d+)\) .* \(token (\d+)\).* leak in ([\d.]+)% .* without later tokens, (\d+) of (\d+) queries"
    ) == (0, 3, round(100 * 36 / 276, 1), 3, 24)
    fine = open_step(ac.get("pooled", stride=1), 4, again=at, causal=True)
    assert "this is causal softmax attention." in " ".join(m.value for m in fine.markdown)


def test_the_parts_that_a_model_would_learn_are_named():
    gated = ac.get("gated_deltanet")
    assert untrained(gated) == (
        "A model that is trained with Gated DeltaNet learns gates and write strengths. Here, they are not learned."
    )
    learned = {each.name: torch.zeros(1) for each in gated.variant.trainable}
    assert untrained(replace(gated, params=replace(gated.params, learned=learned))) == ""
    assert untrained(ac.get("nystrom")) == ""


def test_linformer_shows_the_round_trip():
    attention = ac.get("linformer", projection="gaussian")
    E = attention.variant.anatomy(*torch.zeros(3, 24, 8), attention.params, causal=False)["provenance"].numpy()
    at = open_step(attention)
    assert said(at, r"The token's own weight in this sum is (-?\d+\.\d+) on average") == (
        round(float(np.diag(E.T @ E).mean()), 2),
    )


def test_the_best_possible_error_is_named():
    found = {"rank": 6, "n": 24, "floor": 0.25, "error": 0.5}
    assert best_error_sentence(**found) == (
        "With the best possible weights instead of L, the matrix error compared with softmax would be **25%**. With "
        "the actual weights, it is **50%**. R has rank 6, so the rank of A is at most 6 instead of 24."
    )
    assert best_error_sentence(**found | {"rank": 24, "floor": 0.0}) == (
        "With the best possible weights instead of L, the matrix error compared with softmax would be 0%, because R "
        "has as many linearly independent rows as there are tokens. The actual weights give a matrix error of 50%."
    )


def test_a_pool_of_one_token_has_its_name():
    step_data = data(ac.get("pooled"))
    assert pooling.pool_text(step_data, (3, 3)) == "“t3” (token 3)"
    assert pooling.pool_text(step_data, (3, 6)) == "“t3 … t6” (tokens 3 to 6)"


def test_single_tokens_do_not_leak():
    assert "so no information leaks from later tokens." in pooled.steps(data(ac.get("pooled", stride=1)))[3].findings


def test_linformers_projection_has_the_name_that_its_formula_has():
    drawn = board(open_step(ac.get("linformer", projection="mean")), "inside.linformer.1.provenance")[1].values()
    assert [panel["title"] for panel, _values in drawn] == ["Projection E of keys", "Linformer", "Softmax"]


@pytest.mark.parametrize("projection", ["mean", "conv"])
def test_linformers_window_is_flat_or_a_triangle(projection):
    step_data = data(ac.get("linformer", projection=projection))
    text = linformer.steps(step_data)[0].findings
    assert ("Each projected key gives the same weight to all tokens of its window." in text) == (projection == "mean")
    if projection == "conv":
        P = step_data.parts["provenance"]
        times = max(row.max() / row[row > 0].min() for row in P)
        assert (
            f"The middle token of a window has up to {times:.1f}× as much weight as the tokens at the ends of the "
            "window."
        ) in text
