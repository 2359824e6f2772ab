"""Categories of query–key pairs, with names and colours.

A category is the rule of the mask that allows the pair, such as a window, or a combination of rules.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from app.board_messages.panel import Category
from app.figures.categories import OTHER, PRIMITIVES
from app.words.i18n import N_, _

PRIMITIVE_NAMES = {
    "window": N_("window"),
    "stride": N_("stride"),
    "global": N_("global token"),
    "random": N_("random key"),
    "sink": N_("sink"),
    "block": N_("block"),
    "chosen": N_("chosen block"),
    "compressed": N_("block mean"),
    "summary": N_("summary column"),
    "kept": N_("largest scores"),
    "bucket": N_("same bucket"),
    "chunk": N_("same or previous chunk"),
    "itself": N_("own token, the only key"),
    "survivor": N_("query of a kept token"),
    "round": N_("another hashing"),
    "missed": N_("same bucket, not attended to"),
    "column": N_("selected column"),
    "diagonal": N_("selected distance"),
    "heavy hitter": N_("heavy hitter"),
    "pattern": N_("pattern"),
}
"""The name on screen of each primitive, a rule by which a variant allows pairs."""


class PairKinds:
    """The categories of query–key pairs on one board: one per primitive, and one per combination of primitives.

    A primitive is a rule by which a variant allows pairs, such as a window. The legend omits the combinations.

    Args:
        boards: for each panel, the pairs that each primitive allows, ``bool [n, n]``, by the primitive's name.
    """

    def __init__(self, boards: Iterable[Mapping[str, np.ndarray]]) -> None:
        used = {name for patterns in boards for name, pairs in patterns.items() if pairs.any()}
        order = [*PRIMITIVES, *sorted(used - PRIMITIVES.keys())]
        self._names: list[tuple[str, ...]] = [(name,) for name in order if name in used]

    def codes(self, patterns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return each pair's category number on the board, ``float32 [n, n]``; 0 for a pair that is not allowed.

        Args:
            patterns: the pairs that each primitive allows, ``bool [n, n]``, by the primitive's name.
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
        """The categories in order of their numbers, from 1. A combination has the colour of its first primitive."""
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
    return _(PRIMITIVE_NAMES.get(name, name))


def hide_future(codes: np.ndarray, *, causal: bool) -> np.ndarray:
    """If ``causal``, set the category numbers above the diagonal to NaN (masked) in place; return the array."""
    if causal:
        codes[np.triu_indices(len(codes), 1)] = np.nan
    return codes
