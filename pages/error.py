"""Error: what does the cheap version cost in fidelity? Against its budget, the length, and the price."""

import streamlit as st

from app import input_panel, variant_picker
from app.fidelity import panel
from app.share import show_share
from app.text import _

panel.use_link()
title, controls = st.columns([13, 7], vertical_alignment="center")
title.markdown("##### " + _("What does the cheap version cost in fidelity?"))
with controls, st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right"):
    st.toggle(_("Causal"), key="causal", help=_("Hide the future: query i sees keys 0 to i."), width="content")
    show_share()
variant_picker.show()
panel.show_options()
panel.show(input_panel.chosen())
