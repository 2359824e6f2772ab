"""The input panel of the Picture page: an image, or a handwritten digit that a trained model reads."""

import streamlit as st

import attention_core as ac
from app.state import url
from app.state.session import SharedOptions
from app.ui import input_panel, navigation
from app.ui.input_forms import forms
from app.ui.sources import trained_form
from app.words.i18n import _
from attention_core.inputs import ImageSource, TrainedSource
from attention_core.learning.defaults import TASK_VARIANTS
from attention_core.learning.tasks import digits
from attention_core.learning.tasks import task as task_of
from attention_core.limits import current

DIGITS = digits.TASK.key


def shown_kind(visit: SharedOptions) -> str:
    """Return the kind of input that the page shows: a trained model if it reads digits, otherwise an image."""
    reads_digits = visit.input == TrainedSource.key and visit.trained.model.task == DIGITS
    return TrainedSource.key if reads_digits else ImageSource.key


def draw() -> None:
    """Draw the choice between an image and a digit, and the widgets of the chosen kind."""
    options = SharedOptions.current()
    kind, titles = shown_kind(options), {ImageSource.key: _("Image"), TrainedSource.key: _("Handwritten digit")}
    key, names = url.sync_widget("picture.input", kind), titles.__getitem__
    st.segmented_control(
        _("Input"),
        list(titles),
        key=key,
        format_func=names,
        on_change=_set_kind,
        args=(key,),
        required=True,
        label_visibility="collapsed",
    )
    if kind == ImageSource.key:
        forms()[kind].draw()
        return
    trained_form.draw(task=DIGITS)
    try:
        chosen = input_panel.read_input(options, kind)
    except ac.LabError:
        return  # the main part of the page shows why the image cannot be read
    if chosen:
        input_panel.draw_layer_and_head(chosen.source, chosen.qkv)
        st.caption(input_panel.describe_size(chosen.qkv, shown=chosen.qkv.n))


def _set_kind(key: str) -> None:
    kind = st.session_state[key]
    if kind == TrainedSource.key and SharedOptions.trained.value.model.task != DIGITS:
        trained_form.set_task(DIGITS)
    SharedOptions.input.set(kind)


def offer_digits() -> None:
    """Draw a link to training on digits if the chosen trained model reads something else."""
    options = SharedOptions.current()
    if options.input == TrainedSource.key and shown_kind(options) == ImageSource.key:
        title = _(task_of(options.trained.model.task).title)
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="picture.digits"):
            st.caption(
                _(
                    "The chosen trained model was trained on “{task}”, so its tokens are not pixels. This page shows "
                    "a photograph instead.",
                    task=title,
                ),
                width="content",
            )
            words = TASK_VARIANTS[DIGITS][: current().compared_variants]
            label, variants = _("Train on digits (Learn page)"), tuple(map(ac.from_word, words))
            navigation.link("learn", label, fields={"l_task": [DIGITS]}, variants=variants)
