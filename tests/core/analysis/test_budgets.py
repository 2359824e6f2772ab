"""A test that a variant at a setting of its budget equals the variant built with that setting."""

import numpy as np
import pytest

import attention_core as ac
from attention_core.analysis.matrix.budgets import compare_budgets, variants_at_every_budget
from attention_core.analysis.matrix.compare import compare
from attention_core.inputs.text import beginning

HEAD = 1
BUDGETS = {"softmax": [None], "local": range(1, 9), "linear": [None], "nystrom": range(1, 10)}
"""Budgets for nine tokens: a window of eight reaches all of them."""


@pytest.fixture(scope="module")
def text():
    return ac.inputs.from_text("the cat saw the dog and ran", model="minilm", layer=3)


@pytest.fixture(scope="module")
def comparison(text):
    return compare_budgets(text, tuple(map(ac.get, BUDGETS)), head=HEAD)


@pytest.mark.parametrize("key", BUDGETS)
def test_each_step_equals_the_variant_at_that_setting(text, comparison, key):
    steps = comparison.variants[list(BUDGETS).index(key)]
    budget = ac.variant(key).budget
    assert len(steps.weights) == len(steps.attentions) == len(BUDGETS[key])
    for value, weights, errors, growth in zip(
        BUDGETS[key], steps.weights, steps.output_errors, steps.growths, strict=True
    ):
        attention = ac.get(key) if budget is None else ac.get(key, **{budget.name: value})
        alone = compare(text, attention, head=HEAD, causal=False, special=False)
        np.testing.assert_allclose(weights, alone.weights, atol=1e-6)
        full = attention.weights(text.q, text.k)[HEAD, 1:-1]
        words = full[:, 1:-1]
        kept = words * full.abs().sum(-1, keepdim=True) / words.abs().sum(-1, keepdim=True)
        np.testing.assert_allclose(np.nan_to_num(weights), kept, atol=1e-5)
        output, exact = (each.attend(text.q, text.k, text.v)[HEAD, 1:-1] for each in (attention, ac.get("softmax")))
        np.testing.assert_allclose(errors, (output - exact).norm(dim=-1) / exact.norm(dim=-1), atol=1e-5)
        short, long = (attention.cost(n, text.q.shape[-1]).multiply_adds for n in (8192, 16_384))
        assert growth == pytest.approx(long / short)
        assert growth == pytest.approx(4 if key == "softmax" else 2, abs=0.05)


def test_the_weight_on_special_tokens_is_known_for_each_word(text, comparison):
    softmax = ac.get("softmax").weights(text.q, text.k)[HEAD, 1:-1]
    np.testing.assert_allclose(comparison.unshown, softmax[:, 0] + softmax[:, -1], rtol=1e-5)


def test_budget_steps_end_at_the_last_setting_with_an_effect():
    assert [each.params.window for each in variants_at_every_budget(ac.get("local"), 9)] == list(range(1, 9))
    assert [each.params.landmarks for each in variants_at_every_budget(ac.get("nystrom"), 9)] == list(range(1, 10))
    assert [each.params.window for each in variants_at_every_budget(ac.get("local"), 1)] == [1]
    assert variants_at_every_budget(ac.get("linear"), 9) == (ac.get("linear"),)


def test_variants_that_couple_heads_receive_all_heads(text):
    [steps] = compare_budgets(text, (ac.get("power_bert"),), head=HEAD).variants
    assert ac.variant("power_bert").couples_heads
    alone = compare(text, ac.get("power_bert"), head=HEAD, causal=False, special=False)
    np.testing.assert_allclose(steps.weights, alone.weights[None], atol=1e-6)
    assert steps.output_errors.shape == (1, 7)


def test_special_tokens_are_left_out(comparison):
    assert comparison.tokens == ("the", "cat", "saw", "the", "dog", "and", "ran")
    assert all(steps.weights.shape[1:] == (7, 7) for steps in comparison.variants)


@pytest.mark.parametrize(
    ("text", "query", "key"),
    [
        ("The animal did not cross the street because it was too tired.", "it", "animal"),
        ("The trophy does not fit in the suitcase because it is too large.", "it", "trophy"),
        ("like pizza", "like", "pizza"),
    ],
)
def test_the_far_query_attends_most_to_the_expected_distant_token(text, query, key):
    comparison = compare_budgets(ac.inputs.from_text(text, layer=3), (ac.get("softmax"),), head=HEAD)
    assert comparison.tokens[comparison.far_query] == query
    row = comparison.variants[0].weights[0, comparison.far_query]
    far = abs(np.arange(len(row)) - comparison.far_query) >= min(3, len(row) - 1)
    assert comparison.tokens[int(np.where(far, row, 0).argmax())] == key


def test_punctuation_is_never_the_far_query():
    text = "My sister forgot her umbrella on the train, so she got wet."
    comparison = compare_budgets(ac.inputs.from_text(text, layer=3), (ac.get("softmax"),), head=HEAD)
    weights = comparison.variants[0].weights[0]
    places = np.arange(len(weights))
    far = np.where(abs(places[:, None] - places) >= 3, weights, 0).max(-1)
    assert comparison.tokens[int(far.argmax())] in ",."
    assert comparison.tokens[comparison.far_query].isalpha()


def test_an_unknown_token_is_the_far_query_only_without_words():
    for text, query in (("图书 the cat sat", "sat"), ("图书管理", "[UNK]")):
        comparison = compare_budgets(ac.inputs.from_text(text, layer=3), (ac.get("softmax"),), head=HEAD)
        assert "[UNK]" in comparison.tokens
        assert (comparison.tokens[comparison.far_query] == "[UNK]") == (query == "[UNK]")


def test_an_input_of_one_word_is_refused():
    with pytest.raises(ac.errors.InputError, match="at least two words"):
        compare_budgets(ac.inputs.from_text("cat", layer=3), (ac.get("softmax"),), head=0)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The cat saw", "The cat saw"),
        ("The librarian who had lost her keys", "The librarian who had"),
        ("The librarian  had antidisestablishmentarianism", "The librarian  had"),
        ("图书管理员丢了钥匙", "图书管理"),
    ],
)
def test_the_beginning_of_a_text_fits_the_limit_and_ends_with_a_word(text, kept):
    assert beginning(text, tokens=6) == kept
    assert ac.inputs.from_text(kept).n <= 6


def test_the_beginning_of_an_empty_text_is_refused():
    with pytest.raises(ac.errors.InputError, match="empty"):
        beginning("  ", tokens=6)
