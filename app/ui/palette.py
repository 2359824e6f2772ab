"""The colour, dash pattern and marker of each variant, the same on every page and for every selection of variants."""

from collections.abc import Sequence
from functools import cache
from itertools import count

import attention_core as ac
from app.figures.theme import PLACES

COMPARED = ("softmax_log_n", "relu2", "retention")
"""Variants that pages draw even if the visitor did not choose them."""

# Append only: a variant's position determines its colour, dash and mark. The first eleven have a colour each.
_PLACES = """
    softmax local linear nystrom efficient atrous sparse topk softmax_log_n relu2 retention
    additive alibi differential entmax fox nonlocal selective sigmoid sink_logit softpick
    synthesizer sink bigbird blocks longformer nsa power_bert reformer vertical_slash centred_taylor
    cosformer cosine emanet hedgehog performer taylor2 deltanet gated_deltanet gla kda
    mesa path scalar_decay softmax_gdn funnel landmark linformer pooled pyramid gqa
    heavy_hitters mla quantised_keys lolcats flash_mixed
"""


@cache
def _order() -> dict[str, int]:
    """Return the place of each variant: its position in the list; unlisted variants follow in order of their keys."""
    listed = _PLACES.split()
    new = sorted({variant.key for variant in ac.all_variants()} - set(listed))
    return {key: i for i, key in enumerate([*listed, *new])}


def places(words: Sequence[str]) -> list[int]:
    """Return a different place for each word (a variant with its settings).

    The first word of a variant takes the variant's place in the list. A second word, with other settings, takes the
    last free place, which does not change when a variant is added to the list.
    """
    found: list[int] = []
    spare = count(PLACES - 1, -1)
    for word in words:
        own = _order().get(word.split("~")[0])
        found.append(next(spare) if own is None or own in found else own)
    return found


def place(key: str) -> int:
    """Return the place of a variant in the series of colours; the last place for a key that is not a variant."""
    return _order().get(key, PLACES - 1)
