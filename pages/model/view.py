"""The ``View`` class of the Model page. A view runs tasks or loads their recorded results (rows), and shows these."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.jobs import dispatch, runs
from app.ui import export
from app.words.finding import Lines, text_above, text_below, to_lines
from app.words.i18n import _, paragraph
from attention_core.experiments import continuation, swap
from pages.model import words
from pages.model.options import Question

RowT = TypeVar("RowT")
HEIGHT = 400
"""Height in pixels of the charts."""
RECORDED: dict[str, Callable[[Any], Any]] = {"swap": swap.recorded_row, "continuation": continuation.recorded_row}
"""Functions that return the recorded result of a task or None, by the name of the experiment."""


@dataclass(frozen=True, kw_only=True)
class View(Generic[RowT]):
    """A view of the page: the measurements that it needs, and functions that draw and describe them.

    Attributes:
        experiment: name of the experiment, whose tasks a worker runs.
        tasks: returns the tasks of a question (what to measure).
        missing: returns a message about what the visitor has to choose first; empty if nothing is missing.
        describe: returns the findings about the rows so far; a string is a single finding.
        draw: draws the rows so far; its last argument is a prefix for the keys of elements.
        notes: returns the caption below the drawing.
        file: name of the CSV file with the rows, which visitors can download.
    """

    experiment: str = "swap"
    tasks: Callable[[Question], Sequence[Any]]
    missing: Callable[[Question], str] = lambda question: ""
    describe: Callable[[Question, Sequence[RowT]], Lines | str]
    draw: Callable[[Question, Sequence[RowT], str], None]
    notes: Callable[[Question, Sequence[RowT]], str]
    file: str = "model.csv"

    def _findings(self, question: Question, rows: Sequence[RowT]) -> Lines:
        return to_lines(self.describe(question, rows))

    def show(self, question: Question) -> None:
        """Run the tasks of a question and draw their rows."""
        self.run(question)

    def run(self, question: Question, figure: DeltaGenerator | None = None) -> list[RowT]:
        """Run the tasks of a question, draw their rows, and return the rows. Tasks with recorded rows are not run.

        ``figure`` is an empty element for the drawing; by default, the drawing is above the sentences.
        """
        if missing := self.missing(question):
            st.info(missing)
            return []

        def draw(rows: list[RowT], key: str) -> None:
            with (figure or st).container():
                self.draw(question, rows, key)
            if text := text_below(self._findings(question, rows), as_list=True):
                st.markdown(text)
            st.caption(self.notes(question, rows))

        tasks = self.tasks(question)
        for task in tasks if self.experiment in RECORDED and not question.live else ():
            if (row := RECORDED[self.experiment](task)) is not None:
                dispatch.cache_rows(self.experiment, task, (row,))
        rows: list[RowT] = runs.run_immediately(
            self.experiment,
            tasks,
            draw,
            key=f"model.{question.options.view}",
            describe=lambda rows: text_above(self._findings(question, rows)),
            container=question.headline,
            height=HEIGHT,
        )
        if rows:
            export.download(_("Numbers (CSV)"), lambda: export.rows_to_csv(rows), self.file)
        return rows


def show_definitions() -> None:
    """Draw a collapsed section with the definitions of perplexity and of the copy test."""
    export.draw_formula(
        _("Definitions"),
        r"\text{perplexity} = \exp\Big(\tfrac{1}{n-1}\sum_{i>1} -\log p(x_i \mid x_{<i})\Big)",
        paragraph(
            _("A perplexity of 10 means that the model is as uncertain as if 10 tokens were equally likely."),
            _("The model's probability of token $x_i$ is p. The loss of a token is $-\\log p$, in nats."),
            _(
                "Copy test: the model is given {period} random common tokens twice in a row. To copy a token, a query "
                "must attend {back} tokens back, to the token that followed the first occurrence of the query's own "
                "token.",
                period=swap.PERIOD,
                back=swap.COPY_DISTANCE,
            ),
            _(
                "The copying loss is the mean loss of all repeated tokens except the first. A uniform guess among all "
                "{n:,} tokens has a loss of {loss:.1f} nats.",
                n=swap.VOCABULARY,
                loss=words.GUESS_LOSS,
            ),
        ),
        key="model.method",
    )
