"""Tests of block selection's story: chosen blocks, best blocks, and the mass between them."""

import numpy as np
import pytest
from driver import charts
from stories import data, drawn_words, head, open_step, said, softmax, spoken

import attention_core as ac
from pages.inside.stories import blocks
from pages.inside.stories.blocks import agreement, choice_sentence, missed_key_sentence, missed_sentence, score_sentence

FIVE = ac.get("blocks", block=5, blocks=1)


def test_the_story_reports_the_choices_on_screen():
    q, k, _ = (x.numpy() for x in head())
    logits = q @ k.T / 8**0.5
    mass, score = np.zeros((24, 5)), np.full((24, 5), -np.inf)
    for b in range(5):
        keys = slice(5 * b, min(5 * b + 5, 24))
        mass[:, b] = softmax(logits)[:, keys].sum(-1)
        score[:, b] = logits[:, keys].mean(-1)
    own = np.arange(24) // 5
    score[np.arange(24), own] = -np.inf
    chosen, best = score.argmax(-1), np.where(np.arange(5) == own[:, None], -1, mass).argmax(-1)
    at = open_step(FIVE, 2)
    assert said(at, r"(\d+) of the (\d+) selected blocks") == ((chosen == best).sum(), 24)
    i = np.arange(24)
    lost = mass[i, best] - mass[i, chosen]
    query = np.flatnonzero(lost == lost.max())[-1]
    assert f"“t{query}” (token {query}) loses the most softmax weight" in " ".join(c.value for c in at.caption)
    assert drawn_words(at).count("border-left") == 4
    at = open_step(FIVE, 3, again=at)
    text = said(at, r"holds ([\d.]+)% of.*it holds ([\d.]+)%\. .* be ([\d.]+)%, .* achieves (\d+)%")
    held = [mass[i, own].mean(), (mass[i, own] + mass[i, chosen]).mean(), (mass[i, own] + mass[i, best]).mean()]
    np.testing.assert_allclose(text[:3], 100 * np.array(held), atol=0.051)
    assert text[3] == pytest.approx(100 * (held[1] - held[0]) / (held[2] - held[0]), abs=0.51)


def test_the_true_mass_chooses_the_best_blocks():
    found = [step.findings for step in blocks.steps(data(ac.get("blocks", block=4, score="true mass"), causal=True))]
    assert "In **100%** of all comparisons" in found[0]
    assert "100%" in found[1]
    assert "blocks before the query's own block" in found[1]
    assert "the actual selection achieves 100%" in found[2]


@pytest.mark.parametrize("score", ac.variant("blocks").params.settings()[2].choices)
def test_each_score_has_its_own_formula(score):
    formulas = {blocks.steps(data(ac.get("blocks", score=s)))[0].formula for s in ("mean key", score)}
    assert len(formulas) == (1 if score == "mean key" else 2)


def test_agreement_counts_selectable_pairs():
    mass = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    assert agreement(np.array([[3.0, 2.0, 1.0], [0.0, 0.0, 1.0]]), mass) == 1
    assert agreement(np.array([[1.0, 2.0, -np.inf], [0.0, 5.0, 1.0]]), mass) == pytest.approx(1 / 3)
    assert agreement(np.array([[-np.inf, 2.0, -np.inf]]), mass[:1]) is None
    assert agreement(np.array([[3.0, 2.0, 1.0]]), np.full((1, 3), 1 / 3)) is None


def test_blocks_of_equal_weight_are_not_said_to_be_too_few():
    text = blocks.steps(data(ac.get("blocks", block=8), sharpness=0.0))[0].findings
    assert text.startswith(score_sentence(24, 3, None))
    assert score_sentence(24, 3, None) == (
        "24 tokens form 3 blocks. For each query, all other blocks that it can select have the same softmax weight."
    )


def test_sentences_without_selectable_blocks():
    assert score_sentence(5, 1, None) == "The tokens form only 1 block, so there are no other blocks to select from."
    assert "form only 2 blocks, so no query" in score_sentence(5, 2, None)
    assert "In **75%** of all comparisons between two blocks" in score_sentence(20, 4, 0.75)
    assert (
        choice_sentence(0, 0, causal=True)
        == "No other block is selected, so every query attends only to its own block."
    )
    assert choice_sentence(1378, 1378, causal=False).startswith("**1,378** of the 1,378 selected blocks (100%)")
    assert "before the query's own block" not in choice_sentence(4, 1, causal=False)
    assert choice_sentence(4, 1, causal=False).startswith("**1** of the 4 selected blocks (25%) are also")
    assert "before the query's own block" in choice_sentence(4, 1, causal=True)


@pytest.mark.parametrize(("blocks_", "loses"), [(1, True), (4, False)])
def test_a_query_loses_weight_only_if_not_all_blocks_are_selected(blocks_, loses):
    at = open_step(ac.get("blocks", block=5, blocks=blocks_), 2)
    text = spoken(at, "caption")
    assert ("loses the most softmax weight compared with the best selection. Blue: its own block." in text) == loses
    lossless = "No query loses softmax weight compared with the best selection. This is query “t23” (token 23). Blue:"
    assert (lossless in text) != loses
    marks = [each.get("text") for each in charts(open_step(FIVE, 3, again=at))[-1]["layout"].get("annotations", [])]
    assert "largest loss" in marks
    at = open_step(ac.get("blocks", block=5, blocks=blocks_), 3, again=at)
    marks = [each.get("text") for each in charts(at)[-1]["layout"].get("annotations", [])]
    assert ("largest loss" in marks) == loses


def test_a_key_that_the_mean_key_hides_is_named():
    assert missed_key_sentence("0–7", "a", 0.51, 0.9, 0.7) == (
        "The mean key hides “a”, the key with most of the weight of block 0–7. 70% of the queries that can select this "
        "block do so by score; by softmax weight, 90% would."
    )
    assert not missed_key_sentence("0–7", "a", 0.5, 0.9, 0.2)
    assert not missed_key_sentence("0–7", "a", 0.9, 0.9, 0.81)


@pytest.mark.parametrize(("score", "named"), [("mean key", True), ("second order", False)])
def test_only_the_mean_key_hides_a_key(score, named):
    reference = np.full((24, 24), 0.1 / 23)
    reference[:, 2] = 0.9
    chosen, best, mass = np.zeros((24, 5)), np.zeros((24, 5)), np.full((24, 5), 0.1 * 5 / 23)
    best[5:, 0], chosen[5:, 1], mass[:, 0] = 1, 1, 0.9 + 0.4 / 23
    parts = {"reference": reference, "chosen": chosen > 0, "best": best > 0, "mass": mass}
    found = blocks.steps(data(ac.get("blocks", block=5, blocks=1, score=score), parts=parts))[0].findings
    assert (
        "The mean key hides “t2”, the key with most of the weight of block 0–4. 0% of the queries" in found
    ) == named
    assert ("by softmax weight, 100% would." in found) == named


def test_the_gain_of_choosing_is_reported_if_possible():
    assert missed_sentence(0.5, 0.5, 0.5).endswith(
        "softmax weight. Even the best selection of the same number of other blocks would add almost nothing."
    )
    assert "the actual selection achieves 50%" in missed_sentence(0.5, 0.6, 0.7)


def test_without_selected_blocks_the_story_does_not_judge_a_selection():
    found = blocks.steps(data(ac.get("blocks", block=5, blocks=0)))[2].findings
    assert found.endswith("softmax weight. No other block is selected, so every query attends only to its own block.")
