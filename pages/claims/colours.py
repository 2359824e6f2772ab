"""The colours in the figures of the Claims page: each attention variant has the same colour as on the other pages."""

import re
from collections.abc import Iterable

import attention_core as ac
from app.figures.theme import COLOURS, GREY
from app.ui import palette

OTHER_NAMES = {
    "full attention": "softmax",
    "local layers": "local",
    "atrous layers": "atrous",
    "whole matrix": "softmax",
    "whole attention matrix": "softmax",
    "output of softmax": "softmax",
    "softmax × log n": "softmax_log_n",
    "squared relu ÷ n": "relu2",
    "linear attention": "linear",
    "nyström, no inverse": "landmark",
    "nyström, inverse from six iterations": "nystrom",
    "means of neighbouring tokens": "nystrom",
    "deltanet, strength up to 2": "deltanet",
}
"""Keys of variants by the lower-case names that figures use instead of the variants' titles."""
BASELINES = ("equal weights", "mean of all values", "mean of the values", "no mask")
"""Names of baselines, which are grey on all pages."""
FREE_COLOURS = (9, 10, 6, 4, 5, 7, 8, 3, 2, 1, 0)
"""Colours for series that are not variants, best first; the variants of a first visit have the last ones."""
ALIKE = {0: 10, 3: 9, 5: 9}
"""Colours of variants, and the free colour that looks similar; a figure with such a variant prefers other colours."""


def series_colours(names: Iterable[str]) -> dict[str, int]:
    """Return the colour of each series by name: the variant's colour, or a colour that the figure does not use yet.

    Args:
        names: untranslated names of a figure's series.
    """
    names = list(names)
    titles = {variant.title.casefold(): variant.key for variant in ac.all_variants()} | OTHER_NAMES
    colours = {name: GREY for name in names if name.casefold() in BASELINES}
    # Whole names come before names such as "softmax, all tokens", which only begin with a variant.
    for name, start in [*zip(names, names, strict=True), *((name, re.split("[,:]", name)[0]) for name in names)]:
        key = None if name in colours else titles.get(start.casefold())
        if key and (colour := palette.index(key) % COLOURS) not in colours.values():
            colours[name] = colour
    free = [colour for colour in FREE_COLOURS if colour not in colours.values()]
    free.sort(key=lambda colour: any(ALIKE.get(used) == colour for used in colours.values()))
    others = {name: free[i % len(free)] for i, name in enumerate(name for name in names if name not in colours)}
    return {name: (colours | others)[name] for name in names}
