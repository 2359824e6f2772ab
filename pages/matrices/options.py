"""The options of the Matrices page: the query shown in detail, how matrices are drawn, and the view below them."""

from typing import Literal

import attention_core as ac
from app.state import link_fields
from app.state.controls import Control, Options, choice, link_only_option, switch
from app.state.session import AUTOMATIC, PINNED, SharedOptions
from app.ui import variant_picker
from app.ui.lazy import lazy_popover
from app.words.i18n import C_, N_, _
from attention_core.limits import current

OPENING_ROW = -2
"""Pinned query if the address has no options: ``SUBJECT[0]`` if the text has it, else the page's choice."""
SUBJECT = ("one", "loved")
"""A subject of the story and its verb. The subject attends most to the verb in the head of an empty address."""


def _variant_field() -> link_fields.Field:
    return link_fields.one_of(None, [variant.key for variant in ac.all_variants()])


def _row_field() -> link_fields.Field:
    """Return the field of the pinned query: a token's index, ``none``, ``opening``, or ``auto`` (the page's choice)."""
    token = link_fields.integer(AUTOMATIC, 0, current().matrix_tokens - 1)
    row_names = {"none": None, "auto": AUTOMATIC, "opening": OPENING_ROW}
    rows = {row: word for word, row in row_names.items()}
    return link_fields.Field(
        AUTOMATIC,
        lambda given: row_names[given[0]] if given in ([word] for word in row_names) else token.read(given),
        lambda row: [rows.get(row, str(row))],
        options=(None, OPENING_ROW, *(token.options or ())),
        opening=OPENING_ROW,
    )


class MatricesOptions(Options):
    """The options that a link to this page carries in addition to the input and the variants."""

    view = choice(
        {"weights": N_("Weights"), "difference": N_("Difference")}, N_("Show"), layout={"label_visibility": "collapsed"}
    )
    scale: Control[Literal["shared", "panel"]] = choice({"shared": N_("Shared"), "panel": N_("Per panel")}, N_("Scale"))
    tone: Control[Literal["linear", "sqrt", "log"]] = choice(
        {
            "linear": C_("scale of colours", "Linear"),
            "sqrt": C_("scale of colours", "Square root"),
            "log": C_("scale of colours", "Log"),
        },
        N_("Colour"),
        default="sqrt",
    )
    row: Control[int | None] = link_only_option(_row_field, N_("Pinned query"), link=PINNED)
    # The pinned query is shown as one strip of text per variant. Only the strip of the variant ``coloured`` shows the
    # whole text.
    coloured = link_only_option(_variant_field)
    below = choice(
        {
            "numbers": N_("Numbers"),
            "row": N_("Row as bars"),
            "heads": N_("All heads"),
            "explain": N_("Formula and code"),
            "download": N_("Export"),
        },
        N_("More"),
        link="more",
        layout={"label_visibility": "collapsed"},
    )
    ranks = switch(
        False,
        N_("Ranks"),
        help=N_(
            "Shows the rank and the effective rank of each matrix. For a long text, computing the ranks takes seconds."
        ),
    )
    head_order = choice(
        {
            "layer": N_("Layer"),
            "induction": N_("Induction"),
            "previous": N_("Previous token"),
            "sink": N_("First-token sink"),
            "entropy": N_("Entropy"),
            "distance": N_("Mean distance"),
        },
        N_("Sort heads by"),
    )
    explained = link_only_option(_variant_field, N_("Variant"))


def show_display() -> None:
    """Draw the menu of variants, the choice of weights or difference, and the form with the display options."""
    variant_picker.show_menu(_("Variants"))
    lazy_popover(_("Display"), _display_form, key="matrices.display", icon=":material/tune:", type="tertiary")
    MatricesOptions.view.draw()


def _display_form() -> None:
    MatricesOptions.tone.draw()
    MatricesOptions.scale.draw()
    SharedOptions.special.draw()
