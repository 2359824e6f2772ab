"""Lessons: their file format, and how they are read, written, and packed into a link. All input is validated.

A file is TOML, version 1::

    lesson = 1
    title = "What a window loses"
    question = "What does a window lose?"
    minutes = 6
    seen = "What the lesson showed, in a sentence or two."   # shown after the last answer

    [[step]]
    at = "matrices?text=@story&variants=softmax"   # a state of the lab: the end of its address
    say = "One sentence."
    do = "One thing to do."
    ask = "The question."
    answer = "output_error local"                  # a number that the page shows: see `app.lessons.answer`
    reveal = "variants=softmax&variants=local"     # what changes on screen when the answer is shown
    then = "One sentence, shown with the answer."

A question has one of five forms:

- It asks for a number: ``answer = "output_error local"``.
- It asks between which ``bounds`` the number lies; each interval is one of the ``choices``.
- It asks which variant has the ``least`` or ``most`` of a measure: ``answer = "least output_error"``.
- It offers ``choices``, of which the author marks one as ``right``, counted from 1.
- It asks to draw a curve of the page: ``draw = "entropy softmax"``, a name among the page's ``curves`` and a variant.
"""

import base64
import json
import math
import re
import tomllib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from app.page import discover
from app.words.i18n import N_
from attention_core.errors import LabError, Name, Names

VERSION = 1
MOST_BYTES = 2**16
"""The largest size of a file in bytes: forty steps with a paragraph each, and their links."""
MOST_STEPS = 40
MOST_MINUTES = 600
MOST_CHOICES = 8
LENGTHS = {
    "title": 100,
    "question": 150,
    "seen": 600,
    "at": 14_000,
    "say": 600,
    "do": 300,
    "ask": 300,
    "answer": 120,
    "draw": 120,
    "reveal": 4_000,
    "then": 600,
}
"""The largest number of characters of each string in a file; a link may contain a text."""
LESSON_TEXTS = ("title", "question", "seen")
"""The texts of a whole lesson; the other strings in a file belong to a step."""
CHOICE = 100
"""The largest number of characters of a choice."""
LINK_LESSON = 3_500
"""The largest number of characters of a packed lesson in a link, which may also hold ``LINK_TEXT`` of text."""
QUERY = re.compile(r"[\w.~%+&=@!*'(),:;/-]*", re.ASCII)
"""A query string, as it follows the question mark of an address."""
JOINERS = "\u200c\u200d"
"""Invisible characters that belong to the spelling of words."""


class LessonError(LabError):
    """An error for a file or a link that is not a valid lesson."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a lesson.

    Attributes:
        at: its screen: a page and its query.
        say: one sentence.
        do: one thing to do.
        ask: the question.
        answer: the measure that answers the question (see ``app.lessons.answer``).
        draw: the curve that the question asks to draw, as the name of a curve and the key of a variant.
        choices: the answers to choose from.
        bounds: the numbers that separate the choices.
        right: the right choice, from 1, as set by the author; 0 if the page's number decides.
        reveal: the query parameters that change when the answer is shown.
        then: one more sentence, shown with the answer.
    """

    at: str
    say: str = ""
    do: str = ""
    ask: str = ""
    answer: str = ""
    draw: str = ""
    choices: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    right: int = 0
    reveal: str = ""
    then: str = ""

    @property
    def page(self) -> str:
        """The step's page."""
        return self.at.partition("?")[0]


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson.

    Attributes:
        title: its topic in a few words.
        question: the question that it answers, shown in the list of lessons.
        minutes: the time that it takes; 0 if unknown.
        seen: the conclusion, shown after the last answer.
        steps: its steps.
        key: the name of an included lesson.
    """

    title: str
    question: str = ""
    minutes: int = 0
    seen: str = ""
    steps: tuple[Step, ...] = ()
    key: str = ""


def query(words: str) -> dict[str, list[str]]:
    """Return a query string's values by name."""
    return parse_qs(words, max_num_fields=200)


def read(data: bytes, key: str = "") -> Lesson:
    """Return the lesson in a file.

    Args:
        data: the file.
        key: the key of an included lesson.

    Raises:
        LessonError: if the file is not valid; the message says what is wrong, and where.
    """
    if len(data) > MOST_BYTES:
        raise LessonError(N_("A lesson file has at most {most:,} bytes. This file is larger."), most=MOST_BYTES)
    try:
        values = tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise LessonError(
            N_("This is not a lesson file. A lesson file is TOML text, from the Lessons page or written by hand.")
        ) from error
    if type(values.get("lesson")) is not int or values["lesson"] != VERSION:
        raise LessonError(
            N_(
                "A lesson file needs the line “lesson = {version}”, which gives the version of its format. Add or "
                "correct this line."
            ),
            version=VERSION,
        )
    _refuse_others(values, {"lesson", "title", "question", "minutes", "seen", "step"}, 0)
    steps = values.get("step", [])
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise LessonError(N_("Each step of a lesson begins with “[[step]]”."))
    if not 1 <= len(steps) <= MOST_STEPS:
        raise LessonError(N_("A lesson has 1 to {most} steps. This lesson has {n}."), most=MOST_STEPS, n=len(steps))
    return Lesson(
        **{name: _words(values, name, 0) for name in LESSON_TEXTS},
        minutes=_whole(values, "minutes", 0, MOST_MINUTES),
        steps=tuple(_step(step, place) for place, step in enumerate(steps, 1)),
        key=key,
    )


def _step(given: Mapping[str, Any], place: int) -> Step:
    names = {field.name for field in fields(Step)}
    _refuse_others(given, names, place)
    step = Step(
        **{name: _words(given, name, place) for name in names & set(LENGTHS)},
        choices=tuple(_clean(each, "choices", CHOICE, place) for each in _listed(given, "choices", str, place)),
        bounds=tuple(map(float, _listed(given, "bounds", (int, float), place))),
        right=_whole(given, "right", place, MOST_CHOICES),
    )
    queries = (step.at.partition("?")[2], step.reveal)
    if step.page not in discover() or not all(map(QUERY.fullmatch, queries)):
        raise LessonError(
            N_("Step {place}: “at” must be the end of an address of this app, such as “matrices?layer=2”."), place=place
        )
    try:
        for words in queries:
            query(words)
    except ValueError as error:
        raise LessonError(N_("Step {place}: the address in “at” or “reveal” cannot be read."), place=place) from error
    check(step, place)
    return step


def check(step: Step, place: int) -> None:
    """Raise an error for an invalid question.

    Raises:
        LessonError: if the step's fields do not form one of the five kinds of questions.
    """
    from app.lessons import answer  # not imported at the top, because it imports all pages

    page, many = discover()[step.page], len(step.choices)
    rising = all(map(math.isfinite, step.bounds)) and [*step.bounds] == sorted({*step.bounds})
    found, message = answer.find(step), ""
    if not step.ask:
        if step.answer or step.draw or many or step.right or step.bounds:
            message = N_("Step {place} has an answer but no question. Write the question in the field “ask”.")
    elif step.draw:
        if step.answer or many or step.right or step.bounds:
            message = N_("Step {place}: “draw” cannot be combined with “answer”, “choices”, “bounds” or “right”.")
        elif answer.find_curve(step) is None:
            message = N_("Step {place}: “draw” must name a variant and a curve of the step's page. Curves: {known}.")
    elif step.right:
        if step.answer or step.bounds or many < max(2, step.right):
            message = N_(
                "Step {place}: “right” must be the number of a choice, counted from 1. A step with “right” needs at "
                "least two “choices” and no “answer”."
            )
    elif found is None:
        message = (
            N_("Step {place}: “answer” must name one of the numbers that the step's page can report: {known}.")
            if step.answer
            else N_(
                "Step {place} asks a question without an answer. As “answer”, choose one of the numbers that the "
                "step's page can report: {known}."
            )
        )
    elif (many or step.bounds) and (found.rank or len(step.bounds) != many - 1 or many < 2 or not rising):
        message = N_(
            "Step {place}: “bounds” must be increasing numbers, one fewer than the “choices”. “answer” must name a "
            "number that the step's page can report."
        )
    if message:
        known = Names(page.curves if step.draw else page.measures) or "–"
        raise LessonError(message, place=place, known=known)


def _refuse_others(given: Mapping[str, Any], known: set[str], place: int) -> None:
    for name in given:
        if name not in known:
            shown = name[:30]
            if place:
                raise LessonError(N_("Step {place}: “{name}” is not a field of a step."), place=place, name=Name(shown))
            raise LessonError(N_("“{name}” is not a field of a lesson file."), name=Name(shown))


def _words(given: Mapping[str, Any], name: str, place: int) -> str:
    found = given.get(name, "")
    words = _clean(found, name, LENGTHS[name], place) if isinstance(found, str) else None
    if words is None or (not words and name in ("title", "at")):
        if place:
            raise LessonError(N_("Step {place}: “{name}” must be text in quotes."), place=place, name=Name(name))
        raise LessonError(N_("A lesson needs a “title” in quotes."))
    return words


def _clean(words: str, name: str, most: int, place: int) -> str:
    """Return a string on one line, without unprintable characters, or raise an error if it is too long."""
    kept = " ".join("".join(c for c in " ".join(words.split()) if c.isprintable() or c in JOINERS).split())
    if len(kept) > most:
        raise LessonError(
            N_("Step {place}: “{name}” is longer than {most:,} characters.")
            if place
            else N_("The lesson's “{name}” is longer than {most:,} characters."),
            place=place,
            name=Name(name),
            most=most,
        )
    return kept


def _listed(given: Mapping[str, Any], name: str, kind: Any, place: int) -> list[Any]:  # noqa: ANN401 - a type or some
    found = given.get(name, [])
    if not isinstance(found, list) or len(found) > MOST_CHOICES:
        raise LessonError(
            N_("Step {place}: “{name}” must be a list of at most {most} entries."),
            place=place,
            name=Name(name),
            most=MOST_CHOICES,
        )
    if not all(isinstance(each, kind) and not isinstance(each, bool) for each in found):
        raise LessonError(N_("Step {place}: “{name}” has an entry of the wrong type."), place=place, name=Name(name))
    return found


def _whole(given: Mapping[str, Any], name: str, place: int, most: int) -> int:
    found = given.get(name, 0)
    if type(found) is not int or not 0 <= found <= most:
        if place:
            raise LessonError(
                N_("Step {place}: “{name}” must be a whole number up to {most}."),
                place=place,
                name=Name(name),
                most=most,
            )
        raise LessonError(N_("A lesson's “{name}” must be a whole number up to {most}."), name=Name(name), most=most)
    return found


def write(lesson: Lesson) -> str:
    """Return the file of a lesson."""
    lines = [f"lesson = {VERSION}"]
    for name in (*LESSON_TEXTS, "minutes"):
        lines += [f"{name} = {_quoted(value)}"] if (value := getattr(lesson, name)) else []
    for step in lesson.steps:
        lines += ["", "[[step]]"]
        for field in fields(Step):
            value = getattr(step, field.name)
            if isinstance(value, tuple) and value:
                lines.append(f"{field.name} = [{', '.join(map(_quoted, value))}]")
            elif value:
                lines.append(f"{field.name} = {_quoted(value)}")
    return "\n".join(lines) + "\n"


def _quoted(value: object) -> str:
    # A JSON string is also a valid TOML string, unless it contains the control character U+007F, which is removed.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "")


@lru_cache(64)
def pack(lesson: Lesson) -> str:
    """Return a lesson packed into a query parameter; empty if it is too long for a link."""
    packed = base64.urlsafe_b64encode(zlib.compress(write(lesson).encode(), 9)).decode().rstrip("=")
    return packed if len(packed) <= LINK_LESSON else ""


def unpack(word: str) -> Lesson:
    """Return the lesson that ``pack`` packed.

    Raises:
        LessonError: as in ``read``.
        ValueError: if the string holds no file, or one that is too long.
    """
    packed = base64.urlsafe_b64decode(word[:LINK_LESSON].encode("ascii") + b"=" * (-len(word[:LINK_LESSON]) % 4))
    inflate = zlib.decompressobj()
    data = inflate.decompress(packed, MOST_BYTES)
    if inflate.unconsumed_tail or not inflate.eof:
        raise ValueError
    return read(data)
