"""A play: one option goes on by itself, picture by picture, until it is stopped, has ended, or nobody looks."""

import time
from dataclasses import dataclass

import streamlit as st

from app.state.controls import Control
from app.words.i18n import _

TICK = 0.6
"""Seconds between two pictures: a picture takes the server and the browser about a third of that."""
LEFT = 5.0
"""Seconds without a picture after which a play counts as left: its page was closed or another view was opened."""


@dataclass(frozen=True, kw_only=True)
class Animation:
    """What is played. Only the part that plays runs at every tick: a fragment with ``clock`` that calls the rest.

    Attributes:
        key: of the play and, with ``.play`` behind it, of its button.
        option: what goes on.
        first: where a play begins that was at its end.
        last: where it ends.
        stride: how far one picture goes on.
    """

    key: str
    option: Control[int]
    first: int
    last: int
    stride: int = 1

    @property
    def going(self) -> bool:
        """Whether it goes on just now."""
        drawn = st.session_state.get(self._drawn)
        return drawn is not None and time.monotonic() - drawn < LEFT

    @property
    def clock(self) -> float | None:
        """Seconds after which the part that plays runs again; None while it stands still."""
        return TICK if self.going else None

    def step(self, ticking: bool) -> int:
        """Go on where the clock has ticked; the place that is to be drawn."""
        state, at = st.session_state, min(max(self.option.value, self.first), self.last)
        if self.going and ticking and time.monotonic() - state[self._drawn] > TICK / 2:
            at = min(self.last, at + self.stride)
            state[self._drawn] = time.monotonic() if at < self.last else None
        self.option.set(at)
        return at

    def button(self, ticking: bool) -> None:
        """Draw what starts and stops it."""
        word, icon = (_("Stop"), ":material/stop:") if ticking else (_("Play"), ":material/play_arrow:")
        press = self._stop if ticking else self._start  # what the button says, however late the press arrives
        st.button(word, icon=icon, key=f"{self.key}.play", width="stretch", on_click=press)

    def settle(self, ticking: bool) -> None:
        """Run the whole page where a clock is to begin or to end, which it alone decides."""
        if self.going != ticking:
            st.rerun()

    @property
    def _drawn(self) -> str:
        return f"{self.key}.drawn"

    def _stop(self) -> None:
        st.session_state[self._drawn] = None

    def _start(self) -> None:
        st.session_state[self._drawn] = time.monotonic()
        if self.option.value >= self.last:
            self.option.set(self.first)
