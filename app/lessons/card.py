"""The card at the top of a page: it shows the current step of a lesson, its question and, on request, the answer.

The card is drawn before the page, and the answer after it, because the page computes the numbers of the answer.
"""

import html
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.lessons import answer
from app.lessons.answer_text import answer_lines, choices
from app.lessons.lesson import Lesson, Step, parse_query, write
from app.lessons.options import LessonOptions, write_lesson
from app.lessons.screen import Screen
from app.lessons.shipped import all_lessons
from app.lessons.sketch import sketch
from app.measures import Measure
from app.state import url
from app.ui import navigation
from app.words.i18n import _, escape_markdown, sentence

GUESSES = "lesson.guessed"
"""The session-state key of the visitor's current guess at each step."""
ANSWERS = "lesson.answered"
"""The session-state key of the submitted guess at each step; None for a visitor who asked for the answer directly."""
_HIDE_CONTROLS = """<style>
.stApp {
  --panel-caption: none; --panel-open: hidden; --panel-knob: hidden; --panel-title: none; --sidebar: none;
  --chips: none;
}
.stMain :is(
  .stCheckbox, .stButtonGroup, .stSelectbox, .stNumberInput, .stPopover, .stExpander, .stPageLink, .stDownloadButton,
  .stElementContainer:not([class*="play"]) > .stButton, .modebar, .st-key-controls-entropy-scales,
  .st-key-controls-task, .st-key-learn-summary, .st-key-model-headline-budget
):not(.st-key-lesson *) { display: none; }
</style>"""
"""HTML with styles that hide inputs, choices and menus until the step's question is answered.

The captions and sliders of panels are hidden too, because they may show the answer; only an animation keeps its slider.
The findings of the Learn page and of the Model page over budgets are hidden, because they answer other questions.
``app/page_script/style.css`` and the boards read the custom properties.
"""
_HIDE_RESULTS = """<style>
.stMain :is([data-testid="stLayoutWrapper"], .stElementContainer):not(.st-key-lesson *, :has(.st-key-lesson)):is(
  [class*="-board"], :has([class*="-board"], [data-testid="stBidiComponentRegular"])
) ~ * { display: none; }
.stMain :is([class*="headline"], .st-key-causal-result) p { font-size: 0; visibility: hidden; }
.stMain :is([class*="headline"], .st-key-causal-result) strong:first-child { font-size: 1rem; visibility: visible; }
</style>"""
"""HTML with styles that hide what follows the figure, and all but the first bold sentence above it, until the answer.

These texts and tables may contain the answer. A question whose right choice the author marked may be about them.
"""


def show(page: str) -> Callable[[], None]:
    """Draw the card of the current lesson, if there is one.

    Args:
        page: the page that is shown.

    Returns:
        A function that draws the answer, to be called after the page.
    """
    if (current := _current_step()) is None:
        return lambda: None
    lesson, number = current
    step, translate = lesson.steps[number - 1], _ if lesson.key else str
    key = step_keys(lesson)[number - 1]
    with st.container(border=True, key="lesson", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            answered = key in st.session_state.get(ANSWERS, {})
            head = _head_html(lesson, number, translate, answered=answered, pending=is_pending(page))
            st.html(head, width="stretch")
            st.button(_("Leave"), icon=":material/close:", type="tertiary", key="lesson.leave", on_click=_leave_lesson)
        st.html(_text_html(step, translate, answered=answered))
        with st.container(gap="xsmall"):
            if page != step.page:
                message = html.escape(_("This step is on another page."))
                st.html(f"<p>{message} {step_link(lesson, number, _('Go to this step'))}</p>")
            elif step.ask:
                st.html(f'<p class="ask">{html.escape(translate(step.ask))}</p>')
                if answered:
                    end = _end_html(lesson, number, translate)
                    return partial(_draw_answer, step, translate, key, st.empty(), end)
                try:
                    _draw_question(step, translate, key)
                except ac.LabError as error:
                    st.html(f"<p>{html.escape(sentence(error))}</p>")
    return lambda: None


def hide_answer(page: str) -> None:
    """Undo a step's ``reveal`` in a newly opened link, because it would show the answer before the guess.

    The app forgets the visitor's answer at a reload, but the address still has the settings of ``reveal``. Call this
    function before the page reads its options.

    Args:
        page: the page that is shown.
    """
    current = _current_step()
    if current is None or st.session_state[url.LINK].unread_query is None or not is_pending(page):
        return
    lesson, number = current
    step = lesson.steps[number - 1]
    start, revealed = (Screen.from_link(step.at, changes).values for changes in ("", step.reveal))
    changed = {name: each for name, each in revealed.items() if each != start[name]}
    if all(_is_shown(url.value(name), each) for name, each in changed.items()):
        st.session_state.update({name: start[name] for name in changed})


def close_finished_lesson(page: str) -> None:
    """Leave the lesson if its last question is answered and the visitor returns to the list of lessons.

    Call it before the page reads its options.

    Args:
        page: the page that is shown.
    """
    if page != "lessons" or (current := _current_step()) is None:
        return
    lesson, number = current
    if number == len(lesson.steps) and step_keys(lesson)[-1] in st.session_state.get(ANSWERS, {}):
        _leave_lesson()


def _is_shown(value: object, revealed: object) -> bool:
    """Return whether an option has its revealed value; further variants may be shown next to the revealed ones."""
    if isinstance(value, tuple) and isinstance(revealed, tuple):
        return set(revealed) <= set(value)
    return value == revealed


def is_pending(page: str) -> bool:
    """Return whether a page shows a lesson's step whose question has no answer yet, so that its controls are hidden."""
    if (current := _current_step()) is None:
        return False
    lesson, number = current
    step, key = lesson.steps[number - 1], step_keys(lesson)[number - 1]
    return page == step.page and bool(step.ask) and key not in st.session_state.get(ANSWERS, {})


def _current_step() -> tuple[Lesson, int] | None:
    """Return the current lesson and the number of its step, from 1; None without a lesson."""
    lesson: Lesson | None = LessonOptions.lesson.value
    if lesson is None:
        return None
    return lesson, min(LessonOptions.lesson_step.restrict_to(range(1, len(lesson.steps) + 1)), len(lesson.steps))


def step_target(lesson: Lesson, number: int, *, present: bool) -> tuple[str, dict[str, list[str]]]:
    """Return a step's page and query; the query also names the lesson, the step and whether the lesson is presented."""
    step = lesson.steps[number - 1]
    extra = {
        LessonOptions.lesson.name: write_lesson(lesson),
        LessonOptions.lesson_step.name: [str(number)] if number > 1 else [],
        LessonOptions.present.name: ["1"] if present else [],
        **navigation.language_query(),
    }
    return step.page, parse_query(step.at.partition("?")[2]) | {name: words for name, words in extra.items() if words}


def address(lesson: Lesson, number: int, *, present: bool) -> str:
    """Return the address of a step for a link on a page, relative to the app's root."""
    page, query = step_target(lesson, number, present=present)
    return ("./" if page == "home" else page) + url.query_string(query)


def start_lesson(lesson: Lesson) -> None:
    """Go to a lesson's first step; this ends the current script run."""
    # The lesson is also stored in the session, because a long lesson does not fit into the link.
    LessonOptions.lesson.set(lesson)
    navigation.open_page(*step_target(lesson, 1, present=LessonOptions.present.value))


def step_link(lesson: Lesson, number: int, label: str, kind: str = "", *, name: str = "") -> str:
    """Return a link to a step as HTML.

    Args:
        lesson: the lesson.
        number: the step's number, from 1.
        label: the text of the link.
        kind: a CSS class.
        name: the accessible name of a label without words.
    """
    href = html.escape(address(lesson, number, present=LessonOptions.present.value))
    attributes = f' title="{html.escape(name)}" aria-label="{html.escape(name)}"' if name else ""
    return f'<a class="way {kind}" target="_self" href="{href}"{attributes}>{html.escape(label)}</a>'


def _head_html(lesson: Lesson, number: int, translate: Callable[[str], str], *, answered: bool, pending: bool) -> str:
    """Return the head of the card as HTML: the lesson's title, its progress, and links to the previous and next step.

    Args:
        lesson: the lesson.
        number: the step's number.
        translate: translates the lesson's text.
        answered: whether the step's question is answered; the link to the next step then follows the answer.
        pending: whether the page's controls are hidden until the answer.
    """
    step, count, present = lesson.steps[number - 1], len(lesson.steps), LessonOptions.present.value
    kinds = ["lesson-head", *(["present"] if present else []), *(["pending"] if pending else [])]
    links = [
        step_link(lesson, number - 1, "← " + _("Back"), "before") if number > 1 else "",
        step_link(lesson, number + 1, _("Next") + " →", "after") if number < count and not answered else "",
        step_link(lesson, number, "↺", name=_("Reset the screen of this step")),
    ]
    return (
        f'<div class="{" ".join(kinds)}"><b>{html.escape(translate(lesson.title))}</b>'
        f"<span>{html.escape(_('Step {place} of {count}', place=number, count=count))}</span>"
        f"{dots_html(i < number for i in range(count))}{' '.join(filter(None, links))}</div>"
        f"{_HIDE_CONTROLS if pending else ''}{_HIDE_RESULTS if pending and not step.right else ''}"
    )


def _text_html(step: Step, translate: Callable[[str], str], *, answered: bool) -> str:
    """Return a step's text as HTML and, until its question is answered, its task.

    ``app/lessons/figure.js`` scrolls the step's figure, or the page's table, into view.
    """
    figure = "table" if answered and _scrolls_to_table(step) else "chart"
    paragraphs = [f'<p data-figure="{figure}">{html.escape(translate(step.say))}</p>']
    if step.do and not answered:
        paragraphs.append(f'<p class="do"><b>{html.escape(_("Task"))}</b> {html.escape(translate(step.do))}</p>')
    return "".join(paragraphs)


def _scrolls_to_table(step: Step) -> bool:
    """Return whether a step's answer is in the page's table and leaves the figure unchanged."""
    target = answer.find(step)
    return target is not None and target.measure.in_table and parse_query(step.reveal).keys() <= {"more"}


def _draw_question(step: Step, translate: Callable[[str], str], key: str) -> None:
    """Draw the widget for a guess, a button that checks it, and a button that shows the answer without a guess."""
    target, guess, has_guess = answer.find(step), f"{key}.guess", True
    names = list(map(escape_markdown, choices(step, translate)))
    if curve := answer.find_curve(step):
        screen = Screen.from_link(step.at, step.reveal)
        on_draw = partial(_guesses().__setitem__, key)
        sketch.show(*curve, screen, mount_key=guess, drawn=_guesses().get(key), on_draw=on_draw)
        has_guess = key in _guesses()
    if names:
        label, indices, format_func = _("Your guess"), range(len(names)), names.__getitem__
        arguments: Any = {"format_func": format_func, "label_visibility": "collapsed"}
        has_guess = st.pills(label, indices, key=guess, on_change=_store_guess, args=(key,), **arguments) is not None
    elif target is not None:
        _draw_slider(target.measure, Screen.from_link(step.at, step.reveal), key)
        has_guess = key in _guesses()
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        check, show_answer = partial(_submit, step, key, has_guess=True), partial(_submit, step, key, has_guess=False)
        st.button(_("Check"), key=f"{key}.check", type="primary", disabled=not has_guess, on_click=check)
        st.button(_("Show answer"), key=f"{key}.show", type="tertiary", on_click=show_answer)
    if target is not None and not names and not has_guess:
        st.html(f"<small>{html.escape(_('Move the slider to make a guess.'))}</small>")


def _draw_slider(measure: Measure, screen: Screen, key: str) -> None:
    """Draw a slider over the possible numbers on a screen. Its position counts as a guess only once it was moved."""
    low, high, step = float(measure.low), float(measure.max_guess(screen)), float(measure.step)
    digits = next(digits for digits in range(4) if round(step, digits) == step)
    middle = low + round((high - low) / 2 / step) * step
    unit = "%%" if measure.unit == "%" else ""
    shown = "percent" if measure.is_share(screen) else f"%.{digits}f{unit}"
    st.slider(
        _("Your guess"),
        low,
        high,
        min(middle if (guess := _guesses().get(key)) is None else guess, high),
        step,
        format=shown,
        key=f"{key}.guess",
        on_change=_store_guess,
        args=(key,),
        label_visibility="collapsed",
    )


def _guesses() -> dict[str, Any]:
    guesses: dict[str, Any] = st.session_state.setdefault(GUESSES, {})
    return guesses


def _store_guess(key: str) -> None:
    _guesses()[key] = st.session_state[f"{key}.guess"]


def _submit(step: Step, key: str, *, has_guess: bool) -> None:
    """Store the guess, or that the visitor made none, and apply the step's ``reveal`` to the screen."""
    state = st.session_state
    state[ANSWERS] = {**state.get(ANSWERS, {}), key: _guesses().get(key) if has_guess else None}
    parameters = parse_query(step.reveal)
    fields = {name: field for name, field in state[url.LINK].fields.items() if name in parameters}
    values, _refused = url.read_link(parameters, fields)
    state.update(values)


def _leave_lesson() -> None:
    LessonOptions.lesson.set(None)
    LessonOptions.lesson_step.set(1)


def _draw_answer(step: Step, translate: Callable[[str], str], key: str, slot: DeltaGenerator, end: str) -> None:
    """Draw in ``slot`` the answer, how close the guess was, the step's last sentence, and the HTML ``end``."""
    guess = st.session_state[ANSWERS][key]
    with slot.container(gap="xsmall"):
        try:
            lines = (
                _compare_curves(step, key, guess)
                if step.draw
                else answer_lines(step, translate, guess, Screen.current(step.page))
            )
        except ac.LabError as error:
            lines = [sentence(error)]
        first, *others = [*lines, *([translate(step.then)] if step.then else [])]
        paragraphs = "".join(f"<p>{html.escape(each)}</p>" for each in others)
        st.html(f'<p class="answer">{html.escape(first)}</p>{paragraphs}{end}')


def _end_html(lesson: Lesson, number: int, translate: Callable[[str], str]) -> str:
    """Return what follows a step's answer, as HTML: a link to the next step, or the conclusion and the next lesson.

    After the last included lesson, and after any other lesson, the link leads to the list of lessons.
    """
    if number < len(lesson.steps):
        return f"<p>{step_link(lesson, number + 1, _('Next step') + ' →', 'after')}</p>"
    conclusion = f"<b>{html.escape(_('Conclusion'))}</b> {html.escape(translate(lesson.seen))}"
    lessons = [*all_lessons().values()]
    if lesson in lessons[:-1]:
        following = lessons[lessons.index(lesson) + 1]
        link = step_link(following, 1, _("Continue with “{title}”", title=_(following.title)) + " →")
    else:
        href = html.escape("lessons" + url.query_string(navigation.language_query()))
        link = f'<a class="way" target="_self" href="{href}">{html.escape(_("All lessons"))} →</a>'
    return (f'<p class="seen">{conclusion}</p>' if lesson.seen else "") + f"<p>{link}</p>"


def _compare_curves(step: Step, key: str, drawn: tuple[float, ...] | None) -> list[str]:
    """Draw the measured curve and the visitor's curve; return a list of one sentence that compares the two curves.

    Raises:
        LabError: if the page has not measured the curve.
    """
    target, screen = answer.find_curve(step), Screen.from_link(step.at, step.reveal)
    assert target is not None
    curve, variant = target
    attention = screen.variant(variant)
    measured = list(zip(curve.positions(screen, attention), curve.find(screen, attention), strict=True))
    sketch.show(curve, variant, screen, mount_key=f"{key}.measured", drawn=drawn, measured=measured)
    return [sketch.describe(curve, drawn, sketch.point_positions(curve, variant, screen), measured, screen)]


def step_keys(lesson: Lesson) -> list[str]:
    """Return each step's key in the session's dictionaries of guesses and answers (``GUESSES``, ``ANSWERS``)."""
    checksum = zlib.crc32(write(lesson).encode())
    return [f"lesson.{checksum}.{number}" for number in range(1, len(lesson.steps) + 1)]


def dots_html(done: Iterable[bool]) -> str:
    """Return a dot for each step in HTML, filled if the step is done."""
    dots = "".join(f'<i class="{"done" if each else ""}"></i>' for each in done)
    return f'<span class="pips" aria-hidden="true">{dots}</span>'
