"""Inside: one variant taken apart, step by step, with its real intermediates on the input."""

from app import input_panel
from app.input_panel import Chosen
from app.page import Page
from app.text import N_
from pages.inside import steps, variant
from pages.inside.options import InsideOptions


def top() -> Chosen:
    """Which variant is taken apart."""
    variant.choose()
    return input_panel.chosen()


PAGE = Page(
    title=N_("Inside"),
    icon=":material/biotech:",
    section="Understand",
    rank=2,
    question=N_("How does it work?"),
    options=InsideOptions,
    top=top,
    views={"steps": steps.show},
)
