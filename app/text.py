"""Every word on screen passes through ``_``: English stands in the code, other languages in ``app/locale``."""

import gettext
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import streamlit as st

from attention_core.errors import LabError
from attention_core.inputs.record import Notice
from attention_core.writing import N_ as N_
from attention_core.writing import Written

LOCALES = Path(__file__).parent / "locale"


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
    """Return a sentence's values with its numbers as the lab writes them, whatever format the sentence names."""
    return {name: Written(value) if isinstance(value, float | np.floating) else value for name, value in values.items()}


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
    """Words somebody typed, so that Streamlit's Markdown shows them as they are."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|~$:" else c for c in words)
