"""Tests of the explanation on the Inside page for variants without their own story."""

from dataclasses import replace

import numpy as np
import pytest
from driver import board, lines_of
from stories import data, figures, open_step

import attention_core as ac
from attention_core.variant import Intermediate
from pages.inside.pictures import COLOURS, colour, reference_panel
from pages.inside.stories import discover
from pages.inside.stories.generic import matrix_findings

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
    [(panel, values)] = board(at, "inside.path.3")[1].values()
    first = open_step(ac.get("path"), 1)
    _, (_, result), (softmax, reference) = board(first, "inside.path.1")[1].values()
    np.testing.assert_allclose(result, step_data.weights, rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(reference, step_data.reference, rtol=2e-3, atol=1e-3)
    assert (softmax["title"], softmax["caption"].split(" · ")[0]) == ("Softmax", "reference")
    assert (panel["title"], panel["mark"]) == ("Corrections", colour(0))
    np.testing.assert_array_equal(np.isnan(values), ~np.tri(24, dtype=bool))
    np.testing.assert_allclose(values[5, :6], step_data.parts["inverse"][5, :6], rtol=2e-3, atol=1e-4)
    [(gates, removed)] = board(open_step(ac.get("gla"), 2), "inside.gla.2")[1].values()
    assert gates["title"] == "1 − α"
    np.testing.assert_allclose(1 - removed, data(ac.get("gla")).parts["kept"], atol=2e-3)
    at = open_step(ac.get("power_bert"), 1, again=at)
    received = data(ac.get("power_bert")).parts["significance"]
    assert lines_of(at)["Attention received"][1] == pytest.approx(received.tolist(), rel=1e-4)


def test_a_matrix_is_described_by_its_rows_its_zeros_and_its_rank():
    weights = Intermediate(name="a", title="A", symbol="a", formula="a", mechanism="")
    assert matrix_findings(np.eye(3), weights) == (
        "On average, a row spreads its weight over 1.0 of 3 columns (effective number).",
        "A: 67% of the entries are exactly zero.",
    )
    assert matrix_findings(np.array([[-1.0, 2.0], [1.0, -2.0]]), weights) == (
        "",
        "The rank of the matrix is 1, so all rows are multiples of one row.",
    )
    finding, details = matrix_findings(np.kron(np.eye(2), np.full((2, 2), 0.5)), weights)
    assert "On average, a row spreads its weight over 2.0 of 4 columns" in finding
    assert "The rank of the matrix is 2, so every row is a combination of the same 2 rows." in details
    channels = replace(weights, columns="channel")
    assert matrix_findings(np.eye(3), channels) == ("", "A: 67% of the entries are exactly zero.")
    masked = np.where(np.tri(2, dtype=bool), 0.5, np.nan)
    assert matrix_findings(masked, weights) == ("Every entry of the matrix is 0.50.", "")
    assert matrix_findings(np.full((1, 1), np.nan), weights) == (
        "There is only one token, so there is no pair to show.",
        "",
    )


def findings(key, step, *, causal=True, n=24, **settings):
    """Return the findings of a step, and the data of the story."""
    given = data(ac.get(key, **settings), causal=causal, n=n)
    return discover()[key](given)[step].findings, given


def test_an_intermediate_says_what_it_means_for_its_variant():
    words, given = findings("entmax", 1)
    kept = (given.weights > 0).sum(-1).mean()
    assert words.startswith(
        f"On average, {kept:.1f} of a query's 12.5 keys have a logit above its threshold and get weight."
    )
    words, given = findings("power_bert", 0, causal=False, keep=0.25)
    received = np.sort(given.parts["significance"])[::-1]
    assert figures(words, r"The 6 kept tokens receive (\d+)% of all attention") == (
        round(100 * received[:6].sum() / received.sum()),
    )
    words, given = findings("mesa", 0)
    pairs = zip(given.qkv.q[1].numpy(), given.parts["solved"], strict=True)
    angles = [np.arccos(q @ x / np.linalg.norm(q) / np.linalg.norm(x)) for q, x in pairs]
    assert figures(words, r"The angle between a query and its solved query is (\d+)°") == (
        round(np.degrees(np.median(angles))),
    )
    words, given = findings("path", 1)
    sizes = np.abs(given.parts["met"][np.tri(24, k=-1, dtype=bool)])
    assert figures(words, r"a vector that is (\d+)% as long as the key") == (round(100 * sizes.mean()),)
    words, given = findings("path", 3)
    plain = np.where(given.visible, given.parts["read"], 0)
    change = np.linalg.norm(given.weights - plain) / np.linalg.norm(plain)
    assert figures(words, r"PaTH's attention matrix differs from this matrix by (\d+)%") == (round(100 * change),)


@pytest.mark.parametrize(("n", "words"), [(24, "10 tokens later"), (5, "4 tokens later"), (2, "1 token later")])
def test_gates_say_how_much_of_the_state_is_left(n, words):
    text, _given = findings("scalar_decay", 1, n=n, decay=0.9)
    count = int(words.split()[0])
    assert text.startswith(f"{words}, the state still holds {100 * 0.9**count:.0f}% of what a token added")
    text, given = findings("gla", 1, n=n)
    kept = given.parts["kept"]
    left = np.mean([kept[i : i + count].prod(0) for i in range(1, n - count + 1)])
    assert figures(text, r"still holds (\d+)%") == (round(100 * left),)


def test_zero_queries_have_no_angle():
    given = data(ac.get("mesa"), sharpness=0.0)
    assert [step.findings for step in discover()["mesa"](given)][:2] == ["Every entry of the matrix is 0."] * 2


def test_a_single_token_has_no_later_tokens():
    assert findings("scalar_decay", 1, n=1, decay=0.9)[0] == "Every entry of the matrix is 0.90."


def test_the_reference_names_a_key_whose_column_stands_out():
    equal, first = np.full((24, 24), 1 / 24), np.zeros((24, 24))
    first[:, 3] = 1.0
    step_data = [data(ac.get("path"), parts={"reference": each}) for each in (equal, first)]
    assert [reference_panel(each).caption for each in step_data] == [
        "reference",
        "reference · strong column: the key t3",
    ]


@pytest.mark.parametrize(("theme", "page"), [("light", "#ffffff"), ("dark", "#0e1117")])
def test_symbols_are_readable_on_the_page(theme, page):
    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return np.dot(linear, (0.2126, 0.7152, 0.0722))

    for each in COLOURS[theme]:
        bright, dark = sorted((luminance(each), luminance(page)), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5
