"""Entropy: does attention dilute as text grows?"""

import streamlit as st

from app import input_panel
from app.entropy import options, views
from app.share import show_share
from app.text import _

options.use_link()
title, controls = st.columns([1, 1], vertical_alignment="center")
title.markdown("##### " + _("Does attention dilute as text grows?"))
with controls, st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right"):
    st.toggle(_("Causal"), key="causal", help=_("Hide the future: query i sees keys 0 to i."), width="content")
    options.show_display()
    show_share()
views.pick()
views.show(input_panel.chosen())
