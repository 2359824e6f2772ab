"""The sentences of the Picture page, as functions of its numbers."""

from collections.abc import Mapping, Sequence

from app.words.i18n import _, _n, enumeration, paragraph
from attention_core.analysis.denoised_image import Denoised

NEAR_MEAN = 0.05
"""Root mean square difference below which an image is almost the mean image, where white is 1."""


def names_of(names: Sequence[str]) -> str:
    """Return a list of names as words."""
    return enumeration(names)


def headline(found: Mapping[str, Denoised], noisy: float, mean: float) -> str:
    """Return which variants improve the image, which make it worse, and which return its mean.

    Args:
        found: the image that each variant returns, by the variant's name.
        noisy: peak signal-to-noise ratio of the noisy image in dB.
        mean: peak signal-to-noise ratio of the mean image in dB.
    """
    grey = [name for name, each in found.items() if each.from_mean < NEAR_MEAN]
    better = [name for name, each in found.items() if name not in grey and each.psnr > noisy]
    worse = [name for name in found if name not in grey and name not in better]
    best = max(found, key=lambda name: found[name].psnr)
    return paragraph(
        _n(
            "**{n} of {count} variant improves the image:** {names}.",
            "**{n} of {count} variants improve the image:** {names}.",
            n=len(better),
            count=len(found),
            names=names_of(better),
        )
        if better
        else _("**No variant improves the image.**"),
        _(
            "{name} is best: {psnr:.1f} dB, compared with {noisy:.1f} dB for the noisy image.",
            name=best,
            psnr=found[best].psnr,
            noisy=noisy,
        )
        if better
        else _("The noisy image has {noisy:.1f} dB.", noisy=noisy),
        _("Worse than the noisy image: {names}.", names=names_of(worse)) if worse else "",
        _n(
            "**Almost the mean of all pixels**, which has {mean:.1f} dB: {names}.",
            "**Almost the mean of all pixels**, which has {mean:.1f} dB: {names}.",
            n=len(grey),
            mean=mean,
            names=names_of(grey),
        )
        if grey
        else "",
    )


def units() -> str:
    """Return what the numbers and the error maps on the board are."""
    return _(
        "**dB** is the peak signal-to-noise ratio to the image without noise: 10 dB more means a tenth of the mean "
        "squared error. The error maps have one scale."
    )


def definition(patch: int, pixels: int) -> str:
    """Return how attention denoises an image.

    Args:
        patch: side of a patch in pixels.
        pixels: number of pixels.
    """
    return paragraph(
        _(
            "Each of the {pixels:,} pixels is a token. Its query and its key are the patch of {patch} × {patch} pixels "
            "around it, and its value is its colour.",
            pixels=pixels,
            patch=patch,
        ),
        _(
            "Softmax attention then computes **non-local means**: an average of all pixels, with larger weights "
            "for pixels with similar patches."
        ),
        _("No model is trained, and no image other than the noisy one is used."),
    )


def metrics() -> str:
    """Return the definitions of the table's columns."""
    return paragraph(
        _(
            "**PSNR** is the peak signal-to-noise ratio, −10 log₁₀ of the mean squared difference from the image "
            "without noise."
        ),
        _("**SSIM** is the structural similarity, which is 1 for equal images."),
        _(
            "**Difference from the mean** is the root mean square difference from the image whose pixels are all the "
            "mean of the noisy image."
        ),
        _("**Time** is that of one call on this server."),
    )
