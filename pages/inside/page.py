"""Inside: one variant taken apart, step by step, with its real intermediates on the input."""

from app import input_panel
from app.controls import Options
from app.input_panel import Chosen
from app.inside import panel
from app.page import Page
from app.share import Field
from app.text import N_


class InsideOptions(Options):
    """What a link to this page carries beside what all pages share."""

    @classmethod
    def fields(cls) -> dict[str, Field]:
        """What a link carries."""
        return panel.fields()


def top() -> Chosen:
    """Which variant is taken apart."""
    panel.choose()
    return input_panel.chosen()


PAGE = Page(
    title=N_("Inside"),
    icon=":material/biotech:",
    section="Understand",
    rank=2,
    question=N_("How does it work?"),
    options=InsideOptions,
    top=top,
    views={"inside": panel.show},
)
