"""Timing: when does the cheap version pay? Time and memory against length, measured here or recorded elsewhere."""

import streamlit as st

from app import variant_picker
from app.share import show_share
from app.text import _
from app.timing import beside, live, options, results, words

options.use_link()
title, controls = st.columns([13, 7], vertical_alignment="center")
title.markdown("##### " + _("When does the cheap version pay?"))
with controls, st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right"):
    st.toggle(_("Causal"), key="causal", help=_("Hide the future: query i sees keys 0 to i."), width="content")
    show_share()
variant_picker.show()
row = st.container(horizontal=True, vertical_alignment="bottom")
with row:
    spec = options.show()
with st.container(horizontal=True, vertical_alignment="bottom"):
    recorded = beside.show(spec)
    options.show_side(results.sides())
live.show(spec, row, lambda run, key: results.show(run, recorded, f"timing.{key}"))
words.show_method()
