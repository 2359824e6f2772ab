"""The Timing page: time and memory against sequence length, measured on this machine or recorded elsewhere."""

import streamlit as st

from app.jobs import timing_runs
from app.page import Page
from app.ui import variant_picker
from app.words.i18n import N_
from pages.timing import options, recorded_run, results, words
from pages.timing.options import TimingOptions


def show(given: None) -> None:
    """Draw the controls, the run with its results, and the method."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        spec = options.show()
        recorded = recorded_run.show(spec)
    timing_runs.run_here(spec, row, lambda run, key: results.show(run, recorded, f"timing.{key}"))
    words.show_method()


def show_side() -> None:
    """Draw the choice of the chart next to the time chart."""
    TimingOptions.side.draw(label_visibility="collapsed")


PAGE = Page(
    title=N_("Timing"),
    icon=":material/timer:",
    section="Measure",
    rank=3,
    question=N_("When does the cheap version pay?"),
    options=TimingOptions,
    header=show_side,
    uses_input=False,
    scope=options.scope,
    top=variant_picker.show,
    views={"timing": show},
)
