"""Runs of tasks that may be recorded, and charts of perplexity and copying against a swept quantity, side by side."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import streamlit as st

from app.figures.lines.curves import Curve, curves, guide
from app.figures.theme import GREY
from app.jobs import dispatch, runs
from app.ui import chart, palette
from app.words.i18n import _
from attention_core.experiments import continuation, swap
from attention_core.experiments.continuation import ContinuationRow, ContinuationTask
from attention_core.experiments.swap import FLOORS, SwapRow, SwapTask
from attention_core.experiments.swap.derived import Both, originals
from attention_core.variant import SOFTMAX
from pages.model.options import ORIGINAL, Question, called

RowT = TypeVar("RowT")
HEIGHT = 400
"""Height in pixels of the charts."""


def run(
    tasks: Sequence[SwapTask] | Sequence[ContinuationTask],
    draw: Callable[[list[RowT], str], None],
    *,
    key: str,
    describe: Callable[[list[RowT]], str],
    height: int = HEIGHT,
) -> list[RowT]:
    """Run tasks and draw their rows, with the arguments of ``runs.run_immediately``; recorded rows need no worker."""
    experiment = "continuation" if any(isinstance(task, ContinuationTask) for task in tasks) else "swap"
    for task in tasks:
        row: SwapRow | ContinuationRow | None = None
        if not task.live:
            row = continuation.known(task) if isinstance(task, ContinuationTask) else swap.known(task)
        if row is not None:
            dispatch.keep(experiment, task, (row,))
    return runs.run_immediately(experiment, tasks, draw, key=key, describe=describe, height=height)


def models(question: Question) -> list[tuple[str, str, tuple[int, ...], int]]:
    """Return the name, word, replaced layers and colour of the original model and of each changed model."""
    placed = zip(question.words, palette.places(question.words), strict=True)
    changed = [(called(word), word, question.layers, place) for word, place in placed]
    return [(_(ORIGINAL), SOFTMAX, (), GREY), *changed]


def draw(
    lines: Mapping[str, Sequence[Both]],
    rows: Sequence[SwapRow],
    *,
    key: str,
    x_title: str,
    log_x: bool = False,
    name_of: Callable[[str], str] = called,
) -> None:
    """Draw the charts of perplexity and of copying.

    Args:
        lines: measurements of each word.
        rows: all rows, including those of the original model.
        key: prefix of the elements' keys.
        x_title: title of the horizontal axis.
        log_x: whether the horizontal axis is logarithmic.
        name_of: function that returns the legend name of a word.
    """
    ends = [both.x for found in lines.values() for both in found]
    if not ends:
        return
    read, copy = originals(rows)
    sides = (
        ("perplexity", _("perplexity"), read.perplexity if read else None, True),
        ("copied", _("copying loss (nats per token)"), copy.copied if copy else None, False),
    )
    for place, (name, title, level, log) in zip(st.columns(2), sides, strict=True):
        placed = zip(lines.items(), palette.places(list(lines)), strict=True)
        drawn = [_curve(name_of(word), word, found, name, colour) for (word, found), colour in placed]
        if level is not None:
            drawn.append(guide(_(ORIGINAL), [min(ends), max(ends)], [level] * 2))
        figure = curves(drawn, x_title=x_title, y_title=title, log_x=log_x, log_y=log, height=HEIGHT)
        with place:
            message = _("Lines: {measure} against {axis}", measure=title, axis=x_title)
            chart.show(figure, key=f"{key}.{name}", name=f"model-{name}", alt=message)


def _curve(title: str, word: str, found: Sequence[Both], name: str, colour: int) -> Curve:
    floor = word in FLOORS
    own = [both for both in found if getattr(both, name) is not None]
    return Curve(
        title,
        [both.x for both in own],
        [getattr(both, name) for both in own],
        colour=GREY if floor else colour,
        dash=("dash", "dashdot")[FLOORS.index(word)] if floor else "solid",
        marks=not floor,
    )
