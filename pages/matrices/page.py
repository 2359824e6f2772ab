"""Matrices: where does each variant look? All on the same queries, keys and values."""

from app import comparison, comparison_more, input_panel, row_view, variant_picker
from app.comparison import Found
from app.controls import Options
from app.input_panel import Chosen
from app.page import Page
from app.share import Field
from app.text import N_


class MatricesOptions(Options):
    """What a link to this page carries beside what all pages share."""

    @classmethod
    def fields(cls) -> dict[str, Field]:
        """What a link carries."""
        return comparison.fields()


def top() -> tuple[Found, Chosen]:
    """The variants, the board and the pinned row."""
    variant_picker.show()
    chosen = input_panel.chosen()
    found = comparison.of(chosen)
    comparison.show_board(found)
    row_view.show(found.shown, found.names, found.words, found.labels, unit=found.unit)
    return found, chosen


PAGE = Page(
    title=N_("Matrices"),
    icon=":material/grid_view:",
    section="Explore",
    rank=1,
    question=N_("Where does each variant look?"),
    options=MatricesOptions,
    header=comparison.show_view_options,
    hides_special=True,
    top=top,
    views={"more": lambda given: comparison_more.show(*given)},
)
