"""Sentences of the Picture page, such as its findings and definitions."""

import math
from collections.abc import Mapping

from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, _n, enumeration, paragraph
from attention_core.analysis.denoised_image import DenoisedImage
from attention_core.formatting import number, percent

NEAR_MEAN = 0.1
"""Root mean square difference below which an image is almost the mean image, where white is 1."""
MAX_EVEN_WEIGHT = 1.5
"""Largest weight, divided by the weight of uniform attention, below which the weights hardly differ."""
MIN_SELF_WEIGHT = 0.9
"""Share of a pixel's weight on itself from which softmax hardly changes the image."""
MIN_ISLANDS = 0.01
"""Share of the pixels from which pixels with the same colour are visible as islands."""
MAX_FEATURES = 1.5
"""Effective number of random features below which all queries have almost the same weights."""


def findings(
    images: Mapping[str, DenoisedImage],
    noisy: float,
    softmax: float,
    costs: Mapping[str, float],
    causes: Mapping[str, str] | None = None,
    failure: str = "",
    other: str = "",
    notes: str = "",
) -> Lines:
    """Return which image is the best, and which variants return the mean of all pixels, and why.

    Args:
        images: the image that each variant returns, by the variant's name.
        noisy: peak signal-to-noise ratio (PSNR) of the noisy image in dB; infinite without noise.
        softmax: PSNR of the image of softmax.
        costs: cost of each variant but softmax, relative to softmax's cost, by its name.
        causes: sentences that say why all queries of a variant have similar weights, by the names of the variants
            that return almost the mean. Several variants can have the same sentence.
        failure: why softmax does not remove noise; used if it does not although there is noise, and may be empty.
        other: sentence about the best setting that is not shown, if there is noise.
        notes: sentences about the look of single images.
    """
    best = Finding(
        paragraph(_best_variants(images, noisy, softmax, costs), other if math.isfinite(noisy) else ""),
        failure if math.isfinite(noisy) and not improves(softmax, noisy) else "",
    )
    grey = [name for name, each in images.items() if is_almost_mean(each)]
    almost_mean = _n(
        "**{names} returns an almost uniform image.**",
        "**{names} return almost uniform images.**",
        n=len(grey),
        names=enumeration(grey),
    )
    reasons = paragraph(*dict.fromkeys((causes or {}).values()))
    return [[best], [Finding(almost_mean if grey else "", paragraph(reasons, notes))]]


def even_weights(largest: Mapping[str, float], softmax: float) -> str:
    """Return the sentence about variants whose weights hardly differ.

    Args:
        largest: the largest weight of each of them, divided by 1/n for n pixels, by its name; median over queries.
        softmax: the largest weight of softmax, divided by 1/n.
    """
    text = (
        N_(
            "With {names}, every query weights all pixels almost equally: the median of the largest weight is "
            "{largest} times the average weight."
        )
        if is_even(softmax)
        else N_(
            "With {names}, every query weights all pixels almost equally: the median of the largest weight is "
            "{largest} times the average weight (softmax: {softmax} times)."
        )
    )
    names = enumeration(f"**{name}**" for name in largest)
    return _(text, names=names, largest=number(max(largest.values())), softmax=number(softmax))


def _best_variants(
    images: Mapping[str, DenoisedImage], noisy: float, softmax: float, costs: Mapping[str, float]
) -> str:
    """Return which image is the best, or else that softmax does not improve the image, and the best other variant."""
    if math.isinf(noisy):
        return _("**The image has no noise, so no variant can improve it.**")
    fields = {"noisy": noisy, "softmax": softmax}
    better = sorted((name for name in costs if improves(images[name].psnr, noisy)), key=lambda n: -images[n].psnr)
    if improves(softmax, noisy):
        if better:
            highest = max(round(image.psnr, 1) for image in images.values())
            names = [name for name, image in images.items() if round(image.psnr, 1) == highest]
            return _n(
                "**At these settings, {names}'s image is closest to the original ({psnr:.1f} dB).**",
                "**At these settings, the images of {names} are closest to the original ({psnr:.1f} dB).**",
                n=len(names),
                names=enumeration(names),
                psnr=highest,
            )
        only = _("**At these settings, only softmax brings the image closer to the original.**") if costs else ""
        return paragraph(_("**Softmax removes noise (PSNR {noisy:.1f} → {softmax:.1f} dB).**", **fields), only)
    if not better:
        return _(
            "**No variant improves the image:** no PSNR is higher than the {noisy:.1f} dB of the noisy image.", **fields
        )
    failure = _(
        "**Softmax does not improve the image:** its PSNR is {softmax:.1f} dB, compared with {noisy:.1f} dB for the "
        "noisy image.",
        **fields,
    )
    if not (useful := [name for name in better if not is_almost_mean(images[name])]):
        return failure
    name = useful[0]
    reached = {"name": name, "psnr": images[name].psnr, "cost": percent(costs[name])}
    return paragraph(failure, _("**{name} reaches {psnr:.1f} dB at {cost} of softmax's cost.**", **reached))


def improves(psnr: float, noisy: float) -> bool:
    """Return whether an image has a higher peak signal-to-noise ratio than the noisy image, as rounded on screen."""
    return round(psnr, 1) > round(noisy, 1)


def small_strength(strength: float, self_weight: float) -> str:
    """Return that softmax averages hardly any pixels; empty if pixels give less than ``MIN_SELF_WEIGHT`` to themselves.

    Args:
        strength: the filter strength h.
        self_weight: softmax's weight of a pixel on itself, which is its largest weight; median over pixels.
    """
    if self_weight < MIN_SELF_WEIGHT:
        return ""
    return _(
        "With softmax and h = {strength:g}, a pixel typically gives {share:.0%} of its weight to itself, so the image "
        "hardly changes. With a larger filter strength h, softmax averages more pixels.",
        strength=strength,
        share=self_weight,
    )


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


def are_islands(share: float) -> bool:
    """Return whether the given share of the pixels differs visibly from the others."""
    return MIN_ISLANDS <= share < 0.5


def islands(name: str) -> str:
    """Return why linear attention gives the same colour to dark pixels, which differs from that of the others."""
    return _(
        "In **{name}**'s image, the islands of another tone are dark pixels: the function elu + 1 maps the negative "
        "numbers of their queries to almost 0.",
        name=name,
    )


def stripes(name: str, stride: int) -> str:
    """Return why atrous attention can leave vertical stripes if its stride divides the width of the image."""
    return _(
        "With **{name}** and stride {stride}, each query averages only columns that are {stride} pixels apart, which "
        "can leave vertical stripes.",
        name=name,
        stride=stride,
    )


def units() -> str:
    """Return the note that explains the numbers on the board."""
    return paragraph(_("dB: peak signal-to-noise ratio (PSNR), higher is closer to the original."), cost_unit())


def legend(patch: int) -> str:
    """Return what tokens and attention weights are; ``patch`` is the side of a patch in pixels."""
    return _(
        "Each pixel is a token. Softmax averages pixels, with more weight on those whose {patch} × {patch} patches are "
        "similar.",
        patch=patch,
    )


def cost_unit() -> str:
    """Return what the costs on the board are."""
    return _("Cost: multiply-adds relative to softmax, including scores that are computed and then dropped.")


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
            "Patches are scaled so that $\\|p_i - p_j\\|^2$ is their mean squared difference, in which pixels near the "
            "centre count more."
        ),
        _(
            "Softmax divides the dot product of a query and a key by √d, where d is the number of their components. "
            "The queries contain the factor √d, so it cancels out."
        ),
        _(
            "The result, the **logit**, is $-\\|p_i - p_j\\|^2 / h^2$, without a part that is the same for all keys, "
            "which softmax ignores."
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
        _("The **cost** is computed for values as long as keys."),
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
