"""Sentences of the Picture page, such as its findings and definitions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, _n, enumeration, paragraph
from attention_core.analysis.denoised_image import DenoisedImage
from attention_core.formatting import number, percent

NEAR_MEAN = 0.1
"""Root mean square difference below which an image is almost the mean image, where white is 1."""
MAX_EVEN_WEIGHT = 1.5
"""Largest weight, divided by the weight of uniform attention, below which the weights hardly differ."""
MAX_FEATURES = 1.5
"""Effective number of random features below which all queries have almost the same weights."""
NEAR_SOFTMAX = 1.5
"""Difference in dB up to which an image counts as nearly as good as softmax's."""


def findings(
    images: Mapping[str, DenoisedImage],
    noisy: float,
    softmax: float,
    costs: Mapping[str, float],
    causes: Mapping[str, str] | None = None,
    removal: str = "",
    blur: float = -math.inf,
) -> Lines:
    """Return how close other variants come to softmax, and which variants return the mean of all pixels, and why.

    Args:
        images: the image that each variant returns, by the variant's name.
        noisy: peak signal-to-noise ratio (PSNR) of the noisy image in dB; infinite without noise.
        softmax: PSNR of the image of softmax.
        costs: cost of each variant but softmax, relative to softmax's cost, by its name.
        causes: sentences that say why all queries of a variant have similar weights, by the names of the variants
            that return almost the mean. Several variants can have the same sentence.
        removal: why softmax removes noise; may be empty.
        blur: PSNR of a blur of 3 x 3 pixels.
    """
    grey = [name for name, each in images.items() if is_almost_mean(each)]
    almost_mean = _n(
        "**{names} returns an almost uniform image.**",
        "**{names} return almost uniform images.**",
        n=len(grey),
        names=enumeration(grey),
    )
    causes = causes or {}
    first, *others = _best_variants(images, noisy, softmax, costs, removal)
    baselines = "" if math.isinf(noisy) else blurred(images, blur)
    first = Finding(first.text, paragraph(first.explanation, baselines))
    return [[first, *others], [Finding(almost_mean, paragraph(*dict.fromkeys(causes.values())))] if grey else []]


def blurred(images: Mapping[str, DenoisedImage], blur: float) -> str:
    """Return which variants' images are worse than a blur of 3 x 3 pixels; may be empty.

    Args:
        images: the image that each variant returns, by the variant's name.
        blur: PSNR of the blur.
    """
    worse = [name for name, each in images.items() if round(each.psnr, 1) < round(blur, 1)]
    text = _n(
        "{names} does worse than a blur of 3 × 3 pixels ({blur:.1f} dB).",
        "{names} do worse than a blur of 3 × 3 pixels ({blur:.1f} dB).",
        n=len(worse),
        names=enumeration(worse),
        blur=blur,
    )
    return text if worse else ""


def even_weights(names: Sequence[str], largest: str, softmax: float) -> str:
    """Return the sentence about variants whose weights hardly differ.

    Args:
        names: the variants' names.
        largest: the largest weight of each of them, divided by 1/n for n pixels, as text; median over queries.
        softmax: the largest weight of softmax, divided by 1/n.
    """
    text = (
        N_(
            "With {names}, every query weights all pixels almost equally: the largest weight is typically {largest} "
            "times the average weight."
        )
        if is_even(softmax)
        else N_(
            "With {names}, every query weights all pixels almost equally: the largest weight is typically {largest} "
            "times the average weight (softmax: {softmax} times)."
        )
    )
    return _(text, names=enumeration(f"**{name}**" for name in names), largest=largest, softmax=number(softmax))


def _best_variants(
    images: Mapping[str, DenoisedImage], noisy: float, softmax: float, costs: Mapping[str, float], reason: str
) -> list[Finding]:
    """Return whether softmax removes noise, and why, and which other variants come close to it at which cost."""
    if math.isinf(noisy):
        return [Finding(_("**The image has no noise, so no variant can improve it.**"))]
    fields = {"noisy": noisy, "softmax": softmax}
    better = sorted((name for name in costs if improves(images[name].psnr, noisy)), key=lambda n: -images[n].psnr)
    if not improves(softmax, noisy) and not better:
        text = _(
            "**No variant improves the image:** no PSNR is higher than the {noisy:.1f} dB of the noisy image.", **fields
        )
        return [Finding(text)]
    first = (
        _("**Softmax removes noise (PSNR {noisy:.1f} → {softmax:.1f} dB).**", **fields)
        if improves(softmax, noisy)
        else _(
            "**Softmax does not improve the image:** its PSNR is {softmax:.1f} dB, compared with {noisy:.1f} dB for "
            "the noisy image.",
            **fields,
        )
    )
    if better:
        # The images show their PSNR, so the sentence needs no further numbers.
        is_best = round(softmax, 1) > round(images[better[0]].psnr, 1)
        most = (
            _("**Softmax comes closest to the original at these settings.**")
            if is_best
            else _("**Softmax removes noise.**")
        )
        removes = most if improves(softmax, noisy) else first
        return [Finding(removes, reason), _close_variants({name: images[name].psnr for name in better}, softmax, costs)]
    only = _("**Only softmax brings the noisy image closer to the original (higher PSNR).**") if costs else ""
    return [Finding(paragraph(first, only), reason)]


def _close_variants(better: Mapping[str, float], softmax: float, costs: Mapping[str, float]) -> Finding:
    """Return which variants come close to softmax, and at which cost.

    Args:
        better: peak signal-to-noise ratio of each other variant that improves the image, highest first.
        softmax: peak signal-to-noise ratio of the image of softmax.
        costs: cost of each variant, relative to softmax's.
    """
    first, *_others = better
    fields = {"name": first, "psnr": better[first], "cost": percent(costs[first]), "limit": NEAR_SOFTMAX}
    if round(better[first], 1) >= round(softmax, 1):
        return Finding(_("**{name} reaches {psnr:.1f} dB at {cost} of softmax's cost.**", **fields))
    near = [name for name, psnr in better.items() if round(round(softmax, 1) - round(psnr, 1), 1) <= NEAR_SOFTMAX]
    if not near:
        text = _(
            "**No other variant comes within {limit} dB of softmax.** {name} is next with {psnr:.1f} dB at {cost} of "
            "softmax's cost.",
            **fields,
        )
        return Finding(text)
    high = max(costs[each] for each in near)
    if len(near) == 1:
        text = _(
            "**{name} comes within {limit} dB of softmax at {cost} of its cost.**",
            name=near[0],
            limit=NEAR_SOFTMAX,
            cost=percent(high),
        )
        return Finding(text)
    text = _(
        "**{names} come within {limit} dB of softmax at {cost} of its cost or less.**",
        names=enumeration(near),
        limit=NEAR_SOFTMAX,
        cost=percent(high),
    )
    return Finding(text)


def improves(psnr: float, noisy: float) -> bool:
    """Return whether an image has a higher peak signal-to-noise ratio than the noisy image, as rounded on screen."""
    return round(psnr, 1) > round(noisy, 1)


def noise_removal(softmax: DenoisedImage, noisy: float) -> str:
    """Return why softmax removes noise; empty if it does not, or returns almost the mean."""
    if not improves(softmax.psnr, noisy) or is_almost_mean(softmax):
        return ""
    return _("Softmax averages pixels with similar surroundings, which removes more noise than detail.")


def few_features(name: str, effective: float, features: int) -> str:
    """Return why all queries of Performer have almost the same weights; empty if it uses several features.

    ``effective`` is the number of features on which the weights of the median query effectively depend.
    """
    if effective >= MAX_FEATURES:
        return ""
    return _n(
        "**{name}** has only {n} random feature, so all queries have almost the same weights.",
        "**{name}** mostly uses one of its {n} random features, so all queries have almost the same weights.",
        n=features,
        name=name,
    )


def is_almost_mean(image: DenoisedImage) -> bool:
    """Return whether an image is almost the mean image."""
    return image.distance_from_mean < NEAR_MEAN


def is_even(largest: float) -> bool:
    """Return whether weights hardly differ; ``largest`` is the largest weight divided by an equal share, 1/n."""
    return largest < MAX_EVEN_WEIGHT


def units() -> str:
    """Return the note that explains the arrows and the costs on the board."""
    return paragraph(_("No model is trained. ▲ better than the noisy image, ▼ worse."), cost_unit())


def legend(patch: int, strength: float) -> str:
    """Return how images are ranked, and what queries and keys are.

    Args:
        patch: side of a patch in pixels.
        strength: the filter strength h.
    """
    return paragraph(
        _("Ranked by PSNR (higher is better)."),
        _(
            "Each pixel is a token, described by the {patch} × {patch} pixels around it (filter strength "
            "{strength:g}).",
            patch=patch,
            strength=strength,
        ),
    )


def cost_unit() -> str:
    """Return how the costs on the board are counted."""
    return _("Cost: multiply-adds relative to softmax, including scores that are computed and then dropped.")


@dataclass(frozen=True, kw_only=True)
class Window:
    """The image that a variant with a window returns.

    Attributes:
        pixels: number of pixels in the window, far from the edges.
        psnr: peak signal-to-noise ratio of the image in dB.
        cost: cost of the variant, relative to softmax's.
    """

    pixels: int
    psnr: float
    cost: float


def window_finding(wide: Window, square: Window) -> str:
    """Return whether a 1-D window that costs no more than a square window is better."""
    text = (
        N_(
            "**A 1-D window of {pixels} pixels is better than a {side} × {side} window and costs no "
            "more ({row:.1f} and {square:.1f} dB).**"
        )
        if round(wide.psnr, 1) > round(square.psnr, 1)
        else N_(
            "**A 1-D window of {pixels} pixels, which costs no more than a {side} × {side} window, is "
            "not better ({row:.1f} and {square:.1f} dB).**"
        )
    )
    return _(text, pixels=wide.pixels, side=math.isqrt(square.pixels), row=wide.psnr, square=square.psnr)


def window_explanation(row: Window, square: Window, pixels: int) -> str:
    """Return whether a square window is better than a 1-D window of as many pixels, and why it costs more.

    Args:
        row: a 1-D window.
        square: the square window.
        pixels: number of pixels of the image.
    """
    text = (
        N_("A {side} × {side} window is better than a 1-D window of {pixels} pixels ({square:.1f} and {row:.1f} dB).")
        if round(square.psnr, 1) > round(row.psnr, 1)
        else N_(
            "A {side} × {side} window is not better than a 1-D window of {pixels} pixels ({square:.1f} "
            "and {row:.1f} dB)."
        )
    )
    compared = _(text, side=math.isqrt(square.pixels), pixels=row.pixels, square=square.psnr, row=row.psnr)
    share = square.pixels / pixels
    reason = _(
        "The 2-D window costs {cost} of softmax's cost for {share} of the pixels, because it computes whole rows of "
        "the image.",
        cost=percent(square.cost),
        share=percent(share),
    )
    return paragraph(compared if square.pixels <= row.pixels else "", reason if square.cost >= 2 * share else "")


def definition(patch: int, pixels: int) -> str:
    """Return how attention denoises an image with this number of pixels; ``patch`` is the side of a patch in pixels."""
    symbols = paragraph(
        _(
            "Each of the {pixels:,} pixels is a token. The value $x_j$ of pixel j is its noisy colour, and $y_i$ is "
            "the new colour of pixel i.",
            pixels=pixels,
        ),
        _(
            "The query $q_i$ and the key $k_j$ contain the patches $p_i$ and $p_j$, the {patch} × {patch} pixels "
            "around the two pixels.",
            patch=patch,
        ),
        _(
            "Softmax divides the dot product of a query and a key by √d, where d is the number of their components. "
            "The queries contain the factor √d, so it cancels out."
        ),
        _(
            "The result, the **logit**, is the negative squared distance of the two patches, divided by h². A part "
            "that is the same for all keys is left out, because softmax ignores it."
        ),
    )
    method = paragraph(
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
    return f"{symbols}\n\n{method}"


def metrics() -> str:
    """Return the definitions of the table's columns."""
    return paragraph(
        _(
            "**PSNR** is the peak signal-to-noise ratio, −10 log₁₀ of the mean squared difference from the image "
            "without noise, where black is 0 and white is 1."
        ),
        _("**SSIM** is the structural similarity, which is 1 for identical images."),
        _("**Time** was measured once on this server, and depends on more than the multiply-adds."),
    )


def matrices_note() -> str:
    """Return where the numbers and files of a digit are."""
    return _("The page Matrices shows the attention in this digit as matrices, with all numbers, files and code.")


def no_psnr_note() -> str:
    """Return why a digit has no PSNR, and which page shows an error over the budget."""
    return _(
        "The PSNR measures how much noise a variant removes, but the image of a digit has no noise. Instead, the "
        "page Error shows how the output error depends on one setting of each variant, such as its window."
    )
