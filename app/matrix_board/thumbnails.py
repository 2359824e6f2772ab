"""Small pictures of softmax's attention matrix in every head of a model, from which the visitor chooses a head."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from app.board_messages.packing import encode
from app.matrix_board.component import mount
from app.words.i18n import C_, _

_MASKED = np.uint8(255)  # A masked cell. Smaller bytes are positions on the colour scale.


@dataclass(frozen=True)
class HeadLabel:
    """A head with its descriptions.

    Attributes:
        layer: the layer's index, from 0.
        head: the head's index, from 0.
        note: the text under its thumbnail, if heads are shown in order.
        description: the text on hover, and for screen readers.
    """

    layer: int
    head: int
    note: str = ""
    description: str = ""


def thumbnail_board(
    images: np.ndarray,
    *,
    selected: tuple[int, int | None] | None,
    key: str,
    on_choose: Callable[[tuple[int, int]], None] | None = None,
    height: int = 420,
    max_size: int = 56,
    heads: Sequence[HeadLabel] = (),
    in_order: bool = False,
    reveal: bool = False,
) -> None:
    """Draw one thumbnail per head, with layers as rows and heads as columns, or only the named heads in order.

    Each thumbnail has its own square-root colour scale, so it shows where a head attends, not how strongly.

    Args:
        images: ``uint8 [layers, heads, s, s]`` from ``shades``, with s cells per side.
        selected: the chosen (layer, head). If the head is None or negative (the average of all heads), the whole
            layer is marked.
        key: the element's key, unique in the app.
        on_choose: called with the chosen (layer, head) before the script's next run, like other widgets' callbacks.
        height: the largest height of the board in pixels, unless thumbnails would be less than 12 pixels high.
        max_size: the largest side of a thumbnail, in pixels.
        heads: the descriptions of heads.
        in_order: whether only the named heads are shown, in their order, as large as possible.
        reveal: whether the page scrolls to the thumbnails.
    """
    layer, head = selected or (None, None)
    settings = {
        "selected": None if layer is None else [layer, head if head is not None and head >= 0 else None],
        "height": height,
        "max_size": max_size,
        "heads": [list(astuple(each)) for each in heads],
        "in_order": in_order,
        "reveal": reveal,
        "texts": {
            "place": _("layer {layer}, head {head}"),
            "layer_mark": _(C_("short for layer", "L")),
            "head_mark": _(C_("short for head", "H")),
            "help": _(
                "Heads of the model, with layers from top to bottom. Use the arrow keys to move between "
                "heads, and Enter to select a head."
            ),
        },
    }

    def choose(event: object) -> None:
        if on_choose and isinstance(event, list):
            on_choose((int(event[0]), int(event[1])))

    mount(pack_thumbnails(images, key=key), key=key, events={"choose": choose}, settings=settings)


def shades(images: np.ndarray) -> np.ndarray:
    """Return thumbnails of matrices with one byte per cell: its place on the colour scale, 0 to 254, or 255 if masked.

    Args:
        images: the matrices of L layers and H heads, ``[L, H, s, s]``, not negative; NaN for masked pairs.

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
    shade_codes: np.ndarray = np.rint(np.sqrt(values / np.where(largest > 0, largest, 1)) * 254).astype(np.uint8)
    shade_codes[masked] = _MASKED
    return shade_codes


def pack_thumbnails(images: np.ndarray, *, key: str) -> bytes:
    """Return the thumbnails' message to the browser; arguments are as in ``thumbnail_board``."""
    layers, heads, size, _size = images.shape
    return encode({"kind": "heads", "key": key, "layers": layers, "heads": heads, "size": size}, images.tobytes())
