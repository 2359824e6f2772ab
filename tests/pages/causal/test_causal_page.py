"""Tests of the whole Causal page: every view on every input, and its links."""

import io

import numpy as np
import pytest
from driver import charts, spoken, visit

import attention_core as ac
from app.ui.input_forms import UPLOAD
from pages.causal.page import CHAPTERS, PAGE, QUESTIONS, CausalOptions

SLIDERS = {"leak": "c_token", "state": "c_at", "fading": "c_early"}
COSTS = {"overview": 1, "algorithms": 3, "generation": 3, "gradient": 3}
"""Number of charts of each view on cost."""


@pytest.mark.parametrize("view", SLIDERS)
@pytest.mark.parametrize(
    "state",
    [
        {"input": "text"},
        {"causal": True},
        {"head": -1},
        {"n": 1},
        {"n": 2},
        {"c_token": 200, "c_at": 900, "c_early": 900},
    ],
    ids=["text", "causal", "all heads", "one token", "two tokens", "beyond the text"],
)
def test_every_view_of_tokens_opens_on_every_input(open_view, view, state):
    at = open_view(view, **state)
    assert not at.error
    assert charts(at)
    assert any(w.key == SLIDERS[view] for w in at.select_slider) == (state.get("n") != 1)
    assert at.session_state[SLIDERS[view]] < (56 if "input" in state else state.get("n", 24))


@pytest.mark.parametrize("view", COSTS)
@pytest.mark.parametrize(
    "state",
    [
        {"input": "text"},
        {"input": "text", "model": "smollm2", "text": "a", "causal": True},
        {"n": 1, "head": -1},
        {"n": 300, "heads": 1, "causal": True},
        {"d": 2, "heads": 1},
    ],
    ids=["text", "one token of smollm2", "one token", "300 tokens", "two numbers"],
)
def test_every_view_on_cost_opens_on_every_input(open_view, view, state):
    at = open_view(view, **state)
    assert not at.error
    assert len(charts(at)) == COSTS[view]
    assert len(at.dataframe) == (view == "overview")


@pytest.mark.parametrize("view", [*SLIDERS, *COSTS])
@pytest.mark.parametrize(("shapes", "factor"), [((4, 4, 4), 1e3), ((6, 6, 9), 1.0)], ids=["large", "wider values"])
def test_an_upload_is_drawn_and_an_empty_text_is_reported(open_view, view, shapes, factor):
    out, drawn = io.BytesIO(), np.random.default_rng(0)
    arrays = {x: factor * drawn.normal(size=(2, 20, d)).astype(np.float32) for x, d in zip("qkv", shapes, strict=True)}
    np.savez(out, **arrays)
    at = open_view(view, input="upload", **{UPLOAD: ac.inputs.UploadSource.of("mine.npz", out.getvalue())})
    assert not at.error
    assert len(charts(at)) == (dict.fromkeys(SLIDERS, 1) | COSTS)[view]
    empty = open_view(view, input="text", text=" ")
    assert len(empty.error) == 1


def test_links_carry_options_in_order():
    words = "view token size form state at early decays map log"
    assert list(CausalOptions.fields()) == [f"c_{word}" for word in words.split()]


@pytest.mark.parametrize("view", [*SLIDERS, *COSTS])
def test_an_address_with_tokens_beyond_the_input_is_refused_whichever_view_is_drawn(view):
    small = {"input": "synthetic", "n": "24", "d": "8", "heads": "2", "head": "1", "c_size": "8"}
    at = visit("causal", small | {"c_view": view, "c_token": "24", "c_early": "23", "c_at": "90"})
    assert [at.session_state[name] for name in ("c_token", "c_early", "c_at")] == [20, 23, 10]
    for name, shown, word in (("c_token", 20, 24), ("c_at", 10, 90)):
        assert f"For `{name}`, the page uses “{shown}” instead of “{word}”." in at.warning[0].value


def test_links_carry_the_views_and_invalid_values_are_rejected():
    at = visit("causal", {"c_view": "algorithms", "c_size": "7", "c_form": "softmax", "c_cost": "time"})
    assert [at.session_state[name] for name in ("c_size", "c_form")] == [16, "linear"]
    assert "`c_size`, the page uses “16” instead of “7” (allowed: 8, 16, 32 and 64)." in at.warning[0].value
    assert "`c_form`, the page uses “linear” instead of “softmax”" in at.warning[0].value
    assert "no parameter with the name “c\\_cost”." in at.warning[0].value, "times are no longer measured"


def test_a_link_with_the_former_gate_opens_the_chapter_with_a_notice():
    at = visit("causal", {"c_view": "fading", "c_gate": "drawn"})
    assert at.session_state["c_view"] == "fading"
    assert "no parameter with the name “c\\_gate”." in at.warning[0].value


@pytest.mark.parametrize("words", ["softmax", "nystrom~landmarks~4", "retention~decay~7", "x"])
def test_a_link_with_an_invalid_state_opens_the_default(words):
    at = visit("causal", {"c_state": words, "c_decays": "2"})
    assert at.session_state["c_state"] == ac.get("linear")
    assert at.session_state["c_decays"] == [0.8, 0.95]


def test_a_first_visit_opens_the_overview_and_the_tabs_open_all_chapters():
    at = visit("causal")
    assert at.session_state["c_view"] == "overview", "a first visit begins where the story does"
    for view, title in CHAPTERS.items():
        at.button_group(key="causal.chapter").set_value(view).run()
        assert at.session_state["c_view"] == view
        assert at.button_group(key="causal.chapter").formatted_values == [title]
    assert {*CHAPTERS, "gradient"} == set(PAGE.views)


def test_an_address_without_a_chapter_opens_the_leaks():
    assert visit("causal", {"n": "24"}).session_state["c_view"] == "leak"


@pytest.mark.parametrize("view", PAGE.views)
def test_each_chapter_has_its_own_question(open_view, view):
    shown = [question for question in QUESTIONS.values() if f"# {question}" in spoken(open_view(view))]
    assert shown == [QUESTIONS["algorithms" if view == "gradient" else view]]
