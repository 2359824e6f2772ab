"""The file format of lessons, and functions that read, validate and write lessons and pack them into a link.

A lesson is a TOML file, version 1::

    lesson = 1
    title = "What a window loses"
    question = "What does a window lose?"
    minutes = 6
    seen = "What the lesson showed, in a sentence or two."   # shown after the last answer

    [[step]]
    at = "matrices?text=@story&variants=softmax"   # the screen to open: the end of its address
    say = "One sentence."
    do = "One thing to do."
    ask = "The question."
    answer = "output_error local"                  # a number that the page shows: see `app.lessons.answer`
    reveal = "variants=softmax&variants=local"     # what changes on screen when the answer is shown
    then = "One sentence, shown with the answer."

A question has one of five forms:

- It asks for a number: ``answer = "output_error local"``.
- It asks in which interval the number lies: ``bounds = [0.1, 0.5]`` separates three intervals, each
  described by one of ``choices``.
- It asks which variant has the ``least`` or ``most`` of a measure: ``answer = "least output_error"``.
- It offers ``choices``, of which the author marks one as ``right``, counted from 1.
- It asks the visitor to sketch a curve before the page shows it: ``draw = "entropy softmax"`` names one of the
  page's ``curves``, then a variant.
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
MAX_BYTES = 2**16
"""The largest size of a file in bytes: forty steps with a paragraph each, and their links."""
MAX_STEPS = 40
MAX_MINUTES = 600
MAX_CHOICES = 8
MAX_LENGTHS = {
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
CHOICE_LENGTH = 100
"""The largest number of characters of a choice."""
LINK_LESSON = 3_500
"""The largest number of characters of a packed lesson in a link; the link may also hold the visitor's text."""
QUERY = re.compile(r"[\w.~%+&=@!*'(),:;/-]*", re.ASCII)
"""Pattern of a query string, without the question mark."""
JOINERS = "\u200c\u200d"
"""Invisible characters that some scripts need within words: the zero-width non-joiner and joiner."""


class LessonError(LabError):
    """An error for a file or a link that is not a valid lesson."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a lesson.

    Attributes:
        at: the screen of the step, as the end of an address: the page's name and query.
        say: the explanation, in one or more sentences.
        do: what the visitor should do.
        ask: the question.
        answer: the measure that answers the question (see ``app.lessons.answer``).
        draw: the curve that the question asks to draw, as the name of a curve and the key of a variant.
        choices: the answers to choose from.
        bounds: the numbers that separate the choices.
        right: the right choice, from 1, as set by the author; 0 if the page's number decides.
        reveal: the query parameters that change when the answer is shown.
        then: further explanation, shown with the answer.
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
        seen: the lesson's conclusion, shown after the last answer.
        steps: its steps.
        key: the name in links of a lesson that comes with the app; empty for other lessons.
    """

    title: str
    question: str = ""
    minutes: int = 0
    seen: str = ""
    steps: tuple[Step, ...] = ()
    key: str = ""


def parse_query(text: str) -> dict[str, list[str]]:
    """Return a query string's values by name."""
    return parse_qs(text, max_num_fields=200)


def read(data: bytes, key: str = "") -> Lesson:
    """Return the lesson in a file.

    Args:
        data: the file.
        key: the key of an included lesson.

    Raises:
        LessonError: if the file is not valid; the message says what is wrong, and where.
    """
    if len(data) > MAX_BYTES:
        raise LessonError(N_("A lesson file has at most {most:,} bytes. This file is larger."), most=MAX_BYTES)
    try:
        values = tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise LessonError(
            N_("This is not a lesson file. A lesson file is TOML text, from the Lessons page or written by hand.")
        ) from error
    if type(values.get("lesson")) is not int or values["lesson"] != VERSION:
        raise LessonError(
            N_(
                "A lesson file needs the line “lesson = {version}”, which gives the version of the file format. Add "
                "or correct this line."
            ),
            version=VERSION,
        )
    _check_names(values, {"lesson", "title", "question", "minutes", "seen", "step"}, 0)
    steps = values.get("step", [])
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise LessonError(N_("Each step of a lesson begins with “[[step]]”."))
    if not 1 <= len(steps) <= MAX_STEPS:
        raise LessonError(N_("A lesson has 1 to {most} steps. This lesson has {n}."), most=MAX_STEPS, n=len(steps))
    return Lesson(
        **{name: _read_text(values, name, 0) for name in LESSON_TEXTS},
        minutes=_read_int(values, "minutes", 0, MAX_MINUTES),
        steps=tuple(_read_step(step, number) for number, step in enumerate(steps, 1)),
        key=key,
    )


def _read_step(values: Mapping[str, Any], number: int) -> Step:
    names = {field.name for field in fields(Step)}
    _check_names(values, names, number)
    step = Step(
        **{name: _read_text(values, name, number) for name in names & set(MAX_LENGTHS)},
        choices=tuple(
            _clean(each, "choices", CHOICE_LENGTH, number) for each in _read_list(values, "choices", str, number)
        ),
        bounds=tuple(map(float, _read_list(values, "bounds", (int, float), number))),
        right=_read_int(values, "right", number, MAX_CHOICES),
    )
    queries = (step.at.partition("?")[2], step.reveal)
    if step.page not in discover() or not all(map(QUERY.fullmatch, queries)):
        raise LessonError(
            N_("Step {place}: “at” must be the end of an address of this app, such as “matrices?layer=2”."),
            place=number,
        )
    try:
        for text in queries:
            parse_query(text)
    except ValueError as error:
        raise LessonError(N_("Step {place}: “at” or “reveal” is not a valid link to a page."), place=number) from error
    check_question(step, number)
    return step


def check_question(step: Step, number: int) -> None:
    """Raise an error for an invalid question.

    Raises:
        LessonError: if the step's fields do not form one of the five kinds of questions.
    """
    from app.lessons import answer  # An import at the top of the file would import all pages.

    page, count = discover()[step.page], len(step.choices)
    is_rising = all(map(math.isfinite, step.bounds)) and [*step.bounds] == sorted({*step.bounds})
    target, message = answer.find(step), ""
    if not step.ask:
        if step.answer or step.draw or count or step.right or step.bounds:
            message = N_("Step {place} has an answer but no question. Write the question in the field “ask”.")
    elif step.draw:
        if step.answer or count or step.right or step.bounds:
            message = N_("Step {place}: “draw” cannot be combined with “answer”, “choices”, “bounds” or “right”.")
        elif answer.find_curve(step) is None:
            message = N_("Step {place}: “draw” must name a variant and a curve of the step's page. Curves: {known}.")
    elif step.right:
        if step.answer or step.bounds or count < max(2, step.right):
            message = N_(
                "Step {place}: “right” must be the number of a choice, counted from 1. A step with “right” needs at "
                "least two “choices” and no “answer”."
            )
    elif target is None:
        message = (
            N_("Step {place}: “answer” must name one of the numbers that the step's page can report: {known}.")
            if step.answer
            else N_(
                "Step {place} asks a question without an answer. In the field “answer”, name one of the numbers that "
                "the step's page can report: {known}."
            )
        )
    elif (count or step.bounds) and (target.rank or len(step.bounds) != count - 1 or count < 2 or not is_rising):
        message = N_(
            "Step {place}: “choices” needs at least two entries, and “bounds” must be increasing numbers, one fewer "
            "than the choices. “answer” must name a number that the step's page can report, and must not contain "
            "“least” or “most”."
        )
    if message:
        names = Names(page.curves if step.draw else page.measures) or "–"
        raise LessonError(message, place=number, known=names)


def _check_names(values: Mapping[str, Any], allowed: set[str], number: int) -> None:
    for name in values:
        if name not in allowed:
            start = name[:30]
            if number:
                raise LessonError(
                    N_("Step {place}: “{name}” is not a field of a step."), place=number, name=Name(start)
                )
            raise LessonError(N_("“{name}” is not a field of a lesson file."), name=Name(start))


def _read_text(values: Mapping[str, Any], name: str, number: int) -> str:
    value = values.get(name, "")
    text = _clean(value, name, MAX_LENGTHS[name], number) if isinstance(value, str) else None
    if text is None or (not text and name in ("title", "at")):
        if number:
            raise LessonError(N_("Step {place}: “{name}” must be text in quotes."), place=number, name=Name(name))
        raise LessonError(N_("A lesson needs a “title” in quotes."))
    return text


def _clean(text: str, name: str, max_length: int, number: int) -> str:
    """Return a string on one line, without unprintable characters, or raise an error if it is too long."""
    line = " ".join("".join(c for c in " ".join(text.split()) if c.isprintable() or c in JOINERS).split())
    if len(line) > max_length:
        raise LessonError(
            N_("Step {place}: “{name}” is longer than {most:,} characters.")
            if number
            else N_("The lesson's “{name}” is longer than {most:,} characters."),
            place=number,
            name=Name(name),
            most=max_length,
        )
    return line


def _read_list(values: Mapping[str, Any], name: str, kind: Any, number: int) -> list[Any]:  # noqa: ANN401 - a type or several types
    items = values.get(name, [])
    if not isinstance(items, list) or len(items) > MAX_CHOICES:
        raise LessonError(
            N_("Step {place}: “{name}” must be a list of at most {most} entries."),
            place=number,
            name=Name(name),
            most=MAX_CHOICES,
        )
    if not all(isinstance(each, kind) and not isinstance(each, bool) for each in items):
        raise LessonError(N_("Step {place}: “{name}” has an entry of the wrong type."), place=number, name=Name(name))
    return items


def _read_int(values: Mapping[str, Any], name: str, number: int, high: int) -> int:
    value = values.get(name, 0)
    if type(value) is not int or not 0 <= value <= high:
        if number:
            raise LessonError(
                N_("Step {place}: “{name}” must be a whole number from 0 to {most}."),
                place=number,
                name=Name(name),
                most=high,
            )
        raise LessonError(
            N_("A lesson's “{name}” must be a whole number from 0 to {most}."), name=Name(name), most=high
        )
    return value


def write(lesson: Lesson) -> str:
    """Return the file of a lesson."""
    lines = [f"lesson = {VERSION}"]
    for name in (*LESSON_TEXTS, "minutes"):
        lines += [f"{name} = {_quote(value)}"] if (value := getattr(lesson, name)) else []
    for step in lesson.steps:
        lines += ["", "[[step]]"]
        for field in fields(Step):
            value = getattr(step, field.name)
            if isinstance(value, tuple) and value:
                lines.append(f"{field.name} = [{', '.join(map(_quote, value))}]")
            elif value:
                lines.append(f"{field.name} = {_quote(value)}")
    return "\n".join(lines) + "\n"


def _quote(value: object) -> str:
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
    decompressor = zlib.decompressobj()
    data = decompressor.decompress(packed, MAX_BYTES)
    if decompressor.unconsumed_tail or not decompressor.eof:
        raise ValueError
    return read(data)
