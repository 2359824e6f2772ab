"""The lesson editor: the list of steps, the text and question of one step, and the lesson's file and link."""

import re
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

import attention_core as ac
from app.lessons import answer, card, draft, lesson
from app.lessons.draft import OPEN_STEP
from app.lessons.lesson import CHOICE_LENGTH, MAX_CHOICES, MAX_LENGTHS, Lesson, Step
from app.lessons.screen import Screen
from app.page import discover
from app.state.session import REFERENCE
from app.ui import export
from app.words.i18n import N_, _, escape_markdown, sentence
from pages.lessons.options import LessonsOptions

QUESTION_KINDS = {
    "none": N_("none"),
    "number": N_("number on the page"),
    "least": N_("variant with the lowest value"),
    "most": N_("variant with the highest value"),
    "choice": N_("own choices"),
    "draw": N_("curve to draw"),
}
"""The types of question that a step can ask, and their names on screen."""
MAX_CHARACTERS = 60
"""Maximum number of characters of a step's text in the list of steps."""


def show() -> None:
    """Draw the list of steps, the edited step, and the lesson's file and link."""
    edited: Lesson | None = LessonsOptions.draft.value
    if edited is None:
        st.markdown(
            _(
                "To make a lesson, set up any page as your class should see it, then choose **Share** and "
                "**Add this screen to a lesson**. The steps that you add appear here."
            )
        )
        return
    left, right = st.columns([2, 5], gap="medium")
    index = min(max(0, int(st.session_state.get(OPEN_STEP, 0))), len(edited.steps) - 1)
    with left:
        labels = {"title": _("Title"), "question": _("Question shown in the list of lessons"), "seen": _("Conclusion")}
        for name, label in labels.items():
            _text(label, name, getattr(edited, name), MAX_LENGTHS[name], partial(_set_lesson_text, edited, name))
        for i, step in enumerate(edited.steps):
            text = escape_markdown((step.ask or step.say or "…")[:MAX_CHARACTERS])
            st.button(
                f"{i + 1}. {_(discover()[step.page].title)} · {text}",
                key=f"lessons.step.{i}",
                type="primary" if i == index else "tertiary",
                on_click=st.session_state.update,
                args=({OPEN_STEP: i},),
            )
        _show_file_and_link(edited)
    with right.container(border=True):
        _show_step(edited.steps[index], index, len(edited.steps))


def _show_file_and_link(edited: Lesson) -> None:
    """Draw the lesson's file and link, or show why the lesson is not valid yet."""
    try:
        valid_lesson = lesson.read(lesson.write(edited).encode())
    except ac.LabError as error:
        st.warning(escape_markdown(sentence(error)), icon=":material/edit_note:")
        return
    name = re.sub(r"[^a-z0-9]+", "-", edited.title.lower()).strip("-") or "lesson"
    export.download(_("Download lesson"), lambda: lesson.write(valid_lesson).encode(), f"{name}.toml")
    if lesson.pack(valid_lesson):
        base_address = (st.context.url or "").split("?")[0].rpartition("/")[0]
        st.code(f"{base_address}/{card.address(valid_lesson, 1, present=False).removeprefix('./')}", language=None)
    else:
        st.caption(_("This lesson is too long for a link. Share the lesson as a file instead."))
    with st.container(horizontal=True):
        is_pressed = st.button(_("Try it"), icon=":material/play_arrow:", key="lessons.try")
        st.button(
            _("Start over"),
            icon=":material/delete:",
            type="tertiary",
            key="lessons.clear",
            on_click=lambda: LessonsOptions.draft.set(None),
        )
    if is_pressed:
        card.start_lesson(valid_lesson)


def _show_step(step: Step, index: int, count: int) -> None:
    """Draw the fields of a step: its text, its task and its question."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{_('Step {place} of {count}', place=index + 1, count=count)}**", width="stretch")
        for offset, icon, message, disabled in (
            (-1, "arrow_upward", _("Move up"), index == 0),
            (1, "arrow_downward", _("Move down"), index == count - 1),
        ):
            key = f"lessons.move.{offset}"
            st.button(
                message,
                icon=f":material/{icon}:",
                key=key,
                disabled=disabled,
                type="tertiary",
                on_click=draft.move_step,
                args=(index, offset),
            )
        st.button(
            _("Remove"),
            icon=":material/delete:",
            type="tertiary",
            key="lessons.drop",
            on_click=draft.remove_step,
            args=(index,),
        )
    st.code(step.at, language=None, wrap_lines=True)
    _show_text_field(step, index, "say", _("Text"))
    _show_text_field(step, index, "do", _("Task"))
    kind = _kind(step)
    page = discover()[step.page]
    offered = (
        "none",
        "choice",
        *(("number", "least", "most") if page.measures else ()),
        *(["draw"] if page.curves else []),
    )
    names = {key: _(name) for key, name in QUESTION_KINDS.items() if key in offered}
    st.session_state["lessons.kind"] = kind
    st.segmented_control(
        _("Question type"),
        list(names),
        format_func=names.__getitem__,
        key="lessons.kind",
        required=True,
        on_change=_set_kind,
        args=(step, index),
    )
    if kind == "none":
        return
    _show_text_field(step, index, "ask", _("Question"))
    if kind == "choice":
        _show_choices(step, index)
    else:
        if kind == "draw":
            _show_curve(step, index)
        else:
            _show_measure(step, index, kind)
        _show_warning(step, index)
        _show_reveal(step, index)
    _show_text_field(step, index, "then", _("Explanation"))


def _kind(step: Step) -> str:
    if step.right or (step.choices and not step.answer):
        return "choice"
    if step.draw:
        return "draw"
    if not step.ask and not step.answer:
        return "none"
    first = step.answer.partition(" ")[0]
    return first if first in ("least", "most") else "number"


def _set_kind(step: Step, index: int) -> None:
    kind = st.session_state["lessons.kind"]
    changes: dict[str, Any] = {"answer": "", "draw": "", "choices": (), "bounds": (), "right": 0, "ask": ""}
    if kind != "none":
        changes["ask"] = step.ask or _("What do you expect?")
    if kind == "choice":
        changes |= {"choices": step.choices or (_("yes"), _("no")), "right": step.right or 1}
    elif kind == "draw":
        changes["draw"] = f"{next(iter(discover()[step.page].curves))} {_variant_keys(step)[0]}"
    elif kind in ("least", "most"):
        # The author must choose the measure, because a wrong default could be overlooked.
        changes["answer"] = kind
    draft.update_step(index, **changes)


def _variant_keys(step: Step) -> list[str]:
    """Return the keys of the variants on the screen that shows the answer, the reference last."""
    keys = [each.key for each in Screen.from_link(step.at, step.reveal).shared.variants]
    return [*keys[1:], keys[0]]


def _show_measure(step: Step, index: int, kind: str) -> None:
    """Draw the choice of the number on the page that the question asks about, and of its variant."""
    ranked = kind in ("least", "most")
    word, _space, key = step.answer.removeprefix(f"{kind} ").partition(" ")
    measures = {name: each for name, each in discover()[step.page].measures.items() if each.per_variant or not ranked}
    variant_keys = list(dict.fromkeys([*_variant_keys(step), *([key] if key else [])]))
    with st.container(horizontal=True):
        st.session_state["lessons.measure"] = word if word in measures else None
        st.selectbox(
            _("Number"),
            list(measures),
            format_func=lambda name: _(measures[name].title, name=_("a variant")),
            key="lessons.measure",
            placeholder=_("Choose a number"),
            on_change=_set_measure,
            args=(index, kind, key or variant_keys[0]),
        )
        if not ranked and word in measures and measures[word].per_variant:
            st.session_state["lessons.variant"] = key
            st.selectbox(
                _("Variant"),
                variant_keys,
                format_func=lambda each: _(ac.variant(each).title),
                key="lessons.variant",
                on_change=lambda: draft.update_step(index, answer=f"{word} {st.session_state['lessons.variant']}"),
            )


def _show_curve(step: Step, index: int) -> None:
    """Draw the choice of the curve that learners must draw, and of its variant."""
    name, _space, key = step.draw.partition(" ")
    curves = discover()[step.page].curves
    pick = partial(st.selectbox, on_change=_set_curve, args=(index,))
    with st.container(horizontal=True):
        st.session_state["lessons.curve"] = name
        titles = {each: _(curve.title, name=_("a variant")) for each, curve in curves.items()}
        pick(_("Curve"), list(titles), format_func=titles.__getitem__, key="lessons.curve")
        st.session_state["lessons.curve_of"] = key
        names = {each: _(ac.variant(each).title) for each in (*_variant_keys(step), key)}
        pick(_("Variant"), list(names), format_func=names.__getitem__, key="lessons.curve_of")


def _set_curve(index: int) -> None:
    draft.update_step(index, draw=f"{st.session_state['lessons.curve']} {st.session_state['lessons.curve_of']}")


def _show_warning(step: Step, index: int) -> None:
    """Show a warning if the step's own screen already shows the answer, with a button that hides the variant."""
    if not draft.shows_answer(step):
        return
    st.warning(_("The screen of this step already shows the answer."), icon=":material/visibility:")
    key = answer.find_variant(step)
    if key not in ("", REFERENCE):
        name = _(ac.variant(key).title)
        label = _("Hide {name} until the answer is shown", name=name)
        st.button(label, key="lessons.hide", type="tertiary", on_click=draft.remove_asked_variant, args=(index,))


def _set_measure(index: int, kind: str, key: str) -> None:
    word, edited = st.session_state["lessons.measure"], draft.current()
    if edited is None or word is None:
        return
    each = discover()[edited.steps[index].page].measures[word]
    answer = f"{word} {key}" if each.per_variant else word
    draft.update_step(index, answer=f"{kind} {word}" if kind in ("least", "most") else answer)


def _show_choices(step: Step, index: int) -> None:
    """Draw the choices, one per line, and the selection of the correct one."""
    key = f"lessons.{index}.choices"
    st.session_state[key] = "\n".join(step.choices)
    st.text_area(
        _("Choices, one per line"),
        key=key,
        height=110,
        max_chars=MAX_CHOICES * CHOICE_LENGTH,
        on_change=_set_choices,
        args=(index, key),
    )
    if len(step.choices) > 1:
        st.session_state["lessons.right"] = min(step.right or 1, len(step.choices)) - 1
        st.selectbox(
            _("Correct choice"),
            range(len(step.choices)),
            format_func=lambda i: step.choices[i],
            key="lessons.right",
            on_change=lambda: draft.update_step(index, right=int(st.session_state["lessons.right"]) + 1),
        )


def _set_choices(index: int, key: str) -> None:
    lines = [" ".join(line.split())[:CHOICE_LENGTH] for line in st.session_state[key].splitlines() if line.strip()]
    draft.update_step(index, choices=tuple(lines[:MAX_CHOICES]), right=1)


def _show_reveal(step: Step, index: int) -> None:
    """Draw the selection of the screen that shows the answer: the step's own, or another step's on the same page."""
    edited = draft.current()
    steps = enumerate(edited.steps if edited else ())
    others = {i: each.at for i, each in steps if i != index and each.page == step.page}
    st.caption(
        _("Showing the answer changes the screen: {changes}", changes=escape_markdown(step.reveal))
        if step.reveal
        else _("In this step, the screen stays the same when the answer is shown.")
    )
    with st.container(horizontal=True):
        for i, at in others.items():
            label = _("Show the answer on the screen of step {place}", place=i + 1)
            st.button(label, key=f"lessons.reveal.{i}", type="tertiary", on_click=draft.set_reveal, args=(at, index))
        if others and step.reveal:
            label, on_same = _("Show the answer on the same screen"), partial(draft.update_step, index, reveal="")
            st.button(label, key="lessons.own", type="tertiary", on_click=on_same)


def _show_text_field(step: Step, index: int, name: str, label: str) -> None:
    on_change = lambda words: draft.update_step(index, **{name: words})  # noqa: E731 - used once
    _text(label, f"{index}.{name}", getattr(step, name), MAX_LENGTHS[name], on_change)


def _set_lesson_text(edited: Lesson, name: str, words: str) -> None:
    if words or name != "title":
        draft.store(replace(edited, **{name: words}))  # type: ignore[arg-type]


def _text(label: str, name: str, value: str, max_chars: int, on_change: Any) -> None:  # noqa: ANN401 - any callback
    key = f"lessons.text.{name}"
    st.session_state[key] = value
    st.text_input(label, key=key, max_chars=max_chars, on_change=lambda: on_change(st.session_state[key]))
