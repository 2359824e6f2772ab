"""The options of the Home page: gallery or family tree, the open families, and the live sentence with its sliders."""

import streamlit as st

import attention_core as ac
from app.state import presets
from app.state.controls import Options, choice, link_only_option, place, several, whole
from app.state.link_fields import Field
from app.state.session import read_text, write_text
from app.words.i18n import N_


class HomeOptions(Options):
    """The options that a link to this page carries in addition to the shared ones."""

    shown = choice(
        {"gallery": N_("Gallery"), "tree": N_("Family tree")}, N_("Show"), layout={"label_visibility": "collapsed"}
    )
    family = several(ac.families(), [], N_("Open families"))
    sentence = link_only_option(
        lambda: Field(presets.SENTENCE, read_text, write_text), N_("Your sentence"), widget=st.text_input
    )
    word = place(lambda: presets.SENTENCE_TOKENS)
    window = whole(4, 1, presets.SENTENCE_TOKENS, N_("Window"))
    landmarks = whole(8, 1, presets.SENTENCE_TOKENS, N_("Landmarks"))
