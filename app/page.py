"""The class ``Page``, which holds a page's place in the menu, its options and the functions that draw it.

``discover`` finds all pages.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

from app.measures import CurveMeasures, Measures
from app.state.controls import Options
from app.state.session import SharedOptions
from app.ui.scope import Scope
from app.words.i18n import N_

Q = TypeVar("Q")

SECTIONS = (N_("Explore"), N_("Measure"), N_("Understand"))
"""Sections of the menu, in order. A page without a section comes before all of them."""


@dataclass(frozen=True, kw_only=True)
class Page(Generic[Q]):
    """A page: its place in the menu, its options, and the functions that draw it.

    Attributes:
        title: title in the menu.
        icon: icon before the title.
        section: section of the menu; empty for the first page.
        rank: position within the section.
        question: question that the page answers, shown at its top and on Home.
        heading: returns the question at the page's top if it depends on the options; Home still shows ``question``.
        options: the page's own options, which links carry in addition to the shared options.
        opening: returns values of shared options, by name, that this page opens with if the address has no query, and
            that differ from those of other pages.
        top: draws the part of the page that is the same in every view; its result is passed to the view's function.
        views: functions that draw the part below ``top`` (a view), by the view's name in links; one if there is no
            choice.
        view: returns the name of the view to draw: an option of the page, or a function of several options.
        header: draws the page's own controls next to the question; None if the page has none.
        has_causal_switch: whether the header has the causal switch; the Causal page is always causal.
        uses_input: whether the page uses the shared input, which the visitor chooses in the sidebar.
        only_input: returns the only kind of input that the page shows for some shared options; empty if it shows every
            kind. A page with only one kind ignores the visitor's choice of position encodings.
        input_panel: draws the page's own choice of the input; None for the choice that other pages have.
        open_heads: callback that opens the large view of all heads; None on every page without this view.
        runs_as_fragment: whether the page draws fast enough to run as a fragment (``app.ui.partial_rerun``): a widget
            change then redraws only the page and does not interrupt an earlier rerun.
        hides_special: whether the page can leave out tokens that the tokenizer added, as the visitor chooses.
        scope: returns the heads, tokens and variants behind the numbers on screen. Its argument is the chosen input; a
            page that uses no input calls it without an argument. None means the chosen head on the whole input.
        measures: numbers on the page that a lesson can ask about, keyed by the names that lessons use.
        curves: curves on the page that a lesson can ask a visitor to draw, keyed like ``measures``.
    """

    title: str
    icon: str
    section: str = ""
    rank: int = 0
    question: str = ""
    heading: Callable[[], str] | None = None
    options: type[Options] = Options
    opening: Callable[[], Mapping[str, Any]] = dict
    top: Callable[[], Q]
    views: Mapping[str, Callable[[Q], None]]
    view: Callable[[], str] | None = None
    header: Callable[[], None] | None = None
    has_causal_switch: bool = True
    uses_input: bool = True
    only_input: Callable[[SharedOptions], str] = lambda options: ""
    input_panel: Callable[[], None] | None = None
    open_heads: Callable[[], None] | None = None
    runs_as_fragment: bool = False
    hides_special: bool = False
    scope: Callable[..., Scope] | None = None
    measures: Measures = field(default_factory=dict)
    curves: CurveMeasures = field(default_factory=dict)

    def input_kind(self, options: SharedOptions) -> str:
        """Return the kind of input that the page shows."""
        return self.only_input(options) or options.input

    def draw(self) -> None:
        """Draw the page below its header."""
        argument = self.top()
        view = next(iter(self.views)) if self.view is None else self.view()
        self.views[view](argument)


@cache
def discover() -> dict[str, Page[Any]]:
    """Return every page in the order of the menu, keyed by its folder's name, which is also its path in addresses.

    Raises:
        TypeError: if the ``page.py`` of a folder does not define ``PAGE``.
    """
    # Modules of ``app`` must not depend on a particular page, so they may not contain import statements for ``pages``.
    # The pages are therefore found in their folder and imported by name.
    folder = importlib.import_module("pages")
    pages = {}
    for info in pkgutil.iter_modules(folder.__path__):
        page = getattr(importlib.import_module(f"pages.{info.name}.page"), "PAGE", None)
        if not isinstance(page, Page):
            raise TypeError(f"pages/{info.name}/page.py must define PAGE, a Page")
        pages[info.name] = page
    section_ranks = {section: rank for rank, section in enumerate(("", *SECTIONS))}
    return dict(sorted(pages.items(), key=lambda each: (section_ranks[each[1].section], each[1].rank)))
