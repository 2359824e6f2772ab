"""The one list of pages: a page more is a file in ``pages/`` and a line here."""

from dataclasses import dataclass

import streamlit as st

from app.text import _


@dataclass(frozen=True)
class Entry:
    """A page: its file, its place in the menu, and whether it works on the shared input."""

    file: str
    title: str
    icon: str
    path: str
    section: str
    default: bool = False
    uses_input: bool = True


def entries() -> tuple[Entry, ...]:
    """Every page, in the order of the menu."""
    return (
        Entry("home.py", _("Home"), ":material/home:", "home", "", default=True, uses_input=False),
        Entry("matrices.py", _("Matrices"), ":material/grid_view:", "matrices", _("Explore")),
        Entry("masks.py", _("Masks"), ":material/grid_on:", "masks", _("Explore")),
        Entry("entropy.py", _("Entropy"), ":material/trending_up:", "entropy", _("Measure")),
        Entry("error.py", _("Error"), ":material/trending_down:", "error", _("Measure")),
        Entry("timing.py", _("Timing"), ":material/timer:", "timing", _("Measure"), uses_input=False),
        Entry("causal.py", _("Causal"), ":material/timeline:", "causal", _("Understand")),
        Entry("inside.py", _("Inside"), ":material/biotech:", "inside", _("Understand")),
        Entry("claims.py", _("Claims"), ":material/fact_check:", "claims", _("Understand")),
    )


def page_of(entry: Entry) -> st.Page:
    """The entry as Streamlit's page."""
    return st.Page(
        f"../pages/{entry.file}", title=entry.title, icon=entry.icon, url_path=entry.path, default=entry.default
    )
