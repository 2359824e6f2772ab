"""A small picture of a matrix for cards, without axes or tooltips; each entry is a block of pixels."""

import base64
import io

import numpy as np
from PIL import Image

from app.figures.theme import DARK, LIGHT, sample_ramp


def picture(values: np.ndarray, *, dark: bool, side: int = 320) -> np.ndarray:
    """Colour a matrix by the square root of each entry's share of the largest; negative entries have their own ramp.

    Args:
        values: matrix ``[n, n]``; NaN where a pair is masked.
        dark: whether the page is dark.
        side: smallest side length in pixels.

    Returns:
        RGB picture, ``uint8 [s, s, 3]``.
    """
    ramps = DARK if dark else LIGHT
    masked = np.isnan(values)
    sizes = np.abs(np.where(masked, 0.0, values))
    share = np.sqrt(sizes / (sizes.max() or 1.0))
    negative = values < 0
    colours = np.where(negative[..., None], sample_ramp(ramps.negative, share), sample_ramp(ramps.positive, share))
    colours[masked] = ramps.masked
    block = np.ones((-(-side // len(values)),) * 2 + (1,), np.uint8)
    return np.kron(np.rint(colours).astype(np.uint8), block)


def data_url(values: np.ndarray, *, dark: bool) -> str:
    """Return the picture of a matrix as the data URL of a PNG, one pixel for each query–key pair."""
    file = io.BytesIO()
    Image.fromarray(picture(values, dark=dark, side=1)).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
