"""Tests of the Leaks view: the named tokens and the reasons, and strips and maps with the core's numbers."""

import numpy as np
import pytest
from driver import board, charts, chosen, full_text, is_chart, numbers, spoken

import attention_core as ac
from app.figures.token_strips import strips
from app.jobs import dispatch
from attention_core.analysis.matrix.influence import Influence, influence
from attention_core.errors import WorkerError
from pages.causal.leaks import changed_outputs, colour_span, reasons, share, summary

TOKENS = ("the", "c_at", "sat", "down")


def influences(**moved):
    """Return influences of variants on four tokens: ones from the diagonal on, given values before it."""
    found = {}
    for key, before in moved.items():
        every = np.triu(np.ones((4, 4), np.float32))
        every[np.tril_indices(4, -1)] = before
        found[ac.get(key)] = Influence(moved=every, causal=True)
    return found


TIGHT, LEAKY = (0, 0, 0, 0, 0, 0), (0, 0.1, 0, 0.1, 0.2, 0)


@pytest.mark.parametrize(
    ("moved", "t", "words"),
    [
        (
            {"softmax": TIGHT, "pyramid": LEAKY},
            3,
            "**Only Pyramid pooling with 1 level leaks: if token 3 “down” is replaced, 2 of 3 earlier outputs "
            "change.** A variant that leaks cannot be used unchanged to generate text, because later tokens do not "
            "exist yet.",
        ),
        ({"softmax": TIGHT, "linear": TIGHT}, 1, "**No earlier output changes if token 1 “c\\_at” is replaced.**"),
        (
            {"linear": LEAKY, "pyramid": LEAKY},
            2,
            "**2 of 2 variants leak if token 2 “sat” is replaced: Linear (changed outputs: 1) and Pyramid pooling "
            "with 1 level (changed outputs: 1).** A variant that leaks cannot be used unchanged to generate text, "
            "because later tokens do not exist yet.",
        ),
        ({"softmax": TIGHT, "linear": LEAKY}, 0, "Token 0 “the” has no earlier outputs. Choose a later token."),
    ],
    ids=["both", "none", "all", "first"],
)
def test_the_headline_names_leaking_and_other_variants(moved, t, words):
    assert full_text(summary(influences(**moved), t, TOKENS)) == words


def test_the_headline_counts_the_outputs_of_the_only_leak():
    shown = influences(softmax=TIGHT, pyramid=(0.1,) * 6)
    assert summary(shown, 1, TOKENS).text.endswith(
        "if token 1 “c\\_at” is replaced, the only earlier output changes.**"
    )
    assert summary(shown, 3, TOKENS).text.endswith("if token 3 “down” is replaced, all 3 earlier outputs change.**")
    alone = influences(pyramid=LEAKY)
    assert summary(alone, 3, TOKENS).text.startswith("**1 of 1 variants leaks if token 3"), "nothing to compare with"
    elsewhere = influences(linear=(0.1, 0, 0, 0, 0, 0), pyramid=LEAKY)
    assert summary(elsewhere, 3, TOKENS).text.startswith("**1 of 2 variants leaks"), "the other leaks at another token"


def test_one_token_has_no_future():
    alone = {ac.get("softmax"): Influence(moved=np.ones((1, 1), np.float32), causal=True)}
    assert full_text(summary(alone, 0, ("a",))).startswith(
        "The input has only one token, so no later token could leak."
    )


def test_reasons_are_those_of_the_variants_that_cannot_be_causal():
    [text] = reasons(influences(softmax=TIGHT, pyramid=LEAKY))
    reason = ac.variant("pyramid").causal_reason
    assert text == f"**Pyramid pooling with 1 level** can leak: {reason}"


@pytest.mark.parametrize("causal", [False, True])
def test_leaking_variants_are_explained(open_view, causal):
    keys = ("softmax", "linear", "local", "nystrom", "pooled", "pyramid")
    at = open_view("leak", variants=chosen(*keys), causal=causal, c_token=9)
    text = spoken(at)
    assert "**2 of 6 variants leak if token 9 " in text
    assert "32 landmarks (changed outputs: 9) and Pyramid pooling with 1 level (changed outputs: 9).**" in text
    for key in keys:
        reason = ac.variant(key).causal_reason
        assert reason is None or reason in text
    assert "left out" not in " ".join(i.value for i in at.info)  # with the switch on or off, all variants are included


def test_the_colour_scales_are_above_the_strips_and_the_maps_are_below_the_text(open_view):
    at = open_view("leak", variants=chosen("softmax", "nystrom"), c_token=3)
    assert any("Grey: unchanged." in each.value for each in at.caption)
    nodes = list(at.main)
    strip = next(i for i, node in enumerate(nodes) if is_chart(node))
    text = next(i for i, node in enumerate(nodes) if str(getattr(node, "value", "")).startswith("A variant that leaks"))
    assert strip < text
    [maps] = [each for each in at.expander if each.label == "All replaced tokens"]
    assert any("causal.leaks" in f"{getattr(node.proto, 'id', '')}" for node in maps)


@pytest.mark.parametrize(("key", "scales"), [("nystrom", 2), ("linear", 1)])
def test_only_a_leak_has_an_orange_colour_scale(open_view, key, scales):
    [figure] = charts(open_view("leak", variants=chosen("softmax", key), c_token=3))
    shown = [trace["colorbar"] for trace in figure["data"] if trace.get("showscale")]
    assert len(shown) == scales
    assert {bar["y"] for bar in shown} == {1}
    assert shown[-1]["title"]["text"] == "change from t on"


@pytest.mark.parametrize(
    ("span", "narrow", "ticks"),
    [
        ((0.01, 4.5), True, ["0.01", "0.1", "1"]),
        ((1e-5, 4.5), False, ["0.00001", "0.001", "0.1"]),
        ((1e-5, 4.5), True, ["0.00001", "0.01"]),
        ((20.0, 100.0), False, ["100"]),
    ],
)
def test_a_colour_scale_of_many_decades_has_fewer_ticks(span, narrow, ticks):
    options = {"dark": False, "narrow": narrow, "x_title": "", "still": "", "scale_titles": ("a", "b")}
    bar = strips({"a": np.ones(4)}, 3, ("t",) * 4, span=span, **options)["data"][1]["colorbar"]
    assert list(bar["ticktext"]) == ticks


def test_strips_and_maps_show_the_numbers_of_the_library(open_view, record):
    at = open_view("leak", variants=chosen("softmax", "nystrom"), c_token=9)
    found = {key: influence(record, ac.get(key), head=1).moved for key in ("softmax", "nystrom")}
    still, before, after = (
        np.array(numbers(trace["z"]), float) for trace in charts(at)[0]["data"] if trace["type"] == "heatmap"
    )
    rows = {"softmax": 1, "nystrom": 3}
    for key, row in rows.items():
        moved = found[key][9]
        np.testing.assert_array_equal(np.isfinite(still[row]), moved == 0)
        np.testing.assert_allclose(10 ** before[row][np.isfinite(before[row])], moved[:9][moved[:9] > 0], rtol=1e-5)
        np.testing.assert_allclose(10 ** after[row][np.isfinite(after[row])], moved[9:][moved[9:] > 0], rtol=1e-5)
    for key, (panel, values) in board(at, "causal.leaks")[1].items():
        moved = found[key]
        np.testing.assert_array_equal(np.isnan(values), moved == 0)
        np.testing.assert_allclose(np.abs(values[moved > 0]), moved[moved > 0], rtol=1e-3)
        leaks = np.tril(moved > 0, -1)
        assert (values[leaks] < 0).all(), "leaks have the colours of the other side of the scale"
        assert not (values[~leaks] < 0).any()
        assert leaks.any() == (key == "nystrom")
        assert panel["caption"] == ("leaks: 100% of earlier outputs change" if key == "nystrom" else "")


def test_failed_maps_are_reported_and_computed_later(open_view, monkeypatch):
    def lost(experiment, asked, waiting):
        assert experiment == "leaks"
        for task in asked:
            yield task, WorkerError("The worker was lost; press Continue.")

    monkeypatch.setattr(dispatch, "stream", lost)
    at = open_view("leak", variants=chosen("softmax", "nystrom"), c_token=9)
    assert [each.value for each in at.info] == ["The worker was lost; press Continue."]
    assert at.query_params["variants"] == ["softmax", ac.get("nystrom").word]


def test_a_strip_says_how_many_outputs_before_the_token_move():
    assert changed_outputs(0, 7) == ""
    assert changed_outputs(2, 7) == " · leaks: 2 of 7 before t"


@pytest.mark.parametrize(
    ("changes", "span"),
    [([0.02, 4.5], (0.01, 4.5)), ([1e-9, 4.5], (1e-5, 4.5)), ([3.0, 4.5], (1.0, 4.5)), ([0.0], (0.1, 1.0))],
    ids=["decades", "six decades", "one decade", "no change"],
)
def test_the_strips_have_the_colours_of_the_maps(changes, span):
    assert colour_span([np.array([0.0, each]) for each in changes]) == pytest.approx(span)


def test_a_narrow_screen_names_fewer_tokens():
    def named(narrow):
        options = {"span": (0.1, 1.0), "dark": False, "narrow": narrow, "x_title": "", "still": ""}
        options["scale_titles"] = ("a", "b")
        return len(strips({"a": np.ones(56)}, 3, ("t",) * 56, **options)["layout"]["xaxis"]["tickvals"])

    assert (named(False), named(True)) == (28, 14)


@pytest.mark.parametrize(
    ("leaking", "words"),
    [(0.0015, "under 1%"), (0.01, "1%"), (0.067, "7%"), (0.5, "50%"), (0.9995, "99.95%"), (1.0, "100%")],
)
def test_a_share_of_outputs_is_never_rounded_to_none_or_all(leaking, words):
    assert share(leaking) == words
