"""Miniatures of softmax for every head of a model, from which one is chosen."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from app.matrix_board.component import encode, mount
from app.words.i18n import _

_MASKED = np.uint8(255)  # the other bytes are places along the colour ramp


@dataclass(frozen=True)
class Named:
    """A head as it is told of.

    Attributes:
        layer: from 0.
        head: from 0.
        note: under its picture, where heads stand one after the other.
        told: on hover, and to who cannot see it.
    """

    layer: int
    head: int
    note: str = ""
    told: str = ""


def thumbnail_board(
    images: np.ndarray,
    *,
    selected: tuple[int, int | None] | None,
    key: str,
    on_choose: Callable[[tuple[int, int]], None] | None = None,
    height: int = 420,
    largest: int = 56,
    names: Sequence[Named] = (),
    in_order: bool = False,
    reveal: bool = False,
) -> None:
    """Show one miniature per head: rows are layers, columns heads; or the heads named, one after the other.

    Each miniature has its own colour scale, of square roots: heads are told apart by where they look, not by how much.

    Args:
        images: ``[L, H, s, s]``, as ``shades`` makes them.
        selected: the (layer, head) in use; a head that is None or negative (an average) marks its whole layer.
        key: the element's key, unique in the app.
        on_choose: called with the (layer, head) chosen before the next run of the script, as other widgets' callbacks
            are.
        height: the board's height in pixels, where that leaves a head at least twelve.
        largest: the side of a miniature at most, in pixels.
        names: what is said of heads.
        in_order: whether only the heads named are shown, in their order, as large as they may be.
        reveal: whether the page scrolls to the pictures.
    """
    layer, head = selected or (None, None)
    settings = {
        "selected": None if layer is None else [layer, head if head is not None and head >= 0 else None],
        "height": height,
        "largest": largest,
        "names": [list(astuple(each)) for each in names],
        "in_order": in_order,
        "reveal": reveal,
        "words": {
            "layer": _("layer"),
            "head": _("head"),
            "layer_mark": _("L"),
            "head_mark": _("H"),
            "help": _("Heads of the model, layers from top to bottom. Arrow keys move, Enter chooses."),
        },
    }

    def choose(reported: object) -> None:
        if on_choose and isinstance(reported, list):
            on_choose((int(reported[0]), int(reported[1])))

    mount(pack_thumbnails(images, key=key), key=key, events={"choose": choose}, settings=settings)


def shades(images: np.ndarray) -> np.ndarray:
    """Miniatures as they are drawn, one byte per cell.

    Args:
        images: ``[L, H, s, s]``, not negative; NaN where a query may not look.

    Returns:
        ``uint8 [L, H, s, s]``.

    Raises:
        ValueError: if the images are not ``[L, H, s, s]`` or hold infinities or negative numbers.
    """
    values = np.asarray(images, dtype=np.float32)
    if values.ndim != 4 or 0 in values.shape or values.shape[2] != values.shape[3]:
        raise ValueError(f"miniatures must be [layers, heads, size, size], not {values.shape}")
    masked = np.isnan(values)
    values = np.where(masked, np.float32(0), values)
    if np.isinf(values).any() or (values < 0).any():
        raise ValueError("miniatures must be finite and not negative")
    largest = values.max(axis=(-2, -1), keepdims=True)
    places: np.ndarray = np.rint(np.sqrt(values / np.where(largest > 0, largest, 1)) * 254).astype(np.uint8)
    places[masked] = _MASKED
    return places


def pack_thumbnails(images: np.ndarray, *, key: str) -> bytes:
    """The miniatures' message to the browser; arguments as of ``thumbnail_board``."""
    layers, heads, size, _size = images.shape
    return encode({"kind": "heads", "key": key, "layers": layers, "heads": heads, "size": size}, images.tobytes())
