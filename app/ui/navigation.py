"""Functions that link to a page, or open it, by its name. The links keep the visitor's input and attention variants."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import streamlit as st

from app.page import discover
from app.state import url
from app.state.controls import Options
from app.state.session import BROWSER, LanguageOptions, SharedOptions
from app.words.i18n import LANGUAGE

VARIANTS = SharedOptions.variants.name
ENTRIES = "navigation.entries"
"""Session key of the menu's entries, a dict keyed by page name."""


def store_menu_entries(entries: Mapping[str, Any]) -> None:
    """Store the menu's entries in the session, because a page link needs the same object as the menu."""
    st.session_state[ENTRIES] = dict(entries)


def link_prefix(key: str, *, first_variant: str) -> str:
    """Return the beginning of links to a page with the current input; each point of a chart appends its variant.

    Args:
        key: name of the page.
        first_variant: variant that comes first on that page, with its settings as in links: ``local~window~8``.
    """
    query = url.to_query(url.values(), Options.shared())
    query.pop(VARIANTS, None)
    return key + url.query_string({**query, VARIANTS: [first_variant]}) + f"&{VARIANTS}="


def link(
    key: str,
    label: str,
    *,
    icon: str = "",
    fields: Mapping[str, Sequence[str]] | None = None,
    **changes: Any,  # noqa: ANN401 - any shared value
) -> None:
    """Draw a link to a page that keeps the input and the variants.

    Args:
        key: name of the page.
        label: text of the link.
        icon: icon before the text; by default the page's own.
        fields: strings of further values in the address, by the value's name.
        changes: values of shared options that differ on the target page, by name.
    """
    entry, query = st.session_state[ENTRIES][key], _query(key, fields or {}, changes)
    st.page_link(entry, label=label, icon=icon or discover()[key].icon, query_params=query)


def address(key: str) -> str:
    """Return the address of a page that keeps the input and the variants, relative to the app's root."""
    return key + url.query_string(_query(key, {}, {}))


def _query(key: str, fields: Mapping[str, Sequence[str]], changes: Mapping[str, Any]) -> dict[str, list[str]]:
    query, shared = dict(fields), Options.shared()
    # If the visitor has changed nothing, the link needs no query except the language, like the links of the menu.
    if fields or changes or not url.are_unchanged({*shared} - {LANGUAGE}):
        query |= url.to_query(st.session_state, shared, **changes)
    if query and not fields and not changes:
        query |= _opening_query(key)
    query |= language_query()
    return {name: list(query[name]) for name in dict.fromkeys([*shared, *query]) if name in query}


@cache
def _opening_query(key: str) -> dict[str, list[str]]:
    """Return the query for the values with which a page opens if its address has no query."""
    return url.written_openings(discover()[key].options.fields())


def language_query() -> dict[str, list[str]]:
    """Return the query parameter of the language that the visitor chose; empty if the browser's is used."""
    return url.to_query({LANGUAGE: st.session_state.get(LANGUAGE, BROWSER)}, LanguageOptions.fields())


def open_page(key: str, query: Mapping[str, Sequence[str]]) -> None:
    """Open a page with a query, as a link to it does; this ends the current run."""
    st.switch_page(st.session_state[ENTRIES][key], query_params=query)
