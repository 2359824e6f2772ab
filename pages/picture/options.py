"""The options of the Picture page, and the variants that an empty address opens with."""

from collections.abc import Mapping
from typing import Any

import attention_core as ac
from app.state.controls import Options, choice, place
from app.state.session import SharedOptions
from app.words.i18n import N_
from attention_core.limits import current

FIRST = ("softmax", "sparse", "atrous", "local", "topk", "pooled", "nystrom", "performer", "linformer", "linear")
"""Variants of a first visit: six that improve the image, and four that do not."""


class PictureOptions(Options, prefix="p_"):
    """The options that a link to this page carries in addition to the image and the variants."""

    pixel = place(lambda: current().picture_side ** 2, N_("Pixel"))
    below = choice(
        {
            "explain": N_("Formula"),
            "numbers": N_("Numbers"),
            "budget": N_("PSNR against budget"),
            "download": N_("Export"),
        },
        N_("More"),
        layout={"label_visibility": "collapsed"},
    )


def opening() -> Mapping[str, Any]:
    """Return the variants of a first visit."""
    return {SharedOptions.variants.name: tuple(map(ac.get, FIRST[: current().compared_variants]))}
