"""Animation of an option: a timer advances its value frame by frame, for example along the tokens of a text.

The animation ends at the last value, or when the visitor stops it or leaves the page.
"""

import time
from dataclasses import dataclass

import streamlit as st

from app.state.controls import Control
from app.words.i18n import _

TICK = 0.6
"""Seconds between two frames; server and browser need about a third of that for a frame."""
TIMEOUT = 5.0
"""Seconds without a frame after which an animation counts as abandoned: its page was closed or another view was
opened."""


@dataclass(frozen=True, kw_only=True)
class Animation:
    """An animated option.

    Only the animated part reruns at every tick: a fragment with ``run_every=tick_interval`` draws it.

    Attributes:
        key: key of the animation; its button has the key ``{key}.play``.
        option: option that advances.
        first: value at which an animation restarts after it has reached its end.
        last: value at which it ends.
        stride: change of the value per frame.
    """

    key: str
    option: Control[int]
    first: int
    last: int
    stride: int = 1

    @property
    def is_running(self) -> bool:
        """True while the animation is running."""
        last_frame = st.session_state.get(self._last_frame_key)
        return last_frame is not None and time.monotonic() - last_frame < TIMEOUT

    @property
    def tick_interval(self) -> float | None:
        """Seconds between reruns of the animated part; None while the animation is stopped."""
        return TICK if self.is_running else None

    def advance(self, ticking: bool) -> int:
        """Advance the option if the timer has caused this rerun, and return the value to draw.

        Args:
            ticking: whether the animated part was drawn with a timer, that is, with a ``tick_interval``.
        """
        state, value = st.session_state, min(max(self.option.value, self.first), self.last)
        if self.is_running and ticking and time.monotonic() - state[self._last_frame_key] > TICK / 2:
            value = min(self.last, value + self.stride)
            state[self._last_frame_key] = time.monotonic() if value < self.last else None
        self.option.set(value)
        return value

    def draw_button(self, ticking: bool) -> None:
        """Draw the button that starts the animation or, if ``ticking``, stops it."""
        label, icon = (_("Stop"), ":material/stop:") if ticking else (_("Play"), ":material/play_arrow:")
        # Label and callback depend on the same argument. If the animation ends just before a press arrives, the press
        # therefore still does what the label said.
        on_click = self._stop if ticking else self._start
        st.button(label, icon=icon, key=f"{self.key}.play", width="stretch", on_click=on_click)

    def rerun_if_changed(self, ticking: bool) -> None:
        """Rerun the whole page if the animation has started or ended: only such a run can start or stop the timer."""
        if self.is_running != ticking:
            st.rerun()

    @property
    def _last_frame_key(self) -> str:
        return f"{self.key}.drawn"

    def _stop(self) -> None:
        st.session_state[self._last_frame_key] = None

    def _start(self) -> None:
        st.session_state[self._last_frame_key] = time.monotonic()
        if self.option.value >= self.last:
            self.option.set(self.first)
