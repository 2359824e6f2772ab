"""A lesson made by hand: screens added on other pages, words, questions, order, and the file that comes of it."""

import pytest
from driver import go, open_page, visit

from app.lessons import draft, lesson
from app.lessons.draft import DRAFT
from app.lessons.lesson import MOST_STEPS, Lesson, Step

TINY = {"input": "synthetic", "n": "12", "heads": "2", "d": "4", "variants": ["softmax", "local~window~3"]}


def button(at, words):
    return next(each for each in at.button if each.label == words)


def add(at):
    at = button(at, "Add this screen to a lesson").click().run()
    assert not at.exception
    return at


def made(at):
    return at.session_state[DRAFT]


def editing(*steps, title="T", **state):
    at = open_page("lessons", **{DRAFT: Lesson(title=title, steps=steps)}, **state)
    assert not at.exception
    return at


def type_in(at, label, words):
    at = next(each for each in at.text_input if each.label == label).set_value(words).run()
    assert not at.exception
    return at


def ask_for(at, words):
    control = at.button_group(key="lessons.kind")
    at = control.set_value(next(o.content for o in control.proto.options if o.content == words) and KINDS[words]).run()
    assert not at.exception
    return at


KINDS = {
    "nothing": "none",
    "a number of the page": "number",
    "which variant has least": "least",
    "which variant has most": "most",
    "a choice of my own": "choice",
}


def test_a_lesson_is_put_together_from_screens_of_several_pages():
    at = add(visit("matrices", TINY))
    assert "Your lesson has 1 step" in str([link.proto.label for link in at.get("page_link")])
    at = add(go(at, "masks", TINY))
    at = go(at, "lessons")
    assert [step.page for step in made(at).steps] == ["matrices", "masks"]
    assert "local~window~3" in made(at).steps[0].at
    at = type_in(at, "Title", "Windows")
    at = type_in(at, "What it says", "Look at <b>this</b>.")
    at = ask_for(at, "a number of the page")
    at = type_in(at, "The question", "How many?")
    assert made(at).title == "Windows"
    assert made(at).steps[1].ask == "How many?"
    assert made(at).steps[1].answer == "pairs local"
    at = button(at, "Earlier").click().run()
    assert [step.page for step in made(at).steps] == ["masks", "matrices"]
    written = lesson.write(made(at))
    assert 'title = "Windows"' in written
    assert lesson.read(written.encode()) == made(at)
    at = button(at, "Remove").click().run()
    assert [step.page for step in made(at).steps] == ["matrices"]
    at = button(at, "Start over").click().run()
    assert made(at) is None
    assert "Add this screen to a lesson" in at.info[0].value


def test_the_lesson_under_way_is_no_part_of_a_screen_that_is_added():
    at = add(visit("masks", {**TINY, "lesson": "flat", "present": "1", "lesson_step": "2"}))
    assert not {"lesson", "present"} & lesson.query(made(at).steps[0].at.partition("?")[2]).keys()


def test_each_kind_of_question_makes_a_lesson_that_can_be_read():
    at = editing(Step(at="matrices?input=synthetic&n=12&variants=softmax&variants=local"))
    for words in KINDS:
        at = ask_for(at, words)
        assert lesson.read(lesson.write(made(at)).encode()) == made(at)
        assert "lessons.download" not in str(at.warning)
        assert not at.warning
    at = next(each for each in at.text_area).set_value("one\n\n  two \nthree").run()
    assert made(at).steps[0].choices == ("one", "two", "three")
    at = at.selectbox(key="lessons.right").set_value(2).run()
    assert made(at).steps[0].right == 3


def test_a_page_without_numbers_still_asks_a_choice():
    at = editing(Step(at="timing?variants=softmax"))
    assert [o.content for o in at.button_group(key="lessons.kind").proto.options] == ["nothing", "a choice of my own"]


def test_the_answer_can_be_shown_on_another_step():
    at = editing(
        Step(at="masks?variants=softmax", ask="?", answer="pairs local"),
        Step(at="masks?variants=softmax&variants=local~window~2"),
    )
    at = at.button(key="lessons.step.0").click().run()
    at = button(at, "Show it on the screen of step 2").click().run()
    assert lesson.query(made(at).steps[0].reveal) == {"variants": ["softmax", "local~window~2"]}
    at = button(at, "On its own screen").click().run()
    assert made(at).steps[0].reveal == ""


def test_a_measure_and_its_variant_are_chosen():
    at = editing(Step(at="matrices?variants=softmax&variants=local", ask="?", answer="entropy local"))
    at = at.selectbox(key="lessons.measure").set_value("output_error").run()
    assert made(at).steps[0].answer == "output_error local"
    at = at.selectbox(key="lessons.variant").set_value("softmax").run()
    assert made(at).steps[0].answer == "output_error softmax"
    at = at.selectbox(key="lessons.measure").set_value("sink").run()
    assert made(at).steps[0].answer == "sink"


def test_a_lesson_travels_in_a_link_and_is_edited_from_one():
    word = lesson.pack(Lesson(title="From a link", steps=(Step(at="masks?layer=1", say="Look."),)))
    at = visit("lessons", {DRAFT: word})
    assert not at.exception
    assert not at.warning
    assert at.text_input[0].value == "From a link"
    at = at.run()
    assert at.query_params[DRAFT] == word


def test_a_lesson_that_ships_becomes_ones_own_with_the_first_change():
    at = visit("lessons", {DRAFT: "pooling"}).run()
    at = type_in(at, "Title", "Mine")
    assert lesson.unpack(at.query_params[DRAFT]).title == "Mine"


def test_an_unfinished_question_says_what_is_missing():
    at = editing(Step(at="masks", ask="?"))
    assert "Step 1" in at.warning[0].value


@pytest.mark.parametrize("page", ["matrices", "timing", "claims"])
def test_what_cannot_be_a_step_says_why(page):
    at = open_page(page, input="upload")
    assert not at.exception
    assert any("does not travel" in c.value or "uploaded file" in c.value for c in at.caption)


def test_a_full_lesson_takes_no_more():
    at = open_page("masks", **{DRAFT: Lesson(title="T", steps=(Step(at="masks"),) * MOST_STEPS)}, **{"n": 12})
    assert button(at, "Add this screen to a lesson").disabled


def test_moves_beyond_the_ends_change_nothing():
    at = editing(Step(at="masks"), Step(at="home"))
    assert button(at.button(key="lessons.step.0").click().run(), "Earlier").disabled
    assert draft.OPEN in at.session_state
