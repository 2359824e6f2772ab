"""What the views compare: variants with the settings of this visit, forms of computing them, and their colours."""

from collections.abc import Iterable, Sequence

import attention_core as ac
from app.figures.theme import GREY
from app.state.session import as_chosen
from app.ui import palette
from app.words.i18n import N_, literal
from attention_core.experiments.causal_modes import MATRIX
from attention_core.variant import Variant

FORMS = {"chunked": N_("chunked"), "recurrent": N_("recurrent"), "cumsum": N_("cumsum"), MATRIX: N_("explicit matrix")}
"""What the forms are called on screen."""
COLOURS = {"chunked": 4, "recurrent": 2, "cumsum": 5, MATRIX: GREY}
"""The forms' places among the colours."""


def with_settings(variants: Iterable[Variant]) -> list[ac.Attention]:
    """Variants with the settings chosen on this visit, else their defaults; their form of computing left open."""
    found = []
    for variant in variants:
        params = as_chosen(variant.key).params
        values = {s.name: getattr(params, s.name) for s in params.settings() if s.name != "mode"}
        found.append(ac.get(variant.key, **values))
    return found


def places(keys: Sequence[str]) -> dict[str, int]:
    """The colour's place of each variant, the same on every page."""
    return {key: palette.place(key) for key in keys}


def dash(way: str) -> str:
    """The stroke of a form's line."""
    return "dash" if way == MATRIX else "solid"


def bold(names: Iterable[str]) -> str:
    """Names in bold, in a row."""
    return ", ".join(f"**{literal(name)}**" for name in names)
