"""Lessons: their file format, and how they are read, written, and packed into a link. All input is validated.

A file is TOML, version 1::

    lesson = 1
    title = "What a window loses"
    minutes = 6

    [[step]]
    at = "matrices?text=@story&variants=softmax"   # a state of the lab: the end of its address
    say = "One sentence."
    do = "One thing to do."
    ask = "What is asked before the answer is seen?"
    answer = "output_error local"                  # a number that the page shows: see `app.lessons.answer`
    reveal = "variants=softmax&variants=local"     # what changes on screen when the answer is shown
    then = "One sentence more."

A question has one of four forms:

- It asks for a number: ``answer = "output_error local"``.
- It asks between which ``bounds`` the number lies; each interval is one of the ``choices``.
- It asks which variant has the ``least`` or ``most`` of a measure: ``answer = "least output_error"``.
- It offers ``choices``, of which the author marks one as ``right``, counted from 1.
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
from attention_core.errors import LabError

VERSION = 1
MOST_BYTES = 2**16
"""The largest size of a file in bytes: forty steps with a paragraph each, and their links."""
MOST_STEPS = 40
MOST_MINUTES = 600
MOST_CHOICES = 8
LENGTHS = {"title": 100, "at": 14_000, "say": 600, "do": 300, "ask": 300, "answer": 120, "reveal": 4_000, "then": 600}
"""The largest number of characters of each string in a file; a link may contain a text."""
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
    """A lesson; ``key`` is the name of an included lesson."""

    title: str
    minutes: int = 0
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
        raise LessonError(N_("A lesson is at most {most:,} bytes long; this file is longer."), most=MOST_BYTES)
    try:
        values = tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise LessonError(
            N_("This is no lesson file. One is text in TOML, made on the Lessons page or by hand.")
        ) from error
    if type(values.get("lesson")) is not int or values["lesson"] != VERSION:
        raise LessonError(N_("This file is no lesson of version {version}: it must say “lesson = 1”."), version=VERSION)
    _refuse_others(values, {"lesson", "title", "minutes", "step"}, 0)
    steps = values.get("step", [])
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise LessonError(N_("Each step of a lesson begins with “[[step]]”."))
    if not 1 <= len(steps) <= MOST_STEPS:
        raise LessonError(N_("A lesson has 1 to {most} steps; this one has {n}."), most=MOST_STEPS, n=len(steps))
    return Lesson(
        title=_words(values, "title", 0),
        minutes=_whole(values, "minutes", 0, MOST_MINUTES),
        steps=tuple(_step(step, place) for place, step in enumerate(steps, 1)),
        key=key,
    )


def _step(told: Mapping[str, Any], place: int) -> Step:
    names = {field.name for field in fields(Step)}
    _refuse_others(told, names, place)
    step = Step(
        **{name: _words(told, name, place) for name in names & set(LENGTHS)},
        choices=tuple(_clean(each, "choices", CHOICE, place) for each in _listed(told, "choices", str, place)),
        bounds=tuple(map(float, _listed(told, "bounds", (int, float), place))),
        right=_whole(told, "right", place, MOST_CHOICES),
    )
    queries = (step.at.partition("?")[2], step.reveal)
    if step.page not in discover() or not all(map(QUERY.fullmatch, queries)):
        raise LessonError(
            N_("Step {place} is on no screen of this lab: “at” is the end of its address, such as “matrices?layer=2”."),
            place=place,
        )
    try:
        for words in queries:
            query(words)
    except ValueError as error:
        raise LessonError(N_("Step {place} has a link that cannot be read."), place=place) from error
    check(step, place)
    return step


def check(step: Step, place: int) -> None:
    """Raise an error for an invalid question.

    Raises:
        LessonError: if choices, bounds, right choice and answer do not form one of the four kinds of questions.
    """
    from app.lessons import answer  # imported here, as it imports all pages

    many = len(step.choices)
    own, between = bool(step.right), bool(step.bounds)
    if not step.ask:
        if step.answer or many or own or between:
            raise LessonError(N_("Step {place} has an answer but asks nothing: give it “ask”."), place=place)
        return
    if own and (step.answer or between or not many >= 2 or step.right > many):
        raise LessonError(
            N_("Step {place}: “right” is the number of one of two or more “choices”, and stands without “answer”."),
            place=place,
        )
    if own:
        return
    found = answer.find(step)
    if found is None:
        raise LessonError(
            N_("Step {place}: “answer” names no number that its page shows: {known}.")
            if step.answer
            else N_("Step {place} asks a question without an answer. Choose a number of its page: {known}."),
            place=place,
            known=", ".join(discover()[step.page].measures) or "–",
        )
    rising = all(math.isfinite(b) for b in step.bounds) and [*step.bounds] == sorted({*step.bounds})
    if (many or between) and (found.rank or len(step.bounds) != many - 1 or many < 2 or not rising):
        raise LessonError(
            N_("Step {place}: “bounds” are rising numbers, one fewer than “choices”, and go with a number."),
            place=place,
        )


def _refuse_others(told: Mapping[str, Any], known: set[str], place: int) -> None:
    for name in told:
        if name not in known:
            shown = name[:30]
            if place:
                raise LessonError(N_("Step {place} holds “{name}”, which no step has."), place=place, name=shown)
            raise LessonError(N_("This file holds “{name}”, which no lesson has."), name=shown)


def _words(told: Mapping[str, Any], name: str, place: int) -> str:
    found = told.get(name, "")
    words = _clean(found, name, LENGTHS[name], place) if isinstance(found, str) else None
    if words is None or (not words and name in ("title", "at")):
        if place:
            raise LessonError(N_("Step {place}: “{name}” must be words in quotes."), place=place, name=name)
        raise LessonError(N_("A lesson has a “title” in quotes."))
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
            name=name,
            most=most,
        )
    return kept


def _listed(told: Mapping[str, Any], name: str, kind: Any, place: int) -> list[Any]:  # noqa: ANN401 - a type or some
    found = told.get(name, [])
    if not isinstance(found, list) or len(found) > MOST_CHOICES:
        raise LessonError(
            N_("Step {place}: “{name}” is a list of at most {most}."), place=place, name=name, most=MOST_CHOICES
        )
    if not all(isinstance(each, kind) and not isinstance(each, bool) for each in found):
        raise LessonError(N_("Step {place}: “{name}” holds something else than it must."), place=place, name=name)
    return found


def _whole(told: Mapping[str, Any], name: str, place: int, most: int) -> int:
    found = told.get(name, 0)
    if type(found) is not int or not 0 <= found <= most:
        if place:
            raise LessonError(
                N_("Step {place}: “{name}” is a whole number up to {most}."), place=place, name=name, most=most
            )
        raise LessonError(N_("A lesson's “{name}” is a whole number up to {most}."), name=name, most=most)
    return found


def write(lesson: Lesson) -> str:
    """Return the file of a lesson."""
    lines = [f"lesson = {VERSION}", f"title = {_quoted(lesson.title)}"]
    lines += [f"minutes = {lesson.minutes}"] if lesson.minutes else []
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
    # JSON strings are valid TOML strings, except for the character U+007F, which no lesson contains.
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
