"""The Picture page: what attention variants do to a noisy photograph, or to a digit that a trained model reads."""

from dataclasses import replace
from functools import partial

import streamlit as st

from app.jobs import cached
from app.page import Page
from app.state.session import SharedOptions
from app.ui import input_panel, variant_picker
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.ui.sources import trained_form
from app.words.finding import text_above
from app.words.i18n import N_, _, escape_markdown, sentence
from attention_core.inputs import ImageSource, TrainedSource
from pages.picture import comparison, digit, options, panel, photo
from pages.picture.measures import MEASURES
from pages.picture.options import PictureOptions
from pages.picture.subject import Subject, explain, show


def top() -> Subject:
    """Draw the finding, the open settings and the board, and return the subject."""
    placeholder = st.container(key="picture.headline")
    variant_picker.show_settings(keeps_all=True)
    kind = panel.shown_kind(SharedOptions.current())
    if kind == TrainedSource.key and trained_form.cached_row(SharedOptions.trained.value) is None:
        placeholder.markdown(_("When the model is trained, you see to which pixels of a digit each variant attends."))
    chosen = input_panel.require_input(switch=False, kind=kind)
    source, qkv = chosen.source, chosen.qkv
    if isinstance(source, ImageSource):
        qkv = cached.record(source, source.size**2)
    for notice in qkv.notices:
        st.caption(f":material/info: {escape_markdown(sentence(notice))}")
    with cached.spinner(_("Computing the variants …")):
        if isinstance(source, TrainedSource):
            subject = digit.subject(source, chosen.head)
        else:
            assert isinstance(source, ImageSource)
            subject = comparison.subject(photo.compute_images(source))
    with placeholder:
        st.markdown(text_above(subject.findings))
        panel.offer_digits()
    show(subject)
    explain(subject)
    PictureOptions.below.draw()
    return subject


def header() -> None:
    """Draw the menu of variants and the switch of the square windows."""
    variant_picker.show_menu(_("Variants"))
    PictureOptions.squares.draw(width="content")


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the page: all pixels of the whole image, without a mask."""
    if isinstance(source := chosen.source, ImageSource):
        return Scope(n=source.size**2, tokens=source.size**2, causal=False)
    return replace(input_panel.scope(chosen), causal=False)


def _view(key: str, subject: Subject) -> None:
    subject.views[key]()


PAGE = Page(
    title=N_("Picture"),
    icon=":material/image:",
    section="Explore",
    rank=3,
    question=N_("What does each attention variant do to an image?"),
    options=PictureOptions,
    opening=options.opening,
    only_input=panel.shown_kind,
    input_panel=panel.draw,
    header=header,
    has_causal_switch=False,
    runs_as_fragment=True,
    measures=MEASURES,
    scope=scope,
    top=top,
    view=PictureOptions.below,
    views={key: partial(_view, key) for key in ("budget", "numbers", "explain", "download")},
)
