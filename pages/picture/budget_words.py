"""Sentences of the view “PSNR against cost” of the Picture page."""

from collections.abc import Mapping

from app.words.i18n import _
from attention_core.formatting import percent
from pages.picture.words import improves


def cheapest_setting(settings: Mapping[str, tuple[float, float]], softmax: float) -> str:
    """Return the name of the setting that reaches softmax's PSNR at the lowest cost; empty if no cheaper one does.

    Args:
        settings: PSNR in dB, and cost relative to softmax's, of each setting of the other variants, by its name.
        softmax: PSNR of the image of softmax.
    """
    costs = {name: cost for name, (psnr, cost) in settings.items() if round(psnr, 1) >= round(softmax, 1) and cost < 1}
    return min(costs, key=costs.__getitem__, default="")


def top_k_cost() -> str:
    """Return why the cost of top-k hardly depends on k, for values as long as keys."""
    return _("Top-k computes all scores before it drops any, so it costs at least half as much as softmax.")


def other_setting(name: str, psnr: float, shown: float) -> str:
    """Return whether a setting that is not shown comes closer to the original than all images that are shown.

    Args:
        name: the best setting tried.
        psnr: PSNR of its image.
        shown: the highest PSNR of the images on the board, including the noisy one.
    """
    if not improves(psnr, shown):
        return _("No other setting tried comes closer.")
    return _("**Another setting comes closer: {name} ({psnr:.1f} dB).**", name=name, psnr=psnr)


def without_small_weights(psnr: float, softmax: float) -> str:
    """Return what top-k shows about softmax's small weights if its best PSNR is higher than softmax's."""
    if not improves(psnr, softmax):
        return ""
    return _(
        "**Top-k** keeps only each query's largest weights. With its best setting, the image is better than softmax's, "
        "so softmax's smallest weights make the image worse."
    )


def budget_finding(settings: Mapping[str, tuple[float, float]], softmax: float, noisy: float) -> str:
    """Return which cheaper setting reaches softmax's PSNR or comes closest to it; empty without a cheaper setting.

    If none improves the noisy image, no setting is named.

    Args:
        settings: PSNR in dB, and cost relative to softmax's, of each setting of the other variants, by its name.
        softmax: PSNR of the image of softmax.
        noisy: PSNR of the noisy image.
    """
    if best := cheapest_setting(settings, softmax):
        return _("**{name} reaches softmax's PSNR at {cost} of its cost.**", name=best, cost=percent(settings[best][1]))
    cheaper = {name: values for name, values in settings.items() if values[1] < 1}
    if not cheaper:
        return ""
    name = max(cheaper, key=lambda each: cheaper[each][0])
    psnr, cost = cheaper[name]
    if not improves(psnr, noisy):
        return _("**No cheaper setting tried improves the image (at most {psnr:.1f} dB).**", psnr=psnr)
    return _(
        "**No cheaper setting tried reaches softmax's PSNR.** {name} comes closest, with {psnr:.1f} dB at {cost} of "
        "softmax's cost.",
        name=name,
        psnr=psnr,
        cost=percent(cost),
    )
