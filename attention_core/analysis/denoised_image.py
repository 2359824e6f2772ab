"""Denoising of images whose pixels are tokens, and maps of the pixels to which each pixel attends."""

import time
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from attention_core.attention import Attention
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.metrics.image_quality import psnr, ssim
from attention_core.ops.softmax.masked import masked_softmax, scores

MAX_CELLS = 1024
"""Largest number of cells of an attention map: the maps of all cells of one variant are then at most a megabyte."""
LEVELS = 127
"""Number of levels of a weight in a map, on either side of zero."""


class DenoisedImage(CompactRepr):
    """An image as a variant returns it, compared with the image without noise.

    Attributes:
        image: the pixels, ``[h, w, c]`` float32.
        error: mean absolute difference from the image without noise over the channels, ``[h, w]`` float32.
        psnr: peak signal-to-noise ratio in dB.
        ssim: structural similarity.
        distance_from_mean: root mean square difference from the plain mean of the noisy image's pixels.
        seconds: seconds that the variant took.
    """

    image: np.ndarray
    error: np.ndarray
    psnr: float
    ssim: float
    distance_from_mean: float
    seconds: float


def denoise(qkv: QKV, clean: Tensor, attention: Attention) -> DenoisedImage:
    """Return the image that a variant makes of a noisy image, compared with the image without noise.

    Args:
        qkv: the queries, keys and values of the whole noisy image.
        clean: the image without noise, ``[h, w, c]``.
        attention: the variant.
    """
    start = time.perf_counter()
    output = attention.attend(*qkv.tensors)
    seconds = time.perf_counter() - start
    return assess(output[0].reshape(clean.shape), clean, mean_image(qkv.v[0].reshape(clean.shape)), seconds=seconds)


def assess(image: Tensor, clean: Tensor, mean: Tensor, *, seconds: float = 0.0) -> DenoisedImage:
    """Return an image with its measures of quality, from a comparison with the image without noise and the mean image.

    Args:
        image: ``[h, w, c]``.
        clean: the image without noise, of the same shape.
        mean: the mean image, of the same shape.
        seconds: seconds spent computing the image.
    """
    image, clean, mean = image.double(), clean.double(), mean.double()
    return DenoisedImage(
        image=image.float().numpy(),
        error=(image - clean).abs().mean(-1).float().numpy(),
        psnr=psnr(image, clean),
        ssim=ssim(image, clean),
        distance_from_mean=(image - mean).square().mean().sqrt().item(),
        seconds=seconds,
    )


def mean_image(noisy: Tensor) -> Tensor:
    """Return the image whose pixels are all the mean of all pixels, ``[h, w, c]``: the output of uniform attention."""
    return noisy.mean((0, 1), keepdim=True).expand_as(noisy)


def box_blur(noisy: Tensor) -> Tensor:
    """Return the image in which every pixel is the mean of the 3 x 3 pixels around it, ``[h, w, c]``."""
    padded = torch.nn.functional.pad(noisy.permute(2, 0, 1)[None], (1, 1, 1, 1), mode="reflect")
    return torch.nn.functional.avg_pool2d(padded, 3, 1)[0].permute(1, 2, 0)


def cell_side(side: int) -> int:
    """Return the side in pixels of the square cells into which attention maps divide an image with this side."""
    return next(cell for cell in range(1, side + 1) if side % cell == 0 and (side // cell) ** 2 <= MAX_CELLS)


class AttentionMaps(CompactRepr):
    """The attention of one pixel of each cell (a square of pixels) to all cells.

    Attributes:
        levels: ``[rows, cells]`` int8, one row per cell: the weights as integers, scaled so that each row's largest
            magnitude is ``LEVELS``. ``maps_with_mean`` adds a row.
        peaks: the largest magnitude of a weight of each row, ``[rows]`` float32.
        largest: the largest weight on one pixel, as a multiple of the uniform weight 1/n; median over the rows.
    """

    levels: np.ndarray
    peaks: np.ndarray
    largest: float


def attention_maps(qkv: QKV, attention: Attention) -> AttentionMaps:
    """Return the attention from each cell's upper left pixel to every cell, summed over the pixels of that cell.

    Args:
        qkv: the queries, keys and values of a whole square image.
        attention: the variant.
    """
    assert qkv.grid is not None
    side = qkv.grid[0]
    cell = cell_side(side)
    cells, first = side // cell, _first_pixels(side)
    if attention.variant.mask is None:
        rows = attention.weights(qkv.q, qkv.k)[0][first]
    else:  # each row is a masked softmax of its own, so only the needed rows are computed
        rows = masked_softmax(scores(qkv.q[0, first], qkv.k[0]), _allowed_rows(attention, side))
    sums = rows.reshape(-1, cells, cell, cells, cell).sum((2, 4)).flatten(1)
    return _maps(sums, side**2 * rows.amax(-1).median().item())


def _first_pixels(side: int) -> Tensor:
    """Return the index of each cell's upper left pixel in an image with this side, ``[cells]``."""
    cell = cell_side(side)
    return torch.arange(side**2).reshape(side, side)[::cell, ::cell].flatten()


@lru_cache(maxsize=8)  # more than there are variants with a fixed mask; a result takes up to 4 MiB
def _allowed_rows(attention: Attention, side: int) -> Tensor:
    """Return the keys that a variant's fixed mask allows to each cell's upper left pixel, ``bool [cells, n]``."""
    mask = attention.mask(side**2)
    assert mask is not None
    return mask[_first_pixels(side)]


def maps_with_mean(weights: np.ndarray) -> AttentionMaps:
    """Return attention maps with one row per pixel, and a last row with the mean attention that each pixel receives.

    Args:
        weights: an attention matrix over pixels, ``[n, n]``; NaN for pairs that are not allowed.
    """
    rows = torch.tensor(weights).nan_to_num(0.0)
    return _maps(torch.cat([rows, rows.mean(0, keepdim=True)]), len(rows) * rows.amax(-1).median().item())


def _maps(sums: Tensor, largest: float) -> AttentionMaps:
    peaks = sums.abs().amax(-1)
    levels = (LEVELS * sums / peaks.clamp(min=torch.finfo(sums.dtype).tiny)[:, None]).round()
    return AttentionMaps(levels=levels.to(torch.int8).numpy(), peaks=peaks.float().numpy(), largest=largest)
