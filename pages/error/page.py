"""Error: what does the cheap version cost in fidelity? Against its budget, the length, and the price."""

from app import input_panel, variant_picker
from app.controls import Options
from app.fidelity import panel
from app.input_panel import Chosen
from app.page import Page
from app.share import Field
from app.text import N_


class ErrorOptions(Options):
    """What a link to this page carries beside what all pages share."""

    @classmethod
    def fields(cls) -> dict[str, Field]:
        """What a link carries."""
        return panel.fields()


def top() -> Chosen:
    """The variants and against what the error is drawn."""
    variant_picker.show()
    panel.show_options()
    return input_panel.chosen()


PAGE = Page(
    title=N_("Error"),
    icon=":material/trending_down:",
    section="Measure",
    rank=2,
    question=N_("What does the cheap version cost in fidelity?"),
    options=ErrorOptions,
    top=top,
    views={"error": panel.show},
)
