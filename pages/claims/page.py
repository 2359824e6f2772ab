"""Claims: is what the articles say true here?"""

from app import input_panel
from app.claims import views
from app.controls import Options
from app.input_panel import Chosen
from app.page import Page
from app.share import Field
from app.text import N_


class ClaimsOptions(Options):
    """What a link to this page carries beside what all pages share."""

    @classmethod
    def fields(cls) -> dict[str, Field]:
        """What a link carries."""
        return views.fields()


def top() -> Chosen:
    """The input."""
    return input_panel.chosen(switch=False)


PAGE = Page(
    title=N_("Claims"),
    icon=":material/fact_check:",
    section="Understand",
    rank=3,
    question=N_("Is what the articles say true here?"),
    options=ClaimsOptions,
    switch=False,
    top=top,
    views={"claims": views.show},
)
