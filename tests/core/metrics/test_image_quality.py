"""Tests of PSNR and SSIM against their definitions and scikit-image."""

import math

import numpy as np
import pytest
import torch

from attention_core.inputs import ImageSource
from attention_core.metrics.image_quality import psnr, ssim

SOURCE = ImageSource(size=24)
CLEAN, NOISY = SOURCE.clean(), SOURCE.noisy()


def windows(image):
    """Return all windows of 7 x 7 pixels of a channel, ``[windows, 49]``."""
    return np.lib.stride_tricks.sliding_window_view(image, (7, 7)).reshape(-1, 49)


def test_an_image_compared_with_itself_has_perfect_quality():
    assert psnr(CLEAN, CLEAN) == math.inf
    assert ssim(CLEAN, CLEAN) == pytest.approx(1)


def test_an_error_of_a_tenth_is_20_decibels():
    assert psnr(CLEAN + 0.1, CLEAN) == pytest.approx(20)


def test_ssim_is_the_mean_over_all_windows_and_channels():
    found = []
    for channel in range(3):
        for x, y in zip(windows(NOISY[..., channel].numpy()), windows(CLEAN[..., channel].numpy()), strict=True):
            (varx, cov), (_, vary) = np.cov(x, y)
            means = (2 * x.mean() * y.mean() + 1e-4) / (x.mean() ** 2 + y.mean() ** 2 + 1e-4)
            found.append(means * (2 * cov + 9e-4) / (varx + vary + 9e-4))
    assert ssim(NOISY, CLEAN) == pytest.approx(np.mean(found))


def test_psnr_and_ssim_agree_with_scikit_image():
    metrics = pytest.importorskip("skimage.metrics")
    one, other = NOISY.numpy(), CLEAN.numpy()
    assert psnr(NOISY, CLEAN) == pytest.approx(metrics.peak_signal_noise_ratio(other, one, data_range=1))
    wanted = metrics.structural_similarity(other, one, channel_axis=-1, data_range=1)
    assert ssim(NOISY, CLEAN) == pytest.approx(wanted)


def test_psnr_in_float32_equals_float64_and_ssim_of_zeros_is_finite():
    assert psnr(NOISY.float(), CLEAN.float()) == pytest.approx(psnr(NOISY, CLEAN), abs=1e-3)
    assert torch.isfinite(torch.tensor(ssim(torch.zeros(8, 8, 1), torch.zeros(8, 8, 1))))
