"""Colours of primitives and of layers.

A primitive is a rule, such as a window, that allows query–key pairs.
"""

import numpy as np

from app.figures.theme import sample_ramp

PRIMITIVES = {
    "window": ("#4477aa", "#5b9bd8"),
    "stride": ("#ee8866", "#f0906c"),
    "global": ("#aa3377", "#d05fa2"),
    "random": ("#ccaa22", "#e0c64a"),
    "sink": ("#8a5a1e", "#d8a05c"),
    "block": ("#66bbdd", "#7fd0ee"),
    "chosen": ("#cc3355", "#f0708a"),
    "compressed": ("#c8c3dd", "#4d4868"),
    "summary": ("#cc3355", "#f0708a"),
    "kept": ("#228833", "#4fb863"),
    "bucket": ("#5533aa", "#9c84ee"),
    "chunk": ("#99bb44", "#b4d65c"),
    "itself": ("#777777", "#a6a6a6"),
    "survivor": ("#338899", "#55b3c6"),
    "round": ("#c8c3dd", "#4d4868"),
    "missed": ("#dd2200", "#ff5533"),
    "column": ("#332288", "#4455ff"),
    "diagonal": ("#44aa99", "#66ccbb"),
    "heavy hitter": ("#dd77aa", "#f49ac2"),
}
"""Colour of each primitive (a rule that allows query–key pairs) on light and on dark pages.

Primitives of the same variant also differ in lightness.
"""

OTHER = ("#888888", "#999999")
"""Colours of primitives that are not listed, on light and on dark pages."""
LAYERS = (((64, 68, 76), (198, 201, 207)), ((222, 225, 231), (78, 82, 91)))
"""RGB colours of the first and of the last layer, each on light and on dark pages.

The colours are grey, because hues represent primitives.
"""
HEX = "#{:02x}{:02x}{:02x}"


def layer_colours(count: int) -> tuple[tuple[str, str], ...]:
    """Return a light-page and a dark-page colour for each layer: the first stands out most, later ones fade."""
    positions = np.linspace(0, 1, count)
    light, dark = (np.rint(sample_ramp(ramp, positions)).astype(int) for ramp in LAYERS)
    return tuple((HEX.format(*on_light), HEX.format(*on_dark)) for on_light, on_dark in zip(light, dark, strict=True))
