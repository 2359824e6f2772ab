"""Ways from page to page, by the pages' names."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import streamlit as st

from app.page import discover
from app.state import url
from app.state.controls import Options
from app.state.session import Visit

VARIANTS = Visit.variants.name
ENTRIES = "navigation.entries"
"""The menu's entries by the pages' names, in the session's state."""


def keep(entries: Mapping[str, Any]) -> None:
    """Remember the menu's entries: a link needs the very one that stands there."""
    st.session_state[ENTRIES] = dict(entries)


def towards(key: str, *, beside: str) -> str:
    """How addresses of a page begin that points of a chart lead to: the input goes along, one variant's word follows.

    Args:
        key: the page's name.
        beside: the word of the variant that stands first there.
    """
    query = url.link_of(url.values(), Options.shared())
    query.pop(VARIANTS, None)
    return key + url.query_string({**query, VARIANTS: [beside]}) + f"&{VARIANTS}="


def link(
    key: str,
    label: str,
    *,
    icon: str = "",
    fields: Mapping[str, Sequence[str]] | None = None,
    **changes: Any,  # noqa: ANN401 - any shared value
) -> None:
    """A link to a page; the input and the variants go along.

    Args:
        key: the page's name.
        label: on screen.
        icon: before it; the page's own where none is given.
        fields: the words of further values in its address.
        changes: shared values that are other ones there.
    """
    page, query, shared = discover()[key], dict(fields or {}), Options.shared()
    if fields or changes or not url.untouched(shared):  # else it opens as it does from the menu
        query |= url.link_of(st.session_state, shared, **changes)
    if query and not fields and not changes:
        query |= _openings(key)
    st.page_link(
        st.session_state[ENTRIES][key],
        label=label,
        icon=icon or page.icon,
        query_params={name: query[name] for name in dict.fromkeys([*shared, *query]) if name in query},
    )


@cache
def _openings(key: str) -> dict[str, list[str]]:
    """What a page opens on of its own, as an address says it."""
    return {name: kind.write(kind.opening) for name, kind in discover()[key].options.fields().items() if kind.opening}


def go(key: str, query: Mapping[str, Sequence[str]]) -> None:
    """Open a page as a link to it would; this run ends here."""
    st.switch_page(st.session_state[ENTRIES][key], query_params=query)
