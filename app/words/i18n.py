"""Translation of all text on screen by the function ``_``. English texts are in the code, others in ``app/locale``."""

import gettext
import re
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from string import Formatter

import numpy as np
import streamlit as st

from app.words.isolation import isolate
from attention_core.errors import LabError, Name, Names, Notice
from attention_core.formatting import N_ as N_
from attention_core.formatting import FormattedFloat

LOCALES = Path(__file__).parent.parent / "locale"
SETTING = "setting of a variant"
"""Translation context of the names and choices of settings, because many of them are also words of sentences."""
LANGUAGE = "lang"
"""Name of the language that the visitor chose, in links and in the session state."""
ENGLISH = "en"
CONTEXT = "\x04"
"""Character between a context and its message in gettext's catalogues."""
_SPACE = "\ufdd0"
"""A Unicode noncharacter, which replaces the spaces next to a template's values until the values are filled in."""
_NEXT_TO_VALUE = re.compile(r" (?=(?:\*\*)?\{)|(?:(?<=\})|(?<=\}\*\*)) ")
_HAN = "[\u3400-\u4dbf\u4e00-\u9fff]"
_WIDE = "[\u3400-\u4dbf\u4e00-\u9fff\u3001-\u3011\uff01-\uff60“”]"
# These spaces between Chinese words are removed. A space stays next to bold text that begins or ends with a punctuation
# mark, because Markdown would otherwise show the asterisks.
_SUPERFLUOUS = re.compile(
    rf"({_WIDE}(?:\]\([^()]*\))?){_SPACE}(?={_WIDE}|\*\*{_HAN}|\[{_WIDE})|({_HAN}\*\*){_SPACE}(?={_WIDE})"
)
ADDRESS = re.compile(r"@|://|(?<=\bwww)\.", re.IGNORECASE)
"""Characters by which Markdown recognises an email or web address and turns it into a link."""


@cache
def languages() -> Mapping[str, str]:
    """Return the installed languages: the folder of each catalogue, ``zh_CN``, by the code in links, ``zh``.

    A language has one catalogue for all its regions. A browser in ``zh-TW`` or ``zh-HK`` therefore shows simplified
    characters, because readers of traditional characters understand them more easily than English. English is included
    without a catalogue.
    """
    folders = sorted(path.parent.parent.name for path in LOCALES.glob("*/LC_MESSAGES/messages.mo"))
    return {ENGLISH: ENGLISH} | {folder.partition("_")[0]: folder for folder in folders}


def language_names() -> dict[str, str]:
    """Return the name of each installed language in the language itself, by its code."""
    message = C_("name of this language", "English")
    return {code: _strip_context(catalogue(code).gettext(message)) for code in languages()}


@cache
def catalogue(language: str) -> gettext.NullTranslations:
    """Return the messages of an installed language."""
    return gettext.translation("messages", LOCALES, languages=[languages()[language]], fallback=True)


_run = threading.local()


def set_language() -> None:
    """Store the visitor's language for the run in this thread, because asking Streamlit for every message is slow."""
    _run.language = _language()


def language() -> str:
    """Return the code of the visitor's language."""
    return getattr(_run, "language", "") or _language()


def _language() -> str:
    """Return the language that the visitor chose, else the browser's if it is installed, else English."""
    chosen = st.session_state.get(LANGUAGE) if st.runtime.exists() else None
    codes = (re.split("[-_]", tag or "")[0].lower() for tag in (chosen, st.context.locale))
    return next((code for code in codes if code in languages()), ENGLISH)


def language_tag() -> str:
    """Return the visitor's language as HTML names it, such as ``zh-CN``."""
    return languages()[language()].replace("_", "-")


def C_(context: str, message: str) -> str:  # noqa: N802 - like N_, which marks messages without a context
    """Mark a message whose words mean several things, and return it with its context, for ``_`` to translate.

    Args:
        context: what the message is, for translators: ``C_("section of the menu", "Measure")``.
        message: the message.
    """
    return f"{context}{CONTEXT}{message}"


def _strip_context(message: str) -> str:
    return message.rpartition(CONTEXT)[2]


def _(message: str, **values: object) -> str:
    """Return a message in the visitor's language, with its values filled in."""
    # For an empty message, gettext would return the header of the catalogue.
    text = _strip_context(catalogue(language()).gettext(message)) if message else ""
    return _fill(text, values) if values else text


def _fill(template: str, values: Mapping[str, object]) -> str:
    """Return a template with its values filled in, and without spaces between two Chinese words.

    Chinese templates have spaces next to their values, because there is a space between a Chinese and a Latin word.
    """
    text = _mark_spaces(template).format(**_format_values(values))
    return _SUPERFLUOUS.sub(r"\1\2", text).replace(_SPACE, " ") if _SPACE in text else text


@cache
def _mark_spaces(template: str) -> str:
    """Return a Chinese template with ``_SPACE`` for its spaces next to values; return other templates unchanged."""
    return _NEXT_TO_VALUE.sub(_SPACE, template) if re.search(_HAN, template) else template


def _format_values(values: Mapping[str, object]) -> dict[str, object]:
    """Return the values of a message: numbers in this app's format and isolated strings."""
    return {name: _format_value(value) for name, value in values.items()}


def _format_value(value: object) -> object:
    if isinstance(value, float | np.floating):
        return FormattedFloat(value)
    return isolate(value) if isinstance(value, str) else value


def _n(one: str, many: str, *, n: int, **values: object) -> str:
    """Return the singular or plural message, in the forms of the visitor's language.

    Args:
        one: message for one, ``"{n} token"``.
        many: message for any other number, ``"{n} tokens"``.
        n: the number; fills ``{n}``.
        **values: further values to fill in.
    """
    return _fill(catalogue(language()).ngettext(one, many, n), {"n": n, **values})


def paragraph(*sentences: str) -> str:
    """Return the sentences one after another, without empty ones; Chinese puts no space between them."""
    return _join(C_("two sentences", "{first} {next}"), sentences)


def enumeration(items: Iterable[str]) -> str:
    """Return a list of names or numbers as one phrase, without empty ones, such as ``softmax, local and linear``."""
    *others, last = [item for item in items if item] or [""]
    first = commas(others)
    return _("{others} and {last}", others=first, last=last) if first else last


def commas(items: Iterable[str]) -> str:
    """Return items joined by commas."""
    return _join(C_("two items of a list", "{first}, {next}"), items)


def clauses(items: Iterable[str]) -> str:
    """Return phrases that may contain commas, joined by semicolons, without empty ones."""
    return _join(C_("two phrases of a list", "{first}; {next}"), items)


def predicates(items: Iterable[str]) -> str:
    """Return predicates with one subject, such as "rises with A" and "falls with B", as one phrase."""
    return _join(C_("two predicates", "{first}, and {next}"), items)


def quote(text: str) -> str:
    """Return a visitor's words or a token in quotation marks, isolated (see ``app.words.isolation``)."""
    return _("“{words}”", words=text)


def end_sentence(text: str) -> str:
    """Return a phrase with the full stop of the visitor's language."""
    return _(C_("end of a sentence", "{words}."), words=text)


def _join(pair: str, items: Iterable[str]) -> str:
    """Return the items joined by the text between the two placeholders of ``pair``, a message for two items."""
    separator = _(pair).removeprefix("{first}").removesuffix("{next}")
    return separator.join(filter(None, items))


def sentence(message: LabError | Notice) -> str:
    """Return the sentence of an error or a notice in the visitor's language, with its values translated."""
    conversions = {name for _words, name, _form, conversion in Formatter().parse(message.template) if conversion}
    fields = dict(message.fields).items()
    return _(message.template, **{name: value if name in conversions else _translate(value) for name, value in fields})


def _translate(value: object) -> object:
    """Return a value of an error or a notice in the visitor's language."""
    if isinstance(value, LabError | Notice):
        return sentence(value)
    if isinstance(value, Names):
        return enumeration(sentence(each) if isinstance(each, Notice) else each for each in value)
    return _(value) if isinstance(value, str) and not isinstance(value, Name) else value


def escape_markdown(text: str) -> str:
    """Return text isolated (see ``app.words.isolation``) and escaped, so that Markdown shows it unchanged."""
    # Markdown turns web addresses into links. A backslash does not prevent that, but an invisible word joiner does.
    text = ADDRESS.sub("\u2060\\g<0>", isolate(text))
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|~$:&" else c for c in text)
