"""Masks: who may look at whom, and how far does it reach?"""

from app import input_panel, variant_picker
from app.page import Page
from app.text import N_
from pages.masks import hashed_order, numbers, patterns, reach
from pages.masks.measures import MEASURES
from pages.masks.options import MasksOptions, show_add_all
from pages.masks.patterns import Found


def top() -> Found:
    """The variants and their patterns."""
    variant_picker.show()
    found = patterns.of(input_panel.chosen())
    patterns.show(found)
    MasksOptions.below.draw()
    return found


PAGE = Page(
    title=N_("Masks"),
    icon=":material/grid_on:",
    section="Explore",
    rank=2,
    question=N_("Who may look at whom, and how far?"),
    options=MasksOptions,
    measures=MEASURES,
    header=show_add_all,
    top=top,
    view=MasksOptions.below,
    views={"reach": reach.show, "numbers": numbers.show, "order": hashed_order.show, "download": numbers.take_away},
)
