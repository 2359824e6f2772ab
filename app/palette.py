"""Which colour a variant has: its own on every page, whatever else is chosen with it."""

from collections.abc import Sequence
from functools import cache
from itertools import count

import attention_core as ac
from app.visit import default_variants, first_variants

COMPARED = ("softmax_log_n", "relu2", "retention")
"""What pages put beside softmax unasked."""


@cache
def _order() -> dict[str, int]:
    """Every variant's place. What a first visit compares, what an old address does and what pages do come first.

    These have the colours that are told apart best, one each; the others follow in the registry's order. Places do
    not depend on what is chosen, so no line changes its colour when another is added or removed, and as no two places
    look alike (``figures.theme.style``), no two variants on screen do.
    """
    first = [attention.key for attention in (*first_variants(), *default_variants())]
    rest = [variant.key for variant in ac.all_variants()]
    return {key: place for place, key in enumerate(dict.fromkeys([*first, *COMPARED, *rest]))}


def places(words: Sequence[str]) -> list[int]:
    """The places of variants with their settings: the first of each variant has its own, others one behind all."""
    found, behind = [], count(len(_order()))
    for word in words:
        own = place(word.split("~")[0])
        found.append(next(behind) if own in found or own == len(_order()) else own)
    return found


def place(key: str) -> int:
    """A variant's place in the shared series of colours; the one after all variants for what is none."""
    return _order().get(key, len(_order()))
