"""A board that shows a noisy image denoised by several attention variants, or the errors of the denoised images.

An attention map shows to which pixels the pixel under the pointer attends. All attention maps are sent in advance, so
that pointing at another pixel needs no request. If a setting of a variant changes, only that variant is sent again.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from app.board_messages.packing import encode, read_digest
from app.matrix_board import Knob
from app.matrix_board.board import last_turn, send_dragged_panel, setting_events
from app.matrix_board.component import PANELS, mount, receiver
from app.words.i18n import _
from attention_core.analysis.denoised_image import AttentionMaps

_PICTURES = receiver("attention_lab_pictures", PANELS, Path(__file__).parent / "pictures.css")
_TEXTS = ("key", "title", "number", "details", "note", "tooltip", "settings_label")
"""The attributes of a tile (an image with its controls) that are sent unchanged."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Tile:
    """One image on the board.

    Attributes:
        key: its key, unique on the board.
        title: its name.
        image: the pixels, ``[side, side, channels]`` from 0 to 1; other values are clipped.
        number: the number next to its name.
        details: its numbers in words, for the tooltip.
        error: mean absolute error of each pixel, ``[side, side]``; None for no error map.
        maps: the image's attention maps; None for no maps. If they include a mean, the mean is shown until the
            pointer is on a pixel.
        knob: the setting on its slider; None for no slider.
        note: a text below the image and its slider.
        tooltip: the tooltip of the name; empty for the name itself.
        settings_label: the name of the button next to the name that opens the variant's settings; empty for no button.
    """

    key: str
    title: str
    image: np.ndarray
    number: str = ""
    details: str = ""
    error: np.ndarray | None = None
    maps: AttentionMaps | None = None
    knob: Knob | None = None
    note: str = ""
    tooltip: str = ""
    settings_label: str = ""


def picture_board(
    tiles: Sequence[Tile],
    *,
    key: str,
    cell: int,
    pinned: int | None,
    full_error: float,
    legend: str,
    file_name: str,
    on_pin: Callable[[int | None], None],
    on_turn: Callable[[str, object], None],
    on_open: Callable[[str], None],
    redraw: Callable[[str], Tile | None],
) -> None:
    """Draw the images side by side with a linked crosshair.

    Args:
        tiles: the images, all of one size.
        key: the element's key, unique in the app.
        cell: side in pixels of one cell of an attention map, which may cover several pixels.
        pinned: index of the pixel whose attention is shown while the pointer is not on an image; None for none.
        full_error: the error that is drawn in the darkest colour.
        legend: what the colours or the tokens are.
        file_name: the name of a downloaded picture of the board, without extension.
        on_pin: called before the next run with the pixel that the visitor clicked, or None if the pin was removed.
        on_turn: called before the next run with a tile's key and its slider's new value, which has not been checked.
        on_open: called before the next run with the key of a tile whose settings the visitor wants to open.
        redraw: returns a tile by its key while its slider is dragged, in a rerun that draws only this tile; None if the
            tile no longer exists.
    """

    def pin(event: object) -> None:
        if isinstance(event, dict) and isinstance(pixel := event.get("pixel"), int | None):
            on_pin(pixel)

    with_settings = {tile.key for tile in tiles if tile.settings_label}
    messages = {tile.key: _pack(tile, full_error) for tile in tiles}
    header = {
        "kind": "pictures",
        "key": key,
        "digests": list(map(read_digest, messages.values())),
        "side": len(tiles[0].image),
        "channels": tiles[0].image.shape[-1],
        "cell": cell,
        "last_turn": last_turn(key),
    }
    settings = {"pinned": pinned, "texts": {**_texts(cell, full_error), "legend": legend}, "file_name": file_name}
    events = {"pin": pin, **setting_events(key, with_settings, on_turn, on_open)}
    mount(encode(header), key=key, events=events, settings=settings, panels=messages, receiver=_PICTURES)
    send_dragged_panel(key, {tile.key for tile in tiles}, redraw, partial(_pack, full_error=full_error), on_turn)


def _pack(tile: Tile, full_error: float) -> bytes:
    """Return the message of one image: its attention maps (``AttentionMaps``), its error map and its pixels."""
    header = {
        "kind": "part",
        **{name: getattr(tile, name) for name in _TEXTS},
        "knob": tile.knob and asdict(tile.knob),
        "has_error": tile.error is not None,
        "maps": 0 if tile.maps is None else len(tile.maps.peaks),
    }
    payload = b""
    if tile.maps is not None:
        payload += tile.maps.peaks.astype("<f4").tobytes() + tile.maps.levels.tobytes()
    if tile.error is not None:
        payload += _bytes(tile.error / full_error)
    return encode(header, payload + _bytes(tile.image))


def _bytes(values: np.ndarray) -> bytes:
    return (255 * values.clip(0, 1)).round().astype(np.uint8).tobytes()


def _texts(cell: int, full_error: float) -> dict[str, str]:
    """Return the board's texts in the visitor's language; the browser fills in the words in braces.

    Args:
        cell: side of the square of pixels whose attention is drawn as one value.
        full_error: error of a pixel that is drawn in the darkest colour.
    """
    return {
        "hint": _("Point at a pixel to see what it attends to."),
        "touch_hint": _("Tap a pixel to see what it attends to."),
        "at": _(
            "Attention of the pixel in row {row}, column {column} (blue: negative weights). Each picture has its own "
            "scale, up to its “max”. Click to keep the pixel selected."
        )
        + (" " + _("Each cell of the map covers {cell} × {cell} pixels.", cell=cell) if cell > 1 else ""),
        "largest": _("max {most}"),
        "error": _("Darker: larger error (white: 0, darkest: {most} or more).", most=f"{full_error:g}"),
        "image": _("Image"),
        "errors": _("Error"),
        "download": _("Save these images as PNG"),
        "help": _(
            "Images. Use the arrow keys to move to another pixel. Press Enter to keep the pixel selected, and Escape "
            "to release it."
        ),
    }
