"""Causal: can it generate, and at what cost?"""

from app import input_panel
from app.causal import views
from app.controls import Options
from app.input_panel import Chosen
from app.page import Page
from app.share import Field
from app.text import N_


class CausalOptions(Options):
    """What a link to this page carries beside what all pages share."""

    @classmethod
    def fields(cls) -> dict[str, Field]:
        """What a link carries."""
        return views.fields()


def top() -> Chosen:
    """Which of the questions is asked."""
    views.pick()
    return input_panel.chosen(switch=False)


PAGE = Page(
    title=N_("Causal"),
    icon=":material/timeline:",
    section="Understand",
    rank=1,
    question=N_("Can it generate, and at what cost?"),
    options=CausalOptions,
    switch=False,
    top=top,
    views={"causal": views.show},
)
