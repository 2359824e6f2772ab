"""What a page is: declared once in its folder, found by walking ``pages/``."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

from app.measures import Measures
from app.state.controls import Options
from app.ui.scope import Scope
from app.words.i18n import N_

Q = TypeVar("Q")

SECTIONS = (N_("Explore"), N_("Measure"), N_("Understand"))
"""Of the menu, in its order; a page without one stands before them."""


@dataclass(frozen=True, kw_only=True)
class Page(Generic[Q]):
    """A page: its place in the menu, what a visitor can set, and what is drawn.

    Attributes:
        title: in the menu.
        icon: before it.
        section: of the menu; empty for the first page.
        rank: its place in the section.
        question: what it answers, at its top and on Home.
        options: what a link carries beside what all pages share.
        opening: what an empty address stands for here, by the name of a shared value, where that is not what it stands
            for elsewhere.
        top: draws what stands above every view; returns what the views are given.
        views: what is drawn below, by its word; just one where there is nothing to choose.
        view: says which is drawn: an option of the page, or a function of several.
        header: draws the page's own controls beside its question; None for a page without that line.
        switch: whether the causal switch stands there; a page that is about the causal forms has no use for it.
        uses_input: whether it works on the shared input, asked for in the sidebar.
        open_heads: shows all heads of the input's model at large, on the page that does.
        at_once: whether it is drawn so soon that no move need break off the one before; a move then draws it alone.
        hides_special: whether it leaves out tokens that the tokenizer added where the visitor wants that.
        scope: returns which heads, tokens and variants the numbers on screen come from: of the chosen input, or
            without an argument on a page that reads none. None where they are the chosen head's, on the whole input.
        measures: the numbers it shows that a lesson may ask for, by their words in lessons.
    """

    title: str
    icon: str
    section: str = ""
    rank: int = 0
    question: str = ""
    options: type[Options] = Options
    opening: Callable[[], Mapping[str, Any]] = dict
    top: Callable[[], Q]
    views: Mapping[str, Callable[[Q], None]]
    view: Callable[[], str] | None = None
    header: Callable[[], None] | None = None
    switch: bool = True
    uses_input: bool = True
    open_heads: Callable[[], None] | None = None
    at_once: bool = False
    hides_special: bool = False
    scope: Callable[..., Scope] | None = None
    measures: Measures = field(default_factory=dict)

    def draw(self) -> None:
        """Draw all of it below its header."""
        given = self.top()
        chosen = next(iter(self.views)) if self.view is None else self.view()
        self.views[chosen](given)


@cache
def discover() -> dict[str, Page[Any]]:
    """Every page by its folder's name, which is its path in addresses, in the order of the menu.

    Raises:
        TypeError: if a folder's ``page.py`` has no ``PAGE``.
    """
    folder = importlib.import_module("pages")  # by name: the shared part knows no page
    found = {}
    for info in pkgutil.iter_modules(folder.__path__):
        page = getattr(importlib.import_module(f"pages.{info.name}.page"), "PAGE", None)
        if not isinstance(page, Page):
            raise TypeError(f"pages/{info.name}/page.py must define PAGE, a Page")
        found[info.name] = page
    places = {section: place for place, section in enumerate(("", *SECTIONS))}
    return dict(sorted(found.items(), key=lambda each: (places[each[1].section], each[1].rank)))
