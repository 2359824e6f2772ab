"""The Budget view: perplexity and copying against each variant's budget, and the loss against the text position."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app.figures.curves import Curve, curves
from app.figures.theme import GREY
from app.ui import chart, palette
from app.words.i18n import _, paragraph
from app.words.labels import readable
from attention_core import registry
from attention_core.experiments import swap
from attention_core.experiments.swap import CopyRow, ReadingRow, SwapRow
from attention_core.model_patching import UNIFORM
from attention_core.variant import SOFTMAX
from pages.model import reading, sweep, words
from pages.model.options import Question, called
from pages.model.sweep import Both

SMOOTH = 32
"""Tokens over which losses are averaged, because a single loss depends more on the token than on its position."""


def show(question: Question) -> None:
    """Measure every budget of each variant and draw the results, with the loss by position."""
    with_knob = [word for word in question.words if word != UNIFORM and registry.from_word(word).variant.budget]
    if not with_knob:
        st.info(_("None of these has a budget knob; add a window, sinks or top-k."))
        return
    tasks = (
        *swap.tasks(question.text, question.words, question.layers, live=question.live),
        *swap.budget_tasks(question.text, with_knob, question.layers, swap.PERIOD * 2, live=question.live),
    )

    def draw(rows: list[SwapRow], key: str) -> None:
        lines = {word: both for word in with_knob if (both := along(rows, word))}
        st.markdown(in_one_sentence(lines, rows))
        sweep.draw(lines, rows, key=key, x_title=_("budget: each variant's own knob"), log_x=True, name_of=swept)
        _positions(question, rows, key)
        st.caption(words.origin(rows))

    rows = sweep.at_once(tasks, draw, key="model.budget")
    reading.take_away(rows)


def along(rows: Sequence[SwapRow], word: str) -> list[Both]:
    """Return one variant's perplexity and copying loss by budget."""
    ladder = {each.word: budget(each.word) for each in swap.ladder(word, swap.PERIOD * 2)}
    return sweep.pairs([row for row in rows if row.layers], lambda row: ladder.get(row.word))


def swept(word: str) -> str:
    """Return the name of a line over a variant's budget: the variant, the budget, and other changed settings."""
    attention = registry.from_word(word)
    knob = attention.variant.budget
    assert knob is not None
    others = attention.params.changed().keys() - {knob.name}
    values = (f"{readable(name)} {_(str(getattr(attention.params, name)))}" for name in sorted(others))
    return " · ".join([_(attention.title), readable(knob.name), *values])


def budget(word: str) -> float:
    """Return the value of a variant's budget."""
    attention = registry.from_word(word)
    assert attention.variant.budget is not None
    return float(getattr(attention.params, attention.variant.budget.name))


def in_one_sentence(lines: dict[str, list[Both]], rows: Sequence[SwapRow]) -> str:
    """Return the budgets from which the text is read as before, and from which copying is preserved."""
    read = next((row.perplexity for row in rows if isinstance(row, ReadingRow) and not row.layers), None)
    copy = next((row for row in rows if isinstance(row, CopyRow) and not row.layers), None)
    if read is None or copy is None:
        return ""
    keeps = copy.copied + words.COPIED * (copy.first - copy.copied)
    sentences = []
    for word, pairs in lines.items():
        attention = registry.from_word(word)
        assert attention.variant.budget is not None
        reads = least(pairs, "perplexity", words.SAME * read)
        copies = least(pairs, "copied", keeps)
        names = {"name": _(attention.title), "knob": _(attention.variant.budget.name.replace("_", " "))}
        sentences.append(
            paragraph(
                _("**{name}** reads as before from {knob} {value:g} on.", value=reads, **names)
                if reads is not None
                else _("**{name}** reads worse at every {knob} tried.", **names),
                _("It copies from {knob} {value:g} on.", value=copies, **names)
                if copies is not None
                else _("It copies at none."),
            )
        )
    return paragraph(*sentences)


def least(pairs: Sequence[Both], name: str, most: float) -> float | None:
    """Return the smallest budget from which on a number never exceeds ``most``; None if there is no such budget."""
    found = None
    for pair in reversed([p for p in pairs if getattr(p, name) is not None]):
        if getattr(pair, name) > most:
            break
        found = pair.x
    return found


def _positions(question: Question, rows: Sequence[SwapRow], key: str) -> None:
    read = {(row.word, row.layers): row for row in rows if isinstance(row, ReadingRow) and row.losses}
    drawn = []
    readers: list[tuple[str, str, tuple[int, ...], int]] = [(_("The model as it is"), SOFTMAX, (), GREY)]
    placed = zip(question.words, palette.places(question.words), strict=True)
    readers += [(called(word), word, question.layers, place) for word, place in placed]
    for name, word, layers, colour in readers:
        if (row := read.get((word, layers))) is not None:
            smooth = running_mean(row.losses, SMOOTH)
            xs = [float(SMOOTH + i) for i in range(len(smooth))]
            drawn.append(Curve(name, xs, smooth, colour=colour, marks=False))
    if drawn and drawn[0].x:
        title = _("loss (nats a token), mean of {n}", n=SMOOTH)
        figure = curves(drawn, x_title=_("position in the text (tokens)"), y_title=title, height=340)
        message = _("Lines: the loss against the position in the text")
        chart.show(figure, key=f"{key}.position", name="loss-by-position", alt=message)


def running_mean(values: Sequence[float], width: int) -> list[float]:
    """Return the mean of every ``width`` consecutive values; empty for fewer values."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return ((sums[width:] - sums[:-width]) / width).tolist() if len(values) >= width else []
