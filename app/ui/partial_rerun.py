"""A part of the page that a move on it draws again alone, without what stands around it: half of a cheap move."""

from collections.abc import Callable, Hashable

import streamlit as st

from app.jobs import cached, dispatch
from app.words.i18n import listen

_WHOLE = "part.whole"
_AROUND = "part.around"


def begin() -> None:
    """The whole page is drawn: said at the top of its run."""
    st.session_state[_WHOLE] = True


def show(take_up: Callable[[], None], draw: Callable[[], None], around: Callable[[], Hashable]) -> None:
    """Draw the part.

    A run of the part alone breaks off no other, and is broken off by those of the whole page only: so this is for what
    is drawn at once, not for what computes for seconds.

    Args:
        take_up: reads what the address and the widgets say, where the whole page has not done it already.
        draw: draws it.
        around: what stands around it depends on; the whole page follows where a move on the part has changed it.
    """
    st.fragment(_show)(take_up, draw, around)


def _show(take_up: Callable[[], None], draw: Callable[[], None], around: Callable[[], Hashable]) -> None:
    state = st.session_state
    with cached.drawing().turn(dispatch.visitor()):
        whole = state.pop(_WHOLE, False)
        if not whole:
            listen()
            take_up()
            if around() != state.get(_AROUND):
                st.rerun()
        draw()
        if whole:
            state[_AROUND] = around()
