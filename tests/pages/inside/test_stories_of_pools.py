"""Tests of the stories of variants that mix tokens: Linformer, pooled keys, pyramids and Funnel."""

import numpy as np
import pytest
import torch
from stories import drawn_words, figures, head, open_step, said, seen, softmax

import attention_core as ac
from attention_core.variants.low_rank.pyramid import SIZES
from pages.inside import pooling
from pages.inside.pooling import blur_sentence
from pages.inside.stories import funnel, linformer, pooled, pyramid


def arrays(**changes):
    return [x.numpy() for x in head(**changes)[:2]]


def test_pools_and_looks_are_those_of_the_formula():
    q, k = arrays()
    means = k.reshape(6, 4, 8).mean(1)
    left = softmax(q @ means.T / 8**0.5)
    i, r = np.unravel_index(left.argmax(), left.shape)
    at = open_step(ac.get("pooled"), 1)
    assert said(at, r"(\d+) tokens become \*\*(\d+) keys.*amounts to ([\d.]+)") == (24, 6, 4)
    assert drawn_words(at).count('<div style="flex:4 1 0') == 6
    at = open_step(ac.get("pooled"), 2, again=at)
    exact = softmax(q @ k.T / 8**0.5)[i, 4 * r : 4 * r + 4].sum()
    wanted = (i, round(100 * left[i, r]), 4 * r, 4 * r + 3, round(100 * exact))
    assert said(at, r"\(token (\d+)\) puts (\d+)%.*tokens (\d+) to (\d+)\).*puts (\d+)% there") == wanted
    assert f"{left[i, r]:.1%}" in drawn_words(at)
    at.selectbox(key="inside.pooled.2.query").set_value(3).run()
    assert f"{left[3].max():.1%}" in drawn_words(at)


def test_blur_is_the_distance_no_weights_can_undo():
    q, k = arrays(sharpness=6.0)
    S = softmax(q @ k.T / 8**0.5)
    P = np.kron(np.eye(6), np.full((1, 4), 0.25))
    A = softmax(q @ (P @ k).T / 8**0.5) @ P
    best = np.linalg.lstsq(P.T, S.T, rcond=None)[0].T @ P
    off = [round(100 * np.linalg.norm(x - S) / np.linalg.norm(S)) for x in (best, A)]
    assert off[1] > off[0]
    at = open_step(ac.get("pooled"), 3, sharpness=6.0)
    told = said(at, r"rank (\d+) of (\d+) and (\d+) different columns.*?\*\*(\d+)%\*\*.*?\*\*(\d+)%\*\*")
    assert told == (6, 24, 6, *off)
    fine = open_step(ac.get("pooled", stride=1), 3, again=at)
    assert "nothing has to be blurred" in " ".join(m.value for m in fine.markdown)


def test_a_leak_names_its_tokens_and_counts_the_future():
    q, k = arrays()
    left = softmax(q @ k.reshape(6, 4, 8).mean(1).T / 8**0.5)
    own = [left[i, i // 4] / left[i, : i // 4 + 1].sum() for i in range(24)]
    ahead = [share * (3 - i % 4) / 4 for i, share in enumerate(own)]
    at = open_step(ac.get("pooled"), 4)
    first, last, query, token, distance = said(
        at, r"key of tokens (\d+) to (\d+) tells query (\d+),.*?of token (\d+),.*?(\d+) ahead"
    )
    assert (first % 4, last - first, query, token, distance) == (0, 3, first, last, 3)
    assert said(at, r"still (\d+)% .* average, (\d+)%") == (round(100 * np.mean(ahead)), round(100 * max(ahead)))
    assert said(at, r"nothing leaks; but (\d+) of (\d+) queries see no key then") == (3, 24)
    assert "Causal, this variant does so" in " ".join(m.value for m in at.markdown)
    at = open_step(ac.get("pooled", stride=1), 4, again=at)
    assert "Causal, this variant does so" not in " ".join(m.value for m in at.markdown)
    # 16 pools, and 24 single tokens because further levels would have more: a query always has its own key.
    at = open_step(ac.get("pyramid", levels=16), 4, again=at)
    assert "nothing leaks; each query still sees a key" in " ".join(m.value for m in at.markdown)


def causal_left(q, k):
    """Return the weights of each query on the pools of four before its own, and on its own pool's earlier tokens."""
    own = (np.arange(24) // 4 == np.arange(24)[:, None] // 4) & np.tri(24, dtype=bool)
    seen = np.hstack([np.arange(6) < np.arange(24)[:, None] // 4, own])
    logits = q @ np.vstack([k.reshape(6, 4, 8).mean(1), k]).T / 8**0.5
    return softmax(np.where(seen, logits, -np.inf))


def test_causal_pools_are_those_before_and_ones_own_is_seen_one_by_one():
    q, k = arrays()
    left = causal_left(q, k)
    at = open_step(ac.get("pooled"), 1, causal=True)
    assert said(at, r"(\d+) tokens make \*\*(\d+) pools\*\* of (\d+).*at most (\d+) keys") == (24, 6, 4, 9)
    assert drawn_words(at).count('class="token-pools"') == 2
    at = open_step(ac.get("pooled", stride=7), 1, again=at, causal=True)
    assert said(at, r"at most (\d+) keys instead of (\d+).*last pool is (\d+) long") == (9, 24, 3)
    at = open_step(ac.get("pooled"), 2, again=at, causal=True)
    i, r = np.unravel_index(left[:, :6].argmax(), (24, 6))
    exact = softmax(np.where(np.tri(24), q @ k.T / 8**0.5, -np.inf))[i, 4 * r : 4 * r + 4].sum()
    told = r"look at a pool: .*\(token (\d+)\) puts (\d+)%.*tokens (\d+) to (\d+)\).*puts (\d+)% .*average (\d+)% of"
    assert said(at, told) == (
        i,
        round(100 * left[i, r]),
        4 * r,
        4 * r + 3,
        round(100 * exact),
        round(100 * left[:, 6:].sum() / 24),
    )
    alone = open_step(ac.get("pooled", stride=64), 2, again=at, causal=True)
    assert "no query has another before its own" in " ".join(m.value for m in alone.markdown)


def test_causal_blur_is_that_of_earlier_pools_alone():
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
    assert said(at, r"makes the product \*\*(\d+)%\*\*.*make it \*\*(\d+)%\*\*") == off


def test_both_cuts_are_told_apart():
    at = open_step(ac.get("pooled"), 4, causal=True)
    # Six pools of four leak 3 + 2 + 1 pairs each, of 24 * 23 / 2 pairs.
    assert said(at, r"pool of query (\d+), .* token (\d+), .*let ([\d.]+)% .* alone (\d+) of (\d+) queries") == (
        0,
        3,
        round(100 * 36 / 276, 1),
        3,
        24,
    )
    fine = open_step(ac.get("pooled", stride=1), 4, again=at, causal=True)
    assert "this is causal softmax itself" in " ".join(m.value for m in fine.markdown)


def test_funnels_questions_come_from_later_tokens():
    at = open_step(ac.get("funnel", stride=4), 4)
    # The first token is alone; 23 others are in six segments of four, the last of three.
    ahead = [0, *[(3 - i % 4) / 4 for i in range(20)], 2 / 3, 1 / 3, 0]
    assert said(at, r"On average (\d+)% of a question") == (round(100 * np.mean(ahead)),)


def test_the_pyramid_has_its_levels():
    assert " 1, 3, 6, 8 times 2, the setting" in " ".join(
        m.value for m in open_step(ac.get("pyramid", levels=2)).markdown
    )
    at = open_step(ac.get("pyramid"), 1)
    assert said(at, r"\*\*(\d+) keys\*\* on (\d+) levels: (\d+), (\d+), (\d+), (\d+) pools") == (18, 4, 1, 3, 6, 8)
    assert drawn_words(at).count('class="token-pools"') == 4


def test_linformer_says_it_is_untrained_and_what_comes_back():
    for projection in ("mean", "conv", "gaussian"):
        attention = ac.get("linformer", projection=projection)
        told = " ".join(m.value for m in open_step(attention).markdown)
        assert "untrained" in told
    E = attention.variant.anatomy(*torch.zeros(3, 24, 8), attention.params, causal=False)["provenance"].numpy()
    at = open_step(attention)
    assert said(at, r"comes back as ([\d.-]+) of itself") == (round(float(np.diag(E.T @ E).mean()), 2),)


def test_blur_names_what_is_alike():
    told = {"rank": 6, "n": 24, "kinds": 7, "floor": 0.25, "error": 0.5}
    for queries, lines in ((False, "columns"), (True, "rows")):
        assert blur_sentence(**told, queries=queries) == (
            f"The product has rank 6 of 24 and 7 different {lines}. That blur alone makes it **25%** off softmax "
            "(Frobenius), whatever the weights; the actual ones make it **50%**."
        )
    assert blur_sentence(**told | {"rank": 24}, queries=False).startswith("With as many independent mixtures")


def test_a_pool_of_one_token_is_named_by_it():
    given = seen(ac.get("pooled"))
    assert pooling.told(given, (3, 3)) == "“t3” (token 3)"
    assert pooling.told(given, (3, 6)) == "“t3 … t6” (tokens 3 to 6)"


def test_where_nothing_is_pooled_nothing_leaks():
    assert "so none can tell of another" in pooled.steps(seen(ac.get("pooled", stride=1)))[3].sentence
    assert "here nothing is averaged, and nothing leaks" in funnel.steps(seen(ac.get("funnel", stride=1)))[3].sentence


def test_a_common_query_looks_as_its_tokens_would_not():
    given = seen(ac.get("funnel", stride=4))
    right = given.parts["right"]
    told = funnel.steps(given)[1].sentence
    weight, j, low, high = figures(told, r"puts ([\d.]+)% on .*\(token (\d+)\).* key ([\d.]+)% to ([\d.]+)%")
    first, last = map(int, figures(told, r"tokens (\d+) to (\d+)\) puts"))
    assert weight == pytest.approx(100 * right[1:].max(), abs=0.51)
    own = given.reference[first : last + 1, int(j)]
    assert (low, high) == (pytest.approx(100 * own.min(), abs=0.51), pytest.approx(100 * own.max(), abs=0.51))


def test_the_pyramid_is_told_level_by_level():
    given = seen(ac.get("pyramid"))
    cover, look, *_ = pyramid.steps(given)
    assert "1, 3, 6, 8 pools of up to 24, 8, 4, 3 tokens. Their numbers are 1, 3, 6, 8 times 1," in cover.sentence
    assert SIZES == (1, 3, 6, 8)
    left = given.parts["left"]
    shares = [left[:, a:b].sum(-1).mean() for a, b in ((0, 1), (1, 4), (4, 10), (10, 18))]
    assert look.sentence.endswith(f"a query gives {', '.join(f'{x:.0%}' for x in shares)}.")


@pytest.mark.parametrize("projection", ["mean", "conv"])
def test_linformers_window_is_flat_or_a_triangle(projection):
    given = seen(ac.get("linformer", projection=projection))
    told = linformer.steps(given)[0].sentence
    assert ("The window is flat: each token of a key counts alike." in told) == (projection == "mean")
    if projection == "conv":
        P = given.parts["provenance"]
        times = max(row.max() / row[row > 0].min() for row in P)
        assert f"a triangle: in a key the middle counts up to {times:.1f}× its ends." in told
