"""The lesson editor: the list of steps, the text and question of one step, and the lesson's file and link."""

import re
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

import attention_core as ac
from app.lessons import answer, card, draft, lesson
from app.lessons.draft import OPEN
from app.lessons.lesson import CHOICE, LENGTHS, MOST_CHOICES, Lesson, Step
from app.lessons.screen import Screen
from app.page import discover
from app.state.session import REFERENCE
from app.ui import export
from app.words.i18n import N_, _, escape_markdown, sentence
from pages.lessons.options import LessonsOptions

KINDS = {
    "none": N_("none"),
    "number": N_("number on the page"),
    "least": N_("variant with the lowest value"),
    "most": N_("variant with the highest value"),
    "choice": N_("own choices"),
    "draw": N_("curve to draw"),
}
"""The types of question that a step can ask."""
SHOWN = 60
"""Maximum characters of a step in the list of steps."""


def show() -> None:
    """Draw the list of steps, the edited step, and the lesson's file and link."""
    found: Lesson | None = LessonsOptions.draft.value
    if found is None:
        st.markdown(
            _(
                "To make a lesson, set up any page as your class should see it, then choose **Share** and "
                "**Add this screen to a lesson**. The steps that you add appear here."
            )
        )
        return
    left, right = st.columns([2, 5], gap="medium")
    place = min(max(0, int(st.session_state.get(OPEN, 0))), len(found.steps) - 1)
    with left:
        labels = {"title": _("Title"), "question": _("Question in the list of lessons"), "seen": _("Conclusion")}
        for name, label in labels.items():
            _text(label, name, getattr(found, name), LENGTHS[name], partial(_take_lesson_text, found, name))
        for i, step in enumerate(found.steps):
            st.button(
                f"{i + 1}. {_(discover()[step.page].title)} · {escape_markdown((step.ask or step.say or '…')[:SHOWN])}",
                key=f"lessons.step.{i}",
                type="primary" if i == place else "tertiary",
                on_click=st.session_state.update,
                args=({OPEN: i},),
            )
        _hand_out(found)
    with right.container(border=True):
        _step(found.steps[place], place, len(found.steps))


def _hand_out(found: Lesson) -> None:
    """Draw the lesson's file and link, or show why the lesson is not valid yet."""
    try:
        whole = lesson.read(lesson.write(found).encode())
    except ac.LabError as error:
        st.warning(escape_markdown(sentence(error)), icon=":material/edit_note:")
        return
    name = re.sub(r"[^a-z0-9]+", "-", found.title.lower()).strip("-") or "lesson"
    export.download(_("Download lesson"), lambda: lesson.write(whole).encode(), f"{name}.toml")
    if lesson.pack(whole):
        there = (st.context.url or "").split("?")[0].rpartition("/")[0]
        st.code(f"{there}/{card.address(whole, 1, present=False).removeprefix('./')}", language=None)
    else:
        st.caption(_("This lesson is too long for a link. Share the lesson as a file instead."))
    with st.container(horizontal=True):
        tried = st.button(_("Try it"), icon=":material/play_arrow:", key="lessons.try")
        st.button(
            _("Start over"),
            icon=":material/delete:",
            type="tertiary",
            key="lessons.clear",
            on_click=lambda: LessonsOptions.draft.set(None),
        )
    if tried:
        card.begin(whole)


def _step(step: Step, place: int, count: int) -> None:
    """Draw the fields of a step: its text, its task and its question."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{_('Step {place} of {count}', place=place + 1, count=count)}**", width="stretch")
        for by, icon, message, off in (
            (-1, "arrow_upward", _("Move up"), place == 0),
            (1, "arrow_downward", _("Move down"), place == count - 1),
        ):
            key = f"lessons.move.{by}"
            st.button(
                message,
                icon=f":material/{icon}:",
                key=key,
                disabled=off,
                type="tertiary",
                on_click=draft.move,
                args=(place, by),
            )
        st.button(
            _("Remove"),
            icon=":material/delete:",
            type="tertiary",
            key="lessons.drop",
            on_click=draft.drop,
            args=(place,),
        )
    st.code(step.at, language=None, wrap_lines=True)
    _words(step, place, "say", _("Text"))
    _words(step, place, "do", _("Task"))
    kind = _kind(step)
    page = discover()[step.page]
    offered = (
        "none",
        "choice",
        *(("number", "least", "most") if page.measures else ()),
        *(["draw"] if page.curves else []),
    )
    names = {key: _(name) for key, name in KINDS.items() if key in offered}
    st.session_state["lessons.kind"] = kind
    st.segmented_control(
        _("Question type"),
        list(names),
        format_func=names.__getitem__,
        key="lessons.kind",
        required=True,
        on_change=_take_kind,
        args=(step, place),
    )
    if kind == "none":
        return
    _words(step, place, "ask", _("Question"))
    if kind == "choice":
        _choices(step, place)
    else:
        if kind == "draw":
            _curve(step, place)
        else:
            _measure(step, place, kind)
        _warn(step, place)
        _reveal(step, place)
    _words(step, place, "then", _("Explanation"))


def _kind(step: Step) -> str:
    if step.right or (step.choices and not step.answer):
        return "choice"
    if step.draw:
        return "draw"
    if not step.ask and not step.answer:
        return "none"
    first = step.answer.partition(" ")[0]
    return first if first in ("least", "most") else "number"


def _take_kind(step: Step, place: int) -> None:
    kind = st.session_state["lessons.kind"]
    changes: dict[str, Any] = {"answer": "", "draw": "", "choices": (), "bounds": (), "right": 0, "ask": ""}
    if kind != "none":
        changes["ask"] = step.ask or _("What do you expect?")
    if kind == "choice":
        changes |= {"choices": step.choices or (_("yes"), _("no")), "right": step.right or 1}
    elif kind == "draw":
        changes["draw"] = f"{next(iter(discover()[step.page].curves))} {_keys(step)[0]}"
    elif kind in ("least", "most"):
        # The author has yet to choose the number that the question is about. A default could be overlooked.
        changes["answer"] = kind
    draft.update_step(place, **changes)


def _keys(step: Step) -> list[str]:
    """Return the keys of the variants on the screen that shows the answer, the reference last."""
    keys = [each.key for each in Screen.of(step.at, step.reveal).visit.variants]
    return [*keys[1:], keys[0]]


def _measure(step: Step, place: int, kind: str) -> None:
    """Draw the choice of the number that the question asks about, and of its variant."""
    ranked = kind in ("least", "most")
    word, _space, key = step.answer.removeprefix(f"{kind} ").partition(" ")
    measures = {name: each for name, each in discover()[step.page].measures.items() if each.of_variant or not ranked}
    known = list(dict.fromkeys([*_keys(step), *([key] if key else [])]))
    with st.container(horizontal=True):
        st.session_state["lessons.measure"] = word if word in measures else None
        st.selectbox(
            _("Number"),
            list(measures),
            format_func=lambda name: _(measures[name].title, name=_("a variant")),
            key="lessons.measure",
            placeholder=_("Choose a number"),
            on_change=_take_measure,
            args=(place, kind, key or known[0]),
        )
        if not ranked and word in measures and measures[word].of_variant:
            st.session_state["lessons.variant"] = key
            st.selectbox(
                _("Variant"),
                known,
                format_func=lambda each: _(ac.variant(each).title),
                key="lessons.variant",
                on_change=lambda: draft.update_step(place, answer=f"{word} {st.session_state['lessons.variant']}"),
            )


def _curve(step: Step, place: int) -> None:
    """Draw the choice of the curve to draw, and of its variant."""
    name, _space, key = step.draw.partition(" ")
    curves = discover()[step.page].curves
    pick = partial(st.selectbox, on_change=_take_curve, args=(place,))
    with st.container(horizontal=True):
        st.session_state["lessons.curve"] = name
        titles = {each: _(curve.title, name=_("a variant")) for each, curve in curves.items()}
        pick(_("Curve"), list(titles), format_func=titles.__getitem__, key="lessons.curve")
        st.session_state["lessons.curve_of"] = key
        names = {each: _(ac.variant(each).title) for each in (*_keys(step), key)}
        pick(_("Variant"), list(names), format_func=names.__getitem__, key="lessons.curve_of")


def _take_curve(place: int) -> None:
    draft.update_step(place, draw=f"{st.session_state['lessons.curve']} {st.session_state['lessons.curve_of']}")


def _warn(step: Step, place: int) -> None:
    """Show a warning if the step's own screen already shows the answer, with a button that hides the variant."""
    if not draft.shows_answer(step):
        return
    st.warning(_("The screen of this step already shows the answer."), icon=":material/visibility:")
    key = answer.variant_of(step)
    if key not in ("", REFERENCE):
        name = _(ac.variant(key).title)
        label = _("Hide {name} until the answer is shown", name=name)
        st.button(label, key="lessons.hide", type="tertiary", on_click=draft.remove_asked_variant, args=(place,))


def _take_measure(place: int, kind: str, key: str) -> None:
    word, found = st.session_state["lessons.measure"], draft.draft()
    if found is None or word is None:
        return
    each = discover()[found.steps[place].page].measures[word]
    own = f"{word} {key}" if each.of_variant else word
    draft.update_step(place, answer=f"{kind} {word}" if kind in ("least", "most") else own)


def _choices(step: Step, place: int) -> None:
    """Draw the choices, one per line, and the selection of the correct one."""
    key = f"lessons.{place}.choices"
    st.session_state[key] = "\n".join(step.choices)
    st.text_area(
        _("Choices, one per line"),
        key=key,
        height=110,
        max_chars=MOST_CHOICES * CHOICE,
        on_change=_take_choices,
        args=(place, key),
    )
    if len(step.choices) > 1:
        st.session_state["lessons.right"] = min(step.right or 1, len(step.choices)) - 1
        st.selectbox(
            _("Correct choice"),
            range(len(step.choices)),
            format_func=lambda i: step.choices[i],
            key="lessons.right",
            on_change=lambda: draft.update_step(place, right=int(st.session_state["lessons.right"]) + 1),
        )


def _take_choices(place: int, key: str) -> None:
    lines = [" ".join(line.split())[:CHOICE] for line in st.session_state[key].splitlines() if line.strip()]
    draft.update_step(place, choices=tuple(lines[:MOST_CHOICES]), right=1)


def _reveal(step: Step, place: int) -> None:
    """Draw the selection of the screen that shows the answer: the step's own, or another step's on the same page."""
    found = draft.draft()
    steps = enumerate(found.steps if found else ())
    others = {i: each.at for i, each in steps if i != place and each.page == step.page}
    st.caption(
        _("Showing the answer changes the screen: {changes}", changes=escape_markdown(step.reveal))
        if step.reveal
        else _("Showing the answer does not change the screen.")
    )
    with st.container(horizontal=True):
        for i, at in others.items():
            label = _("Show the answer on the screen of step {place}", place=i + 1)
            st.button(label, key=f"lessons.reveal.{i}", type="tertiary", on_click=draft.set_reveal, args=(at, place))
        if others and step.reveal:
            label, same = _("Show the answer on the same screen"), partial(draft.update_step, place, reveal="")
            st.button(label, key="lessons.own", type="tertiary", on_click=same)


def _words(step: Step, place: int, name: str, label: str) -> None:
    take = lambda words: draft.update_step(place, **{name: words})  # noqa: E731 - used once
    _text(label, f"{place}.{name}", getattr(step, name), LENGTHS[name], take)


def _take_lesson_text(found: Lesson, name: str, words: str) -> None:
    if words or name != "title":
        draft.keep(replace(found, **{name: words}))  # type: ignore[arg-type]


def _text(label: str, name: str, value: str, most: int, take: Any) -> None:  # noqa: ANN401 - any callback
    key = f"lessons.text.{name}"
    st.session_state[key] = value
    st.text_input(label, key=key, max_chars=most, on_change=lambda: take(st.session_state[key]))
