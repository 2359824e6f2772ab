"""What the stories of kernel attentions share."""

from collections.abc import Sequence

import numpy as np

from app.inside import pictures
from app.inside.pictures import Grid
from app.inside.step import Seen
from app.text import _

TINIEST = np.finfo(np.float32).tiny
"""What a sum is taken to be at least, to divide by."""


def draw_features(seen: Seen, q: np.ndarray, k: np.ndarray, key: str, captions: Sequence[str] = ("", "")) -> None:
    """The features of queries and keys side by side, ``[n, C]`` both."""
    panels = [
        Grid(
            title=title, caption=caption, values=values, rows=seen.labels, row_title=_("token"), col_title=_("feature")
        )
        for title, caption, values in zip(("φ(q)", "φ(k)"), captions, (q, k), strict=True)
    ]
    pictures.grids(panels, key, unit=_("feature"))
