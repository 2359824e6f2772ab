"""Matrices: where does each variant look? All on the same queries, keys and values."""

import streamlit as st

from app import comparison, comparison_more, input_panel, row_view, variant_picker
from app.share import show_share
from app.text import _

comparison.use_link()
title, controls = st.columns([9, 11], vertical_alignment="center")
title.markdown("##### " + _("Where does each variant look?"))
with controls, st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right"):
    st.toggle(_("Causal"), key="causal", help=_("Hide the future: query i sees keys 0 to i."), width="content")
    comparison.show_view_options()
    show_share()
variant_picker.show()

chosen = input_panel.chosen()
found = comparison.of(chosen)
comparison.show_board(found)
row_view.show(found.shown, found.names, found.words, found.labels, unit=found.unit)
comparison_more.show(found, chosen)
