"""The two channels of the browser component: heavy numbers as bytes, light settings as JSON.

Streamlit sends a component's data again whenever any of it changes. A pin, a colour scale or a word therefore travels
apart from the matrices, through a second mount without height, and a click costs a kilobyte, not megabytes.
"""

import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import streamlit as st

from app.javascript import script

_HERE = Path(__file__).parent
_NUMBERS = st.components.v2.component(
    "attention_lab_board", css=(_HERE / "board.css").read_text("utf-8"), js=script(_HERE / "main.js")
)
_SETTINGS = st.components.v2.component("attention_lab_settings", js=script(_HERE / "settings.js"))


def encode(header: Mapping[str, object], payload: bytes) -> bytes:
    """The message of the first channel.

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


def mount(
    message: bytes,
    *,
    key: str,
    event: str,
    settings: Callable[[object], Mapping[str, object]],
    on_event: Callable[[], None],
) -> object:
    """Put the component on the page.

    Args:
        message: from `encode`.
        key: the element's key, known to both channels.
        event: the trigger the browser may report.
        settings: from what the browser reported (None: nothing) to the settings that hold after it.
        on_event: called before the script runs when the browser reported something.

    Returns:
        What the browser reported since the last run, or None.
    """
    callbacks: dict[str, Any] = {f"on_{event}_change": on_event}
    with st.container(gap=None):
        result = _NUMBERS(key=key, data=message, **callbacks)
        reported = result.get(event)
        _SETTINGS(key=f"{key}.settings", data={"board": key, **settings(reported)})
    return reported
