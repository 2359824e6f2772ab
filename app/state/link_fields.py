"""Fields: each defines how one value of a link is read from an address, checked and written to an address.

A value's words are its strings in an address: ``?a=x&a=y`` has the words ``["x", "y"]`` for the field ``a``.
"""

import binascii
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import attention_core as ac
from app.words.i18n import _, enumeration

MAX_LISTED = 12
"""Largest number of allowed values that a description lists; for more values, there is no description."""


@dataclass(frozen=True)
class Field:
    """One value that a link carries.

    Attributes:
        default: value that is left out of an address.
        read: converts the value's words (its strings in an address) to the value; raises one of ``READ_ERRORS`` if they
            are not valid.
        write: converts the value to its words.
        options: allowed values in addition to the default; None if they cannot be listed.
        accepts: returns whether a value is allowed, if the values cannot be listed.
        describe_allowed: returns a description of the allowed values, for the notice about a rejected value.
        opening: value for an address without a query; None for the default. A new version of the app may change the
            opening value but not the default, because existing links depend on it.
        page_opening: returns the value with which a page opens from another page until the visitor changes the value;
            None for ``opening``.
        presentation_only: whether the field changes no result on the page, such as the field of a lesson. An address
            with only such fields opens the same screen as an address without a query.
    """

    default: Any
    read: Callable[[list[str]], Any]
    write: Callable[[Any], list[str]] = lambda value: [str(value)]
    options: Sequence[Any] | None = None
    accepts: Callable[[Any], bool] = lambda value: True
    describe_allowed: Callable[[], str] | None = None
    opening: Any = None
    page_opening: Callable[[], Any] | None = None
    presentation_only: bool = False

    def opening_value(self) -> Any:  # noqa: ANN401 - the type depends on the field
        """Return the value for an address without a query."""
        return self.default if self.opening is None else self.opening

    def is_allowed(self, value: object) -> bool:
        """Return whether a value is allowed."""
        if self.options is None:
            return self.accepts(value)
        return value == self.default or value in self.options

    def is_out_of_bounds(self, words: list[str]) -> bool:
        """Return whether ``read`` rejects the words for any reason except an invalid setting of a variant."""
        try:
            self.read(words)
        except ac.LabError:  # The words name a variant, but one of its settings is invalid.
            return False
        except READ_ERRORS:
            return True
        return False


class TruncatedError(ValueError):
    """An error for a list in a link that the page cannot show unchanged; ``value`` is the list to show instead."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


READ_ERRORS = (ValueError, KeyError, ac.LabError, binascii.Error, zlib.error, OverflowError)
"""Errors that ``Field.read`` raises for words that are not valid."""


def single_word(words: list[str]) -> str:
    """Return the only string in ``words``; raise ValueError unless there is exactly one."""
    [word] = words
    return word


def one_of(default: Any, options: Iterable[Any]) -> Field:  # noqa: ANN401 - any type whose values differ as str
    """Return a field for one of several values; their ``str`` is used in links."""
    option_by_name = {str(option): option for option in options}
    return Field(
        default,
        lambda words: option_by_name[single_word(words)],
        options=tuple(option_by_name.values()),
        describe_allowed=(lambda: enumeration(option_by_name)) if len(option_by_name) <= MAX_LISTED else None,
    )


def some_of(default: list[Any], options: Sequence[Any]) -> Field:
    """Return a field for any number of values, in the order of the options; ``none`` represents the empty list."""
    option_by_name = {str(option): option for option in options}

    def read(words: list[str]) -> list[Any]:
        if len({*words}) < len(words) or ("none" in words and len(words) > 1):
            raise ValueError
        values = [] if words == ["none"] else [option_by_name[word] for word in words]
        return sorted(values, key=options.index)

    def write(values: list[Any]) -> list[str]:
        return [str(option) for option in sorted(values, key=options.index)] or ["none"]

    return Field(
        default, read, write, accepts=lambda values: isinstance(values, list) and all(map(options.__contains__, values))
    )


def integer(default: int | None, low: int, high: int) -> Field:
    """Return a field for an integer from ``low`` to ``high``; with a default of None the value may be None."""
    allowed = range(low, high + 1)

    def read(words: list[str]) -> int:
        value = int(single_word(words))
        # ``int`` also accepts " 3" and "\N{ARABIC-INDIC DIGIT THREE}", which are rejected: the app never writes them.
        if value not in allowed or str(value) != single_word(words):
            raise ValueError
        return value

    return Field(default, read, options=allowed, describe_allowed=lambda: _("{low:,} to {high:,}", low=low, high=high))


def number(default: float, low: float, high: float) -> Field:
    """Return a field for a number from ``low`` to ``high``."""

    def read(words: list[str]) -> float:
        if not re.fullmatch(r"[-+.\de]+", single_word(words), re.ASCII):
            raise ValueError
        value = float(single_word(words))
        if not low <= value <= high:
            raise ValueError
        return value

    return Field(
        default,
        read,
        accepts=lambda value: isinstance(value, int | float) and low <= value <= high,
        describe_allowed=lambda: _("{low:g} to {high:g}", low=low, high=high),
    )


def switch(default: bool, opening: bool | None = None) -> Field:
    """Return a field for an on/off value, written as 1 or 0."""
    return Field(
        default,
        lambda words: {"1": True, "0": False}[single_word(words)],
        lambda on: ["1" if on else "0"],
        (True, False),
        opening=opening,
    )
