"""The sentences of the Picture page, as functions of its numbers."""

import math
from collections.abc import Mapping, Sequence

from app.words.i18n import _, _n, enumeration, paragraph
from attention_core.analysis.denoised_image import Denoised
from attention_core.formatting import number, percent

NEAR_MEAN = 0.1
"""Root mean square difference below which an image is almost the mean image, where white is 1."""
EQUAL = 3.0
"""Largest weight, in equal shares, below which the weights hardly differ."""
NEAR_SOFTMAX = 0.75
"""Share of softmax's improvement in dB from which an image is nearly as good as softmax's."""


def headline(
    found: Mapping[str, Denoised],
    noisy: float,
    softmax: Denoised,
    even: Mapping[str, float],
    sharpest: float,
    costs: Mapping[str, str],
) -> str:
    """Return how close other variants come to softmax, why softmax removes noise, and which return the mean, and why.

    Args:
        found: the image that each variant returns, by the variant's name.
        noisy: peak signal-to-noise ratio of the noisy image in dB; infinite without noise.
        softmax: the image that softmax returns.
        even: the largest weight, in equal shares, of each variant that returns almost the mean because of its weights.
        sharpest: the largest weight of softmax, in equal shares.
        costs: cost of each variant in words, by its name; "" for the reference.
    """
    grey = [name for name, each in found.items() if is_almost_mean(each) and name not in even]
    return paragraph(
        _best(found, noisy, softmax.psnr, costs),
        _("Softmax averages similar patches, which removes more noise than detail.")
        if softmax.psnr > noisy and not is_almost_mean(softmax)
        else "",
        _n(
            "**{names} returns almost one colour**, because its largest weight is only {largest} times the average "
            "(softmax: {softmax}).",
            "**{names} return almost one colour**, because their largest weight is at most {largest} times the average "
            "(softmax: {softmax}).",
            n=len(even),
            names=enumeration(even),
            largest=number(max(even.values())),
            softmax=number(sharpest),
        )
        if even
        else "",
        _("**Almost one colour, the mean of all pixels:** {names}.", names=enumeration(grey)) if grey else "",
    )


def _best(found: Mapping[str, Denoised], noisy: float, softmax: float, costs: Mapping[str, str]) -> str:
    """Return how close the best other variant comes to softmax, or that no other variant improves the image."""
    if math.isinf(noisy):
        return _("**The image has no noise, so no variant can improve it.**")
    better = sorted((name for name in found if found[name].psnr > noisy), key=lambda name: -found[name].psnr)
    if not better:
        return _("**No image is better than the noisy image**, which has {noisy:.1f} dB.", noisy=noisy)
    others = [name for name in better if costs[name]]
    name = others[0] if others else better[0]
    psnr = found[name].psnr
    values = {"name": name, "psnr": psnr, "noisy": noisy, "softmax": softmax, "cost": costs[name]}
    if len(found) == 1:
        return _("**{name} improves the image:** {psnr:.1f} dB instead of {noisy:.1f} dB.", **values)
    if not others:
        return _("**Only {name} improves the image:** {psnr:.1f} dB instead of {noisy:.1f} dB.", **values)
    if round(psnr, 1) >= round(softmax, 1):
        return _("**{name} is at least as good as softmax at {cost}** ({psnr:.1f} against {softmax:.1f} dB).", **values)
    if psnr - noisy >= NEAR_SOFTMAX * (softmax - noisy):
        return _("**{name} is nearly as good as softmax at {cost}** ({psnr:.1f} against {softmax:.1f} dB).", **values)
    return _(
        "**No other variant comes close to softmax ({softmax:.1f} dB).** {name} is next with {psnr:.1f} dB at {cost}.",
        **values,
    )


def is_almost_mean(image: Denoised) -> bool:
    """Return whether an image is almost the mean image."""
    return image.from_mean < NEAR_MEAN


def is_even(largest: float) -> bool:
    """Return whether the weights hardly differ, if the largest is ``largest`` times an equal share."""
    return largest < EQUAL


def units() -> str:
    """Return what the ranks, the colours, the small images and the costs on the board are."""
    return paragraph(
        _(
            "The number before a name is the rank by PSNR. Green: better than the noisy image, red: worse. The small "
            "image below shows the error of each pixel, darker for larger errors."
        ),
        cost_unit(),
    )


def cost_unit() -> str:
    """Return how the costs on the board are counted."""
    return _("Cost: multiply-adds relative to softmax's, counted as if each value had as many numbers as a key.")


def added(squares: Sequence[str]) -> str:
    """Return which images the switch for square windows adds; at least one."""
    return _n(
        "With **Square windows**, the page also shows {n} image: {names}.",
        "With **Square windows**, the page also shows {n} images: {names}.",
        n=len(squares),
        names=enumeration(squares),
    )


def why_mean(name: str, largest: float, softmax: float, *, elu: bool) -> str:
    """Return why a variant returns almost the mean of all pixels; empty if its weights differ more.

    Args:
        name: the variant's name.
        largest: the largest weight of a pixel's attention, divided by an equal share; the median over the pixels.
        softmax: the same for softmax.
        elu: whether the variant is linear attention with the features elu + 1.
    """
    if not is_even(largest):
        return ""
    return paragraph(
        _("**{name} returns almost the mean of the image,** because its weights hardly differ.", name=name),
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
        _("**SSIM** is the structural similarity, which is 1 for identical images."),
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
    values = {"first": first, "least": percent(errors[first]), "last": last, "most": percent(errors[last])}
    return paragraph(
        _("**{first} is closest to softmax** ({least} output error), and {last} is farthest ({most}).", **values)
        if len(errors) > 1
        else _("**{first} differs from softmax by {least}** (output error).", **values),
        _("Equal weights for all pixels would have an output error of {equal}.", equal=percent(equal)),
    )


def digit_units(*, averaged: bool) -> str:
    """Return how the ranks and the maps of a digit are computed; ``averaged`` if several heads are shown together."""
    return paragraph(
        _("The number before a name is the rank by output error."),
        _(
            "Orange: the attention that a pixel receives, averaged over all pixels. Blue: negative attention. Each map "
            "has its own scale."
        ),
        cost_unit(),
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
