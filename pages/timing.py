"""Timing: when does the cheap version pay? Time and memory against length, measured here or recorded elsewhere."""

import streamlit as st

from app import variant_picker
from app.header import header
from app.timing import beside, live, options, results, words

options.use_link()
header()
variant_picker.show()
row = st.container(horizontal=True, vertical_alignment="bottom")
with row:
    spec = options.show()
with st.container(horizontal=True, vertical_alignment="bottom"):
    recorded = beside.show(spec)
    options.show_masked()
    options.show_side(results.sides())
live.show(spec, row, lambda run, key: results.show(run, recorded, f"timing.{key}"))
words.show_method()
