"""Small pictures of attention matrices for HTML, written with the standard library and numpy."""

import base64
import struct
import zlib

import numpy as np
from torch import Tensor

POSITIVE, NEGATIVE = (40, 75, 168), (140, 57, 30)
"""Colours of the largest weight, and of a negative weight of the same size. A weight of zero is white."""


def thumbnail(weights: Tensor, alt: str) -> str:
    """Return a matrix as an HTML image that contains its own data: one pixel per cell, rows are queries.

    The colour scale ends at the 99.5th percentile of this matrix's absolute weights.

    Args:
        weights: ``[n, m]``.
        alt: description of the picture, as HTML.
    """
    values = weights.double().cpu().nan_to_num(0.0, 0.0, 0.0).numpy()
    strength = np.clip(np.abs(values) / (np.quantile(np.abs(values), 0.995) or 1.0), 0, 1)[..., None] ** 0.6
    colour = np.where(values[..., None] < 0, NEGATIVE, POSITIVE)
    data = base64.b64encode(_png((255 * (1 - strength) + colour * strength).astype(np.uint8))).decode()
    style = "width: 192px; image-rendering: pixelated"
    return f'<img class="matrix" style="{style}" alt="{alt}" src="data:image/png;base64,{data}">'


def _png(pixels: np.ndarray) -> bytes:
    """Return ``uint8 [height, width, 3]`` as a PNG file; each of its rows begins with 0, for no filter."""
    height, width, _ = pixels.shape
    scanlines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0))).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits per channel, red, green and blue
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(scanlines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
