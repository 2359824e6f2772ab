"""The colour, dash pattern and marker of each attention variant, which are the same on every page."""

from collections.abc import Sequence
from functools import cache
from itertools import count

import attention_core as ac
from app.figures.theme import STYLE_COUNT, separate_colours

COMPARED = ("softmax_log_n", "relu2", "retention")
"""Variants that pages draw even if the visitor did not choose them."""

# Add new variants only at the end, because a variant's position determines its colour, dash and marker. Each of the
# first eleven variants has a colour of its own.
_KEYS = """
    softmax local linear nystrom efficient atrous sparse topk softmax_log_n relu2 retention
    additive alibi differential entmax fox nonlocal selective sigmoid sink_logit softpick
    synthesizer sink bigbird blocks longformer nsa power_bert reformer vertical_slash centred_taylor
    cosformer cosine emanet hedgehog performer taylor2 deltanet gated_deltanet gla kda
    mesa path scalar_decay softmax_gdn funnel landmark linformer pooled pyramid gqa
    heavy_hitters mla quantised_keys lolcats flash_mixed
"""


@cache
def _index_by_key() -> dict[str, int]:
    """Return the index of each variant in ``_KEYS``, by key; unlisted variants follow in order of their keys."""
    keys = _KEYS.split()
    new = sorted({variant.key for variant in ac.all_variants()} - set(keys))
    return {key: i for i, key in enumerate([*keys, *new])}


def indices(words: Sequence[str]) -> list[int]:
    """Return a different index for each variant with its settings, given as in links: ``local~window~8``.

    Their colours also differ, if there are enough colours (see ``separate_colours``).

    The first occurrence of a variant takes the variant's index in ``_KEYS``. A second one, with other settings, takes
    the last free index, which does not change when a variant is added to ``_KEYS``.
    """
    result: list[int] = []
    free_indices = count(STYLE_COUNT - 1, -1)
    for word in words:
        index = _index_by_key().get(word.split("~")[0])
        result.append(next(free_indices) if index is None or index in result else index)
    separate = separate_colours(result)
    return [separate[index] for index in result]


def index(key: str) -> int:
    """Return a variant's index for ``theme.style``; the last index for a key that is not a variant."""
    return _index_by_key().get(key, STYLE_COUNT - 1)
