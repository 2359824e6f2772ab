"""The Model page: what happens to a language model if another attention variant replaces its softmax attention."""

from dataclasses import replace
from functools import partial

import streamlit as st

from app.page import Page
from app.state.session import SharedOptions
from app.ui.lazy import lazy_popover
from app.words.i18n import N_, _
from attention_core.experiments import embedding, swap
from attention_core.inputs import TrainedSource
from pages.model import copying, reading, variant_buttons
from pages.model.budget import BUDGET
from pages.model.continuation import CONTINUATION
from pages.model.encoder import EMBEDDINGS
from pages.model.forecast import FORECAST
from pages.model.layers import LAYERS
from pages.model.measures import MEASURES
from pages.model.options import (
    OWN_TEXT,
    ModelOptions,
    Question,
    current_question,
    encoder_depth,
    layers_text,
    model_title,
    scope,
)
from pages.model.tiny import trained_swap


def top() -> Question:
    """Draw the controls of the view, the layers, the text and the variants, and return what to measure.

    The findings are shown above these controls.
    """
    headline = st.container(key=f"model.headline.{ModelOptions.view.value}")
    with st.container(horizontal=True, vertical_alignment="center"):
        view = ModelOptions.view.draw(label_visibility="collapsed")
        if view == "layers":
            ModelOptions.edge.draw(label_visibility="collapsed")
    if view == "encoder":
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(_(ModelOptions.query.title), help=_(ModelOptions.query.help), width="content")
            ModelOptions.query.draw(width=360, label_visibility="collapsed", help=None)
    question = replace(current_question(), headline=headline)
    if view == "trained":
        trained_swap.top()
        return question
    if view != "encoder" and ModelOptions.text.value == OWN_TEXT:
        SharedOptions.text.draw(height=100)
    variant_buttons.show(
        causal=view != "encoder",
        introduction=_introduction(view, question),
        without_settings=view in ("budget", "predicts"),  # These views measure several values of a setting.
    )
    if SharedOptions.input.value == TrainedSource.key:
        st.caption(
            _(
                "This view measures a language model. To replace the attention of the chosen trained model, open "
                "“Tiny model”."
            )
        )
    return question


def _introduction(view: str, question: Question) -> str:
    """Return the text before the variants' buttons: in which layers of which model attention is replaced."""
    if view == "encoder":
        low, high = question.options.encoder_layers
        return _(
            "Replace the attention in {where} of **{model}** with:",
            where=layers_text(range(low, high + 1), encoder_depth()),
            model=model_title(embedding.ENCODER),
        )
    if view == "layers":  # This view does not use the option ``layers``.
        return _("Replace the attention in **{model}** (4-bit, not retrained) with:", model=model_title(swap.MODEL))
    return _(
        "Replace the attention in {where} of **{model}** (4-bit, not retrained) with:",
        where=question.layers_text,
        model=model_title(swap.MODEL),
    )


def header() -> None:
    """Draw the menu of the settings that are seldom changed: the text, the layers, and whether to recompute results.

    Only the results of the language model are recorded.
    """
    view = ModelOptions.view.value
    if view == "trained":
        return
    lazy_popover(
        settings_summary(), partial(_show_settings, view), key="model.settings", icon=":material/tune:", type="tertiary"
    )


def _show_settings(view: str) -> None:
    if view == "encoder":
        ModelOptions.encoder_layers.draw()
        return
    ModelOptions.text.draw()
    if view != "layers":
        ModelOptions.layers.draw()
    ModelOptions.live.draw(width="content")


def settings_summary() -> str:
    """Return the current settings as the label of their menu, without the layers if the view has its own choice."""
    now, view = current_question(), ModelOptions.view.value
    if view in ("copying", "encoder"):  # These views do not use the text.
        low, high = ModelOptions.encoder_layers.value
        layers = now.layers_text if view == "copying" else layers_text(range(low, high + 1), encoder_depth())
        return layers[:1].upper() + layers[1:]
    text = _("Text: {title}", title=now.title)
    return text if view == "layers" else f"{text} · {now.layers_text}"


def heading() -> str:
    """Return the page's question, with the model of a view that measures another model."""
    view = ModelOptions.view.value
    if view == "encoder":
        return _(
            "What happens to the sentence model {model} when you replace its attention?",
            model=model_title(embedding.ENCODER),
        )
    if view == "trained":
        return _("What happens to a tiny trained model when you replace its attention?")
    return _(PAGE.question)


PAGE = Page(
    title=N_("Model"),
    icon=":material/psychology:",
    section="Measure",
    rank=4,
    question=N_("What happens to a model when you replace its attention?"),
    heading=heading,
    options=ModelOptions,
    measures=MEASURES,
    top=top,
    view=ModelOptions.view,
    views={
        "text": reading.show,
        "copying": copying.show,
        "layers": LAYERS.show,
        "budget": BUDGET.show,
        "predicts": FORECAST.show,
        "continuation": CONTINUATION.show,
        "encoder": EMBEDDINGS.show,
        "trained": trained_swap.show,
    },
    header=header,
    has_causal_switch=False,
    uses_input=False,
    scope=scope,
)
