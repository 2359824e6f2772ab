"""Error: what does the cheap version cost in fidelity? Against its price, its own knob, and the length."""

from app import input_panel, variant_picker
from app.page import Page
from app.text import N_
from pages.error import budget, cost, length
from pages.error.measures import MEASURES
from pages.error.options import ErrorOptions, Question, question, show_display, show_options


def top() -> Question:
    """The variants, against what the error is drawn, and what the question amounts to."""
    variant_picker.show()
    show_options()
    return question(input_panel.chosen())


PAGE = Page(
    title=N_("Error"),
    icon=":material/trending_down:",
    section="Measure",
    rank=2,
    question=N_("What does the cheap version cost in fidelity?"),
    options=ErrorOptions,
    measures=MEASURES,
    header=show_display,
    top=top,
    view=ErrorOptions.against,
    views={"budget": budget.show, "length": length.show, "cost": cost.show},
)
