"""Sentences of the view “PSNR against cost” of the Picture page."""

from collections.abc import Mapping

from app.words.i18n import _, paragraph
from attention_core.formatting import percent


def cheapest_setting(settings: Mapping[str, tuple[float, float]], softmax: float) -> str:
    """Return the name of the setting that reaches softmax's PSNR at the lowest cost; empty if no cheaper one does.

    Args:
        settings: PSNR in dB, and cost relative to softmax's, of each setting of the other variants, by its name.
        softmax: PSNR of the image of softmax.
    """
    costs = {name: cost for name, (psnr, cost) in settings.items() if round(psnr, 1) >= round(softmax, 1) and cost < 1}
    return min(costs, key=costs.__getitem__, default="")


def budget_finding(settings: Mapping[str, tuple[float, float]], softmax: float) -> str:
    """Return which cheaper setting reaches softmax's PSNR or comes closest to it; empty without a cheaper setting.

    Args:
        settings: PSNR in dB, and cost relative to softmax's, of each setting of the other variants, by its name.
        softmax: PSNR of the image of softmax.
    """
    if best := cheapest_setting(settings, softmax):
        return _("**{name} reaches softmax's PSNR at {cost} of its cost.**", name=best, cost=percent(settings[best][1]))
    cheaper = {name: values for name, values in settings.items() if values[1] < 1}
    if not cheaper:
        return ""
    name = max(cheaper, key=lambda each: cheaper[each][0])
    psnr, cost = cheaper[name]
    return _(
        "**No cheaper setting tried reaches softmax's PSNR.** {name} comes closest, with {psnr:.1f} dB at {cost} of "
        "softmax's cost.",
        name=name,
        psnr=psnr,
        cost=percent(cost),
    )


def levels(settings: Mapping[str, tuple[float, float]], softmax: float, blur: float) -> str:
    """Return the PSNR of softmax and of a blur, and the highest PSNR if it exceeds that of softmax.

    Args:
        settings: as in ``budget_finding``.
        softmax: PSNR of the image of softmax.
        blur: PSNR of the image in which every pixel is the mean of 3 x 3 pixels.
    """
    text = _(
        "The PSNR is {softmax:.1f} dB with softmax and {blur:.1f} dB with a blur of 3 × 3 pixels.",
        softmax=softmax,
        blur=blur,
    )
    name, (psnr, cost) = max(settings.items(), key=lambda each: each[1][0], default=("", (0.0, 0.0)))
    if not name or round(psnr, 1) <= round(softmax, 1):
        return text
    highest = _(
        "**The highest PSNR is {psnr:.1f} dB: {name} at {cost} of softmax's cost.**",
        psnr=psnr,
        name=name,
        cost=percent(cost),
    )
    return paragraph(highest, text)
