"""Exceptions for mistakes of the user; each message is one sentence that also says how to correct the mistake.

Any other exception is a bug and must reach the log. The base class ``LabError`` stores the template of its message and
the values separately, so that a page can translate the template before it fills in the values. A value may itself be a
message or a list.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any


@dataclass(frozen=True)
class Notice:
    """A message for the user, for example that the input was cut, or a part of another message.

    The template and its values are kept apart so that a page can translate the template.
    """

    template: str
    fields: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return self.template.format(**dict(self.fields))


class Name(str):
    """A word that has a meaning for the program, such as a setting or an array; a page does not translate it."""

    __slots__ = ()


class Names(tuple[str | Notice, ...]):
    """A list of program words or messages, which a page joins with the separator of the visitor's language."""

    __slots__ = ()

    def __str__(self) -> str:
        *others, last = map(str, self or ("",))
        return f"{', '.join(others)} and {last}" if others else last


class LabError(Exception):
    """An error caused by the user's input, with a message that also says what to do about it.

    Args:
        template: the sentence, with a ``{name}`` placeholder for each value.
        **fields: the values of the placeholders. A page translates texts, notices and other errors, except
            ``Name``, ``Names`` and texts that the template quotes (``{name!r}``).

    Example:
        >>> import attention_core as ac
        >>> try:
        ...     ac.get("nystrm")
        ... except ac.LabError as error:
        ...     print(error)
        There is no attention variant 'nystrm'. Did you mean 'nystrom'?
    """

    def __init__(self, template: str, **fields: object) -> None:
        super().__init__(template.format(**fields))
        self.template = template
        self.fields = fields

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, unpickling would create the exception from its formatted message, and read braces in that message
        # as fields of a template. So the template and its fields are pickled instead.
        return partial(type(self), self.template, **self.fields), (), self.__dict__


class UnknownVariantError(LabError):
    """A variant key that does not exist."""


class SettingError(LabError):
    """A setting that does not exist, has the wrong type or is out of bounds."""


class NotCausalError(LabError):
    """The error if the causal form is requested of a variant that mixes positions before it attends."""


class NotCrossError(LabError):
    """The error if keys of another sequence are passed to a variant whose queries and keys must share tokens."""


class ShapeError(LabError):
    """Queries, keys and values whose shapes or types do not fit together."""


class InputError(LabError):
    """A text, synthetic specification or upload that cannot be turned into queries, keys and values."""


class ModelError(LabError):
    """A model that cannot be obtained, or whose architecture is not supported."""


class WorkerError(LabError):
    """A worker that ended or cannot be reached; a second attempt may succeed."""


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Check that a number is from ``low`` to ``high``.

    Args:
        name: what the number is, in a few words, which a page translates; a ``Name`` is not translated.
        value: the number.
        low: the smallest number allowed.
        high: the largest number allowed.

    Raises:
        InputError: if the number is out of bounds.
    """
    if not low <= value <= high:
        raise InputError(
            "{name} is {value}. Choose a number from {low} to {high}.", name=name, value=value, low=low, high=high
        )


def name_hint(name: str, known: Iterable[str]) -> Notice:
    """Return the hint for an unknown name: the most similar known name, or else a list of all known names."""
    names = sorted(known)
    matches = difflib.get_close_matches(name, names, n=1)
    if matches:
        return Notice("Did you mean {name!r}?", (("name", matches[0]),))
    return (
        Notice("Choose one of: {names}.", (("names", Names(names)),))
        if names
        else Notice("This variant has no settings.")
    )
