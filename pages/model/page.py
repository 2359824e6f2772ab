"""The Model page: the effect on a language model of replacing its softmax attention by another variant."""

import streamlit as st

from app.page import Page
from app.state.session import SharedOptions
from app.words.i18n import N_
from pages.model import budget, continuation, copying, encoder, layers, places, predicts, reading
from pages.model.measures import MEASURES
from pages.model.options import OWN, ModelOptions, Question, question, scope


def top() -> Question:
    """Draw the choice of the view, the layers, the text and the variants, and return the question."""
    embeds = ModelOptions.view.value == "encoder"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        ModelOptions.view.draw()
        if embeds:
            ModelOptions.encoder_layers.draw()
        else:
            ModelOptions.text.draw()
            (ModelOptions.edge if ModelOptions.view.value == "layers" else ModelOptions.layers).draw()
    if embeds:
        ModelOptions.query.draw(width=420)
    elif ModelOptions.text.value == OWN:
        SharedOptions.text.draw(height=100)
    places.show(causal=not embeds)
    return question()


def header() -> None:
    """Draw the switch between recorded and newly computed results."""
    if ModelOptions.view.value not in ("encoder", "continuation"):  # These two are always computed.
        ModelOptions.live.draw(width="content")


PAGE = Page(
    title=N_("Model"),
    icon=":material/psychology:",
    section="Measure",
    rank=4,
    question=N_("What does it do to the model?"),
    options=ModelOptions,
    measures=MEASURES,
    top=top,
    view=ModelOptions.view,
    views={
        "text": reading.show,
        "copying": copying.show,
        "layers": layers.show,
        "budget": budget.show,
        "predicts": predicts.show,
        "continuation": continuation.show,
        "encoder": encoder.show,
    },
    header=header,
    has_causal_switch=False,
    uses_input=False,
    scope=scope,
)
