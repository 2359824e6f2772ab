"""Timing: when does the cheap version pay? Time and memory against length, measured here or recorded elsewhere."""

import streamlit as st

from app import variant_picker
from app.controls import Options
from app.page import Page
from app.share import Field
from app.text import N_
from app.timing import beside, on_this_machine, options, results, words


class TimingOptions(Options):
    """What a link to this page carries beside what all pages share."""

    @classmethod
    def fields(cls) -> dict[str, Field]:
        """What a link carries."""
        return options.fields()


def show(given: None) -> None:
    """The set-up, the run and how it is measured."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        spec = options.show()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        recorded = beside.show(spec)
        options.show_masked()
        options.show_side(results.sides())
    on_this_machine.show(spec, row, lambda run, key: results.show(run, recorded, f"timing.{key}"))
    words.show_method()


PAGE = Page(
    title=N_("Timing"),
    icon=":material/timer:",
    section="Measure",
    rank=3,
    question=N_("When does the cheap version pay?"),
    options=TimingOptions,
    uses_input=False,
    top=variant_picker.show,
    views={"timing": show},
)
