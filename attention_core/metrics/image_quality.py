"""Measures of the similarity of two images: the peak signal-to-noise ratio and the structural similarity."""

import math

import torch
from torch import Tensor

WINDOW = 7
"""Side of the window of the structural similarity, as in scikit-image."""


def psnr(image: Tensor, clean: Tensor) -> float:
    """Return the peak signal-to-noise ratio in dB, ``-10 log10(mean squared error)``; infinite for equal images.

    Args:
        image: ``[h, w, c]``, where black is 0 and white is 1.
        clean: the image without noise, of the same shape.
    """
    error = (image.double() - clean.double()).square().mean().item()
    return -10 * math.log10(error) if error > 0 else math.inf


def ssim(image: Tensor, clean: Tensor) -> float:
    """Return the structural similarity, the mean over all windows of 7 x 7 pixels and all channels; at most 1.

    Source: Wang et al. 2004, doi 10.1109/TIP.2003.819861, with scikit-image's uniform window and sample variances.

    Args:
        image: ``[h, w, c]`` with at least 7 rows and columns, where black is 0 and white is 1.
        clean: the image without noise, of the same shape.
    """

    def mean(x: Tensor) -> Tensor:
        return torch.nn.functional.avg_pool2d(x.permute(2, 0, 1), WINDOW, 1)

    x, y = image.double(), clean.double()
    mean_x, mean_y = mean(x), mean(y)
    sample = WINDOW**2 / (WINDOW**2 - 1)
    var_x, var_y = sample * (mean(x * x) - mean_x**2), sample * (mean(y * y) - mean_y**2)
    covariance = sample * (mean(x * y) - mean_x * mean_y)
    c1, c2 = 0.01**2, 0.03**2
    similar = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    return (similar / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))).mean().item()
