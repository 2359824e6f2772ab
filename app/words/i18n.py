"""Translation of all text on screen through ``_``: English is in the code, other languages are in ``app/locale``."""

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
from attention_core.formatting import FormattedFloat
from attention_core.inputs.record import Notice

LOCALES = Path(__file__).parent.parent / "locale"
ADDRESS = re.compile(r"@|://|(?<=\bwww)\.", re.IGNORECASE)
"""Characters of an address by which Markdown recognises it and turns it into a link."""


@cache
def _catalogue(language: str) -> gettext.NullTranslations:
    return gettext.translation("messages", LOCALES, languages=[language], fallback=True)


_run = threading.local()


def set_language() -> None:
    """Store the visitor's language for the run in this thread, because asking Streamlit for every message is slow."""
    _run.language = _language()


def _language() -> str:
    return (st.context.locale or "en").replace("-", "_")


def _catalogue_for_visitor() -> gettext.NullTranslations:
    """Return the catalogue of the visitor's language."""
    return _catalogue(getattr(_run, "language", "") or _language())


def _(message: str, **values: object) -> str:
    """Return a message in the visitor's language, with its values filled in."""
    # For an empty message, gettext would return the header of the catalogue.
    words = _catalogue_for_visitor().gettext(message) if message else ""
    return words.format(**_written(values)) if values else words


def _written(values: Mapping[str, object]) -> dict[str, object]:
    """Return the values of a message: numbers in this app's format and isolated strings."""
    return {name: _written_value(value) for name, value in values.items()}


def _written_value(value: object) -> object:
    if isinstance(value, float | np.floating):
        return FormattedFloat(value)
    return isolated(value) if isinstance(value, str) else value


def _n(one: str, many: str, *, n: int, **values: object) -> str:
    """Return the singular or plural message, in the forms of the visitor's language.

    Args:
        one: message for one, ``"{n} token"``.
        many: message for any other number, ``"{n} tokens"``.
        n: the number; fills ``{n}``.
        **values: further values to fill in.
    """
    return _catalogue_for_visitor().ngettext(one, many, n).format(n=n, **_written(values))


def paragraph(*sentences: str) -> str:
    """Return the sentences joined by spaces, without empty ones."""
    return " ".join(filter(None, sentences))


def sentence(message: LabError | Notice) -> str:
    """Return the sentence of an error or a notice in the visitor's language, with its values translated."""
    values = {name: _(value) if isinstance(value, str) else value for name, value in dict(message.fields).items()}
    return _(message.template, **values)


def escape_markdown(words: str) -> str:
    """Return text that a visitor typed, isolated and escaped, so that Streamlit's Markdown shows it unchanged."""
    # Markdown turns web addresses into links. A backslash does not prevent that, but an invisible word joiner does.
    words = ADDRESS.sub("\u2060\\g<0>", isolated(words))
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|~$:&" else c for c in words)
