"""Miniatures of softmax for every head of a model, from which one is chosen."""

from collections.abc import Callable, Mapping

import numpy as np
import streamlit as st

from app.matrix_board.component import encode, mount
from app.text import _

_MASKED = np.uint8(255)  # the other bytes are places along the colour ramp


def thumbnail_board(
    images: np.ndarray,
    *,
    selected: tuple[int, int | None] | None,
    key: str,
    on_choose: Callable[[tuple[int, int]], None] | None = None,
    height: int = 420,
) -> tuple[int, int] | None:
    """Show one miniature per head: rows are layers, columns heads.

    Each miniature has its own colour scale, of square roots: heads are told apart by where they look, not by how much.

    Args:
        images: ``[L, H, s, s]``, not negative; NaN where a query may not look.
        selected: the (layer, head) in use; a head that is None or negative (an average) marks its whole layer.
        key: the element's key, unique in the app.
        on_choose: called before the next run of the script, as other widgets' callbacks are.
        height: the board's height in pixels, where that leaves a head at least twelve.

    Returns:
        The (layer, head) chosen since the last run, None if none was.

    Raises:
        ValueError: if the images are not ``[L, H, s, s]`` or hold infinities or negative numbers.
    """

    def settings(reported: object) -> Mapping[str, object]:
        layer, head = _choice(reported) or selected or (None, None)
        return {
            "selected": None if layer is None else [layer, head if head is not None and head >= 0 else None],
            "height": height,
            "words": {
                "layer": _("layer"),
                "head": _("head"),
                "layer_mark": _("L"),
                "head_mark": _("H"),
                "help": _("Heads of the model, layers from top to bottom. Arrow keys move, Enter chooses."),
            },
        }

    def report() -> None:
        choice = _choice(st.session_state[key].get("choose"))
        if on_choose and choice:
            on_choose(choice)

    message = pack_thumbnails(images, key=key)
    return _choice(mount(message, key=key, event="choose", settings=settings, on_event=report))


def _choice(reported: object) -> tuple[int, int] | None:
    return (int(reported[0]), int(reported[1])) if isinstance(reported, list) else None


def pack_thumbnails(images: np.ndarray, *, key: str) -> bytes:
    """The miniatures' message to the browser: one byte per cell; arguments and errors as of `thumbnail_board`."""
    values = np.asarray(images, dtype=np.float32)
    if values.ndim != 4 or 0 in values.shape or values.shape[2] != values.shape[3]:
        raise ValueError(f"miniatures must be [layers, heads, size, size], not {values.shape}")
    masked = np.isnan(values)
    values = np.where(masked, np.float32(0), values)
    if np.isinf(values).any() or (values < 0).any():
        raise ValueError("miniatures must be finite and not negative")
    largest = values.max(axis=(-2, -1), keepdims=True)
    places = np.rint(np.sqrt(values / np.where(largest > 0, largest, 1)) * 254).astype(np.uint8)
    places[masked] = _MASKED
    layers, heads, size, _size = values.shape
    return encode({"kind": "heads", "key": key, "layers": layers, "heads": heads, "size": size}, places.tobytes())
