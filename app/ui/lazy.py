"""Popovers and expanders whose content is built only while they are open, because building all of it is slow."""

import re
from collections.abc import Callable
from typing import Any

import streamlit as st

OPEN_FORMS = "form.opened"
"""Session key of the names of open forms: the keys of their popovers, as ``to_css_name`` returns them."""


def lazy_popover(label: str, draw: Callable[[], None], *, intro: str = "", key: str, **arguments: Any) -> None:  # noqa: ANN401
    """Draw a button that opens a form, and the form itself if it was opened last.

    ``st.popover(on_change=...)`` also reports what is open, but treats a changed label as a new button. A visitor who
    changes a setting shown in the label would lose the keyboard focus. Here a form stays open until another one opens.
    ``intro`` is Markdown at the top of the form, shown even before the form is built.
    """
    with st.popover(label, key=key, **arguments):
        if intro:
            st.markdown(intro)
        if to_css_name(key) in st.session_state.get(OPEN_FORMS, ()):
            draw()
        elif not intro:
            st.empty()  # Streamlit would disable the popover's button if the popover had no content.


def lazy_expander(
    label: str,
    draw: Callable[[], object],
    *,
    key: str,
    on_change: Any = "rerun",  # noqa: ANN401 - any callback
    **arguments: Any,  # noqa: ANN401
) -> None:
    """Draw an expander, and its content only while it is open; ``arguments`` are those of ``st.expander``."""
    expander = st.expander(label, key=key, on_change=on_change, **arguments)
    with expander:
        if expander.open or to_css_name(key) in st.session_state.get(OPEN_FORMS, ()):
            draw()
        else:
            st.empty()


def to_css_name(key: str) -> str:
    """Return a key as Streamlit writes it into CSS class names."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key)
