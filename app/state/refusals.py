"""The text of the notice that lists which values of a link were rejected, and what the page shows instead."""

from collections.abc import Mapping, Sequence
from typing import Any

import attention_core as ac
from app.state.link_fields import READ_ERRORS, Field, single_word
from app.words.i18n import _, _n, enumeration, escape_markdown, paragraph, quote

MAX_NAMED = 12
"""Largest number of rejected values that a notice names; it only counts the others."""
MAX_LENGTH = 30
"""Largest number of characters of a link's value that a notice repeats."""


def notice_text(values: Mapping[Any, Any], fields: Mapping[str, Field], refused: Mapping[str, Sequence[str]]) -> str:
    """Return the notice, as Markdown: which values of a link were rejected, and what the page shows instead.

    Args:
        values: the values shown instead, by name.
        fields: the fields that the page knows.
        refused: the rejected words (strings in the link) by name, also of names that the page does not know.
    """
    replacements = [_explain(name, fields[name], values[name], refused[name]) for name in refused if name in fields]
    unknown = [_quote([name]) for name in refused if name not in fields]
    extra = len(replacements) - MAX_NAMED
    return paragraph(
        _("The link contains values that this page does not accept."),
        *replacements[:MAX_NAMED],
        _n("{n} more value was replaced.", "{n} more values were replaced.", n=extra) if extra > 0 else "",
        _n(
            "This page has no parameter with the name {names}.",
            "This page has no parameters with the names {names}.",
            n=len(unknown),
            names=_enumerate(unknown),
        )
        if unknown
        else "",
    )


def _explain(name: str, field: Field, shown: object, words: Sequence[str]) -> str:
    if isinstance(shown, ac.Attention) and (variant := _named_variant(words)) not in (None, shown.variant):
        return _(
            "{name} cannot be shown here, so the page shows {shown}.",
            name=_(variant.title),
            shown=_(shown.variant.title),
        )
    values = {"name": name, "shown": _describe_value(field, shown), "word": _quote(words)}
    if field.describe_allowed and field.is_out_of_bounds([*words]):
        return _(
            "For `{name}`, the page uses {shown} instead of {word} (allowed: {takes}).",
            **values,
            takes=field.describe_allowed(),
        )
    return _("For `{name}`, the page uses {shown} instead of {word}.", **values)


def _named_variant(words: Sequence[str]) -> ac.Variant | None:
    """Return the variant that a link names; None if its words name no variant with valid settings."""
    try:
        return ac.from_word(single_word([*words])).variant
    except READ_ERRORS:
        return None


def _enumerate(items: Sequence[str]) -> str:
    extra = len(items) - MAX_NAMED
    return enumeration([*items[:MAX_NAMED], _("{more} more", more=extra) if extra > 0 else ""])


def _quote(words: Sequence[str]) -> str:
    word = ", ".join(words[:MAX_NAMED])
    return quote(escape_markdown(word[:MAX_LENGTH] + ("…" if len(word) > MAX_LENGTH else "")))


def _describe_value(field: Field, value: object) -> str:
    words = [] if value is None else field.write(value)
    if not any(words):
        return _("no value")
    if value == field.default and len(", ".join(words)) > MAX_LENGTH:
        return _("the default")
    return _quote(words)
