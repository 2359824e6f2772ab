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
        "**{names} returns an almost uniform image, close to the mean of all pixels.**",
        "**{names} return almost uniform images, close to the mean of all pixels.**",
        n=len(grey),
        names=enumeration(grey),
    )
    causes = causes or {}
    if grey and len(causes) == len(grey):
        almost_mean = _n(
            "**With {names}, all pixels get almost the same average, so the image is almost uniform.**",
            "**With {names}, all pixels get almost the same average, so the images are almost uniform.**",
            n=len(grey),
            names=enumeration(grey),
        )
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
        return [
            Finding(removes, reason),
            _close_variants({name: images[name].psnr for name in better}, images, noisy, softmax, costs),
        ]
    only = _("**Only softmax brings the noisy image closer to the original (higher PSNR).**") if costs else ""
    return [Finding(paragraph(first, only), reason)]


def _close_variants(
    better: Mapping[str, float],
    images: Mapping[str, DenoisedImage],
    noisy: float,
    softmax: float,
    costs: Mapping[str, float],
) -> Finding:
    """Return which variants come close to softmax, and which cheaper one has at least half of softmax's improvement.

    Args:
        better: peak signal-to-noise ratio of each other variant that improves the image, highest first.
        images: the image that each variant returns.
        noisy: peak signal-to-noise ratio of the noisy image.
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
    halfway = [
        name
        for name in better
        if better[name] - noisy >= (softmax - noisy) / 2 and costs[name] < min(costs[each] for each in near)
    ]
    cheapest = min(halfway, key=costs.__getitem__, default=None)
    explanation = _cheapest(cheapest, images, noisy, costs) if cheapest else ""
    if len(near) == 1:
        text = _(
            "**{name} comes within {limit} dB of softmax at {cost} of its cost.**",
            name=near[0],
            limit=NEAR_SOFTMAX,
            cost=percent(high),
        )
        return Finding(text, explanation)
    text = _(
        "**{names} come within {limit} dB of softmax at {cost} of its cost or less.**",
        names=enumeration(near),
        limit=NEAR_SOFTMAX,
        cost=percent(high),
    )
    return Finding(text, explanation)


def _cheapest(name: str, images: Mapping[str, DenoisedImage], noisy: float, costs: Mapping[str, float]) -> str:
    """Return the PSNR of a cheap variant's image, and of the best and worst other variant with about the same cost.

    Args:
        name: the variant.
        images: the image that each variant returns.
        noisy: peak signal-to-noise ratio of the noisy image.
        costs: cost of each variant, relative to softmax's.
    """
    level = f"{costs[name]:.0%}"
    same = sorted((each for each in costs if f"{costs[each]:.0%}" == level), key=lambda each: -images[each].psnr)
    same.remove(name)
    fields = {"name": name, "psnr": images[name].psnr, "cost": percent(costs[name]), "level": level}
    if not same or level == "0%":
        return _("{name} reaches {psnr:.1f} dB at {cost} of softmax's cost.", **fields)
    others = [
        _("{name} {psnr:.1f}", name=each, psnr=images[each].psnr)
        if improves(images[each].psnr, noisy)
        else _("{name} only {psnr:.1f}", name=each, psnr=images[each].psnr)
        for each in dict.fromkeys((same[0], same[-1]))
    ]
    first = _("{name} reaches {psnr:.1f} dB", **fields)
    return _("At about {level} of softmax's cost, {results}.", level=level, results=enumeration([first, *others]))


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
        "With **{name}**, the weights hardly depend on the query, because there is only {n} random feature.",
        "With **{name}**, the weights hardly depend on the query, because they mostly use one of {n} random features.",
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
        name: name of the variant.
        pixels: number of pixels in the window, far from the edges.
        psnr: peak signal-to-noise ratio of the image in dB.
        cost: cost of the variant, relative to softmax's.
    """

    name: str
    pixels: int
    psnr: float
    cost: float


def square_per_pixel(row: Window, square: Window, noise: float) -> str:
    """Return whether a square window is better than a window along the row; empty if the square has more pixels.

    ``noise`` is the noise level of the image.
    """
    if square.pixels > row.pixels:
        return ""
    text = (
        N_("**At noise {noise:g}, a square window with no more pixels is better than a row:** {results}.")
        if round(square.psnr, 1) > round(row.psnr, 1)
        else N_("**At noise {noise:g}, a square window with no more pixels is not better than a row:** {results}.")
    )
    results = (
        _("{name} ({pixels} pixels) reaches {psnr:.1f} dB", name=each.name, pixels=each.pixels, psnr=each.psnr)
        for each in (square, row)
    )
    return _(text, noise=noise, results=enumeration(results))


def square_per_cost(row: Window, square: Window, noise: float) -> str:
    """Return whether a window along the row that costs no more than a square window is better.

    ``noise`` is the noise level of the image.
    """
    text = (
        N_("**At noise {noise:g}, a row that costs no more is better than a square window:** {results}.")
        if round(row.psnr, 1) > round(square.psnr, 1)
        else N_("**At noise {noise:g}, a row that costs no more is not better than a square window:** {results}.")
    )
    results = (
        _("{name} (cost {cost}) reaches {psnr:.1f} dB", name=each.name, cost=percent(each.cost), psnr=each.psnr)
        for each in (row, square)
    )
    return _(text, noise=noise, results=enumeration(results))


def square_cost(square: Window, pixels: int) -> str:
    """Return why a square window costs more than its share of the pixels; empty unless it costs at least twice that.

    ``pixels`` is the number of pixels of the image.
    """
    share = square.pixels / pixels
    if square.cost < 2 * share:
        return ""
    return _(
        "{square} computes whole rows of the image, so it costs {cost}, although its window contains only {share} of "
        "the pixels.",
        square=square.name,
        cost=percent(square.cost),
        share=percent(share),
    )


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
