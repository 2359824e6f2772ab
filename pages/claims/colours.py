"""The colours in the figures of the Claims page: each attention variant has the same colour as on the other pages."""

from collections.abc import Iterable

import attention_core as ac
from app.figures.theme import COLOURS, GREY
from app.ui import palette

OTHER_NAMES = {
    "full attention": "softmax",
    "whole matrix": "softmax",
    "whole attention matrix": "softmax",
    "output of softmax": "softmax",
    "softmax × log n": "softmax_log_n",
    "squared relu ÷ n": "relu2",
    "linear attention": "linear",
    "nyström, no inverse": "landmark",
    "nyström, inverse from six iterations": "nystrom",
    "means of neighbouring tokens": "nystrom",
    "deltanet, write strengths up to 2": "deltanet",
}
"""Keys of variants by the lower-case names that figures use instead of the variants' titles."""
EQUAL_WEIGHTS = ("equal weights", "mean of all values", "mean of the values")
"""Names of the baseline, which is grey on all pages."""
FIRST_COLOUR = 4
"""First colour for series that are not variants. The variants of a first visit have the colours before it."""


def series_colours(names: Iterable[str]) -> dict[str, int]:
    """Return the colour of each series by name: the variant's colour, or a colour that the figure does not use yet.

    Args:
        names: untranslated names of a figure's series.
    """
    names = list(names)
    titles = {variant.title.casefold(): variant.key for variant in ac.all_variants()} | OTHER_NAMES
    colours = {name: GREY for name in names if name.casefold() in EQUAL_WEIGHTS}
    for name in names:
        if (key := titles.get(name.casefold())) and (colour := palette.index(key) % COLOURS) not in colours.values():
            colours[name] = colour
    free = [colour for i in range(COLOURS) if (colour := (FIRST_COLOUR + i) % COLOURS) not in colours.values()]
    others = {name: free[i % len(free)] for i, name in enumerate(name for name in names if name not in colours)}
    return {name: (colours | others)[name] for name in names}
