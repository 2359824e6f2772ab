"""The explanation of one variant on the Matrices page: its effect on this input, its formula and its code."""

import streamlit as st

from app.state.session import REFERENCE, SharedOptions
from app.ui import about
from app.words.i18n import _
from pages.matrices.comparison import Comparison
from pages.matrices.options import MatricesOptions
from pages.matrices.words import variant_sentence


def show(comparison: Comparison) -> None:
    """Draw the choice of the variant, its effect on this input, its formula and its code."""
    attentions = {a.key: a for a in SharedOptions.variants.value}
    titles = {key: _(a.title) for key, a in attentions.items()}
    key = MatricesOptions.explained.draw_with_options(
        list(titles), REFERENCE, key="explain.variant", widget=st.pills, format_func=titles.__getitem__, required=True
    )
    attention = attentions[key]
    if attention in comparison.matrices and attention.word != REFERENCE:
        st.markdown(variant_sentence(attention, comparison.matrices[attention], causal=comparison.view.causal))
    about.link_inside(attention)
    about.show(attention, comparison.chosen)
