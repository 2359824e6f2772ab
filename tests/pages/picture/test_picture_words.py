"""Tests of the sentences of the Picture page on each side of each branch."""

import numpy as np
import pytest

from attention_core.analysis.denoised_image import Denoised
from pages.picture import words


def image(psnr, from_mean=0.2):
    pixels = np.zeros((16, 16, 1), np.float32)
    return Denoised(image=pixels, error=pixels[..., 0], psnr=psnr, ssim=0.5, from_mean=from_mean, seconds=0.1)


def test_every_kind_of_variant_is_named_once():
    found = {"Softmax": image(25.21), "Local": image(22.0), "Performer": image(12.0), "Linear": image(10.8, 0.01)}
    assert words.headline(found, 20.0, 11.0) == (
        "**2 of 4 variants improve the image:** Softmax, Local. Softmax is best: 25.2 dB, compared with 20.0 dB for "
        "the noisy image. Worse than the noisy image: Performer. **Almost the mean of all pixels**, which "
        "has 11.0 dB: Linear."
    )


def test_one_variant_alone():
    assert words.headline({"Softmax": image(25.2)}, 20.0, 11.0) == (
        "**1 of 1 variant improves the image:** Softmax. Softmax is best: 25.2 dB, compared with 20.0 dB for the noisy "
        "image."
    )


def test_no_variant_improves_an_image_without_noise():
    assert words.headline({"Softmax": image(25.2)}, 60.0, 11.0) == (
        "**No variant improves the image.** The noisy image has 60.0 dB. Worse than the noisy image: Softmax."
    )


@pytest.mark.parametrize(("from_mean", "is_grey"), [(0.0499, True), (0.05, False)])
def test_an_image_close_to_the_mean_counts_as_the_mean(from_mean, is_grey):
    text = words.headline({"Linear": image(10.8, from_mean)}, 9.0, 11.0)
    assert ("Almost the mean" in text) == is_grey
    assert ("improves the image:" in text) == (not is_grey)
