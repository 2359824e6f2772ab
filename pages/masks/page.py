"""Masks: who may look at whom, and how far does it reach?"""

from app import input_panel, masks, masks_more, variant_picker
from app.controls import Options
from app.input_panel import Chosen
from app.masks import Found
from app.page import Page
from app.share import Field
from app.text import N_


class MasksOptions(Options):
    """What a link to this page carries beside what all pages share."""

    @classmethod
    def fields(cls) -> dict[str, Field]:
        """What a link carries."""
        return masks.fields() | masks_more.fields()


def top() -> tuple[Found, Chosen]:
    """The variants and the patterns."""
    variant_picker.show()
    chosen = input_panel.chosen()
    found = masks.of(chosen)
    masks.show_board(found)
    return found, chosen


PAGE = Page(
    title=N_("Masks"),
    icon=":material/grid_on:",
    section="Explore",
    rank=2,
    question=N_("Who may look at whom, and how far?"),
    options=MasksOptions,
    header=masks.show_add_all,
    top=top,
    views={"more": lambda given: masks_more.show(*given)},
)
