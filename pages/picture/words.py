"""The sentences of the Picture page, as functions of its numbers."""

import math
from collections.abc import Mapping, Sequence

from app.words.i18n import _, _n, enumeration, paragraph
from attention_core.analysis.denoised_image import Denoised
from attention_core.formatting import percent

NEAR_MEAN = 0.05
"""Root mean square difference below which an image is almost the mean image, where white is 1."""
EQUAL = 2.0
"""Largest weight, in equal shares, below which all weights are almost the same."""


def headline(
    found: Mapping[str, Denoised], noisy: float, softmax: Denoised, even: Sequence[str], costs: Mapping[str, str]
) -> str:
    """Return how many variants improve the image, why softmax does, and which variants return its mean, and why.

    Args:
        found: the image that each variant returns, by the variant's name.
        noisy: peak signal-to-noise ratio of the noisy image in dB; infinite without noise.
        softmax: the image that softmax returns.
        even: names of the variants that return almost the mean because their weights are almost equal.
        costs: cost of each variant in words, by its name; "" for the reference.
    """
    grey = [name for name, each in found.items() if is_almost_mean(each) and name not in even]
    better = sum(each.psnr > noisy for each in found.values())
    best = max(found, key=lambda name: found[name].psnr)
    values = {"name": best, "psnr": found[best].psnr, "noisy": noisy}
    if better and len(found) == 1:
        first = _("**{name} improves the image:** {psnr:.1f} dB instead of {noisy:.1f} dB.", **values)
    elif better:
        first = _n(
            "**{n} of {count} images is better than the noisy image ({noisy:.1f} dB). {name} is best ({psnr:.1f} "
            "dB).**",
            "**{n} of {count} images are better than the noisy image ({noisy:.1f} dB). {name} is best ({psnr:.1f} "
            "dB).**",
            n=better,
            count=len(found),
            **values,
        )
    elif math.isinf(noisy):
        first = _("**The image has no noise, so no variant can improve it.**")
    else:
        first = _("**No image is better than the noisy image**, which has {noisy:.1f} dB.", noisy=noisy)
    others = [name for name in sorted(found, key=lambda name: -found[name].psnr) if costs[name] and name != best]
    return paragraph(
        first,
        _("**{name} has {psnr:.1f} dB at {cost}.**", name=others[0], psnr=found[others[0]].psnr, cost=costs[others[0]])
        if others and found[others[0]].psnr > noisy
        else "",
        _("Softmax averages pixels with similar patches, which removes more noise than detail.")
        if softmax.psnr > noisy and not is_almost_mean(softmax)
        else "",
        _n(
            "**{names} returns almost one colour**, because it gives all pixels almost the same weight.",
            "**{names} return almost one colour**, because they give all pixels almost the same weight.",
            n=len(even),
            names=enumeration(even),
        )
        if even
        else "",
        _("**Almost one colour, the mean of all pixels:** {names}.", names=enumeration(grey)) if grey else "",
    )


def is_almost_mean(image: Denoised) -> bool:
    """Return whether an image is almost the mean image."""
    return image.from_mean < NEAR_MEAN


def is_even(largest: float) -> bool:
    """Return whether all weights are almost the same, if the largest is ``largest`` times an equal share."""
    return largest < EQUAL


def units() -> str:
    """Return what the ranks, the insets and the costs on the board are."""
    return paragraph(
        _("The number on an image is its rank by PSNR. Inset: the error of each pixel, darker for larger errors."),
        _("The cost is the number of multiply-adds, if values have the same size as keys."),
    )


def added(squares: Sequence[str]) -> str:
    """Return which images the switch for square windows adds; at least one."""
    return _n(
        "With **Square windows**, the page also shows {n} image: {names}.",
        "With **Square windows**, the page also shows {n} images: {names}.",
        n=len(squares),
        names=enumeration(squares),
    )


def why_mean(name: str, largest: float, softmax: float, *, elu: bool) -> str:
    """Return why a variant returns almost the mean of all pixels; empty if its weights are not almost equal.

    Args:
        name: the variant's name.
        largest: the largest weight of a pixel's attention, divided by an equal share; the median over the pixels.
        softmax: the same for softmax.
        elu: whether the variant is linear attention with the features elu + 1.
    """
    if not is_even(largest):
        return ""
    return paragraph(
        _("**{name} returns almost the mean of the image,** because its weights are almost equal.", name=name),
        _(
            "A weight is the dot product of the features (elu + 1) of two patches. It grows far more slowly with the "
            "patches' similarity than the exponential in softmax."
        )
        if elu
        else "",
        _(
            "For a typical pixel, the largest weight of {name} is {largest:.2f} times the average weight. In softmax, "
            "it is {softmax:.2f} times.",
            name=name,
            largest=largest,
            softmax=softmax,
        ),
    )


def why_square(row: str, square: str, pixels: tuple[int, int], far: tuple[int, int], psnr: tuple[float, float]) -> str:
    """Return how a square window compares with one along the row; empty if it reaches as far along the row.

    Args:
        row: name of the variant with the window along the row.
        square: name of the variant with the square window.
        pixels: number of pixels in each window, far from the edges.
        far: how many pixels away each window ends.
        psnr: peak signal-to-noise ratio of each image in dB.
    """
    if far[1] >= far[0]:
        return ""
    values = {"high": psnr[1], "low": psnr[0]}
    return paragraph(
        _(
            "**A square window contains closer pixels than a window along the row.** {row} averages {pixels} pixels, "
            "up to {far} places before or after a pixel in reading order. {square} averages {inside} pixels, at most "
            "{near} rows and {near} columns away.",
            pixels=pixels[0],
            row=row,
            far=far[0],
            inside=pixels[1],
            square=square,
            near=far[1],
        ),
        _(
            "Close pixels often show the same object, so more pixels in the square window have the right colour. "
            "The PSNR is {high:.1f} dB with the square window and {low:.1f} dB with the window along the row.",
            **values,
        )
        if round(psnr[1], 1) > round(psnr[0], 1)
        else _(
            "Close pixels often show the same object. In this image, the PSNR nevertheless is not higher: {high:.1f} "
            "dB with the square window and {low:.1f} dB with the window along the row.",
            **values,
        ),
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
            "The **logit** of two pixels is the negative squared distance of their patches, divided by h². Softmax "
            "weights are proportional to the exponential of the logit."
        ),
        _(
            "Softmax attention then computes **non-local means**: an average of all pixels, with larger weights "
            "for pixels with similar patches."
        ),
        _(
            "The **filter strength** h sets how sharp attention is: with a smaller h, more of the weight goes to the "
            "most similar patches."
        ),
        _("No model is trained, and no image other than the noisy one is used."),
    )


def metrics() -> str:
    """Return the definitions of the table's columns."""
    return paragraph(
        _(
            "**PSNR** is the peak signal-to-noise ratio, −10 log₁₀ of the mean squared difference from the image "
            "without noise, where black is 0 and white is 1."
        ),
        _("**SSIM** is the structural similarity, which is 1 for equal images."),
        _(
            "**Difference from the mean** is the root mean square difference from the image whose pixels are all the "
            "mean of the noisy image."
        ),
        _("**Time** is that of one call on this server."),
    )


def closest(errors: Mapping[str, float], equal: float) -> str:
    """Return which variant is closest to softmax on a digit, and which is farthest.

    Args:
        errors: the output error of each variant that is compared with softmax, by its name.
        equal: the output error of equal weights for all pixels.
    """
    if not errors:
        return _("**Only softmax is compared.** Add a variant to see where its attention differs.")
    first, last = min(errors, key=errors.__getitem__), max(errors, key=errors.__getitem__)
    return paragraph(
        _("**Closest to softmax: {name}**, with {error} output error.", name=first, error=percent(errors[first])),
        _("Farthest: {name}, with {error}.", name=last, error=percent(errors[last])) if len(errors) > 1 else "",
        _("Equal weights for all pixels would have {equal}.", equal=percent(equal)),
    )


def digit_units(*, averaged: bool) -> str:
    """Return how the ranks and the maps of a digit are computed; ``averaged`` if several heads are shown together."""
    return paragraph(
        _("The number on an image is its rank by output error."),
        _(
            "Orange: the attention that a pixel receives, averaged over all pixels. Blue: negative attention. Each map "
            "has its own scale."
        ),
        _("The cost is the number of multiply-adds, if values have the same size as keys."),
        _("The output error includes all heads, and each map is the average of all heads.") if averaged else "",
    )


def digit_details(name: str, reference: str, error: float) -> str:
    """Return in words how far a variant's output is from that of its reference."""
    return _(
        "The output of {name} differs from that of {reference} by {error} of its size.",
        name=name,
        reference=reference,
        error=percent(error),
    )


def digit_tokens(pixels: int, layer: int) -> str:
    """Return what the tokens of a digit are, and where their queries, keys and values come from."""
    return paragraph(
        _(
            "Each of the {pixels} pixels is a token, in reading order. There are no other tokens and no mask.",
            pixels=pixels,
        ),
        _(
            "The queries q, keys k and values v are those of layer {layer} of a tiny model, which was trained to name "
            "the digit from each pixel.",
            layer=layer,
        ),
        _("Every variant uses the same q, k and v, and the model is not trained again."),
    )


def on_matrices() -> str:
    """Return where the numbers and files of a digit are."""
    return _("The page Matrices shows the same attention as matrices, with all numbers, files and code.")


def no_psnr() -> str:
    """Return why a digit has no PSNR, and which page shows an error over the budget."""
    return _(
        "The PSNR measures how much noise a variant removes, and a digit has no noise. The page Error shows the output "
        "error over each variant's budget."
    )
