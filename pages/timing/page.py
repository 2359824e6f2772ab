"""The Timing page: time and memory against sequence length, measured on this machine or recorded elsewhere."""

import streamlit as st

from app.jobs import timing_runs
from app.page import Page
from app.ui import variant_picker
from app.words.i18n import N_, _
from pages.timing import options, recorded_run, results, words
from pages.timing.options import TimingOptions


def show(_top: None) -> None:
    """Draw the controls, the run with its results, and the method."""
    row = st.container(horizontal=True, vertical_alignment="bottom", key="controls.timing")
    with row:
        spec = options.show()
        recorded = recorded_run.show(spec)
    summary = st.container(key="timing.summary").empty()
    left, right = st.columns(2)
    with left:
        st.markdown("## " + _("Time of one call"), anchors=False)
        places = [summary, st.empty()]
    with right:
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="top"):
            st.markdown("## " + _(results.TITLES[TimingOptions.side.value]), anchors=False, width="content")
            TimingOptions.side.draw(label_visibility="collapsed")
        places.append(st.empty())
    timing_runs.run_here(spec, row, lambda run, key: results.show(run, recorded, places, f"timing.{key}"))
    words.show_method()


PAGE = Page(
    title=N_("Timing"),
    icon=":material/timer:",
    section="Measure",
    rank=3,
    question=N_("When is the cheaper version actually faster?"),
    options=TimingOptions,
    uses_input=False,
    scope=options.scope,
    top=variant_picker.show,
    views={"timing": show},
)
