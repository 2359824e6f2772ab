"""Sentences of the view “PSNR against cost” of the Picture page."""

from collections.abc import Mapping

from app.words.i18n import N_, _, paragraph
from attention_core.formatting import percent


def cheapest_setting(settings: Mapping[str, tuple[float, float]], softmax: float) -> str:
    """Return the name of the setting that reaches softmax's PSNR at the lowest cost; empty if no cheaper one does.

    Args:
        settings: PSNR in dB, and cost relative to softmax's, of each setting of the other variants, by its name.
        softmax: PSNR of the image of softmax.
    """
    costs = {name: cost for name, (psnr, cost) in settings.items() if round(psnr, 1) >= round(softmax, 1) and cost < 1}
    return min(costs, key=costs.__getitem__, default="")


def budget_finding(settings: Mapping[str, tuple[float, float]], softmax: float, blur: float) -> str:
    """Return which cheaper setting reaches softmax's PSNR or comes closest to it, and the PSNR of a blur.

    Args:
        settings: PSNR in dB, and cost relative to softmax's, of each setting of the other variants, by its name.
        softmax: PSNR of the image of softmax.
        blur: PSNR of the image in which every pixel is the mean of 3 x 3 pixels.
    """
    levels = _(
        "The PSNR is {softmax:.1f} dB with softmax and {blur:.1f} dB with a blur of 3 × 3 pixels.",
        softmax=softmax,
        blur=blur,
    )
    if best := cheapest_setting(settings, softmax):
        text = _("**{name} reaches softmax's PSNR at {cost} of its cost.**", name=best, cost=percent(settings[best][1]))
        highest = max(settings, key=lambda each: settings[each][0])
        psnr, cost = settings[highest]
        if round(psnr, 1) <= round(softmax, 1):
            return paragraph(text, levels)
        more = (
            N_("With {psnr:.1f} dB, this setting also has the highest PSNR.")
            if highest == best
            else N_("The highest PSNR is {psnr:.1f} dB: {name} at {cost} of softmax's cost.")
        )
        return paragraph(text, levels, _(more, psnr=psnr, name=highest, cost=percent(cost)))
    cheaper = {name: values for name, values in settings.items() if values[1] < 1}
    if not cheaper:
        return levels
    name = max(cheaper, key=lambda each: cheaper[each][0])
    psnr, cost = cheaper[name]
    return paragraph(
        _("**No cheaper setting shown reaches softmax's PSNR.**"),
        _(
            "{name} comes closest, with {psnr:.1f} dB at {cost} of softmax's cost.",
            name=name,
            psnr=psnr,
            cost=percent(cost),
        ),
        levels,
    )
