"""The Copying view of the Model page: a model reads random tokens twice; the loss shows whether it copies them."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from app.figures.heat import Row, heat
from app.ui import chart
from app.words.finding import Finding, Lines
from app.words.i18n import _, paragraph
from attention_core.experiments import swap
from attention_core.experiments.swap import CopyRow, SwapRow
from attention_core.formatting import formatted, number
from pages.model import reading, sweep, words
from pages.model.options import Question
from pages.model.view import View, show_definitions


def _draw(question: Question, rows: Sequence[SwapRow], key: str) -> None:
    strips = [strip for each in sweep.models(question) if (strip := _strip(rows, *each[:3]))]
    if not strips:
        return
    largest = max(float(np.nanmax(strip.positions)) for strip in strips)
    figure = heat(
        [replace(strip, positions=strip.positions / largest) for strip in strips],
        {loss / largest: text for loss, text in loss_ticks(largest).items()},
        dark=st.context.theme.type == "dark",
        x_title=_("position in the repetition (tokens)"),
        scale=_("loss of the repeated token (nats)"),
    )
    message = _("Strips: the loss of each repeated token, in the original model and with each variant")
    chart.show(figure, key=f"{key}.chart", name="copying", alt=message)


def loss_ticks(largest: float) -> dict[float, str]:
    """Return the ticks of losses up to ``largest``, with the loss of a uniform guess if it is among them."""
    if largest < words.GUESS_LOSS:
        return {loss: str(loss) for loss in range(0, int(largest) + 1, 1 if largest < 5 else 5)}
    return {0: "0", 5: "5", words.GUESS_LOSS: _("{loss:.1f} (uniform guess)", loss=words.GUESS_LOSS)}


def _notes(_question: Question, rows: Sequence[SwapRow]) -> str:
    return paragraph(
        _(
            "Each cell is the mean over {n} random sequences. Point at a cell to see its loss and the range.",
            n=max((row.seed + 1 for row in _copies(rows)), default=0),
        ),
        words.results_origin(_copies(rows)),
    )


def show(question: Question) -> None:
    """Draw the copy test, and the definitions of perplexity and copying loss."""
    COPYING.show(question)
    show_definitions()


def _copies(rows: Sequence[SwapRow]) -> list[CopyRow]:
    return [row for row in rows if isinstance(row, CopyRow)]


def _strip(rows: Sequence[SwapRow], name: str, word: str, layers: tuple[int, ...]) -> Row | None:
    """Return a model's losses by position, as means over the random sequences; None if no sequence is finished."""
    draws = [row for row in _copies(rows) if (row.word, row.layers) == (word, layers) and row.losses]
    if not draws:
        return None
    losses = np.array([row.losses for row in draws])  # [sequences, positions]; the first token has no loss
    means = losses.mean(axis=0)
    notes = [
        _("{name}, token {n}: loss {loss} nats ({low} to {high})", name=name, n=n, loss=loss, low=low, high=high)
        for n, each in enumerate(losses.T, start=1)
        for loss, low, high in [[formatted(float(value), ".2f") for value in (each.mean(), each.min(), each.max())]]
    ]
    title = _("{name}: mean loss {loss} nats", name=name, loss=number(float(means.mean()), 3))
    return Row(title=title, positions=np.array([math.nan, *means]), notes=["", *notes])


def _describe(question: Question, rows: Sequence[SwapRow]) -> Lines | str:
    """Return the findings about the effect of the variants on copying, and the sentence about the test."""
    found = reading.describe_outcome(question, rows, words.describe_copying)
    if isinstance(found, str):
        return found
    test = _(
        "The original model reads {period} random tokens twice and can copy them the second time.", period=swap.PERIOD
    )
    return [*found, [Finding(test)]]


COPYING = View(tasks=reading.tasks, describe=_describe, draw=_draw, notes=_notes)
