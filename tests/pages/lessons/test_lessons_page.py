"""Tests of the lesson editor: screens added on other pages, texts, questions, order, and the resulting file."""

import pytest
from driver import go, open_page, spoken, visit

from app.lessons import draft, lesson
from app.lessons.draft import DRAFT
from app.lessons.lesson import MAX_BYTES, MAX_STEPS, Lesson, Step

TINY = {"input": "synthetic", "n": "12", "heads": "2", "d": "4", "variants": ["softmax", "local~window~3"]}


def button(at, words):
    return next(each for each in at.button if each.label == words)


def add(at):
    return button(at, "Add this screen to a lesson").click().run()


def lesson_of(at):
    return at.session_state[DRAFT]


def editing(*steps, title="T", **state):
    return open_page("lessons", **{DRAFT: Lesson(title=title, steps=steps)}, **state)


def type_in(at, label, words):
    return next(each for each in at.text_input if each.label == label).set_value(words).run()


def ask_for(at, words):
    control = at.button_group(key="lessons.kind")
    return control.set_value(
        next(o.content for o in control.proto.options if o.content == words) and KINDS[words]
    ).run()


KINDS = {
    "none": "none",
    "number on the page": "number",
    "variant with the lowest value": "least",
    "variant with the highest value": "most",
    "own choices": "choice",
    "curve to draw": "draw",
}


def test_a_lesson_can_have_screens_of_several_pages():
    at = add(visit("matrices", TINY))
    assert "Edit your lesson (1 step)" in str([link.proto.label for link in at.get("page_link")])
    at = add(go(at, "masks", TINY))
    at = go(at, "lessons")
    assert [step.page for step in lesson_of(at).steps] == ["matrices", "masks"]
    assert "local~window~3" in lesson_of(at).steps[0].at
    at = type_in(at, "Title", "Windows")
    at = type_in(at, "Text", "Look at <b>this</b>.")
    at = ask_for(at, "number on the page")
    at = type_in(at, "Question", "How many?")
    assert lesson_of(at).title == "Windows"
    assert lesson_of(at).steps[1].ask == "How many?"
    assert lesson_of(at).steps[1].answer == "", "no number is chosen for the author"
    assert "Step 2 asks a question without an answer" in at.warning[0].value
    at = at.selectbox(key="lessons.measure").set_value("pairs").run()
    assert lesson_of(at).steps[1].answer == "pairs local"
    at = button(at, "Move up").click().run()
    assert [step.page for step in lesson_of(at).steps] == ["masks", "matrices"]
    written = lesson.write(lesson_of(at))
    assert 'title = "Windows"' in written
    assert lesson.read(written.encode()) == lesson_of(at)
    at = button(at, "Remove").click().run()
    assert [step.page for step in lesson_of(at).steps] == ["matrices"]
    at = button(at, "Start over").click().run()
    assert lesson_of(at) is None
    assert "Add this screen to a lesson" in spoken(at)


def test_an_added_screen_excludes_the_current_lesson():
    at = add(visit("masks", {**TINY, "lesson": "flat", "present": "1", "lesson_step": "2"}))
    assert not {"lesson", "present"} & lesson.parse_query(lesson_of(at).steps[0].at.partition("?")[2]).keys()


def test_each_kind_of_question_makes_a_valid_lesson():
    at = editing(Step(at="matrices?input=synthetic&n=12&variants=softmax&variants=local"))
    for words in [words for words, kind in KINDS.items() if kind != "draw"]:
        at = ask_for(at, words)
        if KINDS[words] in ("number", "least", "most"):
            assert "Step 1" in at.warning[0].value, "the number is still to be chosen"
            at = at.selectbox(key="lessons.measure").set_value("output_error").run()
            assert (
                lesson_of(at)
                .steps[0]
                .answer.endswith(("output_error local", "least output_error", "most output_error"))
            )
        assert lesson.read(lesson.write(lesson_of(at)).encode()) == lesson_of(at)
        assert not [each for each in at.warning if "Step 1" in each.value]
    at = next(each for each in at.text_area).set_value("one\n\n  two \nthree").run()
    assert lesson_of(at).steps[0].choices == ("one", "two", "three")
    at = at.selectbox(key="lessons.right").set_value(2).run()
    assert lesson_of(at).steps[0].right == 3


def test_a_curve_to_draw_is_chosen_with_its_variant():
    at = editing(Step(at="entropy?input=synthetic&n=64&h_scales=none&h_longest=128&variants=softmax"))
    at = ask_for(at, "curve to draw")
    assert lesson_of(at).steps[0].draw == "entropy softmax"
    assert "already shows the answer" in at.warning[0].value
    assert lesson.read(lesson.write(lesson_of(at)).encode()) == lesson_of(at)
    at = editing(
        Step(at="entropy?variants=softmax", ask="?", draw="entropy softmax", reveal="variants=softmax&variants=local")
    )
    at = at.selectbox(key="lessons.curve_of").set_value("local").run()
    assert lesson_of(at).steps[0].draw == "entropy local"
    assert not at.warning
    at = ask_for(at, "none")
    assert lesson_of(at).steps[0].draw == ""


def test_a_page_without_curves_offers_no_curve_to_draw():
    kinds = editing(Step(at="masks?variants=softmax")).button_group(key="lessons.kind").proto.options
    assert "curve to draw" not in [option.content for option in kinds]


def test_a_page_without_numbers_offers_choices():
    at = editing(Step(at="timing?variants=softmax"))
    assert [o.content for o in at.button_group(key="lessons.kind").proto.options] == ["none", "own choices"]


def test_the_answer_can_be_shown_on_another_step():
    at = editing(
        Step(at="masks?variants=softmax", ask="?", answer="pairs local"),
        Step(at="masks?variants=softmax&variants=local~window~2"),
    )
    at = at.button(key="lessons.step.0").click().run()
    at = button(at, "Show the answer on the screen of step 2").click().run()
    assert lesson.parse_query(lesson_of(at).steps[0].reveal) == {"variants": ["softmax", "local~window~2"]}
    at = button(at, "Show the answer on the same screen").click().run()
    assert lesson_of(at).steps[0].reveal == ""


def test_a_measure_and_its_variant_are_chosen():
    at = editing(Step(at="matrices?variants=softmax&variants=local", ask="?", answer="entropy local"))
    at = at.selectbox(key="lessons.measure").set_value("output_error").run()
    assert lesson_of(at).steps[0].answer == "output_error local"
    at = at.selectbox(key="lessons.variant").set_value("softmax").run()
    assert lesson_of(at).steps[0].answer == "output_error softmax"
    at = at.selectbox(key="lessons.measure").set_value("sink").run()
    assert lesson_of(at).steps[0].answer == "sink"


@pytest.mark.parametrize(("beyond", "opens"), [(0, True), (1, False)])
def test_files_up_to_the_maximum_length_are_opened(beyond, opens):
    data = lesson.write(Lesson(title="From a file", steps=(Step(at="masks", say="Look."),))).encode() + b"#"
    at = open_page("lessons", **{"lessons.file": True}).file_uploader(key="lessons.upload")
    at = at.set_value(("a.toml", data.ljust(MAX_BYTES + beyond, b"#"), "")).run()
    assert ("**From a file**" in spoken(at)) == opens
    assert [f"at most {MAX_BYTES:,} bytes" in error.value for error in at.error] == [True] * (not opens)


def test_a_link_carries_a_lesson_to_the_editor():
    word = lesson.pack(Lesson(title="From a link", steps=(Step(at="masks?layer=1", say="Look."),)))
    at = visit("lessons", {DRAFT: word})
    assert not at.warning
    assert at.text_input[0].value == "From a link"
    at = at.run()
    assert at.query_params[DRAFT] == word


def test_editing_an_included_lesson_makes_a_copy():
    at = visit("lessons", {DRAFT: "pooling"}).run()
    at = type_in(at, "Title", "Mine")
    assert lesson.unpack(at.query_params[DRAFT]).title == "Mine"


def test_an_unfinished_question_is_explained():
    at = editing(Step(at="masks", ask="?"))
    assert "Step 1" in at.warning[0].value


@pytest.mark.parametrize("page", ["matrices", "timing", "claims"])
def test_screens_that_cannot_be_steps_are_explained(page):
    at = open_page(page, input="upload")
    assert any("does not travel" in c.value or "uploaded file" in c.value for c in at.caption)


def test_a_full_lesson_accepts_no_more_steps():
    at = open_page("masks", **{DRAFT: Lesson(title="T", steps=(Step(at="masks"),) * MAX_STEPS)}, **{"n": 12})
    assert button(at, "Add this screen to a lesson").disabled


def test_moves_beyond_the_ends_change_nothing():
    at = editing(Step(at="masks"), Step(at="home"))
    assert button(at.button(key="lessons.step.0").click().run(), "Move up").disabled
    assert draft.OPEN_STEP in at.session_state


def test_an_answer_on_the_steps_own_screen_can_be_hidden():
    screen = "matrices?input=synthetic&n=12&variants=softmax&variants=local~window~3&variants=linear"
    at = editing(Step(at=screen, ask="How far off?", answer="output_error local"))
    assert "already shows the answer" in at.warning[0].value
    at = button(at, "Hide Local until the answer is shown").click().run()
    [step] = lesson_of(at).steps
    assert lesson.parse_query(step.at.partition("?")[2])["variants"] == ["softmax", "linear"]
    assert lesson.parse_query(step.reveal)["variants"] == ["softmax", "local~window~3", "linear"]
    assert lesson.parse_query(step.at.partition("?")[2])["n"] == ["12"], "nothing else has changed"
    assert not at.warning


TWO = "variants=softmax&variants=local"


@pytest.mark.parametrize(
    ("at", "answer", "reveal", "shown"),
    [
        (f"matrices?{TWO}", "entropy local", "", True),
        (f"matrices?{TWO}", "entropy local", "variants=softmax&variants=local~window~2", False),
        (f"matrices?{TWO}", "entropy local", "layer=0", False),
        ("matrices?variants=softmax", "entropy local", TWO, False),
        (f"matrices?{TWO}&variants=linear", "least entropy", "", True),
        (f"matrices?{TWO}", "least entropy", f"{TWO}&variants=linear", False),
        ("matrices?variants=softmax", "sink", "", True),
        ("matrices?variants=softmax", "sink", "head=1", False),
    ],
)
def test_an_answer_on_the_screen_of_its_step_is_detected(at, answer, reveal, shown):
    assert draft.shows_answer(Step(at=at, ask="?", answer=answer, reveal=reveal)) is shown


def test_adding_a_screen_is_confirmed():
    at = add(visit("matrices", TINY))
    assert [each.value for each in at.toast] == ["This screen is now step 1 of your lesson."]
    at = add(go(at, "masks", TINY))
    assert [each.value for each in at.toast] == ["This screen is now step 2 of your lesson."]
