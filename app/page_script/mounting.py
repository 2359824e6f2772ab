"""The invisible Streamlit component that loads the app's JavaScript on every page and receives events from it."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import streamlit as st

from app.page import Page
from app.page_script.bundling import script
from app.state import url
from app.state.session import LanguageOptions
from app.ui import navigation
from app.ui.chart import NARROW
from app.ui.lazy import OPEN_FORMS
from app.words import glossary, i18n
from app.words.i18n import _

_KEY = "page_script.mount"


def mount(page: Page[Any], *, opening: Mapping[str, Sequence[str]], is_presenting: bool) -> None:
    """Add the app's JavaScript to the current page, as an element without height.

    Args:
        page: the current page, whose section and title the menu shows.
        opening: the query for the values with which the app opened. If the address has no query, links on the page
            add this query to keep these values.
        is_presenting: whether the page is enlarged for an audience.
    """
    language = {
        "code": i18n.language(),
        "tag": i18n.language_tag(),
        "names": i18n.language_names(),
        "title": _("Language"),
        "query": url.query_string(navigation.language_query()),
    }
    _component()(
        key=_KEY,
        data={
            "section": _(page.section),
            "page": _(page.title),
            "usesInput": page.uses_input,
            "isPresenting": is_presenting,
            "input": _("Input"),
            "menu": _("Menu"),
            "language": language,
            "opening": url.query_string(opening),
        },
        on_form_change=_open_form,
        on_language_change=_set_language,
        on_narrow_change=_store_narrow,
        on_returned_change=_rerun_page,
    )


@cache
def _component() -> Any:  # noqa: ANN401 - Streamlit's component function
    """Return a component that loads the script from a file and calls it, so that no message contains the script."""
    name = script_name()
    js = f'export default async (page) => (await import(new URL("{name}", location.href))).default(page);\n'
    return st.components.v2.component(f"attention_lab_{name}", js=js)


@cache
def files() -> dict[str, bytes]:
    """Return files by name: the app's JavaScript with the glossary in every language, the chart library and the font.

    Each version of a file has its own name. The page's script loads the library when a page has a chart.
    """
    folder = Path(__file__).parent
    font = (folder / "fonts" / "Inter.woff2").read_bytes()
    library = (folder / "charts" / "plotly" / "plotly.min.js").read_bytes()
    plotly = _versioned_name("plotly.js", library)
    terms = json.dumps({code: glossary.translated_entries(code) for code in i18n.languages()}, ensure_ascii=False)
    page_script = f'const PLOTLY = "./{plotly}";\nconst GLOSSARY = {terms};\n{script(folder / "entry.js")}'.encode()
    return {
        _versioned_name("page_script.js", page_script): page_script,
        plotly: library,
        _versioned_name("Inter.woff2", font): font,
    }


def script_name() -> str:
    """Return the file name of the app's JavaScript, which all pages load; it contains a digest of the content."""
    return next(iter(files()))


def _versioned_name(name: str, content: bytes) -> str:
    stem, suffix = name.split(".")
    return f"{stem}.{blake2b(st.__version__.encode() + content, digest_size=6).hexdigest()}.{suffix}"


def _open_form() -> None:
    st.session_state[OPEN_FORMS] = (st.session_state[_KEY].form,)


def _set_language() -> None:
    """Set the language that the visitor chose in the menu; ignore any other string from the browser."""
    if (chosen := st.session_state[_KEY].language) in i18n.languages():
        LanguageOptions.language.set(chosen)


def _rerun_page() -> None:
    """Handle a restored connection. Streamlit reruns the page after this callback, and nothing else is needed."""
    url.keep_notice_next_run()


def _store_narrow() -> None:
    st.session_state[NARROW] = bool(st.session_state[_KEY].narrow)
    url.keep_notice_next_run()
