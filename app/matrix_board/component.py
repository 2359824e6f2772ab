"""The channels of the browser component: heavy numbers as bytes, light settings as JSON.

Streamlit sends a component's data again whenever any of it changes. Each large matrix therefore travels in a mount of
its own, so that a knob sends its panel alone; a pin, a colour scale or a word travels apart from them all, and a click
costs a kilobyte, not megabytes. Few and small ones travel with their board, as each mount costs every run a
millisecond. Only
the board's own mount is seen. What draws them is in the page's script (``app/page_script.py``): a component's own is
sent with each of its messages.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import streamlit as st

from app.javascript import script

_HERE = Path(__file__).parent
SMALL = 100_000
"""Bytes of all panels up to which they travel with their board: of four with some hundred and ten tokens."""


def receiver(name: str, *styles: Path) -> Callable[..., Any]:
    """What receives the first channel.

    Args:
        name: the component's, unique in the app.
        styles: the files with its own styles, which are sent with each of its messages.
    """
    css = "".join(style.read_text("utf-8") for style in (_HERE / "spoken.css", *styles))
    return st.components.v2.component(name, css=css, js=script(_HERE / "numbers.js"))


_NUMBERS = receiver("attention_lab_board", _HERE / "board.css", _HERE / "strips.css")
_PART = st.components.v2.component("attention_lab_board_part", js=script(_HERE / "numbers.js"))
_HELD = st.components.v2.component("attention_lab_board_held", js=script(_HERE / "numbers.js"))
_SETTINGS = st.components.v2.component("attention_lab_settings", js=script(_HERE / "settings.js"))


def encode(header: Mapping[str, object], payload: bytes = b"") -> bytes:
    """The message of a channel of numbers.

    Args:
        header: what describes the payload, JSON-serialisable.
        payload: the numbers.

    Returns:
        Four bytes with the header's length (little-endian), the header as JSON with a digest of everything added, and
        the payload.
    """
    text = json.dumps(header)
    digest = blake2b(text.encode() + payload, digest_size=12).hexdigest()
    words = json.dumps({**header, "digest": digest}).encode()
    return len(words).to_bytes(4, "little") + words + payload


def digest_of(message: bytes) -> str:
    """The digest in a message from `encode`."""
    found: str = json.loads(message[4 : 4 + int.from_bytes(message[:4], "little")])["digest"]
    return found


def mount(
    message: bytes,
    *,
    key: str,
    events: Mapping[str, Callable[[Any], None]],
    settings: Callable[[Mapping[str, Any]], Mapping[str, object]],
    parts: Mapping[str, bytes] | None = None,
    receiver: Callable[..., Any] = _NUMBERS,
) -> Mapping[str, Any]:
    """Put the component on the page.

    Args:
        message: from `encode`.
        key: the element's key, known to all channels.
        events: what the browser may report, by name, each with what is called with it before the script runs.
        settings: from what the browser reported (None where nothing) to the settings that hold after it.
        parts: what else is sent, from `encode`, each by a name that is unique on the board.
        receiver: of the first channel.

    Returns:
        What the browser reported since the last run, None where nothing.
    """
    callbacks: dict[str, Any] = {f"on_{event}_change": partial(_tell, key, event, act) for event, act in events.items()}
    result: Mapping[str, Any] = receiver(key=key, data=message, **callbacks)
    for name, part in (parts or {}).items():
        _PART(key=f"board_part.{key}.{name}", data=part)  # what begins so takes no room: app/style.css
    _SETTINGS(key=f"board_part.{key}", data={"board": key, **settings(result)})
    return result


def mount_held(message: bytes, *, key: str, turn: Callable[[Any], None]) -> None:
    """Put beside a board what is told of a knob that is held, and answers with its panel.

    Args:
        message: from `encode`.
        key: the board's.
        turn: called with what was told before the script runs.
    """
    mounted = f"board_part.{key}.held"
    _HELD(key=mounted, data=message, on_turn_change=partial(_tell, mounted, "turn", turn))


def _tell(key: str, event: str, act: Callable[[Any], None]) -> None:
    reported = st.session_state[key].get(event)
    if reported is not None:
        act(reported)
