"""The notice that lists the values of a link that were rejected, and what is shown instead."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.state.link_fields import Field
from app.words.i18n import _, _n, enumeration, escape_markdown, paragraph, quoted

NAMED = 12
"""Most rejected values that a notice names; it only counts the others."""
WORD = 30
"""Most characters of a link's value that a notice repeats."""


def refusal(state: Mapping[Any, Any], fields: Mapping[str, Field], refused: Mapping[str, Sequence[str]]) -> str:
    """Return which values of a link do not fit and what is shown instead, as Markdown.

    Args:
        state: the values shown, by name.
        fields: the fields that the page knows.
        refused: the link's words, by name.
    """
    instead = [_replaced(name, fields[name], state[name], words) for name, words in refused.items() if name in fields]
    unknown = [_quoted([name]) for name in refused if name not in fields]
    more = len(instead) - NAMED
    return paragraph(
        _("The link contains values that this page does not accept."),
        *instead[:NAMED],
        _n("{n} more value was replaced.", "{n} more values were replaced.", n=more) if more > 0 else "",
        _n(
            "This page has no parameter with the name {names}.",
            "This page has no parameters with the names {names}.",
            n=len(unknown),
            names=_some_of(unknown),
        )
        if unknown
        else "",
    )


def _replaced(name: str, kind: Field, shown: object, words: Sequence[str]) -> str:
    parts = {"name": name, "shown": _shown(kind, shown), "word": _quoted(words)}
    if kind.describe_allowed and kind.is_out_of_bounds([*words]):
        return _(
            "For `{name}`, the page uses {shown} instead of {word} (allowed: {takes}).",
            **parts,
            takes=kind.describe_allowed(),
        )
    return _("For `{name}`, the page uses {shown} instead of {word}.", **parts)


def _some_of(items: Sequence[str]) -> str:
    more = len(items) - NAMED
    return enumeration([*items[:NAMED], _("{more} more", more=more) if more > 0 else ""])


def _quoted(words: Sequence[str]) -> str:
    word = ", ".join(words[:NAMED])
    return quoted(escape_markdown(word[:WORD] + ("…" if len(word) > WORD else "")))


def _shown(kind: Field, value: object) -> str:
    words = [] if value is None else kind.write(value)
    if not any(words):
        return _("no value")
    if value == kind.default and len(", ".join(words)) > WORD:
        return _("the default")
    return _quoted(words)
