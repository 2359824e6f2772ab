"""The Streamlit components that send a board (matrices side by side) to the browser and receive the visitor's input.

Streamlit sends all data of a component again whenever any of it changes. A board therefore consists of several
component instances ("channels"). Each large matrix has its own instance: if a setting of one panel changes, only that
panel is sent. Another instance holds the board's settings (pinned row, colour scales and texts), so that a click
sends a kilobyte instead of megabytes. Each instance adds a millisecond to every run. Small matrices are therefore
sent in the board's own message. If that message is small, it also contains the board's settings.

Only the board's own instance is visible. Streamlit sends a component's script with each of its messages. The
components therefore contain little code and pass all data on to the script of the page
(``app/page_script/mounting.py``), which draws the boards.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from app.page_script.bundling import script

_VIEWS = Path(__file__).parent / "views"
_CHANNELS = Path(__file__).parent / "channels"
RECEIVER = script(_CHANNELS / "numbers.js")
"""The script of a component that passes its messages to the page's script."""
PANELS = _VIEWS / "panels.css"
"""The styles that boards of matrices and of images share."""
MAX_JOINED_BYTES = 16_000
"""Largest board message, in bytes, that also carries the board's settings.

Sending such a message again costs less than a separate component instance for the settings.
"""


def receiver(name: str, *styles: Path) -> Callable[..., Any]:
    """Return the visible component of a board, which receives the board's message. All other components are invisible.

    Args:
        name: the component's name, unique in the app.
        styles: its own CSS files, which are sent with each of its messages.
    """
    css = "".join(style.read_text("utf-8") for style in (_VIEWS / "spoken.css", *styles))
    return st.components.v2.component(name, css=css, js=RECEIVER)


_BOARD = receiver("attention_lab_board", PANELS, _VIEWS / "board.css", _VIEWS / "strips.css")
_PANEL = st.components.v2.component("attention_lab_board_part", js=RECEIVER)
_DRAGGED = st.components.v2.component("attention_lab_board_dragged", js=RECEIVER)
_SETTINGS = st.components.v2.component("attention_lab_settings", js=script(_CHANNELS / "settings.js"))


def mount(
    message: bytes,
    *,
    key: str,
    events: Mapping[str, Callable[[Any], None]],
    settings: Mapping[str, object],
    panels: Mapping[str, bytes] | None = None,
    receiver: Callable[..., Any] = _BOARD,
) -> None:
    """Draw the component on the page.

    Args:
        message: a message from `encode`.
        key: the board's key, which is part of the key of each of its elements.
        events: callbacks by the name of the browser's event; called with the event's data before the script runs.
        settings: texts and the visitor's choices, JSON-serialisable.
        panels: further messages from `encode`, by a name that is unique on the board.
        receiver: the component that receives ``message``.
    """
    callbacks: dict[str, Any] = {f"on_{event}_change": partial(_call, key, event, act) for event, act in events.items()}
    if not panels and len(message) <= MAX_JOINED_BYTES:
        receiver(key=key, data=_with_settings(message, settings), **callbacks)
        return
    receiver(key=key, data=message, **callbacks)
    # The keys begin with "board_part.", and app/page_script/style.css hides the elements of such keys.
    for name, data in (panels or {}).items():
        _PANEL(key=f"board_part.{key}.{name}", data=data)
    # Streamlit searches a dictionary for tables, which takes time. The settings are therefore sent as bytes.
    _SETTINGS(key=f"board_part.{key}", data=json.dumps({"board": key, **settings}).encode())


def _with_settings(message: bytes, settings: Mapping[str, object]) -> bytes:
    end = 4 + int.from_bytes(message[:4], "little")
    header = message[4 : end - 1] + f', "settings": {json.dumps(settings)}}}'.encode()
    return len(header).to_bytes(4, "little") + header + message[end:]


def mount_dragged(message: bytes, *, key: str, turn: Callable[[Any], None]) -> None:
    """Draw the component that reports the values of a dragged knob to the script and receives the knob's new panel.

    Args:
        message: a message from `encode`.
        key: the board's key.
        turn: called before the script runs with the event: a dictionary of the panel's key (``panel``), the value
            (``value``) and the number of the slider change (``turn``).
    """
    mount_key = f"board_part.{key}.dragged"
    _DRAGGED(key=mount_key, data=message, on_turn_change=partial(_call, mount_key, "turn", turn))


def _call(key: str, event: str, react: Callable[[Any], None]) -> None:
    value = st.session_state[key].get(event)
    if value is not None:
        react(value)
