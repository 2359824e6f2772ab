"""The Matrices page: the attention matrices of the chosen variants on the same queries, keys and values."""

import streamlit as st

from app.page import Page
from app.ui import input_panel, variant_picker
from app.words.i18n import N_
from pages.matrices import comparison, formula, heads, numbers, pinned_row, take_away
from pages.matrices.comparison import Found
from pages.matrices.headline import overall
from pages.matrices.measures import MEASURES
from pages.matrices.options import MatricesOptions, show_display


def top() -> Found:
    """Draw the headline, the open settings, the board and the pinned query, and return the computed matrices."""
    found = comparison.of(input_panel.chosen())
    st.container(key="matrices.headline").markdown(
        overall(found.matrices, causal=found.view.causal, hidden=found.hidden, difference=found.difference)
    )
    variant_picker.show_settings()
    comparison.show(found)
    pinned_row.show(found)
    MatricesOptions.below.draw()
    return found


PAGE = Page(
    title=N_("Matrices"),
    icon=":material/grid_view:",
    section="Explore",
    rank=1,
    question=N_("What does each variant attend to?"),
    options=MatricesOptions,
    runs_as_fragment=True,
    measures=MEASURES,
    header=show_display,
    open_heads=heads.open_all,
    hides_special=True,
    top=top,
    view=MatricesOptions.below,
    views={
        "numbers": numbers.show,
        "row": pinned_row.show_bars,
        "heads": heads.show,
        "explain": formula.show,
        "download": take_away.show,
    },
)
