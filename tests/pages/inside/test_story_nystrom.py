"""Tests of Nyström's story: landmarks, factors, and an inverse that is often better when inexact."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from driver import board, charts, numbers, open_page, spoken, traces
from stories import data, figures, head

import attention_core as ac
from attention_core.analysis.matrix.inside import errors_without_inverse
from attention_core.experiments.nystrom_inverse import InverseRow
from attention_core.formatting import percent
from pages.inside import nystrom_inverse
from pages.inside.headline import error_of_matrix
from pages.inside.pictures import result_panels
from pages.inside.stories import nystrom
from pages.inside.words.nystrom import (
    blur_sentence,
    error_caption,
    inverse_benefit,
    inverse_count,
    inverse_effect,
    inverse_sentence,
    inverted_sentence,
    landmark_sizes,
    negative_weights,
)

SMALL = {"input": "synthetic", "n": "24", "d": "8", "heads": "2", "head": "1"}


def open_story(**query):
    return open_page("inside", SMALL | {"inside": "nystrom~landmarks~6"} | query)


def test_the_captions_of_the_factors_are_their_shapes():
    drawn = board(open_story(step="2"), "inside.nystrom.1.factors")[1].values()
    assert [(panel["title"], panel["caption"], values.shape) for panel, values in [*drawn][:3]] == [
        ("L", "queries to landmarks\n24 × 6", (24, 6)),
        ("Z", "approximate inverse\n6 × 6", (6, 6)),
        ("R", "landmarks to keys\n6 × 24", (6, 24)),
    ]


def test_the_factors_are_drawn_in_proportion_to_the_softmax_matrix():
    drawn = [*board(open_story(step="2"), "inside.nystrom.1.factors")[1].values()]
    assert [panel["full_side"] for panel, _values in drawn] == [24, 24, 24, 0, 0]
    assert [panel["sign"] for panel, _values in drawn] == ["", "×", "×", "=", "≈"]


def test_the_exact_inverse_is_compared_with_iterations():
    real = {"input": "text", "text": "@english", "layer": "2", "head": "3", "step": "3"}
    assert "The exact inverse is worse" in spoken(open_story(**real, inside="nystrom"))
    whole = spoken(open_story(**real, inside="nystrom~landmarks~64"))
    assert "No tokens are averaged, so the inverse is the only source of error." in whole
    assert "The exact inverse is worse" not in whole
    needle = {"kind": "needle", "n": "256", "heads": "4", "d": "32", "step": "3"}
    close = spoken(open_story(**needle, inside="nystrom"))
    assert "more exact inverse gives a smaller matrix error" not in close
    assert "Stopping the iteration early gives a smaller error" in close


def test_the_exact_inverse_has_one_colour_and_iterations_are_named_in_words():
    at = open_story(step="3")
    colours = [
        {name: trace["line"]["color"] for name, trace in traces(at, place).items()} for place in range(len(charts(at)))
    ]
    assert len({each.pop("exact inverse") for each in (colours[1], colours[2])}) == 1
    assert set(colours[2]) == {"1 iteration", "6 iterations", "12 iterations"}


def test_the_matrix_and_its_reference_have_one_colour_scale_unless_one_would_be_pale():
    step_data = data(ac.get("nystrom", landmarks=6))
    own, reference = result_panels(step_data)
    assert own.top == reference.top == max(np.abs(step_data.weights).max(), step_data.reference.max())
    assert reference.scale_panel == own.title
    top = np.abs(step_data.weights).max()
    for largest, is_shared in ((1.0, True), (1.01, False), (0.001, False)):
        own, reference = result_panels(replace(step_data, weights=largest / top * step_data.weights))
        assert (own.top == reference.top > 0, reference.scale_panel != "") == (is_shared, is_shared)
        assert (own.caption == "the resulting matrix, on a colour scale of its own") != is_shared


def test_the_caption_of_the_product_is_its_error():
    drawn = [*board(open_story(step="2"), "inside.nystrom.1.factors")[1].values()]
    matrices = {panel["title"]: values for panel, values in drawn}
    captions = {panel["title"]: panel["caption"] for panel, _values in drawn}
    softmax = matrices["Softmax (target)"]
    error = np.linalg.norm(matrices["A"] - softmax) / np.linalg.norm(softmax)
    assert captions["A"] == error_caption(error) == f"matrix error {error:.0%}"
    np.testing.assert_allclose(matrices["A"], matrices["L"] @ matrices["Z"] @ matrices["R"], atol=1e-2)


def test_each_head_has_its_error_without_and_with_the_inverse():
    step_data = data(ac.get("nystrom", landmarks=6))
    errors = []
    for q, k in zip(*(x.double() for x in step_data.qkv.tensors[:2]), strict=True):
        parts, softmax = step_data.attention.anatomy(q, k, k), ac.get("softmax").weights(q, k)
        both = (parts["left"] @ parts["right"], step_data.attention.weights(q, k))
        errors.append([float((each - softmax).norm() / softmax.norm()) for each in both])
    np.testing.assert_allclose(errors_without_inverse(step_data.qkv, step_data.attention), errors, rtol=1e-3)


LOWER, HIGHER, SAME = (0.6, 0.5), (0.5, 0.6), (0.501, 0.5)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([LOWER, LOWER, LOWER], "Z lowers the error in all 3 heads."),
        ([LOWER, HIGHER, LOWER], "Z lowers the error in 2 of 3 heads."),
        ([HIGHER, LOWER, SAME], "Z lowers the error in 1 of 3 heads."),
        ([SAME, SAME, SAME], "Z lowers the error in no head."),
        ([HIGHER, HIGHER, HIGHER], "Z lowers the error in no head."),
        ([HIGHER], ""),
        ([LOWER], ""),
    ],
)
def test_the_heads_are_counted_in_which_the_inverse_lowers_the_error(errors, expected):
    assert inverse_count(errors) == expected


@pytest.mark.parametrize("changes", [{"n": 1}, {"sharpness": 0.0}])
def test_an_inverse_that_changes_nothing_lowers_no_error(changes):
    """Check inputs on which rounding alone makes the errors with and without the inverse differ."""
    findings = nystrom.steps(data(ac.get("nystrom", landmarks=6), **changes))[0].findings
    assert "Z lowers the error in no head." in findings


@pytest.mark.parametrize(("landmarks", "is_number"), [(1, True), (2, False)])
def test_the_inverse_of_one_number_has_no_chart(landmarks, is_number):
    at = open_story(step="3", inside=f"nystrom~landmarks~{landmarks}")
    assert ("With one landmark, M is the number 1, so its inverse is exact." in spoken(at)) == is_number
    assert len(charts(at)) == (0 if is_number else 3)


@pytest.mark.parametrize(("weight", "found"), [(0.0, False), (-0.1, True)])
def test_negative_weights_are_explained(weight, found):
    assert negative_weights(np.array([[0.5, weight]])) == (
        "Orange entries of A are negative weights, which softmax never has. They come from negative entries of Z."
        if found
        else ""
    )


@pytest.mark.parametrize(
    ("query", "key", "expected"),
    [
        (0.004, 0.0, "Averaging discards less than 0.5% of the variance of the queries and of the keys."),
        (0.006, 0.0, "Averaging blurs the factors L and R: it discards 1% of the variance of the queries and 0% of the "
         "variance of the keys."),
    ],
)  # fmt: skip
def test_the_discarded_variance_blurs_the_factors(query, key, expected):
    assert blur_sentence(query, key) == expected


def inverses(*errors):
    """Return rows with these errors: one per number of iterations, and the exact inverse last."""
    counts = [*range(1, len(errors)), None]
    return [
        InverseRow(iterations=count, error=error, residual=0.1, largest=1234.0, negative=0.0)
        for count, error in zip(counts, errors, strict=True)
    ]


@pytest.mark.parametrize(
    ("errors", "why"),
    [
        ((0.5, 0.2, 0.2039), "The error comes from averaging tokens into landmarks, not from the inverse."),
        ((0.05, 0.02, 0.09), "Stopping the iteration early gives a smaller error than the exact inverse. Both "
        "errors are small."),
        ((0.05, 0.02, 0.0203), "A more exact inverse gives a smaller matrix error, because averaging into landmarks "
        "causes little error that the inverse could amplify."),
        ((0.5, 0.2, 0.15), "The error comes from averaging tokens into landmarks, not from the inverse."),
    ],
)  # fmt: skip
def test_a_better_inverse_is_compared_with_its_matrix_error(errors, why):
    assert inverse_sentence(inverses(*errors), averaged=True) == (
        why,
        f"With the iteration, the error of A is smallest after 2 iterations ({percent(errors[1])}). With the "
        f"exact inverse, it is {percent(errors[2])}.",
    )
    alone, numbers = inverse_sentence(inverses(*errors), averaged=False)
    assert alone == "No tokens are averaged, so the inverse is the only source of error."
    assert numbers.startswith("With the iteration")


@pytest.mark.parametrize("exact", [0.9, 0.2041])
def test_an_exact_inverse_that_is_worse_is_compared_with_the_best_iteration(exact):
    reason = "Inverting small singular values amplifies the error from averaging tokens into landmarks."
    for errors, when in (((0.5, 0.2), "2 iterations"), ((0.2, 0.5), "1 iteration")):
        assert inverse_sentence(inverses(*errors, exact), averaged=True) == (
            f"The exact inverse is worse: the error of A is {percent(exact)}, instead of 20% after {when}.",
            reason,
        )


def test_inverses_are_not_compared_if_all_matrix_errors_are_shown_as_zero():
    assert inverse_sentence(inverses(0.0049, 1e-7, 1e-8), averaged=False) == (
        "With each number of iterations, and with the exact inverse, the error of the attention matrix A is less than "
        "0.5%.",
        "",
    )
    for errors in ((0.005, 1e-7, 1e-8), (1e-8, 1e-7, 0.005)):
        assert "the error of A is smallest after" in inverse_sentence(inverses(*errors), averaged=True)[1]


def test_the_product_of_the_factors_is_compared_with_softmax():
    step_data = data(ac.get("nystrom", landmarks=6))
    q, k, _ = head()
    full, own = (ac.from_word(word).weights(q[None], k[None])[0] for word in ("softmax", "nystrom~landmarks~6"))
    off, zero = (float((each - full).norm() / full.norm()) for each in (own, 1 / 24))
    assert error_of_matrix(step_data) == (
        f"The matrix error relative to softmax's matrix is {off:.0%} (equal weights: {zero:.0%})."
    )
    step = nystrom.steps(step_data)[0]
    without = float((torch.from_numpy(step_data.parts["left"] @ step_data.parts["right"]) - full).norm() / full.norm())
    counted = inverse_count(errors_without_inverse(step_data.qkv, step_data.attention))
    orange = negative_weights(step_data.weights)
    assert orange
    assert step.findings == (
        f"In this head, Z makes the matrix error smaller: {off:.0%} instead of {without:.0%} without Z. "
        f"{counted} {orange}"
    )
    assert step.headline == "Nyström replaces the softmax matrix with a product of three smaller ones."
    assert step.mechanism.startswith("Each landmark is an average of neighbouring tokens, so L and R both blur. Z, an")
    similar = nystrom.steps(data(ac.get("nystrom", landmarks=6, method="kmeans")))[0]
    assert similar.mechanism.startswith("Each landmark is an average of similar tokens, so L and R both blur.")
    whole = nystrom.steps(data(ac.get("nystrom", landmarks=24)))[0]
    assert whole.headline == "Nyström replaces the softmax matrix with a product of three others."
    assert whole.mechanism.startswith("The product L × R without Z")
    assert whole.findings.startswith(
        "Every token is its own landmark, so no tokens are averaged and no information is lost."
    )


@pytest.mark.parametrize("method", ["segment_means", "kmeans"])
def test_landmarks_discard_the_variance_within_them(method):
    q, k, _ = head()
    attention = ac.get("nystrom", landmarks=5, method=method)
    step = nystrom.steps(data(attention))[1]
    text = step.details
    queries, keys = figures(step.findings, r"discards ([\d.]+)% of the variance of the queries and ([\d.]+)%")
    assert ("Each of the 5 landmarks averages 4 or 5 neighbouring tokens." in text) == (method == "segment_means")
    assert ("landmarks of similar tokens" in text) == (method == "kmeans")
    if method == "segment_means":
        for found, x in ((queries, q), (keys, k)):
            groups = x.tensor_split(5)
            within = sum(float((g - g.mean(0)).square().sum()) for g in groups)
            assert found == pytest.approx(100 * within / float((x - x.mean(0)).square().sum()), abs=0.51)
    assert ("Neighbouring queries are averaged" in step.mechanism) == (method == "segment_means")
    whole_step = nystrom.steps(data(ac.get("nystrom", landmarks=24, method=method)))[1]
    assert whole_step.mechanism == "In the text, a small number marks each landmark."
    whole = whole_step.findings
    assert whole == "Each of the 24 tokens is its own landmark, so nothing is averaged."


def test_one_iteration_uses_the_singular():
    words = ", Z is almost exact (factor 0.9 or more) for 2 of the 6 singular vectors of M."
    assert f"After 1 iteration{words}" in inverted_sentence(2, 6, 1, 0.5, exact=False)
    assert f"After 2 iterations{words}" in inverted_sentence(2, 6, 2, 0.5, exact=False)


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [
        (16, 16, "averages 16 neighbouring tokens."),
        (1, 2, "averages 1 or 2 neighbouring tokens."),
        (3, 5, "averages 3 to 5 neighbouring tokens."),
    ],
)
def test_landmarks_of_one_size_have_no_range(least, most, words):
    assert landmark_sizes(32, least, most).endswith(words)
    assert landmark_sizes(32, least, most).startswith("Each of the 32 landmarks averages ")


def test_one_landmark_is_called_the_only_one():
    assert landmark_sizes(1, 24, 24) == "The only landmark averages 24 neighbouring tokens."
    similar = nystrom.steps(data(ac.get("nystrom", landmarks=1, method="kmeans")))[1].details
    assert similar.startswith("24 tokens are averaged into 1 landmark. One more iteration")
    lone = nystrom.steps(data(ac.get("nystrom"), n=1))[1].findings
    assert lone == "The only token is its own landmark, so nothing is averaged."


@pytest.mark.parametrize(
    ("without", "effect"),
    [
        (0.65, "makes the matrix error smaller: 43% instead of 65% without Z"),
        (0.4301, "hardly changes the matrix error: 43%, as without Z"),
        (0.4, "makes the matrix error larger: 43% instead of 40% without Z"),
    ],
)
def test_the_matrix_is_compared_with_the_product_without_the_inverse(without, effect):
    assert inverse_benefit(without, 0.43) == f"In this head, Z {effect}."
    reason = "Averaging tokens causes errors in L and R; the large entries of Z (up to ±10) amplify these errors."
    assert inverse_effect(without, 0.43, 10.4, averaged=True) == (reason if "larger" in effect else "")


@pytest.mark.parametrize(("largest", "averaged"), [(1.0, True), (10.4, False)])
def test_only_large_entries_enlarge_the_errors_of_averaging(largest, averaged):
    assert inverse_effect(0.4, 0.43, largest, averaged=averaged) == ""


@pytest.mark.parametrize("inverse", ["iterative", "exact"])
def test_the_singular_vectors_are_described_for_the_chosen_inverse(inverse):
    text = spoken(open_story(step="3", inside=f"nystrom~landmarks~6~inverse~{inverse}"), "caption")
    assert ("Z is the exact inverse of M here." in text) == (inverse == "exact")
    assert ("iterations, Z is almost exact" in text) == (inverse == "iterative")


@pytest.mark.parametrize(("count", "words"), [(1, "1 iteration"), (2, "2 iterations")])
def test_the_exact_inverse_is_compared_with_the_iteration_in_words(count, words):
    assert inverted_sentence(2, 6, count, 0.5, exact=True).endswith(
        f"After {words}, an approximate inverse would be almost exact (factor 0.9 or more) for 2 of the 6 singular "
        "vectors. The smallest singular value is 0.50."
    )


@pytest.mark.parametrize(
    ("values", "percent", "ticks"),
    [
        ([0.35, 1.45], True, ["40%", "50%", "70%", "100%"]),
        ([4.0, 25.0], True, ["500%", "1,000%", "2,000%"]),
        ([0.007, 0.9], False, ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5"]),
        ([1e-9, 1.0], False, None),
        ([0.351, 0.352], True, None),
        ([0.0, 1.0], True, None),
    ],
)
def test_a_logarithmic_axis_has_at_least_three_ticks(values, percent, ticks):
    found = nystrom_inverse.round_ticks(values, percent=percent)
    assert (found and list(found.values())) == ticks


@pytest.mark.parametrize("method", ["segment_means", "kmeans"])
def test_the_bars_of_the_landmarks_add_up_to_the_discarded_variance(method):
    at = open_story(step="1", inside=f"nystrom~landmarks~6~method~{method}")
    (fields,) = charts(at)
    shares = figures(spoken(at), r"discards ([\d.]+)% of the variance of the queries and ([\d.]+)%")
    for bars, share in zip(fields["data"], shares, strict=True):
        assert len(numbers(bars["y"])) == 6
        assert sum(numbers(bars["y"])) == pytest.approx(share, abs=0.51)


def test_the_first_and_the_last_error_of_the_inverse_are_written():
    texts = traces(open_story(step="3"), 0)["iterative"]["text"]
    assert all(texts[i] for i in (0, -1))
    assert not any(texts[1:-1])
