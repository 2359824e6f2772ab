"""One screen of the app: a page with its input and all its options, read from a link or from the session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import attention_core as ac
from app.jobs import cached
from app.jobs.cached import MatrixView
from app.lessons.lesson import parse_query
from app.page import discover
from app.state import url
from app.state.controls import Options
from app.state.session import SharedOptions
from app.ui import input_panel
from app.ui.input_panel import ChosenInput
from app.words.i18n import N_
from attention_core.analysis.matrix.compare import MatrixComparison
from attention_core.errors import InputError

OptionsT = TypeVar("OptionsT", bound=Options)


@dataclass(frozen=True, eq=False)
class Screen:
    """One screen of the app.

    Attributes:
        page: the page's name.
        values: the values of the link's query parameters, by name.
    """

    page: str
    values: Mapping[str, Any]

    @classmethod
    def from_link(cls, link: str, changes: str = "") -> "Screen":
        """Return the screen that a link opens.

        Args:
            link: the link: a page and its query.
            changes: a query whose values replace those of the link.
        """
        page, _mark, words = link.partition("?")
        fields = {**Options.shared(), **discover()[page].options.fields()}
        values, _refused = url.read_link(parse_query(words) | parse_query(changes), fields)
        return cls(page, values)

    @classmethod
    def current(cls, page: str) -> "Screen":
        """Return the screen that the current session shows on ``page``."""
        return cls(page, url.values())

    def options(self, kind: type[OptionsT]) -> OptionsT:
        """Return the screen's values of the options that ``kind`` declares."""
        return kind(**{name: self.values[control.name] for name, control in kind.controls.items()})

    @property
    def shared(self) -> SharedOptions:
        """The options that all pages share."""
        return self.options(SharedOptions)

    @property
    def chosen(self) -> ChosenInput:
        """The screen's input: the source, its record and the head.

        Raises:
            LabError: if the input cannot be read, or is a file that was not uploaded.
        """
        chosen = input_panel.read_input(self.shared, discover()[self.page].only_input(self.shared))
        if chosen is None:
            raise InputError(N_("There is no file yet. Upload one in the sidebar."))
        return chosen

    @property
    def view(self) -> MatrixView:
        """The input and how it is shown (head, causal mask, special tokens); errors are those of ``chosen``."""
        shared, chosen = self.shared, self.chosen
        return MatrixView(source=chosen.source, head=chosen.head, causal=shared.causal, special=shared.special)

    def variant(self, key: str) -> ac.Attention:
        """Return a variant with this screen's settings, or with its defaults if it is not compared."""
        return next((each for each in self.shared.variants if each.key == key), None) or ac.get(key)

    def compare(self, attention: ac.Attention) -> MatrixComparison:
        """Return a variant's matrix as the Matrices page draws it.

        Raises:
            LabError: if there is no input, or the view is causal and the variant cannot be causal.
        """
        return cached.matrix(self.view, attention)
