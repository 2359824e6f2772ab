"""Categories of query–key pairs by the rule of the mask that allows them, such as a window, and their colours."""

from collections.abc import Iterable, Mapping

import numpy as np

from app.board_messages.panel import Category
from app.figures.categories import OTHER, PRIMITIVES
from app.words.i18n import _


class PairKinds:
    """The categories of pairs on one board: each primitive, and each mix of several, which the legend omits.

    Args:
        boards: for each panel, the pairs that each primitive allows, ``bool [n, n]`` by name.
    """

    def __init__(self, boards: Iterable[Mapping[str, np.ndarray]]) -> None:
        used = {name for patterns in boards for name, pairs in patterns.items() if pairs.any()}
        order = [*PRIMITIVES, *sorted(used - PRIMITIVES.keys())]
        self._names: list[tuple[str, ...]] = [(name,) for name in order if name in used]

    def codes(self, patterns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return each pair's category number on the board, ``float32 [n, n]``; 0 for a pair that is not allowed.

        Args:
            patterns: the pairs that each primitive allows, ``bool [n, n]`` each; a pair has the colour of the first.
        """
        bits = sum(pairs.astype(np.int64) << i for i, pairs in enumerate(patterns.values()))
        codes = np.zeros(np.shape(bits), np.float32)
        for mix in np.unique(bits).tolist():
            names = tuple(name for i, name in enumerate(patterns) if mix >> i & 1)
            if not names:
                continue
            if names not in self._names:
                self._names.append(names)
            codes[bits == mix] = self._names.index(names) + 1
        return codes

    @property
    def categories(self) -> list[Category]:
        """The categories by number; a mix has the colour of its first primitive."""
        return [
            Category(
                " + ".join(primitive_name(name) for name in names),
                *PRIMITIVES.get(names[0], OTHER),
                listed=len(names) == 1,
            )
            for names in self._names
        ]


def primitive_name(name: str) -> str:
    """Return the name of a primitive in the visitor's language."""
    return {
        "window": _("window"),
        "stride": _("stride"),
        "global": _("global token"),
        "random": _("random key"),
        "sink": _("sink"),
        "block": _("block"),
        "chosen": _("chosen block"),
        "compressed": _("block mean"),
        "summary": _("summary column"),
        "kept": _("largest scores"),
        "bucket": _("same bucket"),
        "chunk": _("same or previous chunk"),
        "itself": _("own token, the only key"),
        "survivor": _("query of a kept token"),
        "round": _("another hashing round"),
        "missed": _("same bucket, not allowed"),
        "column": _("selected column"),
        "diagonal": _("selected distance"),
        "heavy hitter": _("heavy hitter"),
        "pattern": _("pattern"),
    }.get(name, name)


def hide_future(codes: np.ndarray, *, causal: bool) -> np.ndarray:
    """Mask the pairs above the diagonal in place if ``causal``, and return the codes."""
    if causal:
        codes[np.triu_indices(len(codes), 1)] = np.nan
    return codes
