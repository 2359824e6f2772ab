"""Images as input: each pixel is a token, its query and key are the patch around it, and its value is its colour.

Softmax attention over patches is the denoising method non-local means: each pixel becomes an average of all pixels,
weighted by how similar their patches are. Source: Buades et al. 2005, doi 10.1109/CVPR.2005.38.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from attention_core.errors import InputError, Notice
from attention_core.inputs.npz import printable
from attention_core.inputs.record import QKV
from attention_core.limits import current

if TYPE_CHECKING:  # only for types, because the library can be installed without Pillow
    from PIL import Image

FOLDER = Path(__file__).parent / "photos"
PHOTOS = ("portrait", "camera")
"""Names of the included photographs; ``photos/LICENSES.txt`` states their sources and licences."""
MIN_SIDE, MAX_SIDE = 16, 64
"""Bounds of the side of the pixel grid."""
PATCHES = (3, 5, 7)
"""Sides of a patch in pixels from which a user can choose; all are odd, so that a patch has a central pixel."""
FORMATS = ("PNG", "JPEG")


@lru_cache(4)
def included(name: str) -> bytes:
    """Return the bytes of the PNG file of an included photograph; ``name`` is one of ``PHOTOS``."""
    return (FOLDER / f"{name}.png").read_bytes()


def read_photo(data: bytes, name: str, size: int) -> tuple[Tensor, tuple[Notice, ...]]:
    """Read a PNG or JPEG file as a square grid of pixels.

    The central square of the image is used. Transparent parts become white.

    Args:
        data: content of the file.
        name: name of the file, for messages.
        size: side of the grid in pixels.

    Returns:
        The pixels, ``[size, size, c]`` float64 from 0 to 1 with c = 1 (grey) or 3 (colour), and notices about every
        change of the image.

    Raises:
        InputError: for any other file; the message says what is wrong and what to do.
    """
    from PIL import Image

    file, limits = printable(name), current()
    if not data:
        raise InputError("{file} is empty. Upload a PNG or JPEG image.", file=file)
    if len(data) > limits.photo_bytes:
        raise InputError(
            "{file} has {size:,} bytes. Upload an image of at most {most:,} bytes.",
            file=file,
            size=len(data),
            most=limits.photo_bytes,
        )
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise _too_large(file, limits.photo_pixels) from error
    except Exception as error:  # Pillow raises many kinds of errors for damaged files
        raise InputError("{file} is not a PNG or JPEG image. Save it as PNG or JPEG.", file=file) from error
    width, height = image.size
    if width * height > limits.photo_pixels:  # checked before anything is unpacked
        raise _too_large(file, limits.photo_pixels)
    if min(width, height) < MIN_SIDE:
        raise InputError(
            "{file} has {width} × {height} pixels. Upload an image with at least {least} × {least} pixels.",
            file=file,
            width=width,
            height=height,
            least=MIN_SIDE,
        )
    notices = []
    if getattr(image, "n_frames", 1) > 1:
        notices.append(Notice("The image is animated. Only its first frame is used."))
    try:
        pixels = _square(image, size, notices.append)
    except Exception as error:  # Pillow raises many kinds of errors for damaged image data, too
        raise InputError("{file} is damaged and cannot be read. Save the image again.", file=file) from error
    if (width, height) != (size, size):
        notice = Notice(
            "The central square of the image ({width} × {height} pixels) was resized to {size} × {size} pixels.",
            (("width", width), ("height", height), ("size", size)),
        )
        notices.append(notice)
    return pixels, tuple(notices)


def _too_large(file: str, most: int) -> InputError:
    return InputError(
        "{file} has too many pixels. Upload an image of at most {most} million pixels.", file=file, most=most // 10**6
    )


def _square(image: Image.Image, size: int, notify: Callable[[Notice], None]) -> Tensor:
    """Return the central square of an image, ``[size, size, c]`` from 0 to 1; ``notify`` receives each notice."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):
        notify(Notice("The image has 16 bits for each pixel. It was converted to 8 bits."))
        image = Image.fromarray((np.asarray(image, np.float64) / 257).round().clip(0, 255).astype(np.uint8))
    if image.mode == "CMYK":
        notify(Notice("The image uses CMYK, the colours for printing. It was converted to red, green and blue."))
    if image.has_transparency_data:
        notify(Notice("The image is partly transparent. Transparent parts are shown in white."))
        rgba = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba)
    is_grey = image.mode in ("1", "L")
    square = ImageOps.fit(image.convert("L" if is_grey else "RGB"), (size, size), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.asarray(square, np.float64).reshape(size, size, -1) / 255)


def add_noise(pixels: Tensor, noise: float, seed: int) -> Tensor:
    """Return the pixels plus Gaussian noise of standard deviation ``noise``; values may leave the range from 0 to 1."""
    return pixels + noise * torch.from_numpy(np.random.default_rng(seed).standard_normal(tuple(pixels.shape)))


def patches(pixels: Tensor, side: int) -> Tensor:
    """Return the patch around each pixel; the image is mirrored at its edges.

    Pixels of a patch are multiplied by the square root of a weight, so that the squared distance of two patches is a
    weighted mean of squared differences. The weights are a Gaussian with standard deviation (side - 1) / 4 around the
    patch's centre and sum to one, as in scikit-image.

    Args:
        pixels: ``[h, w, c]``.
        side: side s of the patch, odd.

    Returns:
        ``[h * w, s * s * c]``.
    """
    channels, half = pixels.shape[-1], side // 2
    padded = torch.nn.functional.pad(pixels.permute(2, 0, 1)[None], (half,) * 4, mode="reflect")
    pixel_patches = torch.nn.functional.unfold(padded, side)[0].mT  # [h * w, c * s * s]
    offset = torch.arange(-half, half + 1, dtype=pixels.dtype)
    gaussian = torch.exp(-(offset**2) / (2 * ((side - 1) / 4) ** 2))
    kernel = gaussian.outer(gaussian)
    return pixel_patches * (kernel / kernel.sum() / channels).sqrt().flatten().repeat(channels)


def from_pixels(pixels: Tensor, *, patch: int, strength: float, origin: str, notices: tuple[Notice, ...] = ()) -> QKV:
    """Return the ``QKV`` of an image; the logits of patches p are ``-||p_i - p_j||² / h²`` up to a constant per query.

    With one extra coordinate, the logit is an inner product: ``[2 p_i / h², 1] · [p_j, -||p_j||² / h²]``. It lacks
    ``-||p_i||² / h²``, which is the same for all keys and does not change softmax. The mean patch is subtracted from
    all patches, which changes no distance and keeps the numbers small.

    Args:
        pixels: the noisy image, ``[h, w, c]``.
        patch: side of a patch in pixels.
        strength: the filter strength h of non-local means; a smaller value makes attention sharper.
        origin: name of the image, for captions.
        notices: messages for the user.
    """
    height, width, channels = pixels.shape
    p = patches(pixels, patch)
    p = p - p.mean(0)
    sharpness = strength**-2
    ones = torch.ones_like(p[:, :1])
    q = torch.cat([2 * sharpness * p, ones], -1)
    k = torch.cat([p, -sharpness * p.square().sum(-1, keepdim=True)], -1)
    n, d = q.shape
    return QKV.of_tokens(
        (q * d**0.5)[None].float(),
        k[None].float(),
        pixels.reshape(1, n, channels).float(),
        tuple(f"{row},{column}" for row in range(height) for column in range(width)),
        causal=False,
        origin=origin,
        notices=notices,
        grid=(height, width),
    )
