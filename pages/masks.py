"""Masks: who may look at whom, and how far does it reach?"""

import streamlit as st

from app import input_panel, masks, masks_more, variant_picker
from app.share import show_share
from app.text import _

masks.use_link()
masks_more.use_link()
title, controls = st.columns([11, 9], vertical_alignment="center")
title.markdown("##### " + _("Who may look at whom, and how far?"))
with controls, st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right"):
    st.toggle(_("Causal"), key="causal", help=_("Hide the future: query i sees keys 0 to i."), width="content")
    masks.show_add_all()
    show_share()
variant_picker.show()

chosen = input_panel.chosen()
found = masks.of(chosen)
masks.show_board(found)
masks_more.show(found, chosen)
