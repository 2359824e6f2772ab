"""Tests of the explanation on the Inside page for variants without their own story."""

import numpy as np
import pytest
from driver import board, lines_of
from stories import data, open_step

import attention_core as ac
from pages.inside.pictures import COLOURS, colour, reference_panel
from pages.inside.stories import discover
from pages.inside.stories.generic import matrix_findings, vector_findings

DECLARED = [v for v in ac.all_variants() if v.intermediates]


@pytest.mark.parametrize("variant", DECLARED, ids=lambda v: v.key)
def test_each_intermediate_is_a_step_with_its_own_panel(variant):
    steps = discover()[variant.key](data(ac.get(variant.key)))
    assert [step.title for step in steps] == [*(each.title for each in variant.intermediates), "Comparison"]
    for each, step in zip(variant.intermediates, steps, strict=False):
        assert step.mechanism == each.mechanism
        assert rf"\textcolor{{{colour(0)}}}{{{each.symbol}}}" in step.formula


def test_the_declared_part_is_drawn():
    step_data = data(ac.get("path"))
    at = open_step(ac.get("path"), 3)
    (panel, values), (_, result), (softmax, reference) = board(at, "inside.path.3")[1].values()
    np.testing.assert_allclose(result, step_data.weights, rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(reference, step_data.reference, rtol=2e-3, atol=1e-3)
    assert (softmax["title"], softmax["caption"].split(" · ")[0]) == ("Softmax", "reference")
    assert (panel["title"], panel["mark"]) == ("Corrections", colour(0))
    np.testing.assert_array_equal(np.isnan(values), ~np.tri(24, dtype=bool))
    np.testing.assert_allclose(values[5, :6], step_data.parts["inverse"][5, :6], rtol=2e-3, atol=1e-4)
    at = open_step(ac.get("power_bert"), 1, again=at)
    received = data(ac.get("power_bert")).parts["significance"]
    assert lines_of(at)["Attention received"][1] == pytest.approx(received.tolist(), rel=1e-4)


def test_a_matrix_is_described_by_its_rows_or_range_its_signs_and_its_rank():
    assert matrix_findings(np.eye(3)) == (
        "The weights in each row sum to 1. On average, a row spreads them over 1.0 of 3 columns (effective number). "
        "67% of the matrix entries are exactly zero."
    )
    assert matrix_findings(np.array([[-1.0, 2.0], [1.0, -2.0]])) == (
        "The entries of the matrix range from −2 to 2. 50% of the matrix entries are negative. The rank of the "
        "matrix is 1, so all rows are multiples of one row."
    )
    halves = matrix_findings(np.kron(np.eye(2), np.full((2, 2), 0.5)))
    assert "On average, a row spreads them over 2.0 of 4 columns" in halves
    assert "The rank of the matrix is 2, so every row is a combination of the same 2 rows." in halves
    assert matrix_findings(np.eye(3), of_weights=False) == (
        "The entries of the matrix range from 0 to 1. 67% of the matrix entries are exactly zero."
    )
    masked = np.where(np.tri(2, dtype=bool), 0.5, np.nan)
    assert matrix_findings(masked) == "Every entry of the matrix is 0.50."
    assert matrix_findings(np.full((1, 1), np.nan)) == "There is only one token, so there is no pair to show."


def test_the_reference_names_a_key_whose_column_stands_out():
    equal, first = np.full((24, 24), 1 / 24), np.zeros((24, 24))
    first[:, 3] = 1.0
    step_data = [data(ac.get("path"), parts={"reference": each}) for each in (equal, first)]
    assert [reference_panel(each).caption for each in step_data] == [
        "reference",
        "reference · strong column: the key t3",
    ]


def test_a_vector_is_described_by_its_range_and_largest_token():
    step_data = data(ac.get("power_bert"))
    values = np.ones(24)
    assert vector_findings(values, step_data) == "The chart shows the same number for every token: 1."
    values[7] = 3.0
    assert (
        vector_findings(values, step_data)
        == "The numbers in the chart range from 1 to 3. The largest belongs to the token “t7”."
    )


@pytest.mark.parametrize(("theme", "page"), [("light", "#ffffff"), ("dark", "#0e1117")])
def test_symbols_are_readable_on_the_page(theme, page):
    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return np.dot(linear, (0.2126, 0.7152, 0.0722))

    for each in COLOURS[theme]:
        bright, dark = sorted((luminance(each), luminance(page)), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5
