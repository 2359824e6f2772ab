"""Every word on screen passes through ``_``: English stands in the code, other languages in ``app/locale``."""

import gettext
import re
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import streamlit as st

from app.words.isolation import isolated
from attention_core.errors import LabError
from attention_core.formatting import N_ as N_
from attention_core.formatting import Written
from attention_core.inputs.record import Notice

LOCALES = Path(__file__).parent.parent / "locale"
ADDRESS = re.compile(r"@|://|(?<=\bwww)\.", re.IGNORECASE)
"""The sign in an address by which Markdown recognises it and turns it into a link."""


@cache
def _catalogue(language: str) -> gettext.NullTranslations:
    return gettext.translation("messages", LOCALES, languages=[language], fallback=True)


_run = threading.local()


def listen() -> None:
    """Find out the visitor's language once for the run that this thread is: to ask at every word takes long."""
    _run.language = _language()


def _language() -> str:
    return (st.context.locale or "en").replace("-", "_")


def _spoken() -> gettext.NullTranslations:
    """The catalogue of the visitor's language."""
    return _catalogue(getattr(_run, "language", "") or _language())


def _(message: str, **values: object) -> str:
    """The message in the visitor's language, with its values filled in."""
    # gettext answers the empty string with the catalogue's header.
    words = _spoken().gettext(message) if message else ""
    return words.format(**_written(values)) if values else words


def _written(values: Mapping[str, object]) -> dict[str, object]:
    """Return a sentence's values: numbers as the lab writes them, whatever the format, and words isolated."""
    return {name: _written_value(value) for name, value in values.items()}


def _written_value(value: object) -> object:
    if isinstance(value, float | np.floating):
        return Written(value)
    return isolated(value) if isinstance(value, str) else value


def _n(one: str, many: str, *, n: int, **values: object) -> str:
    """The message for one thing or for several, in whatever forms the visitor's language has.

    Args:
        one: said of a single one, ``"{n} token"``.
        many: said of any other number, ``"{n} tokens"``.
        n: how many; fills ``{n}``.
        **values: what else is filled in.
    """
    return _spoken().ngettext(one, many, n).format(n=n, **_written(values))


def paragraph(*sentences: str) -> str:
    """Sentences one after the other, without those that are empty."""
    return " ".join(filter(None, sentences))


def sentence(told: LabError | Notice) -> str:
    """An error's or a notice's sentence in the visitor's language, what it names included."""
    values = {name: _(value) if isinstance(value, str) else value for name, value in dict(told.fields).items()}
    return _(told.template, **values)


def literal(words: str) -> str:
    """Return words that somebody typed, isolated, so that Streamlit's Markdown shows them unchanged."""
    # A backslash does not stop Markdown from linking an address: a word joiner, which is invisible, breaks it.
    words = ADDRESS.sub("\u2060\\g<0>", isolated(words))
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|~$:&" else c for c in words)
