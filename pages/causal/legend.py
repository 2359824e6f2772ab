"""Definitions shared by the views of the Causal page: variants with the visitor's settings, names, colours, dashes."""

from collections.abc import Iterable, Sequence

import attention_core as ac
from app.figures.theme import GREY
from app.state.session import with_chosen_settings
from app.ui import palette
from app.words.i18n import N_, escape_markdown
from attention_core.experiments.causal_modes import MATRIX
from attention_core.variant import Variant

FORMS = {"chunked": N_("chunked"), "recurrent": N_("recurrent"), "cumsum": N_("cumsum"), MATRIX: N_("explicit matrix")}
"""Names of the forms on screen."""
COLOURS = {"chunked": 4, "recurrent": 2, "cumsum": 5, MATRIX: GREY}
"""Colours of the forms: indices into the palette, or a colour."""


def with_settings(variants: Iterable[Variant]) -> list[ac.Attention]:
    """Return the variants with the visitor's settings or defaults, except ``mode``, which keeps its default."""
    found = []
    for variant in variants:
        params = with_chosen_settings(variant.key).params
        values = {s.name: getattr(params, s.name) for s in params.settings() if s.name != "mode"}
        found.append(ac.get(variant.key, **values))
    return found


def places(keys: Sequence[str]) -> dict[str, int]:
    """Return the palette index of each variant, which is the same on every page."""
    return {key: palette.place(key) for key in keys}


def dash(way: str) -> str:
    """Return the dash pattern of a form's line."""
    return "dash" if way == MATRIX else "solid"


def bold(names: Iterable[str]) -> str:
    """Return names in bold, separated by commas."""
    return ", ".join(f"**{escape_markdown(name)}**" for name in names)
