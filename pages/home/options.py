"""The options of the Home page: gallery or family tree, the open families, and the sentence with its sliders."""

import streamlit as st

import attention_core as ac
from app.state import presets
from app.state.controls import Options, choice, index, integer, link_only_option, multiselect
from app.state.link_fields import Field
from app.state.session import read_text, write_text
from app.words.i18n import N_


class HomeOptions(Options):
    """The options that a link to this page carries in addition to the shared ones."""

    shown = choice(
        {"gallery": N_("Gallery"), "tree": N_("Family tree")}, N_("Show"), layout={"label_visibility": "collapsed"}
    )
    family = multiselect(ac.families(), [], N_("Open families"))
    sentence = link_only_option(
        lambda: Field(presets.SENTENCE, read_text, write_text), N_("Your sentence"), widget=st.text_input
    )
    word = index(lambda: presets.SENTENCE_TOKENS)
    window = integer(4, 1, presets.SENTENCE_TOKENS, N_("Window"))
    landmarks = integer(8, 1, presets.SENTENCE_TOKENS, N_("Landmarks"))
