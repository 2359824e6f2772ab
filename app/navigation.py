"""The one list of pages: a page more is a file in ``pages/`` and a line here."""

from dataclasses import dataclass

import streamlit as st

from app.text import _


@dataclass(frozen=True)
class Entry:
    """A page: its file, its place in the menu, the question it answers, and whether it works on the shared input."""

    file: str
    title: str
    icon: str
    path: str
    section: str
    question: str = ""
    default: bool = False
    uses_input: bool = True


def entries() -> tuple[Entry, ...]:
    """Every page, in the order of the menu."""
    explore, measure, understand = _("Explore"), _("Measure"), _("Understand")
    return (
        Entry("home.py", _("Home"), ":material/home:", "home", "", default=True, uses_input=False),
        Entry(
            "matrices.py",
            _("Matrices"),
            ":material/grid_view:",
            "matrices",
            explore,
            _("Where does each variant look?"),
        ),
        Entry("masks.py", _("Masks"), ":material/grid_on:", "masks", explore, _("Who may look at whom, and how far?")),
        Entry(
            "entropy.py",
            _("Entropy"),
            ":material/trending_up:",
            "entropy",
            measure,
            _("Does attention dilute as text grows?"),
        ),
        Entry(
            "error.py",
            _("Error"),
            ":material/trending_down:",
            "error",
            measure,
            _("What does the cheap version cost in fidelity?"),
        ),
        Entry(
            "timing.py",
            _("Timing"),
            ":material/timer:",
            "timing",
            measure,
            _("When does the cheap version pay?"),
            uses_input=False,
        ),
        Entry(
            "causal.py",
            _("Causal"),
            ":material/timeline:",
            "causal",
            understand,
            _("Can it generate, and at what cost?"),
        ),
        Entry("inside.py", _("Inside"), ":material/biotech:", "inside", understand, _("How does it work?")),
        Entry(
            "claims.py",
            _("Claims"),
            ":material/fact_check:",
            "claims",
            understand,
            _("Is what the articles say true here?"),
        ),
    )


HERE = "navigation.here"
"""The entry of the page that runs, in the session's state."""


def page_of(entry: Entry) -> st.Page:
    """The entry as Streamlit's page."""
    return st.Page(
        f"../pages/{entry.file}", title=entry.title, icon=entry.icon, url_path=entry.path, default=entry.default
    )
