"""The images on the Picture page: the original photograph, the noisy one, and the image that each variant returns."""

from dataclasses import dataclass

import numpy as np

import attention_core as ac
from app.jobs import cached
from app.state.session import REFERENCE
from attention_core.analysis.denoised_image import DenoisedImage, assess, box_blur, mean_image
from attention_core.inputs.image_source import ImageSource
from pages.picture.subject import shown_variants


@dataclass(frozen=True, eq=False)
class Images:
    """The images on the page.

    Attributes:
        source: the noisy image.
        variants: the image that each variant returns.
        noisy: the noisy image.
        mean: the mean image.
        blur: the image in which every pixel is the mean of 3 x 3 pixels of the noisy image.
        clean: the image without noise.
    """

    source: ImageSource
    variants: dict[ac.Attention, DenoisedImage]
    noisy: DenoisedImage
    mean: DenoisedImage
    blur: DenoisedImage
    clean: np.ndarray

    @property
    def softmax(self) -> DenoisedImage:
        """The image that softmax returns."""
        return next(image for each, image in self.variants.items() if each.key == REFERENCE)


def compute_images(source: ImageSource) -> Images:
    """Compute the images of all chosen variants."""
    clean, noisy = source.clean(), source.noisy()
    mean = mean_image(noisy)
    variants = {each: cached.denoised(source, each) for each in shown_variants(source.size)}
    noisy_image, mean_image_, blur = (assess(image, clean, mean) for image in (noisy, mean, box_blur(noisy)))
    return Images(source, variants, noisy_image, mean_image_, blur, clean.float().numpy())
