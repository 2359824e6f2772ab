"""The Entropy page: whether attention spreads over more keys as the text grows."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.page import Page
from app.state.session import SharedOptions
from app.ui import input_panel, variant_picker
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import N_, _
from pages.entropy import distance, factor, growth, normalizer, options
from pages.entropy.options import EntropyOptions, Measurement
from pages.entropy.view import View

VIEWS: dict[str, View] = {
    "entropy": growth.VIEW,
    "normalizer": normalizer.VIEW,
    "distance": distance.VIEW,
    "factor": factor.VIEW,
}


def top() -> tuple[DeltaGenerator, Measurement]:
    """Draw the choice of the view, its variant picker if it has one, and its settings.

    Returns:
        The place of the view's sentence, which is above the controls, and the measurement.
    """
    headline, view = st.container(), VIEWS[EntropyOptions.view.value]
    has_variants = EntropyOptions.view.value == "entropy"
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        EntropyOptions.view.draw()
        with st.container(horizontal=True, width="content"):
            if has_variants:
                growth.show_scalings()
            settings = st.container(width="content")
    if has_variants:
        variant_picker.show()
        variant_picker.show_left_out()
    one_sequence = _("The distance between a query and a key is defined only within one sequence.")
    by_distance = EntropyOptions.view.value == "distance"
    measurement = _measurement(input_panel.require_input(cross_reason=one_sequence if by_distance else ""))
    with settings:
        view.show_settings(measurement)
    return headline, measurement


def scope(chosen: ChosenInput) -> Scope:
    """Return which heads, seeds and lengths the view on screen measures."""
    return VIEWS[EntropyOptions.view.value].scope(_measurement(chosen))


def _measurement(chosen: ChosenInput) -> Measurement:
    return options.make_measurement(chosen, EntropyOptions.current(), causal=SharedOptions.causal.value)


PAGE = Page(
    title=N_("Entropy"),
    icon=":material/trending_up:",
    section="Measure",
    rank=1,
    question=growth.VIEW.heading,
    heading=lambda: _(VIEWS[EntropyOptions.view.value].heading),
    options=EntropyOptions,
    measures=growth.MEASURES,
    curves=growth.CURVES,
    opening=options.opening,
    top=top,
    view=EntropyOptions.view,
    views={name: view.show for name, view in VIEWS.items()},
    scope=scope,
)
