"""Every word on screen passes through ``_``: English stands in the code, other languages in ``app/locale``."""

import gettext
from functools import cache
from pathlib import Path

import streamlit as st

from attention_core.errors import LabError
from attention_core.inputs.record import Notice

LOCALES = Path(__file__).parent / "locale"


@cache
def _catalogue(language: str) -> gettext.NullTranslations:
    return gettext.translation("messages", LOCALES, languages=[language], fallback=True)


def _(message: str, **values: object) -> str:
    """The message in the visitor's language, with its values filled in."""
    # gettext answers the empty string with the catalogue's header.
    words = _catalogue((st.context.locale or "en").replace("-", "_")).gettext(message) if message else ""
    return words.format(**values) if values else words


def N_(message: str) -> str:  # noqa: N802 - gettext's own name
    """Mark a message that is translated where it is shown."""
    return message


def sentence(told: LabError | Notice) -> str:
    """An error's or a notice's sentence in the visitor's language."""
    return _(told.template, **dict(told.fields))


def literal(words: str) -> str:
    """Words somebody typed, so that Streamlit's Markdown shows them as they are."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|~$:" else c for c in words)
