"""The Text view: the loss of each token of the text, with the original model and with each variant."""

import math
from collections.abc import Sequence

import streamlit as st

from app.reading_board import Reading, ReadingState, reading_board
from app.ui import chart, export
from app.words.i18n import _, paragraph
from attention_core.experiments import swap
from attention_core.experiments.swap import ReadingRow, SwapRow
from attention_core.formatting import number
from attention_core.variant import SOFTMAX
from pages.model import glance, sweep, words
from pages.model.options import Question, called, take_look, tokens_in_words
from pages.model.words import Score


def show(question: Question) -> None:
    """Read the text with every variant, run the copy test, and draw the results."""

    def draw(rows: list[SwapRow], key: str) -> None:
        _draw(question, rows, key)

    rows = sweep.at_once(tasks(question), draw, key="model.reading")
    take_away(rows)
    read = next((row for row in rows if isinstance(row, ReadingRow) and row.layers == ()), None)
    token = question.options.token
    if read and question.words and token is not None and 0 < token < read.tokens:
        glance.show(question, question.words[min(question.options.shown, len(question.words) - 1)], token)


def tasks(question: Question) -> tuple[swap.SwapTask, ...]:
    """Return the tasks of this view, which the Copying view shares."""
    return swap.tasks(question.text, question.words, question.layers, seeds=swap.SEEDS, live=question.live)


def scores(question: Question, rows: Sequence[SwapRow]) -> tuple[Score, list[Score]]:
    """Return the scores of the original model and of each variant."""
    original = words.score(_("The model as it is"), SOFTMAX, (), rows)
    return original, [words.score(called(word), word, question.layers, rows) for word in question.words]


def tell(question: Question, rows: Sequence[SwapRow]) -> None:
    """Draw the headline, and a caption with the model, the text and the date of the results."""
    original, changed = scores(question, rows)
    read = next((row for row in rows if isinstance(row, ReadingRow)), None)
    if read is None:
        return
    if changed:
        st.markdown(words.headline(original, changed) or _("Reading …"))
    else:
        st.info(_("Add what is to stand in softmax's place: the button is above."))
    tokens = tokens_in_words(read.tokens, read.total)
    on_what = words.setting(where=question.where, tokens=tokens, title=question.title)
    st.caption(paragraph(on_what, words.keys_of_last(question.words, read.tokens), words.origin(rows)))


def take_away(rows: Sequence[SwapRow]) -> None:
    """Draw the download of the rows as CSV, and the choice of the figures' file format."""
    if rows:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            export.download(_("Numbers (CSV)"), lambda: export.csv_of(rows), "model.csv")
            chart.choose_format()


def _draw(question: Question, rows: Sequence[SwapRow], key: str) -> None:
    tell(question, rows)
    read = {(row.word, row.layers): row for row in rows if isinstance(row, ReadingRow)}
    first = read.get((SOFTMAX, ()))
    if first is None:
        return
    original, changed = scores(question, rows)
    reading_board(
        first.labels,
        _reading(original, original, first),
        [
            _reading(each, original, read.get((word, question.layers)))
            for word, each in zip(question.words, changed, strict=True)
        ],
        [_("Perplexity"), _("times"), _("Copying, nats a token")],
        ReadingState(question.options.shown, -1 if question.options.token is None else question.options.token),
        key=f"{key}.board",
        on_look=take_look,
    )


def _reading(each: Score, original: Score, row: ReadingRow | None) -> Reading:
    numbers = [
        _number(each.perplexity, 3),
        "" if each is original else f"× {_number(each.perplexity / original.perplexity, 3)}",
        _number(each.copied, 2),
    ]
    return Reading(name=each.name, numbers=numbers, losses=row.losses if row else ())


def _number(value: float, digits: int) -> str:
    """Return a number as text, or an ellipsis if it is not known yet."""
    return "…" if math.isnan(value) else number(value, digits)
