"""The options of the Inside page: the explained variant, the current step, and choices within single steps."""

from dataclasses import replace

import streamlit as st

import attention_core as ac
from app.state import link_fields, url
from app.state.controls import choice, index, int_choice, link_only_option
from app.state.session import HashOptions, SharedOptions, variant_field, with_chosen_settings
from app.words.i18n import N_
from attention_core.limits import current
from pages.inside.stories import discover

FIRST_HEAD = 10
"""Head on a first visit. As in most heads of this layer, the inverse matrix lowers the error of Nyström attention."""
FIRST_VARIANT = "nystrom"
"""Key of the variant on a first visit."""
MAX_STEPS = 9
FIRST_TAB = 0
"""Value of ``step`` that represents the first tab of any variant. A link without a step opens the step with the number
1, which some variants show in a later tab."""


def with_visited_settings(key: str) -> ac.Attention:
    """Return the variant with the settings that the visitor has chosen on other pages, else with its defaults."""
    return ac.get(key) if url.are_unchanged({SharedOptions.variants.name}) else with_chosen_settings(key)


class InsideOptions(HashOptions):
    """Query parameters of this page, in addition to those of the input.

    Until the visitor picks a ``query``, its value is ``None`` and the step uses its own default.
    """

    attention = link_only_option(
        lambda: replace(
            variant_field(lambda variant: variant.key in discover(), FIRST_VARIANT),
            page_opening=lambda: with_visited_settings(FIRST_VARIANT),
        ),
        link="inside",
    )
    step = link_only_option(
        lambda: replace(link_fields.integer(1, FIRST_TAB, MAX_STEPS), opening=FIRST_TAB),
        N_("Step"),
        widget=st.segmented_control,
    )
    query = index(lambda: current().matrix_tokens, N_("Query"))
    feature_error = choice({"kernel": N_("Similarities"), "matrix": N_("Matrix")}, N_("Show the error of"))
    logits = choice(
        {1.0: N_("Original"), 0.25: N_("÷ 4"), 0.05: N_("÷ 20")},
        N_("Logits"),
        help=N_(
            "Performer's error bound assumes small logits. Divide all logits by 4 or 20 to see how the error depends "
            "on their size."
        ),
    )
    write = int_choice(20, 1, 30, N_("Write strength"), link="i_write", widget=st.select_slider)
