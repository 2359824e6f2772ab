"""The Matrices page: the attention matrices of the chosen variants for the same queries, keys and values."""

import streamlit as st

from app.lessons import card
from app.lessons.options import LessonOptions
from app.page import Page
from app.ui import input_panel, variant_picker
from app.words.finding import text_above, text_below
from app.words.i18n import N_
from pages.matrices import downloads, formula, heads, numbers, pinned_row
from pages.matrices.comparison import Comparison, compare, show_board
from pages.matrices.headline import findings
from pages.matrices.measures import MEASURES
from pages.matrices.options import MatricesOptions, show_display
from pages.matrices.words import spread_sentence


def top() -> Comparison:
    """Draw the findings, the open settings, the board and the pinned query, and return the computed matrices."""
    comparison = compare(input_panel.require_input())
    pending = card.is_pending("matrices")
    lines = findings(
        comparison.matrices,
        causal=comparison.view.causal,
        difference=comparison.difference,
        can_add=LessonOptions.lesson.value is None,
    )
    spread = (
        "" if pending or comparison.difference else spread_sentence(comparison.matrices, causal=comparison.view.causal)
    )
    st.container(key="matrices.headline").markdown("  \n".join(filter(None, (spread, text_above(lines)))))
    variant_picker.show_settings()
    show_board(comparison)
    pinned_row.show(comparison)
    if text := text_below(lines):
        st.container(key="matrices.reasons").markdown(text)
    MatricesOptions.below.draw()
    return comparison


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
        "download": downloads.show,
    },
)
