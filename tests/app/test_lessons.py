"""Tests of lessons: answers equal the numbers on the page, guesses are judged, and files are read or refused."""

import html
import math
import re
from dataclasses import replace
from urllib.parse import parse_qs, unquote

import numpy as np
import pytest
from driver import (
    board,
    board_settings,
    go,
    lines_of,
    message,
    metrics,
    open_page,
    read_number,
    read_percent,
    set_state,
    spoken,
    table,
    visit,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_core as ac
from app.figures.theme import style
from app.jobs import cached
from app.lessons import answer, answer_text
from app.lessons.card import ANSWERS, address
from app.lessons.lesson import (
    LINK_LESSON,
    MAX_BYTES,
    MAX_STEPS,
    Lesson,
    LessonError,
    Step,
    pack,
    parse_query,
    read,
    unpack,
    write,
)
from app.lessons.options import LessonOptions
from app.lessons.overview import length, progress, summary
from app.lessons.screen import Screen
from app.lessons.shipped import ORDER, _harder_words, all_lessons, lesson_pictures
from app.measures import PageMeasure, verdict
from app.page import discover
from app.state import url
from app.state.controls import Options
from app.state.link_fields import READ_ERRORS
from app.ui import palette
from app.ui.matrix_picture import SAMPLE_VIEW, matrix_picture
from app.words.labels import label, sentence_name

STEPS = [(key, place) for key, each in all_lessons().items() for place in range(1, 1 + len(each.steps))]


NUMBERS = [(key, place) for key, place in STEPS if not all_lessons()[key].steps[place - 1].draw]
"""The steps that ask for a number or a choice; tests/app/test_lesson_sketch.py covers those that ask for a curve."""


def step_of(key, place):
    return all_lessons()[key].steps[place - 1]


def open_lesson(key, place=1, **state):
    """Return the page that the link of a lesson's step opens."""
    page, _mark, words = address(all_lessons()[key], place, present=False).partition("?")
    return visit(page, parse_qs(words))


def guess(at, value):
    return next(s for s in at.slider if s.key.startswith("lesson.")).set_value(value).run()


def card(at):
    """Return the text of the lesson card without markup."""
    text = " ".join(each.proto.body for each in at.get("html") if not each.proto.body.startswith("<style"))
    return re.sub(r"<[^>]+>", " ", text).replace("\N{NO-BREAK SPACE}", " ")


def press(at, ending):
    return next(b for b in at.button if b.key and b.key.startswith("lesson.") and b.key.endswith(ending)).click().run()


# Functions that read a number from a page. Tests compare it with the page's measure, which gives the number to lessons.


def of_table(column, factor=1.0):
    return lambda at, attention: factor * float(table(at)[column].loc[label(attention)])


def of_metrics(name, read=read_number):
    return lambda at, attention: read(metrics(at)[name].loc[label(attention)])


def _sink(at, attention):
    place = [at.session_state["layer"], at.session_state["head"]]
    description = next(each[3] for each in board_settings(at, "heads.large")["heads"] if each[:2] == place)
    return 100 * float(re.search(r"first-token sink ([\d.]+)", description)[1])


def _depth(at, attention):
    shown = table(at)["layers to connect all"].loc[label(attention)]
    return None if shown == "never" else float(shown)


def _connected(at, attention):
    found = re.search(r"connects ([\d.]+)% of the pairs", spoken(at))
    return float(found[1]) if found else 100.0


def _captions(at):
    return {key: panel["caption"] for key, (panel, _matrix) in board(at, "causal.leaks")[1].items()}


def _leak(at, attention):
    share = re.search(r"leaks: (\d+)% of earlier outputs", _captions(at)[attention.key])
    return float(share[1]) if share else 0.0


def _leaking(at, attention):
    return float(sum("leaks:" in caption for caption in _captions(at).values()))


def _moved(at, attention):
    name = re.escape(sentence_name(attention))
    single = rf"Only {name} leaks: if token .* is replaced, (?:all )?(\d+) "
    found = re.search(rf"{name} \(changed outputs: (\d+)\)|{single}", spoken(at))
    return float(found[1] or found[2]) if found else 0.0


def _last_entropy(at, attention):
    found = table(at)
    column = [name for name in found.columns if name.startswith("entropy H, n = ")][-1]
    return float(found[column].iloc[0])


def _slope(at, attention):
    name = "Softmax, log n scaling" if attention.key == "softmax_log_n" else label(attention)
    return float(table(at)["slope of entropy against log n"].loc[name])


def _error(at, attention):
    [(xs, ys)] = [xy for name, xy in lines_of(at).items() if name.startswith(attention.title) and "floor" not in name]
    budget = getattr(attention.params, attention.variant.budget.name)
    return dict(zip(xs, ys, strict=True))[budget]


def _last_share(at, attention):
    _xs, ys = lines_of(at)[label(attention)]
    return 100 * ys[-1]


def _chosen_line(at):
    """Return the numbers of the selected line of the reading board."""
    [sent] = [c for c in at.get("bidi_component") if c.proto.component_name == "attention_lab_reading"]
    return message(sent)[0]["rows"][1 + at.session_state["m_shown"]]["numbers"]


def _forecast(at, attention):
    return float(re.search(r"rank correlation ([\d.]+) over", spoken(at))[1])


def _psnr(at, attention):
    found = at.dataframe[-1].value
    return float(found.loc[found["image"] == attention.title, "PSNR (dB)"].iloc[0])


def _complete(at, attention):
    return float(re.search(r"connects? all tokens after (\d+) layer", spoken(at))[1])


SHOWN = {
    "times": lambda at, attention: float(_chosen_line(at)[2].removeprefix("× ")),
    "copied": lambda at, attention: float(_chosen_line(at)[3]),
    "forecast": _forecast,
    "entropy": of_metrics("entropy (nats)"),
    "effective_rank": of_metrics("effective rank"),
    "matrix_error": of_metrics("matrix error", read_percent),
    "misplaced": of_metrics("misplaced weight", lambda text: read_number(text.removesuffix("%"))),
    "output_error": of_metrics("output error", lambda text: read_number(text.removesuffix("%"))),
    "sink": _sink,
    "pairs": of_table("of n²", 100),
    "depth": _depth,
    "connected": _connected,
    "complete": _complete,
    "leak": _leak,
    "leaking": _leaking,
    "moved": _moved,
    "last_entropy": _last_entropy,
    "slope": _slope,
    "error": _error,
    "accuracy": _last_share,
    "longest_accuracy": _last_share,
    "psnr": _psnr,
}
"""Functions that read each measure from its page."""


def agree(measure, found, shown):
    """Return True if a revealed number equals the page's number, up to the page's rounding."""
    return found == shown == None or abs(found - shown) <= 0.5 * 10**-measure.digits + 1e-9  # noqa: E711


@pytest.mark.parametrize(("key", "place"), STEPS)
def test_the_page_accepts_every_value_of_a_steps_link(key, place):
    step = step_of(key, place)
    page, _mark, words = step.at.partition("?")
    fields = {**Options.shared(), **discover()[page].options.fields()}
    for changes in ("", step.reveal):
        parameters = parse_query(words) | parse_query(changes)
        assert parameters.keys() <= fields.keys(), "a name that the page does not have also causes a notice"
        assert not url.read_link(parameters, fields)[1]


@pytest.mark.parametrize(("key", "place"), NUMBERS)
def test_the_revealed_answer_equals_the_number_on_the_page(key, place):
    step = step_of(key, place)
    found, name = answer.find(step), step.answer.split()[1 if "most" in step.answer or "least" in step.answer else 0]
    at = open_lesson(key, place)
    assert 'class="answer"' not in "".join(each.proto.body for each in at.get("html"))
    at = press(at, ".show")
    if "more=row" in step.reveal:
        at = set_state(at, more="numbers")
    screen = Screen.from_link(step.at, step.reveal)
    for one in found.candidates(screen) if found.rank else [found.key]:
        number = found.number(screen, one)
        assert agree(found.measure, number, SHOWN[name](at, screen.variant(one) if one else None))
        assert found.measure.format(number, screen).replace("\N{NO-BREAK SPACE}", " ") in card(at)
    if found.rank:
        assert ac.variant(found.winner(screen)).title in card(at)
    assert "With your current settings" not in card(at)
    assert step.then[:20].replace("'", "&#x27;") in card(at)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("output", "Not quite. It is 55%, and your guess (30%) is 25 percentage points too low."),
        ("kl", "Not quite. It is 0.55, and your guess (0.30) is 0.25 too low."),
    ],
)
def test_an_error_has_the_unit_of_the_page(metric, words):
    screen = Screen.from_link(f"error?fidelity={metric}")
    assert verdict(discover()["error"].measures["error"], 0.55, 0.3, screen) == words
    assert discover()["error"].curves["error"].format(0.3, screen) in words


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("matrices", "text=@english&special=0&variants=softmax&variants=local~window~3&variants=linear"),
        ("matrices", "input=synthetic&n=24&causal=1&variants=softmax&variants=local~window~3&variants=linear"),
        ("masks", "input=synthetic&n=40&masks_part=numbers&variants=softmax&variants=local~window~3&variants=atrous"),
        ("causal", "input=synthetic&n=24&variants=softmax&variants=local&variants=linformer&c_token=9"),
        ("picture", "grid=16&noise=0.2&p_below=numbers&variants=softmax&variants=linear&variants=local~window~3"),
    ],
)
def test_every_measure_equals_the_pages_number_of_each_variant(page, link):
    at = visit(page, parse_qs(link))
    screen = Screen.from_link(f"{page}?{link}")
    for name, measure in discover()[page].measures.items():
        if name in ("sink", "connected", "complete"):
            continue  # Another view shows this number; tests of the included lessons check it.
        column = {"pairs": "of n²"}.get(name)
        for each in screen.shared.variants if measure.per_variant else [None]:
            shown = SHOWN[name] if column is None or not screen.shared.causal else of_table("of n (n + 1) / 2", 100)
            assert agree(measure, measure.number(screen, each), shown(at, each)), (name, each)


def test_every_measure_is_tested_against_its_page():
    assert set(SHOWN) == {name for page in discover().values() for name in page.measures}


def test_the_included_lessons_compute_every_answer():
    assert tuple(all_lessons()) == ORDER
    for each in all_lessons().values():
        assert len(each.steps) >= 3
        assert all(step.ask and (answer.find(step) or answer.find_curve(step)) for step in each.steps)
        assert not any(step.right for step in each.steps)


def test_a_guess_is_compared_with_the_number():
    at = press(guess(open_lesson("flat"), 4.5), ".check")
    assert "Your guess (4.50 nats) is close. It is 4.62 nats." in card(at)
    assert "is 2.62 nats too low." in card(press(guess(open_lesson("flat"), 2.0), ".check"))


def test_a_finished_lesson_is_closed_in_the_list_of_lessons():
    lesson = LessonOptions.lesson.name
    at = press(open_lesson("flat", 3), ".show")
    assert go(at, "lessons").session_state[lesson] is not None
    at = press(open_lesson("flat", 4), ".show")
    assert at.session_state[lesson] is not None
    at = go(at, "lessons")
    assert at.session_state[lesson] is None
    assert "This step is on another page" not in card(at)


@pytest.mark.parametrize(("key", "label"), [("flat", "Continue with"), ("convolution_and_gate", "All lessons →")])
def test_a_finished_lesson_links_to_the_next_one_or_to_all(key, label):
    at = press(open_lesson(key, 4), ".show")
    assert ("All lessons →" in card(at)) == (label == "All lessons →")
    assert label in card(at)


@pytest.mark.parametrize(
    ("key", "place", "finding"),
    [("convolution_and_gate", 1, "learn-summary"), ("stand_in", 5, "model-headline-budget")],
)
def test_a_finding_about_another_question_is_hidden_until_the_answer(key, place, finding):
    def hides(at):
        return any(f".st-key-{finding}" in each.proto.body for each in at.get("html"))

    at = open_lesson(key, place)
    assert hides(at)
    assert not hides(press(at, ".show"))


def test_an_unmoved_slider_is_no_guess():
    at = open_lesson("flat")
    check = next(b for b in at.button if (b.key or "").endswith(".check"))
    assert check.disabled
    assert "Move the slider to make a guess." in card(at)
    at = guess(at, 0.0)
    assert next(s for s in at.slider if s.key.startswith("lesson.")).value == 0.0
    check = next(b for b in at.button if (b.key or "").endswith(".check"))
    assert not check.disabled
    assert "Move the slider" not in card(at)
    assert "your guess (0.00 nats) is" in card(press(at, ".check"))


@pytest.mark.parametrize(("key", "place"), NUMBERS)
def test_the_slider_includes_the_answer_and_no_impossible_number(key, place):
    step = step_of(key, place)
    found, screen = answer.find(step), Screen.from_link(step.at, step.reveal)
    low, high = found.measure.low, found.measure.max_guess(screen)
    name = step.answer.split()[0]
    n = 1024 if key == "log_n" else screen.chosen.qkv.n - (0 if screen.shared.special else 2)
    most = {"effective_rank": n, "depth": n, "moved": 20, "leaking": 7}
    most |= dict.fromkeys(("entropy", "last_entropy"), math.log(n))
    assert high <= most.get(name, math.inf) + 1e-9
    assert high >= most.get(name, 0) - found.measure.step, "no possible number is left out"
    if name in ("output_error", "moved", "leak", "leaking", "entropy", "effective_rank", "pairs", "depth", "connected"):
        assert low <= found.number(screen) <= high + found.measure.step


def test_a_knob_changed_after_the_answer_gives_the_new_number():
    at = press(open_lesson("window_and_sink"), ".show")
    at.session_state["variants"] = (ac.get("softmax"), ac.get("local", window=3))
    text = card(at.run())
    assert "Answer: 49%." in text
    assert re.search(r"With your current settings, the answer would be \d+%", text)


@pytest.mark.parametrize(("key", "place"), STEPS)
def test_a_reload_after_the_answer_hides_it_again(key, place):
    at = press(open_lesson(key, place), ".show").run()
    start, query = Screen.from_link(step_of(key, place).at), {name: at.query_params[name] for name in at.query_params}
    reloaded = visit(start.page, query)
    assert [b for b in reloaded.button if (b.key or "").endswith(".check")], "the question is asked again"
    for name, value in start.values.items():
        if name not in ("lesson", "lesson_step"):
            assert reloaded.session_state[name] == value, name


@pytest.mark.parametrize(
    ("changes", "variants"),
    [
        ({}, ["softmax"]),
        ({"variants": ["softmax", "linear", "local"]}, ["softmax"]),
        ({"variants": ["softmax", "local"]}, ["softmax", "local"]),
        ({"lesson": []}, ["softmax", "linear"]),
    ],
)
def test_a_link_keeps_settings_that_are_not_those_of_the_answer(changes, variants):
    link = {"text": ["@english"], "special": ["0"], "variants": ["softmax", "linear"], "lesson": ["flat"]}
    at = visit("matrices", link | changes)
    assert [each.word for each in at.session_state["variants"]] == variants
    assert at.session_state["text"] == Screen.from_link("matrices?text=@english").shared.text


def test_a_link_to_an_answered_step_keeps_its_answer():
    at = press(open_lesson("flat", 4), ".show").run()
    query = {name: at.query_params[name] for name in at.query_params}
    again = open_page("matrices", query, **{ANSWERS: at.session_state[ANSWERS]})
    assert "Answer: " in card(again)
    assert (again.session_state["layer"], again.session_state["head"]) == (0, 0)


def test_a_choice_is_required_before_the_check():
    at = open_lesson("flat", 3)
    check = next(b for b in at.button if (b.key or "").endswith(".check"))
    assert check.disabled
    assert not check.help
    choice = next(p for p in at.pills if p.key.startswith("lesson."))
    at = press(choice.set_value(3).run(), ".check")
    assert "Correct: Performer." in card(at)


@pytest.mark.parametrize(
    ("key", "place", "before", "after"),
    [("flat", 1, "chart", "chart"), ("flat", 2, "chart", "chart"), ("softmax", 4, "chart", "chart")],
)
def test_an_answer_that_changes_the_matrices_keeps_them_in_view(key, place, before, after):
    at = open_lesson(key, place)
    shown = [
        re.findall(r'data-figure="(\w+)"', "".join(e.proto.body for e in each.get("html")))
        for each in (at, press(at, ".show"))
    ]
    assert shown == [[before], [after]]


def test_an_answer_that_only_the_table_shows_scrolls_to_it():
    step = Step(at="matrices?input=synthetic&n=12&variants=softmax", ask="?", answer="entropy softmax")
    for reveal, figure in (("", "table"), ("more=numbers", "table"), ("causal=1", "chart")):
        at = open_page(
            "matrices", lesson=Lesson(title="T", steps=(replace(step, reveal=reveal),)), input="synthetic", n=12
        )
        assert f'data-figure="{figure}"' in "".join(each.proto.body for each in press(at, ".show").get("html"))


def test_the_page_explains_only_what_it_shows_before_the_answer():
    at = open_lesson("flat")
    assert "Add a variant" not in spoken(at)
    assert "effective" not in spoken(at)
    at = press(at, ".show")
    assert "output error of 82%" in spoken(at)
    assert "Add a variant" not in spoken(press(open_lesson("softmax"), ".show"))
    assert "(effective keys)" in spoken(at)
    assert "Add a variant" in spoken(open_page("matrices", variants=(ac.get("softmax"),)))


def test_no_lesson_names_a_shade_that_the_dark_theme_reverses():
    for each in all_lessons().values():
        assert not re.search(r"\b(dark|light|bright|pale)(er|est)?\b", write(each)), each.key


def test_the_list_of_lessons_shows_progress_and_links_to_the_next_step():
    lessons = all_lessons()
    first, flat = lessons["softmax"], lessons["flat"]
    at = open_page("lessons")
    [before] = [each.proto.body for each in at.get("html") if "lessons" in each.proto.body]
    assert before.count("way next") == 1
    assert before.index("way next") < before.index("1. Softmax attention") < before.index("Start →")
    assert before.count("Start →") == len(all_lessons())
    assert before.index("2. Linear attention") < before.index("4. Local windows")
    pictures = re.findall(r'<img alt="" src="(data:image/[^"]+)"', before)
    shown = [[(each.address, *each.names) for each in lesson_pictures(key, dark=False)] for key in all_lessons()]
    assert pictures == [address for each in shown for address, *_names in each]
    assert len(set(map(tuple, shown))) == len(all_lessons()), "every lesson has its own pictures or names"
    assert before.index("way next") < before.index("Start here") < before.index("1. Softmax attention")
    assert "pips" not in before
    answered = press(open_lesson("window_and_sink"), ".show").session_state[ANSWERS]
    answered = {**answered, **press(open_lesson("flat"), ".show").session_state[ANSWERS]}
    answered |= {key.removesuffix(".1") + f".{place}": None for key in list(answered) for place in (2, 4)}
    at = open_page("lessons", **{ANSWERS: answered})
    [after] = [each.proto.body for each in at.get("html") if "lessons" in each.proto.body]
    assert after.count('class="done"') == 6
    assert after.count("pips") == 2
    assert "Start here" not in after
    assert (after.count("Continue →"), after.count("Start →")) == (2, len(all_lessons()) - 2)
    assert [progress(flat, done) for done in (0, 1, 4)] == [length(flat), "1 of 4 steps done", "4 of 4 steps done"]
    assert after.count("3 of 4 steps done") == 2
    assert html.escape(address(flat, 3, present=False)) in after
    whole = {**answered, **{key.removesuffix(".1") + ".3": None for key in list(answered) if key.endswith(".1")}}
    [end] = [
        each.proto.body for each in open_page("lessons", **{ANSWERS: whole}).get("html") if "4 of 4" in each.proto.body
    ]
    assert html.escape(address(first, 1, present=False)) in end
    assert end.index("way next") < end.index("1. Softmax attention") < end.index("2. Linear attention")
    assert end.count("Repeat →") == 2


def test_the_pictures_of_a_lesson_show_both_sides_of_its_question():
    for key in all_lessons():
        names = [name for each in lesson_pictures(key, dark=False) for name in each.names]
        assert len(set(names)) == (1 if key == "stand_in" else 2)
        assert lesson_pictures(key, dark=False) != lesson_pictures(key, dark=True)


def test_the_two_matrices_of_a_lesson_have_one_colour_scale():
    keys = ("softmax", "local")
    top = max(float(np.nanmax(cached.matrix(SAMPLE_VIEW, ac.get(key)).weights)) for key in keys)
    shown = [each.address for each in lesson_pictures("window_and_sink", dark=False)]
    assert shown == [matrix_picture(key, dark=False, top=top) for key in keys]


@pytest.mark.parametrize("key", ["flat", "grey", "local_then_atrous", "nystrom_performer"])
def test_a_question_mark_replaces_a_matrix_that_a_lesson_asks_for(key):
    first, second = (each.address for each in lesson_pictures(key, dark=False))
    assert first.startswith("data:image/png")
    assert ">?</text>" in unquote(second)


@pytest.mark.parametrize(
    ("key", "variants"), [("log_n", ["softmax", "softmax_log_n"]), ("convolution_and_gate", ["softmax", "linear"])]
)
def test_a_curve_of_a_lesson_has_the_colour_of_its_variant_on_other_pages(key, variants):
    [shown] = lesson_pictures(key, dark=False)
    colours = [style(palette.index(variant)).colour for variant in variants]
    assert list(shown.names.values()) == colours
    assert re.findall(r'<(?:polyline|text) [^>]*(?:stroke|fill)="(#\w+)"', unquote(shown.address)) == colours


def test_marked_words_have_the_colour_of_their_legend():
    [shown] = lesson_pictures("stand_in", dark=False)
    marks = set(re.findall(r'<rect [^>]*fill="(#\w+)" opacity', unquote(shown.address)))
    assert marks == set(shown.names.values())


def test_the_picture_of_a_model_without_softmax_marks_the_words_that_lose_most():
    words, marked = _harder_words()
    assert " ".join(words) == "The clockmaker's workshop stood at the end of the harbour road."
    assert sorted(words[i] for i in marked) == ["clockmaker's", "road.", "workshop"]


def test_the_list_says_how_long_the_lessons_take():
    step = Step(at="matrices")
    first, second = (Lesson(title="t", steps=(step,), minutes=minutes) for minutes in (4, 7))
    advice = "The first lesson explains softmax attention. In each step, predict a result before you see it."
    assert summary([first]) == f"1 lesson, about 4 minutes. {advice}"
    assert summary([first, second]) == f"2 lessons, about 11 minutes in total. {advice}"


def test_a_lesson_stays_on_other_pages_with_a_link_back():
    elsewhere = open_page("masks", lesson=all_lessons()["flat"])
    assert "This step is on another page." in card(elsewhere)
    left = elsewhere.button(key="lesson.leave").click().run()
    assert card(left).strip() == ""


def test_a_page_without_a_lesson_shows_no_card():
    at = open_page("masks", input="synthetic", n=12)
    assert not [b for b in at.button if (b.key or "").startswith("lesson.") and b.key != "lesson.add"]
    assert card(at) == ""


def test_a_step_beyond_the_last_opens_the_first_and_the_last_has_no_next():
    at = open_page("matrices", lesson=all_lessons()["flat"], lesson_step=30)
    assert "Step 1 of 4" in card(at)
    last = open_lesson("flat", 4)
    assert "Next" not in card(last)
    assert "Back" in card(last)


MEASURE = PageMeasure("t", lambda screen: 1.0, unit="%", tolerance=5, missing_message="No.")


@pytest.mark.parametrize(
    ("truth", "guess", "words"),
    [
        (None, 3.0, "No."),
        (40.0, None, "Answer: 40%."),
        (40.1, 39.9, "Correct. It is 40%."),
        (40.0, 41.0, "Your guess (41%) is close. It is 40%."),
        (40.0, 45.0, "Your guess (45%) is close. It is 40%."),
        (40.0, 46.0, "Not quite. It is 40%, and your guess (46%) is 6 percentage points too high."),
        (40.0, 34.0, "Not quite. It is 40%, and your guess (34%) is 6 percentage points too low."),
        (-40.0, None, "Answer: −40%."),
    ],
)
def test_the_text_on_a_guess(truth, guess, words):
    assert verdict(MEASURE, truth, guess) == words


def test_percentages_differ_by_points_and_other_numbers_in_their_unit():
    assert MEASURE.difference(1.0) == "1 percentage point"
    assert MEASURE.difference(6.4) == "6 percentage points"
    assert replace(MEASURE, unit="nats", digits=1).difference(6.4) == "6.4\N{NO-BREAK SPACE}nats"


@pytest.mark.parametrize(("number", "place"), [(-1.0, 0), (0.0, 1), (0.5, 1), (1.0, 2), (7.0, 2)])
def test_a_number_is_assigned_to_its_interval(number, place):
    assert answer_text.interval_index((0.0, 1.0), number) == place


def test_the_text_on_a_choice():
    assert answer_text.choice_verdict("A", None) == "Answer: A."
    assert answer_text.choice_verdict("A", "A") == "Correct: A."
    assert answer_text.choice_verdict("A", "B") == "Not quite. The answer is “A”."
    assert answer_text.interval_verdict("A", None, "4%") == "Answer: 4%."
    assert answer_text.interval_verdict("A", "A", "4%") == "Correct. It is 4%."
    assert answer_text.interval_verdict("A", "B", "4%") == "Not quite. It is 4%, so “A” is right."


def test_the_text_on_the_length_of_a_lesson():
    step = Step(at="matrices")
    assert length(Lesson(title="t", steps=(step,))) == "1 step"
    assert length(Lesson(title="t", steps=(step, step), minutes=1)) == "2 steps · 1 min"


# Tests of lesson files.

words = st.text(max_size=12)
CHOICES = st.lists(words, min_size=2, max_size=3).map(tuple)
ASKED = st.one_of(
    st.just({}),
    st.just({"ask": "How much?", "answer": "output_error local"}),
    st.just({"ask": "Which?", "answer": "least entropy"}),
    st.just({"at": "entropy", "ask": "Draw it.", "draw": "entropy softmax"}),
    st.builds(lambda choices: {"ask": "Which?", "choices": choices, "right": 1}, CHOICES),
)


@settings(deadline=None)
@given(title=words, texts=st.lists(st.tuples(words, words, words, ASKED), min_size=1, max_size=2))
def test_a_written_lesson_is_read_unchanged(title, texts):
    steps = tuple(Step(**{"at": "matrices?layer=2", "say": a, "do": b, "then": c, **rest}) for a, b, c, rest in texts)
    first = read(write(Lesson(title=f"T{title}", steps=steps)).encode("utf-8", "replace"))
    assert read(write(first).encode()) == first
    assert [step.ask for step in first.steps] == [step.ask for step in steps]
    if packed := pack(first):
        assert len(packed) <= LINK_LESSON
        assert unpack(packed) == first


def file(step='at = "matrices"', top='lesson = 1\ntitle = "T"'):
    return f"{top}\n[[step]]\n{step}\n".encode()


REFUSED = {
    "empty": b"",
    "not text": b"\xff\xfe\x00",
    "not toml": b"<html>",
    "deep": b"x = " + b"[" * 30_000,
    "too long": b"#" * (MAX_BYTES + 1),
    "another version": file(top='lesson = 2\ntitle = "T"'),
    "a version that is true": file(top='lesson = true\ntitle = "T"'),
    "no title": file(top="lesson = 1"),
    "a title that is a number": file(top="lesson = 1\ntitle = 3"),
    "a title of nothing that is seen": file(top='lesson = 1\ntitle = "\\u202e"'),
    "a long title": file(top=f'lesson = 1\ntitle = "{"x" * 101}"'),
    "unknown on top": file(top='lesson = 1\ntitle = "T"\nscript = "x"'),
    "minutes": file(top='lesson = 1\ntitle = "T"\nminutes = -3'),
    "no steps": b'lesson = 1\ntitle = "T"\n',
    "too many steps": b'lesson = 1\ntitle = "T"\n' + b'[[step]]\nat = "home"\n' * (MAX_STEPS + 1),
    "steps that are words": b'lesson = 1\ntitle = "T"\nstep = ["matrices"]\n',
    "nowhere": file("say = 'x'"),
    "elsewhere": file('at = "https://example.org/"'),
    "a script": file('at = "javascript:alert(1)"'),
    "a page there is not": file('at = "nowhere?layer=2"'),
    "a path": file('at = "../matrices"'),
    "markup in a link": file("at = 'matrices?\"><script>'"),
    "a link with a space": file('at = "matrices?text=a b"'),
    "a link of a thousand fields": file(f'at = "matrices?{"&".join(f"a{i}=1" for i in range(1000))}"'),
    "a long link": file(f'at = "matrices?text={"x" * 15_000}"'),
    "markup in what is revealed": file("at = 'matrices'\nreveal = '<b>'"),
    "unknown in a step": file('at = "matrices"\nonclick = "x"'),
    "words that are a list": file('at = "matrices"\nsay = ["x"]'),
    "long words": file(f'at = "matrices"\nsay = "{"x" * 601}"'),
    "an answer to nothing": file('at = "matrices"\nanswer = "entropy local"'),
    "a question without an answer": file('at = "matrices"\nask = "?"'),
    "a measure there is not": file('at = "matrices"\nask = "?"\nanswer = "__import__ local"'),
    "a measure of another page": file('at = "matrices"\nask = "?"\nanswer = "leak local"'),
    "a variant there is not": file('at = "matrices"\nask = "?"\nanswer = "entropy nobody"'),
    "no variant": file('at = "matrices"\nask = "?"\nanswer = "entropy"'),
    "the least of what is no variant's": file('at = "causal"\nask = "?"\nanswer = "least leaking"'),
    "a curve there is not": file('at = "entropy"\nask = "?"\ndraw = "slope softmax"'),
    "a curve of another page": file('at = "matrices"\nask = "?"\ndraw = "entropy softmax"'),
    "a curve of no variant": file('at = "entropy"\nask = "?"\ndraw = "entropy nobody"'),
    "a curve and a number": file('at = "entropy"\nask = "?"\ndraw = "entropy softmax"\nanswer = "slope softmax"'),
    "a curve and choices": file('at = "entropy"\nask = "?"\ndraw = "entropy softmax"\nchoices = ["a", "b"]\nright = 1'),
    "a curve without a question": file('at = "entropy"\ndraw = "entropy softmax"'),
    "one choice": file('at = "matrices"\nask = "?"\nchoices = ["a"]\nright = 1'),
    "too many choices": file(f'at = "matrices"\nask = "?"\nchoices = {["a"] * 9}\nright = 1'),
    "choices that are numbers": file('at = "matrices"\nask = "?"\nchoices = [1, 2]\nright = 1'),
    "a right one beyond": file('at = "matrices"\nask = "?"\nchoices = ["a", "b"]\nright = 3'),
    "two answers": file('at = "matrices"\nask = "?"\nchoices = ["a", "b"]\nright = 1\nanswer = "entropy local"'),
    "bounds that fall": file(
        'at = "matrices"\nask = "?"\nanswer = "entropy local"\nchoices = ["a", "b", "c"]\nbounds = [2, 1]'
    ),
    "bounds that are none": file(
        'at = "matrices"\nask = "?"\nanswer = "entropy local"\nchoices = ["a", "b"]\nbounds = [nan]'
    ),
    "too few bounds": file('at = "matrices"\nask = "?"\nanswer = "entropy local"\nchoices = ["a", "b"]'),
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_an_invalid_lesson_gives_one_sentence(data):
    with pytest.raises(LessonError) as refused:
        read(data)
    text = str(refused.value)
    assert text.endswith((".", "”."))
    assert len(text) < 300


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_file_is_read_or_refused(data):
    with pytest.raises(LessonError):
        read(data)


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_parameter_is_read_as_a_lesson_or_refused(word):
    with pytest.raises(READ_ERRORS):
        unpack(word)


MARKUP = "<img src=x onerror=alert(1)> **b** [x](javascript:x) $x^2$ :red[r] `c` www.example.org </div>"


def hostile():
    found = {"say": MARKUP, "do": MARKUP, "ask": MARKUP, "then": MARKUP}
    one = Step(at="masks?input=synthetic&n=12", choices=(MARKUP, "b"), right=1, **found)
    two = Step(at="masks?input=synthetic&n=12", answer="pairs local", **found)
    return read(write(Lesson(title=MARKUP, steps=(one, two))).encode())


def test_nothing_in_a_lesson_is_markup():
    for place in (1, 2):
        at = open_page("masks", input="synthetic", n=12, lesson=hostile(), lesson_step=place)
        for ran in (at, press(at, ".show")):
            for each in ran.get("html"):
                body = each.proto.body
                assert "<img" not in body
                assert body.startswith("<style") or set(re.findall(r"</?([a-z]+)", body)) <= {
                    "div", "b", "span", "i", "a", "p",
                }  # fmt: skip
                assert all(re.fullmatch(r"[\w./?=&;%+~@-]*", way) for way in re.findall(r'href="([^"]*)"', body))
    names = next(p for p in open_page("masks", lesson=hostile()).pills if p.key.startswith("lesson.")).options
    assert all("\\*\\*b" in name for name in names if "img" in name)
