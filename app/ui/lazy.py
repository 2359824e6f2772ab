"""What is built once it was opened, a form behind a button or what is folded up: closed, it would be most of a run."""

import re
from collections.abc import Callable
from typing import Any

import streamlit as st

OPENED = "form.opened"
"""The keys of the forms that are built, as they stand in the page's markup, in the session's state."""


def form(label: str, draw: Callable[[], None], *, brief: str = "", key: str, **look: Any) -> None:  # noqa: ANN401
    """Put the button on the page, and its form if that was opened last.

    ``st.popover(on_change=...)`` could say what is open too, but to it another label is another button: whoever turns a
    knob that stands in the label would lose the place on the keyboard. Here a form stays until another is opened.

    Args:
        label: of the button.
        draw: draws the form.
        brief: Markdown that stands first, even before the form is there.
        key: of the button.
        look: of ``st.popover``.
    """
    with st.popover(label, key=key, **look):
        if brief:
            st.markdown(brief)
        if in_markup(key) in st.session_state.get(OPENED, ()):
            draw()
        elif not brief:
            st.empty()  # a button with nothing behind it cannot be pressed


def fold(label: str, draw: Callable[[], object], *, key: str, **look: Any) -> None:  # noqa: ANN401
    """Put a line on the page that unfolds, and what is behind it while that is unfolded.

    Args:
        label: of the line.
        draw: draws what is behind it.
        key: of the line.
        look: of ``st.expander``.
    """
    folded = st.expander(label, key=key, on_change="rerun", **look)
    with folded:
        if folded.open or in_markup(key) in st.session_state.get(OPENED, ()):
            draw()
        else:
            st.empty()


def in_markup(key: str) -> str:
    """A key as Streamlit writes it into a class's name."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key)
