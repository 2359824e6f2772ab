"""Tests that the sentences of DeltaNet's story agree with its numbers."""

import numpy as np
import pytest
from driver import board
from stories import data, open_step

import attention_core as ac
from pages.inside.stories import deltanet
from pages.inside.stories.deltanet import STRENGTHS, growth_sentence, overlap_sentence, pattern_sentence, tried_sentence

UNIT = np.array([1 - strength for strength in STRENGTHS])


def sentences(attention, **given):
    return [f"{step.findings} {step.details}".strip() for step in deltanet.steps(data(attention, **given))]


def test_overlaps_are_absolute_and_a_single_token_has_no_overlap():
    assert overlap_sentence(np.array([-0.4, 0.1])) == (
        "On average, a token changes what an earlier token stored by 25% (erased or added; at most 40%)."
    )
    assert overlap_sentence(np.array([])) == "There is only one token, so no earlier token stored anything."


def test_the_pattern_of_the_overlaps_is_described():
    near = "A token erases 60% of what the token directly before it stored, on average."
    added = (
        "later tokens add to what “a” stored instead of erasing it, because the dot product of the keys is negative."
    )
    assert pattern_sentence(0.6, 0.5, "a", 0.79) == near
    assert pattern_sentence(0.6, 0.6, "a", 0.79) == ""
    assert pattern_sentence(0.6, 0.6, "a", 0.8) == f"80% of the {added}"
    assert pattern_sentence(0.6, 0.5, "a", 1.0) == f"{near} All {added}"


def test_the_token_to_which_all_others_add_is_found():
    overlaps = np.full((24, 24), 0.5)
    overlaps[:, 1] = -0.5
    for n, named in ((24, True), (7, False)):
        text = deltanet.steps(data(ac.get("deltanet"), n=n, parts={"overlaps": overlaps[:n, :n]}))[0].findings
        assert ("All later tokens add to what “t1” stored" in text) == named


@pytest.mark.parametrize("causal", [False, True])
def test_the_order_of_writes_and_reads_is_explained_without_a_mask(causal):
    text = deltanet.steps(data(ac.get("deltanet"), causal=causal))[0].details
    assert ("reads the final state" in text) != causal


@pytest.mark.parametrize(
    ("settings", "promised"), [({}, True), ({"strength": 1.05}, False), ({"keys": "exact"}, False)]
)
def test_only_unit_keys_with_strength_up_to_one_are_bounded(settings, promised):
    text = sentences(ac.get("deltanet", **settings))[1]
    assert ("between −1 and 1" in text) == promised


def test_little_is_written_if_the_key_already_reads_the_value():
    n = 24
    written = np.ones((n, 8), np.float32)
    written[3], written[5] = 1e-4, 1e4
    text = sentences(ac.get("deltanet"), parts={"written": written})[2]
    assert "smallest for “t3”" in text
    assert "largest for “t5”" in text


def test_unit_keys_diverge_beyond_a_strength_of_two():
    text = growth_sentence(STRENGTHS, np.where(UNIT < -1, 5e6, 3.0), UNIT, exact=False)
    start = "Above a write strength β of 2, the state can grow without bound:"
    assert text.startswith(f"{start} at β = 3.0, its norm is 5")
    beyond = np.where(UNIT < -1, np.inf, 3.0)
    text = growth_sentence(STRENGTHS, beyond, UNIT, exact=False)
    assert text == f"{start} at β = 2.1, its norm is more than 10¹² times the mean norm of the values."
    long_keys = 1 - 40 * np.array(STRENGTHS)  # Keys of squared norm 40 make every tried strength unstable.
    assert "of 0.05, the" in growth_sentence(STRENGTHS, np.full(30, 5e6), long_keys, exact=False)


def test_the_named_norm_is_the_end_of_the_drawn_line():
    sizes = np.where(UNIT < -1.45, 1e13, np.where(UNIT < -1, 700.0, 3.0))
    assert "at β = 2.4, its norm is 700 times the mean" in growth_sentence(STRENGTHS, sizes, UNIT, exact=False)


def test_a_fast_decaying_state_cannot_diverge():
    text = growth_sentence(STRENGTHS, np.linspace(1, 7, 30), 0.5 * UNIT, exact=False)
    assert "Up to β = 3.0, λ lies between −1 and 1, so the state cannot grow exponentially." in text
    assert "at most 7 times" in text
    [*_, growth, _] = deltanet.steps(data(ac.get("gated_deltanet", decay=0.3)))
    assert "the state cannot grow exponentially" in growth.findings
    assert r"\alpha" in growth.formula
    [*_, growth, _] = deltanet.steps(data(ac.get("gated_deltanet", decay=0.9)))
    assert "Above a write strength β of 2.11, the state" in growth.findings  # 0.9 (1 - 2.11) = -1


def test_the_exact_step_is_stable_at_every_rate():
    text = growth_sentence(STRENGTHS, np.linspace(2, 4, 30), np.zeros(30), exact=True)
    assert "For η from 0.1 to 3.0, the norm of the final state is 2 to 4 times" in text
    assert "a rate η sets the write strength β of each token. The factor λ, by which a token" in text
    assert "then lies between 0 and 1, so the state cannot diverge." in text


@pytest.mark.parametrize(("attention", "fades"), [("deltanet", False), ("gated_deltanet", True)])
def test_formulas_include_the_decay_of_the_state(attention, fades):
    from pages.inside.stories import discover

    shown = discover()[attention](data(ac.get(attention)))
    assert (r"\Gamma" in shown[0].formula) == (r"\alpha" in shown[2].formula) == fades


def test_the_share_of_negative_weights_counts_visible_pairs():
    text = sentences(ac.get("deltanet"), causal=True, parts={"weights": np.where(np.eye(24) > 0, -1.0, 1.0)})[-1]
    assert "8% of the weights are negative" in text  # 24 of 300


def test_the_selected_strength_is_reported_with_range_and_end():
    text = tried_sentence(2.5, np.array([-1.5, -1.2]), np.array([1.0, 7.0]), exact=False)
    assert text == (
        "With the write strength β = 2.5, each token multiplies the part of the state that lies along the token's key "
        "by a factor λ between −1.5 and −1.2. The norm of the final state is 7 times the mean norm of the values."
    )
    assert tried_sentence(2.5, np.array([-1.5, -1.5]), np.array([7.0]), exact=False).startswith(
        "With the write strength β = 2.5, each token multiplies the part of the state that lies along the token's key "
        "by λ = −1.5. The"
    )
    assert "more than 10³⁰⁸ times" in tried_sentence(3.0, np.array([-2.0]), np.array([np.inf]), exact=False)
    assert tried_sentence(2.5, np.array([0.1]), np.array([7.0]), exact=True).startswith("With the rate η = 2.5, ")


def test_strengths_beyond_the_limit_can_be_tried():
    at = open_step(ac.get("deltanet"), 4)
    at.select_slider(key="i_write").set_value(30).run()
    factor = (
        "With the write strength β = 3.0, each token multiplies the part of the state that lies along the token's key "
        "by λ = −2"
    )
    assert any(factor in words.value for words in at.markdown)


def test_gates_per_channel_have_no_single_eigenvalue():
    shown = deltanet.steps(data(ac.get("kda")))
    assert len(shown) == 4
    assert r"\Gamma_{ijc}" in shown[0].formula
    assert r"\operatorname{diag}(\alpha_i)" in shown[2].formula
    assert len(deltanet.steps(data(ac.get("kda", gate="constant")))) == 5


def test_tokens_are_compared_with_earlier_tokens_and_the_diagonal_is_one():
    at = open_step(ac.get("deltanet"), 1)
    (_, overlaps), *_results = board(at, "inside.deltanet.1")[1].values()
    np.testing.assert_array_equal(np.isnan(overlaps), ~np.tri(24, k=-1, dtype=bool))
    at = open_step(ac.get("deltanet"), 2, again=at)
    (_, inverse), *_results = board(at, "inside.deltanet.2")[1].values()
    np.testing.assert_array_equal(np.isnan(inverse), ~np.tri(24, dtype=bool))
    np.testing.assert_allclose(np.diag(inverse), 1)
