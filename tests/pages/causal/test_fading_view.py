"""Tests of the Forgetting chapter: the weights that it shows, and the sentences about them."""

from dataclasses import replace

import numpy as np
import pytest
from driver import charts, full_text, numbers, spoken

import attention_core as ac
from attention_core.analysis.state.token_weight import causal_weights
from attention_core.formatting import percent
from pages.causal.fading import _last_drawn
from pages.causal.fading_words import Line, small_percent, summary


def line(name, law="", *, n=40, token=2, decay=None):
    """Return a line for a matrix whose rows are uniform, or fall by a decay."""
    rows, columns = np.indices((n, n))
    sizes = np.tril(np.ones((n, n)) if decay is None else float(decay) ** (rows - columns))
    weights = sizes / sizes.sum(-1, keepdims=True)
    column = weights[token:, token]
    return Line(name=name, word=name.lower(), weights=weights, token_weights=column, law=law, colour=0, dash="solid")


LINEAR, HALF = line("Linear", "power"), line("Half", "factor", decay=0.5)
LABELS = tuple(f"t_{i}" for i in range(40))


def test_the_headline_has_the_median_weights_of_the_later_half_of_the_rows():
    even, half = np.median(1 / np.arange(21, 41)), np.median(0.5 ** np.arange(18, 38)) / 2
    assert (f"{even:.3f}", f"{half:.1e}") == ("0.033", "2.8e-09")
    text = full_text(summary([line("Softmax"), LINEAR, HALF], 2, LABELS))
    assert text.replace("\N{NO-BREAK SPACE}", " ") == (
        "**In rows 20 to 39, token 2 “t\\_2” receives 3.3% from Linear, 3.3% from softmax and less than 0.001% from "
        "Half (medians).** With equal weights, the token would receive 3.3%. Linear attention adds every token to one "
        "sum, so each new token dilutes all earlier ones."
    )
    slow = line("Slow", "factor", decay=0.9)
    assert "from Half" in summary([line("Softmax"), LINEAR, slow, HALF], 2, LABELS).text, "the smallest median"
    assert summary([line("Softmax"), LINEAR], 2, LABELS).text.endswith(
        "3.3% from Linear and 3.3% from softmax (medians).**"
    )


@pytest.mark.parametrize(
    ("linear", "half", "weights", "is_said"),
    [
        (1.0, 0.1, (1, 0.1, 1), True),
        (0.5, 0.1, (1, 0.1, 1), True),
        (0.49, 0.1, (1, 0.1, 1), False),
        (2.0, 0.1, (1, 0.1, 1), True),
        (2.1, 0.1, (1, 0.1, 1), False),
        (1.0, 0.11, (1, 0.1, 1), False),
        (1.0, 0.1, (1, 0.11, 1), False),
        (1.0, 0.1, (1, 0.5, 0.1), False),
    ],
    ids=["all", "half", "less", "double", "more", "not forgotten", "rises little", "only falls"],
)
def test_the_headline_says_how_the_variants_differ_if_all_three_show_it(linear, half, weights, is_said):
    even = float(np.median(1 / np.arange(21, 41)))
    column = np.full(38, weights[1])
    column[0], column[-1] = weights[0], weights[2]
    lines = [
        replace(line("Softmax"), token_weights=column),
        replace(LINEAR, token_weights=np.full(38, linear * even)),
        replace(HALF, token_weights=np.full(38, half * even)),
    ]
    message = "**Linear dilutes this token, Half discards it, and softmax returns to it in some rows.** In rows "
    assert summary(lines, 2, LABELS).text.startswith(message) == is_said
    assert summary(lines[:2], 2, LABELS).text.startswith("**In rows 20 to 39, ")


def test_a_headline_about_a_late_token_uses_the_rows_from_this_token_on():
    late = [line("Softmax", token=38), line("Linear", "power", token=38)]
    assert summary(late, 38, LABELS).text.startswith("**In rows 38 to 39, token 38 “t\\_38” receives 2.5% from Linear")
    last = [line("Softmax", token=39), line("Linear", "power", token=39)]
    text = summary(last, 39, LABELS).text.replace("\N{NO-BREAK SPACE}", " ")
    assert text == "**In the last row, token 39 “t\\_39” receives 2.5% from Linear and 2.5% from softmax.**"


def test_one_token_keeps_all_the_weight():
    assert full_text(summary([line("Linear", "power", n=1, token=0)], 0, ("a",))).startswith(
        "The input has only one token, which receives all the weight."
    )


def test_the_curves_equal_the_weights_of_the_library(open_view, record):
    at = open_view("fading", c_early=3, c_decays=[0.9], c_map="exp")
    [figure] = charts(at)
    curves = {trace["name"]: (numbers(trace["x"]), numbers(trace["y"])) for trace in figure["data"]}
    retention = ac.get("retention", decay=0.9, feature_map="exp")
    for name, attention in (
        ("Softmax", ac.get("softmax")),
        ("Linear", ac.get("linear", feature_map="exp")),
        ("Retention · γ 0.9", retention),
    ):
        weights = causal_weights(record, attention, head=1)
        np.testing.assert_allclose(curves[name][0], np.arange(3, 24))
        np.testing.assert_allclose(curves[name][1], 100 * weights[3:, 3])
    np.testing.assert_allclose(curves["equal weights"][1], 100 / np.arange(4, 25))
    medians = [
        np.median(causal_weights(record, attention, head=1)[12:, 3])
        for attention in (ac.get("linear", feature_map="exp"), ac.get("softmax"), retention)
    ]
    linear, softmax, decayed = map(percent, medians)
    shown = (
        f"receives {linear} from Linear, {softmax} from softmax and {decayed} from Retention with γ = 0.9 (medians)."
    )
    assert shown in spoken(at).replace("\N{NO-BREAK SPACE}", " ")


def test_the_code_goes_through_the_decays_in_the_order_on_screen(open_view):
    """Check the order: the chosen values are in the order in which they were selected."""
    at = open_view("fading", c_decays=[0.95, 0.5])
    drawn = [name for trace in charts(at)[0]["data"] if "γ" in (name := trace["name"])]
    assert drawn == ["Retention · γ 0.5", "Retention · γ 0.95"]
    assert "On the logarithmic axis, weights below 1 × 10⁻⁴% are not drawn." in spoken(at)
    [code] = [block.value for block in at.code if "causal_weights" in block.value]
    assert code.index("decay~0.5'") < code.index("decay~0.95'")


def test_charts_have_a_line_for_each_chosen_decay(open_view):
    bare = open_view("fading", c_decays=[])
    assert len(charts(bare)[0]["data"]) == 3
    assert len(charts(bare)) == 1
    everything = open_view("fading", c_decays=[0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995])
    assert len(charts(everything)[0]["data"]) == 11
    retention = [trace["line"]["dash"] for trace in charts(open_view("fading"))[0]["data"] if "γ" in trace["name"]]
    assert retention == ["dash", "dashdot"], "equal weights are dotted"


def test_a_weight_below_a_thousandth_of_a_percent_has_no_number():
    assert (small_percent(1.1e-5), small_percent(0.9e-5)) == ("0.0011%", "less than 0.001%")


def test_a_line_that_leaves_the_chart_has_its_name_at_its_last_point():
    assert [_last_drawn(y) for y in ([1.0, 2.0], [1.0, None], [None, None])] == [None, 0, None]
