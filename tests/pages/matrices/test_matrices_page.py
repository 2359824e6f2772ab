"""The Matrices page without a browser: every variant, every source, and what stands on and below the board."""

import json
import re

import numpy as np
import pytest
from driver import board, numbers, open_page, spoken, traces

import attention_core as ac
from app.naming import label
from app.visit import default_variants
from pages.matrices.pinned_row import coloured_text


def open_matrices(page="matrices", **state):
    return open_page(page, **state)


@pytest.mark.parametrize("source", ["text", "synthetic"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("view", ["weights", "difference"])
def test_matrices_opens_on_every_source(source, causal, view):
    at = open_matrices(input=source, causal=causal, view=view, n=40)
    assert not at.exception
    assert not at.error
    assert board(at, "matrices.board")[1]


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
@pytest.mark.parametrize("causal", [False, True])
def test_every_variant_is_shown_or_says_why_not(variant, causal):
    chosen = tuple(dict.fromkeys((ac.get("softmax"), ac.get(variant.key))))
    at = open_matrices(input="synthetic", n=24, variants=chosen, causal=causal)
    assert not at.exception
    refused = [c.value for c in at.caption if "cannot be causal" in c.value]
    assert bool(refused) == (causal and variant.causal_reason is not None)


@pytest.mark.parametrize("more", ["numbers", "explain", "download"])
def test_what_stands_below_the_board(more):
    at = open_matrices(input="synthetic", n=24, more=more)
    assert not at.exception
    if more == "numbers":
        assert len(at.dataframe[0].value) == len(default_variants())
    if more == "explain":
        assert at.latex
    if more == "download":
        assert "ac.inputs.from_upload" in " ".join(c.value for c in at.code)


def test_a_pinned_row_shows_its_text_and_its_bars():
    at = open_matrices(input="synthetic", n=24, row=5)
    assert not at.exception
    assert at.get("plotly_chart")


def test_a_row_beyond_the_text_is_let_go():
    at = open_matrices(input="synthetic", n=4, row=9)
    assert not at.exception
    assert at.session_state["row"] is None


def test_numbers_on_screen_are_those_of_the_core():
    at = open_matrices(input="synthetic", n=24, heads=2, head=1, more="numbers")
    spec = ac.inputs.SyntheticSpec(n=24, heads=2)
    qkv = ac.inputs.from_synthetic(spec)
    table = at.dataframe[0].value.set_index("variant")
    for attention in default_variants():
        own, full = (a.weights(qkv.q, qkv.k)[1].double() for a in (attention, ac.get("softmax")))
        row = table[table.index.str.startswith(attention.title)].iloc[0]
        assert row["matrix error"] == pytest.approx(float((own - full).norm() / full.norm()), abs=1e-4)
        v = qkv.v[1].double()
        assert row["output error"] == pytest.approx(float(((own - full) @ v).norm() / (full @ v).norm()), abs=1e-4)


def test_where_all_variants_agree_none_is_called_the_closest():
    at = open_matrices(input="synthetic", n=1)
    shown = " ".join(m.value for m in at.markdown)
    assert "the output of **all of these** is off by 0% from softmax's" in shown
    assert "closest" not in shown


OWN = ("softmax", "local", "reformer")


def panel_captions(at):
    """The lines under the titles of the board's panels, by variant."""
    return {key: panel["caption"] for key, (panel, _matrix) in board(at, "matrices.board")[1].items()}


@pytest.mark.parametrize("view", ["weights", "difference"])
def test_what_is_held_against_a_reference_of_its_own_says_so_and_is_not_ranked(view):
    # In one chunk Reformer is its own reference, and nothing like softmax.
    variants = (ac.get("softmax"), ac.get("local"), ac.get("reformer", bucket_size=24))
    at = open_matrices(input="synthetic", n=24, variants=variants, view=view, more="numbers")
    told = spoken(at)
    assert "**Local · window 16** is off by" in told
    assert "**Reformer · rounds 2** is off by 0% from shared-QK softmax's" in told
    assert "closest" not in told
    table = at.dataframe[0].value.set_index("variant")
    assert table["held against"].tolist() == ["softmax", "softmax", "shared-QK softmax"]
    assert ac.variant("reformer").note in " ".join(c.value for c in at.caption)
    captions = panel_captions(at)
    assert "shared-QK softmax" in captions["reformer"]
    assert "shared-QK" not in captions["local"]
    if view == "difference":
        assert captions["local"].startswith("minus softmax · matrix error")


def test_a_variant_is_told_of_beside_its_own_reference():
    given = {"input": "synthetic", "n": 24, "more": "explain", "variants": tuple(map(ac.get, OWN))}
    assert "on other tokens than softmax does" in " ".join(
        m.value for m in open_matrices(**given, **{"explained": "local"}).markdown
    )
    assert "on other tokens than shared-QK softmax does" in " ".join(
        m.value for m in open_matrices(**given, **{"explained": "reformer"}).markdown
    )


def test_softmax_at_another_temperature_is_not_what_others_are_held_against():
    sharp = ac.get("softmax", temperature=0.5)
    at = open_matrices(input="synthetic", n=24, variants=(sharp,), view="difference", more="numbers")
    assert "**Softmax · temperature 0.5** is off by" in " ".join(m.value for m in at.markdown)
    assert panel_captions(at)["softmax"].startswith("minus softmax")


def test_hidden_special_tokens_are_not_counted_where_they_are_not_drawn():
    def count(**state):
        at = open_matrices(text="one two three four", variants=(ac.get("softmax"),), **state)
        return next(c.value for c in at.caption if "12 heads" in c.value)

    told = [c.value for c in open_matrices(text="one two", special=False, variants=(ac.get("softmax"),)).caption]
    assert any("Hidden special tokens take part in the output error" in words for words in told)
    assert count(special=True) == "6 tokens · 12 heads of 32"
    assert count(special=False) == "4 tokens shown, 2 special ones hidden · 12 heads of 32"
    assert count(special=False, page="masks") == "6 tokens · 12 heads of 32"


def test_a_token_is_never_read_as_markup():
    assert "<img" not in coloured_text(np.array([1.0]), ("<img src=x>",), pinned=0)


def test_the_text_is_shaded_by_weight_and_masked_tokens_are_struck_out():
    shown = coloured_text(np.array([0.5, 0.25, np.nan, -0.5]), ("a", "b", "c", "d"), pinned=1)
    alpha = [float(a) for a in re.findall(r"rgba\(\d+, \d+, \d+,([\d.]+)\)", shown)]
    assert alpha[0] == alpha[3] == 2 * alpha[1] > 0
    assert alpha[2] == 0
    assert shown.count("line-through") == 1
    assert "214, 39, 40" in shown.split("<span")[4]


def test_a_token_of_the_text_says_its_weight_and_the_query_has_a_frame():
    first, second, third = coloured_text(np.array([0.5, -0.25, np.nan]), ("a", "b", "c"), pinned=1).split("<span ")[1:]
    assert 'title="0: 0.5"' in first
    assert 'title="1: -0.25"' in second
    assert 'title="2: masked"' in third
    assert "31, 119, 180" in first
    assert "outline" in second
    assert "outline" not in first + third
    assert "rgba(31, 119, 180,0.000)" in coloured_text(np.array([0.0]), ("a",), pinned=0)
    assert "rgba(31, 119, 180,0.000)" in coloured_text(np.array([np.nan]), ("a",), pinned=0)


PLAIN, SHARP = ac.get("softmax"), ac.get("softmax", temperature=0.5)
LOCAL, LINEAR = ac.get("local", window=4), ac.get("linear")


def settings(at):
    """How the board is set."""
    found = (json.loads(each.proto.json) for each in at.get("bidi_component") if each.proto.json)
    return next(each for each in found if each.get("board") == "matrices.board")


@pytest.mark.parametrize(
    ("view", "variants", "panels"),
    [
        ("weights", (PLAIN, LOCAL), ["softmax", "local"]),
        ("difference", (PLAIN, LOCAL, LINEAR), ["local", "linear"]),
        ("difference", (PLAIN,), ["softmax"]),
        ("difference", (SHARP, LOCAL), ["softmax", "local"]),
    ],
)
def test_softmax_is_left_out_where_its_difference_from_itself_would_be_drawn(view, variants, panels):
    at = open_matrices(input="synthetic", n=12, variants=variants, view=view)
    drawn = board(at, "matrices.board")[1]
    assert list(drawn) == panels
    assert [panel["title"] for panel, _ in drawn.values()] == [label(a) for a in variants if a.key in panels]
    assert settings(at)["words"]["unit"] == ("difference of weights" if view == "difference" else "weight")


def test_the_board_draws_the_weights_or_what_they_are_beside_softmax():
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=12, heads=2))
    own, full = (a.weights(qkv.q, qkv.k)[1].numpy() for a in (LINEAR, PLAIN))
    for view, wanted in (("weights", own), ("difference", own - full)):
        at = open_matrices(input="synthetic", n=12, heads=2, head=1, variants=(PLAIN, LINEAR), view=view)
        np.testing.assert_allclose(board(at, "matrices.board")[1]["linear"][1], wanted, atol=1e-3)


def test_the_closest_on_screen_is_the_closest():
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=24, heads=1))
    variants = (PLAIN, LOCAL, LINEAR, ac.get("topk", k=12))
    full = PLAIN.attend(qkv.q, qkv.k, qkv.v)[0].double()
    errors = {a: float((a.attend(qkv.q, qkv.k, qkv.v)[0] - full).norm() / full.norm()) for a in variants[1:]}
    first, last = min(errors, key=errors.get), max(errors, key=errors.get)
    zero = float((qkv.v[0].double().mean(0) - full).norm() / full.norm())
    assert errors[first] < zero
    assert (
        f"the output closest to softmax's is that of **{label(first)}**, off by {errors[first]:.0%}; the farthest that "
        f"of **{label(last)}**, off by {errors[last]:.0%}. The plain mean of the values would be off by {zero:.0%}."
    ) in spoken(open_matrices(input="synthetic", n=24, heads=1, head=0, variants=variants))


def test_the_table_names_what_can_be_causal_its_time_and_hidden_tokens_only_where_there_are_some():
    at = open_matrices(input="synthetic", n=12, variants=(PLAIN, LOCAL, ac.get("linformer")), special=False)
    table = at.dataframe[0].value.set_index("variant")
    assert table["causal"].tolist() == ["yes", "yes", "no"]
    assert table["time"].tolist() == [a.variant.complexity for a in (PLAIN, LOCAL, ac.get("linformer"))]
    captions = spoken(at, "caption")
    assert "Hidden special tokens" not in captions
    assert ac.variant("reformer").note not in captions


def test_the_bars_of_a_pinned_row_are_those_on_the_board():
    at = open_matrices(input="synthetic", n=12, heads=1, head=0, variants=(PLAIN, LINEAR), row=5, view="difference")
    panels = board(at, "matrices.board")[1]
    bars = traces(at)
    assert list(bars) == ["Linear"]
    np.testing.assert_allclose(numbers(bars["Linear"]["y"]), panels["linear"][1][5], atol=1e-3)
