"""Tests of the Decay chapter: the weights that it shows, and the laws in its text."""

import re

import numpy as np
import pytest
from driver import charts, full_text, numbers, spoken

import attention_core as ac
from attention_core.analysis.state.token_weight import causal_weights, later_weights
from pages.causal.fading_words import Line, fitted_laws, percent, summary


def line(name, law="", *, n=40, token=2, decay=None):
    """Return a line for a matrix whose rows are uniform, or fall by a decay."""
    rows, columns = np.indices((n, n))
    sizes = np.tril(np.ones((n, n)) if decay is None else float(decay) ** (rows - columns))
    weights = sizes / sizes.sum(-1, keepdims=True)
    found = later_weights(weights, token, decay=decay)
    return Line(name=name, word=name.lower(), weights=weights, token_weight=found, law=law, colour=0, dash="solid")


LINEAR, HALF = line("Linear", "power"), line("Half", "factor", decay=0.5)
LABELS = tuple(f"t_{i}" for i in range(40))
LAW = (
    "With linear attention, the weight of the selected token in row i is approximately proportional to i to the power "
    "−1.00"
)


def test_the_headline_compares_weights_with_equal_weights():
    text = full_text(summary([line("Softmax"), LINEAR, HALF], 2, LABELS))
    assert text == (
        "**With Linear, the last of 40 tokens gives 2.5% of its attention weight to token 2 “t\\_2”. With Half, it "
        "gives under 0.001%, and with softmax 2.5%.** "
        "Linear attention adds every token to one sum, so each new token dilutes all earlier ones. With equal weights, "
        "every token would get 2.5%."
    )
    assert "it gives 2.5%.** Linear" in full_text(summary([line("Softmax"), LINEAR], 2, LABELS))


@pytest.mark.parametrize("n", [2, 8, 24, 200])
def test_equal_weights_are_one_over_n(n):
    lines = [line("Softmax", n=n, token=0), line("Linear", "power", n=n, token=0)]
    text = full_text(summary(lines, 0, LABELS[:1] * n))
    even = re.search(r"With equal weights, every token would get ([\d.]+)%\.", text)
    assert even is not None
    assert float(even[1]) == pytest.approx(100 / n, rel=0.05)


def test_one_token_keeps_all_the_weight():
    assert full_text(summary([line("Linear", "power", n=1, token=0)], 0, ("a",))).startswith(
        "The input has only one token, which receives all the weight."
    )


def test_the_fitted_laws_name_the_decay_of_each_line():
    unfitted = line("Late", "factor", decay=0.5, token=38)
    assert fitted_laws([line("Softmax"), LINEAR]) == f"{LAW}."
    assert fitted_laws([LINEAR, unfitted]) == f"{LAW}."
    assert fitted_laws([LINEAR, unfitted, HALF, line("Slow", "factor", decay=0.9)]) == (
        f"{LAW}. With Half, the weight of this token is multiplied by 0.50 at each later token, on average."
    )
    assert fitted_laws([line("Linear", "power", token=39), HALF]) == ""


@pytest.mark.parametrize(("weight", "words"), [(0.2549, "25%"), (1e-5, "0.0010%"), (0.99e-5, "under 0.001%")])
def test_a_weight_in_per_cent_ends_at_a_thousandth(weight, words):
    assert percent(weight) == words


def test_the_curves_equal_the_weights_of_the_library(open_view, record):
    at = open_view("fading", c_early=3, c_decays=[0.9], c_map="exp")
    curves, quarters = (
        {trace["name"]: (numbers(trace["x"]), numbers(trace["y"])) for trace in data}
        for data in (each["data"] for each in charts(at)[:2])
    )
    retention = ac.get("retention", decay=0.9, feature_map="exp")
    for name, attention in (
        ("Softmax", ac.get("softmax")),
        ("Linear", ac.get("linear", feature_map="exp")),
        ("Retention, γ = 0.9", retention),
    ):
        weights = causal_weights(record, attention, head=1)
        np.testing.assert_allclose(curves[name][0], np.arange(3, 24))
        np.testing.assert_allclose(curves[name][1], 100 * weights[3:, 3])
        np.testing.assert_allclose(quarters[name][1][-1], 100 * weights[-1, :6].sum())
    np.testing.assert_allclose(curves["equal weights"][1], 100 / np.arange(4, 25))
    table = at.dataframe[0].value.set_index("Variant")
    end = causal_weights(record, retention, head=1)[-1, 3]
    assert float(table.loc["Retention, γ = 0.9", "weight in last row, %"]) == pytest.approx(100 * end, rel=5e-3)
    assert 0.8 < float(table.loc["Retention, γ = 0.9", "kept per token"]) < 1
    assert table.loc["Retention, γ = 0.9", "fit from row"] == "10"
    assert list(table.loc["Linear", ["kept per token", "half-life"]]) == ["—", "—"]
    assert table.loc["Softmax", "power of i"] == table.loc["Retention, γ = 0.9", "power of i"] == "—"
    share = 100 * causal_weights(record, ac.get("softmax"), head=1)[-1, :6].sum()
    assert table.loc["Softmax", "first quarter, %"] == pytest.approx(share)
    ends = {"Softmax": causal_weights(record, ac.get("softmax"), head=1)[-1, 3], "Retention, γ = 0.9": end}
    least = min(ends, key=ends.__getitem__)
    bare = open_view("fading", c_early=3, c_decays=[0.9], c_map="exp")
    softmax = "" if least == "Softmax" else f", and with softmax {percent(ends['Softmax'])}"
    assert f"With {least}, it gives {percent(ends[least])}{softmax}.**" in spoken(bare)


def test_the_code_goes_through_the_decays_in_the_order_on_screen(open_view):
    """Check the order: the chosen values are in the order in which they were selected."""
    at = open_view("fading", c_decays=[0.95, 0.5])
    drawn = [name for trace in charts(at)[0]["data"] if "γ" in (name := trace["name"])]
    assert drawn == ["Retention, γ = 0.5", "Retention, γ = 0.95"]
    assert "On the logarithmic axis, weights below 1 × 10⁻⁶% are not drawn." in spoken(at)
    [code] = [block.value for block in at.code if "causal_weights" in block.value]
    assert code.index("decay~0.5'") < code.index("decay~0.95'")


def test_charts_have_a_line_for_each_chosen_decay(open_view):
    bare = open_view("fading", c_decays=[])
    assert len(charts(bare)[0]["data"]) == 3
    assert len(charts(bare)) == 2
    assert "the weight of this token is multiplied by" not in spoken(bare)
    everything = open_view("fading", c_decays=[0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995])
    assert len(charts(everything)[0]["data"]) == 11
