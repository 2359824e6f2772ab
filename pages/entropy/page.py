"""The Entropy page: whether attention spreads over more keys as the text grows."""

from app.page import Page
from app.state.session import SharedOptions
from app.ui import input_panel, variant_picker
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import N_
from pages.entropy import distance, drift, factor, growth, normalizer
from pages.entropy.measures import CURVES, MEASURES
from pages.entropy.options import EntropyOptions, Question, opening, question, show_display

VIEWS = {"entropy": growth, "normalizer": normalizer, "drift": drift, "distance": distance, "factor": factor}


def top() -> Question:
    """Draw the choice of the view, and the variant picker if the view uses it; return the question."""
    if EntropyOptions.view.draw() == "entropy":
        variant_picker.show()
    return _asked(input_panel.chosen())


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the view on screen."""
    return VIEWS[EntropyOptions.view.value].scope(_asked(chosen))


def _asked(chosen: ChosenInput) -> Question:
    return question(chosen, EntropyOptions.now(), causal=SharedOptions.causal.value)


PAGE = Page(
    title=N_("Entropy"),
    icon=":material/trending_up:",
    section="Measure",
    rank=1,
    question=N_("Does attention dilute as text grows?"),
    options=EntropyOptions,
    measures=MEASURES,
    curves=CURVES,
    opening=opening,
    header=show_display,
    top=top,
    view=EntropyOptions.view,
    views={name: view.show for name, view in VIEWS.items()},
    scope=scope,
)
