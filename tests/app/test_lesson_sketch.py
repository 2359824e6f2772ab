"""Tests of lesson steps that ask to draw a curve: the score, and no measured number reaches the browser too early."""

import json
import math
import re

import numpy as np
import pytest
from driver import lines_of, message
from hypothesis import given
from hypothesis import strategies as st
from test_lessons import STEPS, card, open_lesson, press, step_of

from app.lessons import answer, draft
from app.lessons.card import GUESSES
from app.lessons.lesson import Step
from app.lessons.screen import Screen
from app.lessons.sketch import sketch
from app.measures import CurveMeasure

CURVES = [(key, place) for key, place in STEPS if step_of(key, place).draw]
NAMES = {"log_n": "log n scaling", "nystrom_performer": "Performer"}
"""A part of the name of the curve in the chart of the page, by lesson."""
CURVE = CurveMeasure(
    title="curve of {name}",
    positions=lambda screen, attention: [1.0, 2.0, 4.0],
    find=lambda screen, attention: [1.0, 1.0, 1.0],
    x_title="x",
    y_title="y",
    unit="nats",
    high=lambda screen: 3.0,
    step=0.1,
    digits=1,
    tolerance=0.2,
)
FLAT = [(1.0, 1.0), (2.0, 1.0), (4.0, 1.0)]
CLOSE = "Your curve is close: its average distance"


def canvas(at):
    """Return the header that the browser gets for the canvas."""
    [sent] = [c for c in at.get("bidi_component") if c.proto.component_name == "attention_lab_sketch"]
    return message(sent)[0]


def guessed(at, heights):
    """Return the page after the visitor has drawn these heights."""
    at.session_state[GUESSES] = {canvas(at)["key"].removesuffix(".guess"): tuple(heights)}
    return at.run()


def sent(at):
    """Return everything that the browser gets, as one text."""
    return json.dumps([str(each.proto) for each in at.main]).replace("\N{NO-BREAK SPACE}", " ")


def test_a_shipped_lesson_asks_for_a_curve():
    assert CURVES


@pytest.mark.parametrize(("key", "place"), CURVES)
def test_no_measurement_is_sent_before_the_answer(key, place):
    step = step_of(key, place)
    at = open_lesson(key, place)
    header = canvas(at)
    assert header["measured"] == []
    assert header["drawn"] is None
    assert next(b for b in at.button if (b.key or "").endswith(".check")).disabled
    curve, _variant = answer.find_curve(step)
    screen = Screen.from_link(step.at, step.reveal)
    assert header["high"] == pytest.approx(curve.high(screen))
    shown = press(open_lesson(key, place), ".show")
    numbers = [str(height)[:7] for _, height in canvas(shown)["measured"]]
    # The other curves on the page may contain one of these numbers too.
    known = {str(y)[:7] for _xs, ys in lines_of(at).values() for y in ys}
    hidden = [number for number in numbers if number not in known]
    assert len(hidden) >= len(numbers) - 1
    assert all(number in sent(shown) for number in hidden)
    assert not any(number in sent(at) for number in hidden)
    assert not any(NAMES[key] in name for name in lines_of(at))


@pytest.mark.parametrize(("key", "place"), CURVES)
def test_the_measured_curve_and_the_score_are_those_of_the_page(key, place):
    at = open_lesson(key, place)
    header = canvas(at)
    heights = [header["high"] * share for share in np.linspace(0.2, 0.9, len(header["x"]))]
    at = press(guessed(at, heights), ".check")
    answered = canvas(at)
    assert answered["drawn"] == pytest.approx(heights)
    [(xs, ys)] = [xy for name, xy in lines_of(at).items() if NAMES[key] in name]
    assert [x for x, _ in answered["measured"]] == list(xs)
    assert [y for _, y in answered["measured"]] == pytest.approx(list(ys))
    fine = np.linspace(math.log(xs[0]), math.log(xs[-1]), 50_001)
    gap = np.interp(fine, np.log(header["x"]), heights) - np.interp(fine, np.log(xs), ys)
    mean = np.abs(gap).mean()
    distance = f"{mean:.2f} nats" if key == "log_n" else f"{mean:.0%}"
    assert f"your curve is {distance} from the measured curve" in card(at)


@pytest.mark.parametrize(("key", "place"), CURVES)
def test_a_visitor_who_draws_nothing_sees_the_measured_curve(key, place):
    at = press(open_lesson(key, place), ".show")
    assert canvas(at)["drawn"] is None
    assert canvas(at)["measured"]
    assert "The line shows the measured curve." in card(at)


def test_the_canvas_has_texts():
    words = canvas(open_lesson("log_n", 2))["settings"]["texts"]
    assert words["title"] == "Entropy of the attention rows of Softmax, log n scale against the number of tokens"
    assert words["y"] == "entropy H (nats)"


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        (None, "The line shows the measured curve."),
        ([1.2, 1.2, 1.2], "Your curve is close: its average distance from the measured curve is 0.2 nats."),
        ([1.3, 1.3, 1.3], "On average, your curve is 0.3 nats from the measured curve, mostly above it."),
        ([0.5, 0.5, 0.5], "On average, your curve is 0.5 nats from the measured curve, mostly below it."),
        ([0.0, 1.0, 2.0], "On average, your curve is 0.5 nats from the measured curve, partly above and partly below."),
    ],
)
def test_the_text_on_a_score(drawn, words):
    assert sketch.describe(CURVE, drawn, [1.0, 2.0, 4.0], FLAT).replace("\N{NO-BREAK SPACE}", " ") == words


def test_fewer_points_than_measurements_are_joined_by_straight_lines():
    measured = [(1.0, 0.0), (2.0, 1.0), (4.0, 2.0)]
    assert sketch.describe(CURVE, [0.0, 2.0], [1.0, 4.0], measured).startswith(
        f"{CLOSE} from the measured curve is 0.0"
    )


@given(st.lists(st.floats(0, 3), min_size=3, max_size=3))
def test_every_drawn_curve_has_a_score_no_larger_than_the_axis(heights):
    words = sketch.describe(CURVE, heights, [1.0, 2.0, 4.0], FLAT)
    distance = float(re.findall(r"is ([\d.]+)\N{NO-BREAK SPACE}", words)[0])
    assert 0 <= distance <= 3
    assert words.startswith(CLOSE) == (distance < 0.2 or (distance == 0.2 and words.startswith(CLOSE)))


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 30])
def test_the_points_are_some_of_the_measured_positions_with_both_ends(count):
    measured = [2.0**i for i in range(count)]
    curve = CurveMeasure(**{**CURVE.__dict__, "positions": lambda screen, attention: measured})
    screen = Screen.from_link("entropy")
    found = sketch.point_positions(curve, "softmax", screen)
    assert len(found) == min(count, sketch.MAX_POINTS)
    assert found == sorted({*found} & {*measured})
    assert (found[0], found[-1]) == (measured[0], measured[-1])


@pytest.mark.parametrize(
    ("reported", "found"),
    [
        ([0, 1.5, 2], (0.0, 1.5, 2.0)),
        ([-1, 1, 9], (0.0, 1.0, 2.0)),
        ([1, 2], None),
        ([1, 2, "3"], None),
        ([1, 2, None], None),
        ([1, 2, math.nan], None),
        ([1, 2, math.inf], None),
        ("123", None),
        (None, None),
    ],
)
def test_heights_from_the_browser_are_checked(reported, found):
    assert sketch.read_heights(reported, 3, 2.0) == found


def test_the_screen_of_a_step_may_not_show_its_curve():
    at = "entropy?input=synthetic&n=64&h_scales=none&variants=softmax"
    assert draft.shows_answer(Step(at=at, ask="?", draw="entropy softmax"))
    assert not draft.shows_answer(Step(at=at, ask="?", draw="entropy local", reveal="variants=softmax&variants=local"))
    assert not draft.shows_answer(Step(at=at, ask="?", draw="entropy softmax_log_n", reveal="h_scales=log_n"))
