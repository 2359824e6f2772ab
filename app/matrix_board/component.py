"""The channels of the browser component: heavy numbers as bytes, light settings as JSON.

Streamlit sends a component's data again whenever any of it changes. Each large matrix therefore travels in a mount of
its own, so that a knob sends its panel alone; a pin, a colour scale or a word travels apart from them all, and a click
costs a kilobyte, not megabytes. Each mount costs every run a millisecond, so few and small matrices travel with their
board, and settings with what is light itself. Only the board's own mount is seen. What draws them is in the page's
script (``app/page_script/mounting.py``): a component's own is sent with each of its messages.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import streamlit as st

from app.page_script.bundling import script

_HERE = Path(__file__).parent
DIGEST = 24
SMALL = 100_000
"""Bytes of all panels up to which they travel with their board: of four with some hundred and ten tokens."""
LIGHT = 16_000
"""Bytes of a message up to which its settings travel with it: to send these again costs less than a mount."""


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


def encode(header: Mapping[str, object], payload: bytes = b"", *, digest: str = "") -> bytes:
    """The message of a channel of numbers.

    Args:
        header: what describes the payload, JSON-serialisable.
        payload: the numbers.
        digest: from ``digested``, of what tells this payload from others where that is not all of it.

    Returns:
        Four bytes with the header's length (little-endian), the header as JSON with a digest of everything added, and
        the payload.
    """
    told = json.dumps(header)
    both = digested((told + (digest or digested(payload))).encode())
    words = f'{told[:-1]}, "digest": "{both}"}}'.encode()
    return len(words).to_bytes(4, "little") + words + payload


def digested(data: bytes = b"") -> str:
    """A digest, of ``DIGEST`` characters."""
    return blake2b(data, digest_size=DIGEST // 2).hexdigest()


def digest_of(message: bytes) -> str:
    """The digest in a message from `encode`, which stands last in its header."""
    end = 4 + int.from_bytes(message[:4], "little") - len('"}')
    return message[end - DIGEST : end].decode()


def mount(
    message: bytes,
    *,
    key: str,
    events: Mapping[str, Callable[[Any], None]],
    settings: Mapping[str, object],
    parts: Mapping[str, bytes] | None = None,
    receiver: Callable[..., Any] = _NUMBERS,
) -> None:
    """Put the component on the page.

    Args:
        message: from `encode`.
        key: the element's key, known to all channels.
        events: what the browser may report, by name, each with what is called with it before the script runs.
        settings: words and what the visitor has chosen, JSON-serialisable.
        parts: what else is sent, from `encode`, each by a name that is unique on the board.
        receiver: of the first channel.
    """
    callbacks: dict[str, Any] = {f"on_{event}_change": partial(_tell, key, event, act) for event, act in events.items()}
    if not parts and len(message) <= LIGHT:
        receiver(key=key, data=_with_settings(message, settings), **callbacks)
        return
    receiver(key=key, data=message, **callbacks)
    for name, part in (parts or {}).items():
        _PART(key=f"board_part.{key}.{name}", data=part)  # what begins so takes no room: app/page_script/style.css
    # As bytes: in a dictionary Streamlit looks for tables.
    _SETTINGS(key=f"board_part.{key}", data=json.dumps({"board": key, **settings}).encode())


def _with_settings(message: bytes, settings: Mapping[str, object]) -> bytes:
    end = 4 + int.from_bytes(message[:4], "little")
    words = message[4 : end - 1] + f', "told": {json.dumps(settings)}}}'.encode()
    return len(words).to_bytes(4, "little") + words + message[end:]


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
