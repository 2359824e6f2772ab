"""The options of the Picture page, and the attention variants that the page shows at a first visit."""

from collections.abc import Mapping
from typing import Any

import attention_core as ac
from app.state.controls import Options, choice, index, switch
from app.state.session import SharedOptions
from app.words.i18n import N_
from attention_core.limits import current

FIRST_VARIANTS = ("softmax", "atrous", "pooled", "local", "topk", "nystrom", "linear", "performer")
"""Variants of a first visit, in the order of their PSNR on the first photograph."""


class PictureOptions(Options, prefix="p_"):
    """The options that a link to this page carries in addition to the image and the variants."""

    pixel = index(lambda: current().picture_side ** 2, N_("Pixel"))
    squares = switch(
        False,
        N_("Also show 2-D windows"),
        help=N_(
            "Windows and strides count pixels in reading order (1-D). This option adds an image with square windows "
            "and with strides along rows and columns (2-D) for each variant that has such a form. Local 2-D computes "
            "whole rows of the image, so it can cost more."
        ),
    )
    below = choice(
        {
            "budget": N_("PSNR against cost"),
            "numbers": N_("Numbers"),
            "explain": N_("Formula"),
            "download": N_("Export"),
        },
        N_("More"),
        default="explain",
        opening="budget",
        layout={"label_visibility": "collapsed"},
    )


def opening() -> Mapping[str, Any]:
    """Return the variants of a first visit."""
    return {SharedOptions.variants.name: tuple(map(ac.get, FIRST_VARIANTS[: current().compared_variants]))}
