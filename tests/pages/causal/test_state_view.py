"""Tests of the State view: the decoder's own numbers, and an animation that continues, stops and ends."""

import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from driver import board, charts, chosen, full_text, is_chart, lines_of, numbers, spoken

import attention_core as ac
from app.figures.theme import style
from app.ui import animation, palette
from app.words.labels import sentence_name
from attention_core.analysis.state.recurrent_state import StateChanges, StateHistory, state_history
from attention_core.registry import matrix_states
from pages.causal.state import scale_end
from pages.causal.state_words import error_text, notes, output_distance, state_change, state_size


def grown(n=3, log_unit=0.0):
    """Return a state of two features and three value entries, whose sums have lengths 1, 2, 4 …"""
    sums = np.zeros((n, 2, 3), np.float32)
    sums[:, 0, 0] = 2.0 ** np.arange(n)
    ones = np.ones((n, 3))
    return StateHistory(
        sums=sums,
        keys=sums[..., 0],
        added=sums,
        outputs=1.25 * ones,
        full=ones + 0.25 + 2.2e-7,
        softmax=ones,
        kv_cache=np.ones((n, 5), np.float32),
        state_size=8,
        log_unit=log_unit,
    )


def test_the_headline_counts_stored_numbers_and_the_distance():
    text = output_distance(grown(), 1, ("a", "b_", "c"), "Linear").replace("\N{NO-BREAK SPACE}", " ")
    assert text == (
        "Linear has read 2 tokens, up to “b\\_”. Its output error for this token is 25%, more than with equal weights "
        "(0%)."
    )
    assert output_distance(grown(), 0, ("a", "b_", "c"), "Linear").startswith("Linear has read 1 token: “a”. ")
    assert full_text(state_size(grown(), "Linear")) == (
        "**Linear merges all tokens into a state of 8 numbers. From 2 tokens on, softmax's key-value cache is "
        "larger.** Matrix S has 6 of these numbers, and z, which gives the divisor of the output, has 2. Each "
        "new token adds 5 numbers to softmax's key-value cache. The state keeps its size: only its entries change."
    )


def test_the_headline_gives_the_parts_of_a_state_that_is_more_than_one_matrix():
    matrix = replace(grown(), keys=None, state_size=6)
    assert " of these numbers" not in state_size(matrix, "DeltaNet").text
    means = replace(matrix, state_size=9)
    assert state_size(means, "Delta").text.endswith("Matrix S has 6 of these numbers, and 3 are running means.")


def weights(fades=0.0, erases=None, along=False):
    """Return a state of two decaying channels: lengths 1, 2, 4, half of each written by its token."""
    held = grown()
    changes = StateChanges(
        decay_shares=np.broadcast_to(fades, (3, 2)),
        erased_shares=None if erases is None else np.full(3, erases),
        along=along,
    )
    return replace(held, keys=None, added=held.sums / 2, changes=changes)


@pytest.mark.parametrize(
    ("fades", "expected"),
    [
        (0.0, "The previous state does not decay."),
        (0.25, "At this token, **25%** of the previous state is lost to decay."),
        ([0.1, 0.1 + 1e-9], "At this token, **10%** of the previous state is lost to decay."),
        (
            [0.0, 0.00003],
            "At this token, **0% to 0.0030%** of the previous state is lost to decay, depending on the channel.",
        ),
    ],
)
def test_decay_text_has_one_share_or_a_range(fades, expected):
    ending = "The token adds a matrix of norm 2 to the state. The norm of the state, ‖S‖, changes from 2 to 4."
    assert state_change(weights(fades), 2) == f"{expected} {ending}"


def test_erased_values_are_reported_for_rules_that_erase():
    # a quarter of 2 fades, 2 are written, and 4 result, so erasing added 0.5
    assert state_change(weights(0.25, erases=1.5), 2) == (
        "At this token, **25%** of the previous state is lost to decay. The state returns a value for the token's key. "
        "The token erases **150%** of this value, which changes the state by a matrix of norm 0.50. "
        "The token adds a matrix of norm 2 to the state. The norm of the state, ‖S‖, changes from 2 to 4."
    )
    assert (
        "The state returns a value for the direction w, along which the token erases. The token erases **150%** of "
        "this value, which changes the state by a matrix of norm 0.50."
        in state_change(weights(0.25, 1.5, along=True), 2)
    )


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, "decay. The token erases nothing. The token adds"),
        (0.01, "key. The token erases **1%** of this value, which changes the state by a matrix of norm 0.50. The"),
        (1.99, "key. The token erases **199%** of this value, which changes the state by a matrix of norm 0.50. The"),
        (2.0, "key. The token reverses this value, which changes the state by a matrix of norm 0.50. The"),
    ],
)
def test_a_token_that_erases_nothing_or_twice_the_value_has_its_own_words(share, expected):
    assert expected in state_change(weights(0.25, erases=share), 2)


def test_the_first_token_and_running_sums_have_no_decay():
    assert state_change(weights(0.25, erases=1.0), 0) == (
        "The first token adds a matrix of norm 0.50 to an empty state."
    )
    assert state_change(grown(), 1) == ""


def test_the_notes_name_differences_from_the_computed_state():
    assert notes(grown(), 3, 1, averaged=False) == ""
    assert notes(grown(), 3, 1, averaged=True) == "Head 1 is shown, because each head has its own state."
    assert notes(grown(), 4, 0, averaged=False) == (
        "Each state holds 8 numbers, so only the first 3 of 4 tokens are shown."
    )
    assert notes(grown(log_unit=80.2), 3, 0, averaged=False) == "S and z are shown in units of e^80."


def largest(panel):
    """Return the largest value of a panel's colour scale."""
    return max(panel["highest"], -panel["lowest"])


@pytest.mark.parametrize("variant", matrix_states(), ids=lambda v: v.key)
def test_the_state_on_screen_equals_the_decoders(open_view, record, variant):
    at = open_view("state", c_state=ac.get(variant.key), c_at=7)
    grown = state_history(record, ac.get(variant.key), head=1)
    shown = board(at, "causal.state")[1]
    for key, values in (("state", grown.sums), ("added", grown.added)):
        np.testing.assert_allclose(shown[key][1], values[7], rtol=2e-3, atol=1e-6 * abs(values).max())
        assert largest(shown[key][0]) == pytest.approx(scale_end(abs(grown.sums), 7))
        assert shown[key][0]["scale_panel"] == ("" if key == "state" else "State S")
    changes = {"faded": grown.decay_change, "erased": grown.erase_change} if grown.changes else {}
    for key in changes.keys() & shown.keys():
        np.testing.assert_allclose(shown[key][1], changes[key](7), rtol=2e-3, atol=1e-5 * abs(grown.sums).max())
        assert (shown[key][0]["scale_panel"] == "State S") == (largest(shown[key][0]) == largest(shown["state"][0]))
    assert ("faded" in shown) == bool(grown.changes and grown.changes.decay_shares.any())
    assert ("erased" in shown) == bool(grown.changes and grown.changes.erased_shares is not None)
    first, sizes, *_, read, softmax = charts(at)[0]["data"]
    held = grown.channel_sizes if grown.keys is None else grown.keys
    np.testing.assert_allclose(numbers(first["y"]), held[7], rtol=1e-6)
    np.testing.assert_allclose(numbers(sizes["y"])[7], np.linalg.norm(grown.sums[7]), rtol=1e-5)
    np.testing.assert_allclose(numbers(read["y"]), grown.outputs[7])
    np.testing.assert_allclose(numbers(softmax["y"]), grown.softmax[7])
    assert (softmax["name"], softmax["legend"], sizes["legend"]) == ("softmax", "legend2", "legend")
    own, reference = (style(each).colour for each in palette.indices([variant.key, "softmax"]))
    assert (read["name"], read["marker"]["color"]) == (sentence_name(ac.get(variant.key)), own)
    assert (softmax["marker"]["color"], sizes["line"]["color"]) == (reference, own)
    lines = {trace["name"]: trace["line"]["color"] for trace in charts(at)[0]["data"] if "line" in trace}
    assert len({*lines.values(), reference}) == len(lines) + 1
    assert first["marker"]["color"] == lines["‖S‖" if grown.keys is None else "‖z‖"]
    assert any("Top: z, which" in each.value for each in at.caption) == (grown.keys is not None)
    mean = record.v[1, :8].double().mean(0)
    wanted = torch.tensor(grown.softmax[7])
    assert grown.uniform_error(7) == pytest.approx(float((mean - wanted).norm() / wanted.norm()), rel=1e-5)
    assert error_text(grown.softmax_error(7), grown.uniform_error(7)) in spoken(at)
    assert state_change(grown, 7) in spoken(at)
    assert (
        f"**{sentence_name(ac.get(variant.key))} merges all tokens into a state of {grown.state_size:,} numbers. From "
        in spoken(at)
    )
    assert "has read 8 tokens" in spoken(at)


def test_fast_weights_report_writes_and_erasures(open_view, record):
    found = lines_of(open_view("state", c_state=ac.get("kda")))
    grown = state_history(record, ac.get("kda"), head=1)
    np.testing.assert_allclose(found["written"][1], np.linalg.norm(grown.added, axis=(1, 2)), rtol=1e-5)
    np.testing.assert_allclose(found["removed"][1], grown.removed_size, rtol=1e-5)
    assert "‖z‖" not in found


def test_the_scales_fit_what_has_been_read(open_view, record):
    keys = state_history(record, ac.get("linear"), head=1).keys
    ends = []
    for i in (0, 23):
        at = open_view("state", c_at=i)
        panel, values = board(at, "causal.state")[1]["state"]
        assert abs(values).max() >= largest(panel) / 2.01
        end = charts(at)[0]["layout"]["yaxis"]["range"][1]
        assert end / 2.2 <= keys[i].max() <= end
        ends.append(end)
    assert ends[0] < ends[1]


def test_the_scale_of_sums_below_zero_ends_at_a_power_of_two(open_view, record):
    keys = state_history(record, ac.get("cosine"), head=1).keys
    low = charts(open_view("state", c_at=5, c_state=ac.get("cosine")))[0]["layout"]["yaxis"]["range"][0]
    assert keys[:6].min() < 0
    assert low == pytest.approx(-1.05 * scale_end(-keys, 5))


@pytest.mark.parametrize(
    ("sizes", "i", "end"), [([1, 3, 9], 1, 4), ([1, 4, 9], 1, 4), ([1, 4.1, 9], 1, 8), ([9, 3], 1, 9), ([0, 3], 0, 3)]
)
def test_the_end_of_a_scale_is_a_power_of_two_up_to_the_largest_value(sizes, i, end):
    assert scale_end(np.array(sizes, float), i) == end


@pytest.mark.parametrize(
    ("error", "uniform", "words"),
    [
        (0.83, 0.834, "83%, the same as with equal weights."),
        (0.831, 0.829, "83%, the same as with equal weights."),
        (0.82, 0.83, "82%, less than with equal weights (83%)."),
        (0.84, 0.83, "84%, more than with equal weights (83%)."),
        (1.0, 0.9, "100%, more than with equal weights (90%)."),
        (1.1, 1.2, "110%, less than with equal weights (120%). An output of zero would have an error of 100%."),
    ],
)
def test_the_error_is_compared_with_equal_weights(error, uniform, words):
    assert error_text(error, uniform) == f"Its output error for this token is {words}"


def test_the_average_of_heads_shows_the_first_head_and_long_inputs_are_cut(open_view):
    at = open_view("state", head=-1)
    assert any("Head 0 is shown" in c.value for c in at.caption)
    at = open_view("state", n=60, d=64, c_state=ac.get("taylor2"))
    assert any("only the first 30 of 60 tokens" in c.value for c in at.caption)


def test_the_animation_advances_and_stops(open_view, monkeypatch):
    monkeypatch.setattr(animation, "TICK", 0.02)
    at = open_view("state", c_at=4)
    at.button(key="causal.play").click().run()
    assert at.button(key="causal.play").label == "Stop"
    places = []
    for _ in range(3):
        time.sleep(0.02)
        places.append(at.run().session_state["c_at"])
    assert places == [places[0], places[0] + 1, places[0] + 2]
    at.button(key="causal.play").click().run()
    time.sleep(0.02)
    assert at.run().session_state["c_at"] == places[-1]
    assert at.button(key="causal.play").label == "Play"


def test_a_late_stop_still_stops(open_view):
    at = open_view("state", c_at=4)
    at.button(key="causal.play").click().run()
    assert at.button(key="causal.play").label == "Stop"
    at.session_state["causal.drawn"] = time.monotonic() - 2 * animation.TIMEOUT  # as if the machine had been busy
    at.button(key="causal.play").click().run()
    assert at.button(key="causal.play").label == "Play"


def test_the_animation_ends_at_the_last_token_or_without_viewers(open_view, monkeypatch):
    monkeypatch.setattr(animation, "TICK", 0.02)
    at = open_view("state", n=3, c_at=0)
    at.button(key="causal.play").click().run()
    for _ in range(3):
        time.sleep(0.02)
        at.run()
    assert at.button(key="causal.play").label == "Play"
    at = open_view("state", c_at=0)
    at.button(key="causal.play").click().run()
    assert at.button(key="causal.play").label == "Stop"
    monkeypatch.setattr(animation, "TIMEOUT", 0.0)
    assert at.run().button(key="causal.play").label == "Play"


def test_a_setting_of_the_state_changes_only_the_state(open_view):
    at = open_view("state", c_state=ac.get("retention"), variants=chosen("softmax", "retention"))
    at.slider(key="causal.knob.retention.decay").set_value(0.5).run()
    assert at.session_state["c_state"] == ac.get("retention", decay=0.5)
    assert at.session_state["variants"] == chosen("softmax", "retention")
    at.selectbox(key="causal.variant").set_value("cosine").run()
    assert at.session_state["c_state"] == ac.get("cosine")
    assert not any("mode" in str(w.key) for w in at.segmented_control)


def test_the_next_button_adds_tokens_until_the_last(open_view):
    at = open_view("state", c_at=21)
    for place in (22, 23):
        at.button(key="causal.take").click().run()
        assert at.session_state["c_at"] == place
    assert at.button(key="causal.take").disabled
    assert "has read 24 tokens" in spoken(at)


def test_the_cache_grows_next_to_the_state(open_view, record):
    for i in (4, 23):
        panel, shown = board(open_view("state", c_at=i), "causal.state")[1]["cache"]
        held = np.concatenate([record.k[1], record.v[1]], -1)
        np.testing.assert_allclose(shown[: i + 1], held[: i + 1], rtol=2e-3, atol=1e-3)
        assert np.isnan(shown[i + 1 :]).all()
        assert panel["caption"] == f"{(i + 1) * held.shape[1]} numbers stored so far"


def test_a_typed_word_is_appended_and_read(open_view):
    at = open_view("state", input="text", text="The cat sat", layer=0, c_at=1)
    assert at.session_state["c_at"] == 1
    before = len(at.select_slider(key="c_at").options)
    at.text_input(key="causal.typed").set_value("  down ").run()
    assert at.session_state["text"] == "The cat sat down"
    assert at.text_input(key="causal.typed").value == ""
    assert len(at.select_slider(key="c_at").options) == before + 1
    assert at.session_state["c_at"] == before - 1, "the state after [SEP] is not that after the word"
    assert "“down”" in spoken(at)
    at.text_input(key="causal.typed").set_value(" ").run()
    assert at.session_state["text"] == "The cat sat down"


def test_only_texts_can_be_extended(open_view):
    assert not open_view("state").text_input


def test_the_charts_of_single_entries_are_folded_up(open_view):
    [entries] = [each for each in open_view("state").expander if each.label.startswith("Single entries")]
    assert any(is_chart(node) for node in entries)
