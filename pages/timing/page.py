"""The Timing page: time and memory against sequence length, measured on this machine or recorded elsewhere."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.jobs import timing_runs
from app.page import Page
from app.ui import variant_picker
from app.words.i18n import N_, _
from pages.timing import charts, method, options, recorded_run, results
from pages.timing.options import TimingOptions


def top() -> DeltaGenerator:
    """Return the element for the summary of the results."""
    return st.container(key="timing.summary").empty()


def show(headline: DeltaGenerator) -> None:
    """Draw the controls and the variant picker, the run with its results, and the method."""
    row = st.container(horizontal=True, vertical_alignment="bottom", key="controls.timing")
    with row:
        spec = options.show()
        recorded = recorded_run.show(spec)
    variant_picker.show(uses_input=False)
    placeholders = [headline, st.empty()]
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="top"):
        st.markdown("## " + _(charts.TITLES[TimingOptions.side.value]), anchors=False, width="content")
        TimingOptions.side.draw(label_visibility="collapsed")
    placeholders.append(st.empty())
    timing_runs.run_on_machine(spec, row, lambda run, key: results.show(run, recorded, placeholders, f"timing.{key}"))
    method.show()


PAGE = Page(
    title=N_("Timing"),
    icon=":material/timer:",
    section="Measure",
    rank=3,
    question=N_("When are cheaper variants actually faster?"),
    options=TimingOptions,
    opening=options.opening,
    uses_input=False,
    scope=options.scope,
    top=top,
    views={"timing": show},
)
