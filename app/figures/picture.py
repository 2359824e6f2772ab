"""Small pictures for cards, without axes or tooltips: a matrix, pixels, curves, and a text with tinted words."""

import base64
import io
from collections.abc import Sequence
from urllib.parse import quote

import numpy as np
from PIL import Image

from app.figures.theme import DARK, LIGHT, SERIES, sample_ramp

WIDTH, HEIGHT = 152, 72
"""Pixels of a picture of curves or words."""
MARGIN = 10
LINE = 8
"""Height of a line of text."""


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
    return _png_url(picture(values, dark=dark, side=1))


def pixels_url(pixels: np.ndarray) -> str:
    """Return an image, ``[height, width, 3]`` from 0 to 1, as the data URL of a PNG."""
    return _png_url(np.rint(255 * np.clip(pixels, 0, 1)).astype(np.uint8))


def curves_url(lines: Sequence[Sequence[tuple[float, float]]], *, dark: bool) -> str:
    """Return a picture of curves, each in its own colour, on axes that fit all of them.

    Args:
        lines: the points of each curve.
        dark: whether the page is dark.
    """
    points = np.array([point for line in lines for point in line], float)
    low, high = points.min(0), points.max(0)
    scale = (np.array((WIDTH, HEIGHT)) - 2 * MARGIN) / np.where(high > low, high - low, 1)
    drawn = []
    for line, colour in zip(lines, SERIES, strict=False):
        places = MARGIN + (np.array(line, float) - low) * scale
        path = " ".join(f"{x:.1f},{HEIGHT - y:.1f}" for x, y in places)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
    return _svg_url("".join(drawn), dark=dark)


def words_url(lengths: Sequence[int], tints: Sequence[float], *, dark: bool) -> str:
    """Return a picture of a text as blocks: words that are harder to predict are orange, easier ones blue.

    Args:
        lengths: the number of characters of each word.
        tints: how much harder each word is to predict; negative if easier.
        dark: whether the page is dark.
    """
    most, x, y, drawn = max(map(abs, tints), default=0.0) or 1.0, MARGIN, MARGIN, []
    for length, tint in zip(lengths, tints, strict=True):
        if x + length > WIDTH - MARGIN:
            x, y = MARGIN, y + LINE
        if y + LINE > HEIGHT - MARGIN:
            break
        colour, opacity = SERIES[int(tint > 0)], min(1.0, 0.15 + abs(tint) / most)
        drawn.append(
            f'<rect x="{x}" y="{y}" width="{length}" height="{LINE - 3}" fill="{colour}" opacity="{opacity:.2f}"/>'
        )
        x += length + 2
    return _svg_url("".join(drawn), dark=dark)


def _png_url(pixels: np.ndarray) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def _svg_url(content: str, *, dark: bool) -> str:
    ground = "rgb({:.0f},{:.0f},{:.0f})".format(*(DARK if dark else LIGHT).masked)
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{ground}"/>{content}</svg>'
    )
    return "data:image/svg+xml," + quote(text)
