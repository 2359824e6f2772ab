"""Tests of the Model page's view of a model trained here: its sentences, its table, and what it measures."""

import math

import pytest
from driver import charts, spoken, visit

from app.jobs import dispatch
from app.words.finding import Finding
from attention_core.experiments import trained_swap
from attention_core.experiments.trained_swap import TrainedSwapRow
from attention_core.inputs.trained import run_from_words, training_run
from attention_core.learning.tasks import TASKS
from attention_core.model_patching import UNIFORM
from pages.model.tiny import trained_swap as view

WORDS = ["recall", "softmax", "steps~5"]
SPEC = training_run("recall")


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    monkeypatch.setattr(dispatch, "workers", lambda: None)


def opened(**changes):
    link = {"m_view": ["trained"], "trained": WORDS, "m_replacements": ["softmax", UNIFORM], **changes}
    return visit("model", link)


def test_the_bars_show_the_numbers_of_the_library():
    rows = [trained_swap.run(each)[0] for each in trained_swap.tasks(run_from_words(WORDS), ["softmax", UNIFORM], (1,))]
    [chart] = charts(opened(m_replaced=["1"]))
    names = ["Softmax, as trained", "Softmax", "Equal weights"]
    losses = [f"{row.loss:.2f}" for row in rows]
    assert chart["data"][0]["y"] == [f"{name}<br>loss {loss}" for name, loss in zip(names, losses, strict=True)]
    assert losses[0] == losses[1]
    assert chart["layout"]["annotations"][0]["text"] == "Guessing from the sequence: 25%"


def test_the_page_names_the_model_and_what_is_measured():
    text = spoken(opened(), "caption")
    assert "Replace **Softmax** in the trained model with:" in text
    assert "The attention is replaced in 2 of 2 layers, without further training." in text
    assert (
        "Accuracy and loss (nats per answer) are measured on 256 sequences of 32 tokens that training does not use."
        in text
    )
    assert "perplexity" not in text
    assert "The attention is replaced in 1 of 2 layers" in spoken(opened(m_replaced=["0"]), "caption")


def test_a_layer_that_the_model_lacks_is_refused():
    at = opened(m_replaced=["5"])
    assert "For `m_replaced`, the page uses “-1” instead of “5”" in at.warning[0].value.replace("\\", "")
    assert "replaced in 2 of 2 layers" in spoken(at, "caption")


def test_variants_without_causal_form_are_explained():
    at = opened(m_replacements=["nystrom"])
    assert "cannot be causal" in at.info[0].value


def test_other_views_link_to_the_trained_model():
    at = visit("model", {"input": ["trained"], "trained": WORDS, "m_view": ["copying"]})
    text = spoken(at, "caption")
    assert "This view measures a language model." in text
    assert "This view measures a language model." not in spoken(visit("model", {"m_view": ["copying"]}), "caption")


def row(accuracy, loss, word="linear", layers=(0, 1)):
    return TrainedSwapRow(word=word, layers=layers, accuracy=accuracy, loss=loss)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (1.0, [0.25], "**The share of correct answers falls from 100% to 25% with Linear (guessing: 12%).**"),
        (0.25, [0.5], "**The share of correct answers rises from 25% to 50% with Linear.**"),
        (0.5, [0.5], "**With Linear, 50% of the answers are correct**, as before the replacement (after rounding)."),
        (0.501, [0.5], "**With Linear, 50% of the answers are correct**, as before the replacement (after rounding)."),
        (
            0.5,
            [0.25, 0.5, 0.1, 1.0],
            "**The share of correct answers falls from 50% to 25% with Linear and 10% with Local (guessing: 12%).** "
            "**The share of correct answers rises from 50% to 100% with Equal weights.** "
            "**With Softmax, 50% of the answers are correct**, as before the replacement (after rounding).",
        ),
    ],
)
def test_the_effect_of_replacements_in_words(before, after, expected):
    words = ("linear", "softmax", "local", UNIFORM)
    rows = [
        row(before, 1.0, word="softmax", layers=()),
        *(row(share, 1.0, w) for share, w in zip(after, words, strict=False)),
    ]
    assert view.describe_replacements(rows, 0.12) == [[Finding(expected)]]


@pytest.mark.parametrize(
    ("before", "after", "guesses"),
    [(1.0, [0.27, 0.1], True), (1.0, [0.19, 0.22], True), (1.0, [0.29, 0.1], False), (1.0, [0.2], True)],
)
def test_replacements_that_are_not_clearly_better_than_guessing_are_named_first(before, after, guesses):
    """Check both sides of a tenth of the gain over guessing, which is 20%: an accuracy of 28%."""
    rows = [row(before, 1.0, word="softmax", layers=()), *(row(each, 1.0) for each in after)]
    first, *others = view.describe_replacements(rows, 0.2)
    subject = "No replacement is" if len(after) > 1 else "With Linear, the model is not"
    assert (first == [Finding(f"**{subject} clearly better than guessing (20%).**")]) == guesses
    assert len(others) == guesses
    assert "(guessing:" not in str(others)


@pytest.mark.parametrize(("before", "guesses"), [(0.1, True), (0.21, True), (0.27, True), (0.29, False)])
def test_a_trained_model_that_guesses_is_reported_instead_of_its_replacements(before, guesses):
    rows = [row(before, 1.0, word="softmax", layers=()), row(0.1, 1.0), row(0.09, 1.0, word="local")]
    first = view.describe_replacements(rows, 0.2)[0]
    itself = "**The trained model itself is not clearly better than guessing (20%).**"
    assert (first == [Finding(itself)]) == guesses
    assert (first == [Finding("**All replacements are worse than guessing (20%).**")]) != guesses


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([0.19, 0.1], "All replacements are worse than guessing"),
        ([0.196, 0.1], "No replacement is clearly better than guessing"),
        ([0.19], "With Linear, the model is worse than guessing"),
        ([0.196], "With Linear, the model is not clearly better than guessing"),
    ],
)
def test_replacements_that_are_worse_than_guessing(after, expected):
    rows = [row(1.0, 1.0, word="softmax", layers=()), *(row(each, 1.0) for each in after)]
    assert view.describe_replacements(rows, 0.2)[0] == [Finding(f"**{expected} (20%).**")]


def test_two_settings_of_a_variant_have_different_colours():
    rows = [row(1.0, 1.0, word=word) for word in ("local~window~4", "local~window~8")]
    [bars] = view.bars([row(1.0, 1.0, layers=()), *rows], SPEC, dark=False)["data"]
    assert len(set(bars["marker"]["color"])) == 3


def test_each_model_has_a_bar_and_guessing_a_line():
    figure = view.bars([row(1.0, 1.0, word="softmax", layers=()), row(0.25, 1.0)], SPEC, dark=False)
    [bars] = figure["data"]
    assert list(zip(bars["y"], bars["x"], bars["customdata"], strict=True)) == [
        ("Softmax, as trained<br>loss 1.00", 1.0, "100%"),
        ("Linear<br>loss 1.00", 0.25, "25%"),
    ]
    [line] = figure["layout"]["shapes"]
    assert line["x0"] == line["x1"] == 0.25
    names = [each["text"] for each in figure["layout"]["annotations"]]
    assert names == ["Guessing from the sequence: 25%", "100%", "25%"]


def test_the_page_asks_for_a_first_replacement():
    assert view.describe_replacements([], 0.12) == ""
    assert view.describe_replacements([row(0.5, 1.0, layers=())], 0.12) == "Choose a replacement above."


@pytest.mark.parametrize("task", TASKS)
def test_only_tasks_that_predict_the_next_token_have_a_perplexity(task):
    predicts_next = task in view.NEXT_TOKEN_TASKS
    text = view.notes(training_run(task), 1)
    assert ("The perplexity is the exponential of the mean loss" in text) == predicts_next
    title = view.bar_title(row(0.5, 2.0), training_run(task))
    assert title == "Linear<br>loss 2.00" + ", perplexity 7.39" * predicts_next


@pytest.mark.parametrize(
    ("task", "accuracy", "name", "explained"),
    [
        ("recall", 0.24, "Guessing from the sequence", True),
        ("recall", 0.26, "Guessing from the sequence", False),
        ("copying", 0.01, "Guessing", False),
        ("maximum", 0.01, "Guessing", False),
    ],
)
def test_an_accuracy_below_that_of_guessing_from_the_sequence_is_explained(task, accuracy, name, explained):
    rows = [row(accuracy, 2.0)]
    label = view.bars(rows, training_run(task), dark=False)["layout"]["annotations"][0]["text"]
    assert label.startswith(f"{name}: ")
    assert bool(view.below_guessing(training_run(task), rows)) == explained


def test_a_perplexity_that_is_too_large_is_infinite():
    assert view.perplexity(701.0) == math.inf
    assert view.perplexity(1.0) == pytest.approx(math.e)
    assert math.isnan(view.perplexity(math.nan))
