"""Small pictures of matrices, images, curves, sentences or question marks, without axes or tooltips.

All functions except ``picture`` return data URLs.
"""

import base64
import html
import io
from collections.abc import Collection, Sequence
from urllib.parse import quote

import numpy as np
from PIL import Image

from app.figures.theme import DARK, LIGHT, SERIES, sample_ramp

WIDTH, HEIGHT = 152, 72
"""Pixels of a picture of curves or words."""
MARGIN = 10
TYPE, LETTER, LINE = 12, 7.2, 16
"""Size of the type, width of a letter and height of a line of text, in pixels."""
MARK_COLOUR = SERIES[1]
"""Background colour of marked words: orange."""
INK = {False: "#31333f", True: "#fafafa"}
"""Colour of text, by whether the page is dark."""


def picture(values: np.ndarray, *, dark: bool, side: int = 320, top: float | None = None) -> np.ndarray:
    """Colour a matrix by ``sqrt(magnitude / largest magnitude)``; negative entries have their own colour ramp.

    Args:
        values: matrix ``[n, n]``; NaN where a pair is masked.
        dark: whether the page is dark.
        side: smallest side length ``s`` of the picture in pixels; each entry is a square of whole pixels.
        top: the magnitude with the darkest colour; None for the largest one.

    Returns:
        RGB picture, ``uint8 [s, s, 3]``.
    """
    ramps = DARK if dark else LIGHT
    masked = np.isnan(values)
    sizes = np.abs(np.where(masked, 0.0, values))
    share = np.sqrt(np.minimum(sizes / (top or sizes.max() or 1.0), 1.0))
    negative = values < 0
    colours = np.where(negative[..., None], sample_ramp(ramps.negative, share), sample_ramp(ramps.positive, share))
    colours[masked] = ramps.masked
    block = np.ones((-(-side // len(values)),) * 2 + (1,), np.uint8)
    return np.kron(np.rint(colours).astype(np.uint8), block)


def data_url(values: np.ndarray, *, dark: bool, top: float | None = None, hides_masked: bool = False) -> str:
    """Return the picture of a matrix as the data URL of a PNG, one pixel for each query–key pair.

    With ``hides_masked``, masked pairs are transparent, so that the picture's background shows there.
    """
    pixels = picture(values, dark=dark, side=1, top=top)
    if hides_masked:
        pixels = np.dstack([pixels, np.where(np.isnan(values), 0, 255).astype(np.uint8)])
    return _png_url(pixels)


def pixels_url(pixels: np.ndarray) -> str:
    """Return an image, ``[height, width, 3]`` from 0 to 1, as the data URL of a PNG."""
    return _png_url(np.rint(255 * np.clip(pixels, 0, 1)).astype(np.uint8))


def curve_url(points: Sequence[tuple[float, float]], colour: str, unknown: str, *, dark: bool) -> str:
    """Return the data URL of an SVG picture: a curve, and a question mark in place of a second, unknown curve.

    The points are scaled so that they fill the picture. ``unknown`` is the colour of the question mark.
    """
    line = np.array(points, float)
    low, high = line.min(0), line.max(0)
    scale = (np.array((WIDTH, HEIGHT)) - 2 * MARGIN) / np.where(high > low, high - low, 1)
    path = " ".join(f"{x:.1f},{HEIGHT - y:.1f}" for x, y in MARGIN + (line - low) * scale)
    curve = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
    place = f'x="{WIDTH - 3 * MARGIN}" y="{HEIGHT - 2 * MARGIN}" text-anchor="middle"'
    mark = (
        f'<text {place} font-family="sans-serif" font-size="{HEIGHT / 3}" font-weight="bold" fill="{unknown}">?</text>'
    )
    return _svg_url(curve + mark, dark=dark)


def words_url(words: Sequence[str], marked: Collection[int], *, dark: bool) -> str:
    """Return the data URL of an SVG picture of a sentence, with an orange background behind the ``marked`` words."""
    font = f'font-family="monospace" font-size="{TYPE}" fill="{INK[dark]}"'
    x, y, elements = float(MARGIN), LINE, []
    for i, word in enumerate(words):
        width = LETTER * len(word)
        if x + width > WIDTH - MARGIN:
            x, y = MARGIN, y + LINE
        if i in marked:
            mark = f'fill="{MARK_COLOUR}" opacity="0.5" rx="2"'
            elements.append(f'<rect x="{x - 1:.1f}" y="{y - TYPE}" width="{width + 2:.1f}" height="{LINE}" {mark}/>')
        elements.append(f'<text x="{x:.1f}" y="{y}" {font}>{html.escape(word)}</text>')
        x += width + LETTER
    return _svg_url("".join(elements), dark=dark)


def unknown_url(*, dark: bool) -> str:
    """Return the data URL of a square SVG picture of a question mark, for a result that a visitor has to predict."""
    middle = f'x="{HEIGHT / 2}" y="{HEIGHT / 2}" text-anchor="middle" dominant-baseline="central"'
    mark = f'<text {middle} font-family="sans-serif" font-size="{HEIGHT / 2}" fill="{INK[dark]}">?</text>'
    return _svg_url(mark, dark=dark, width=HEIGHT)


def _png_url(pixels: np.ndarray) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def _svg_url(content: str, *, dark: bool, width: int = WIDTH) -> str:
    ground = "rgb({:.0f},{:.0f},{:.0f})".format(*(DARK if dark else LIGHT).masked)
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}">'
        f'<rect width="{width}" height="{HEIGHT}" fill="{ground}"/>{content}</svg>'
    )
    return "data:image/svg+xml," + quote(text)
