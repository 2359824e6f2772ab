"""The Forecast view: whether a variant's mean output error predicts its perplexity and its copying loss."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from app.figures.scatter import Points, scatter
from app.ui import chart, palette
from app.words.i18n import _, _n, paragraph
from attention_core import metrics, registry
from attention_core.experiments import swap
from attention_core.experiments.swap import CopyRow, OutputErrorRow, ReadingRow, SwapRow, SwapTask
from attention_core.formatting import number
from attention_core.model_patching import UNIFORM
from pages.model import reading, sweep, words
from pages.model.options import Question, called

FEWEST = 5
"""Minimum number of points for which an order is reported."""
CLOSE, LOOSE = 0.9, 0.6
"""Rank correlations from which on an order is reported as the same, and as roughly the same."""
EXACT = 1e-4
"""Errors below this value are rounding errors and are not drawn on the logarithmic axis."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """The measurements of one variant at one budget."""

    word: str
    output: float
    perplexity: float
    copied: float


def show(question: Question) -> None:
    """Measure output error, perplexity and copying of every variant at every budget, and compare their orders."""
    able = _able(question)
    if not able:
        st.info(_("Add a variant whose outputs can be held against softmax's."))
        return

    def draw(rows: list[SwapRow], key: str) -> None:
        found = points(rows)
        st.markdown(in_one_sentence(found))
        sides = (("perplexity", _("perplexity of the text")), ("copied", _("loss when copying (nats a token)")))
        for place, (name, title) in zip(st.columns(2), sides, strict=True):
            clouds = [
                _cloud(word, [p for p in found if p.output > EXACT], name, colour)
                for word, colour in zip(able, palette.places(able), strict=True)
            ]
            x_title = _("mean relative error of the outputs")
            figure = scatter(clouds, x_title=x_title, y_title=title, diagonal="", log=True, height=400)
            with place:
                message = _("Points: {measure} against {axis}", measure=title, axis=x_title)
                chart.show(figure, key=f"{key}.{name}", name=f"forecast-{name}", alt=message)
        st.caption(
            paragraph(
                _(
                    "One point for each variant and budget. The error is that of the Error page, on what the model as "
                    "it is attends with: the mean over heads and over the layers replaced."
                ),
                words.origin(rows),
            )
        )

    rows = sweep.at_once(tasks(question), draw, key="model.predicts")
    reading.take_away(rows)


def tasks(question: Question) -> tuple[SwapTask, ...]:
    """Return the tasks of this view."""
    layers, n = question.layers, swap.PERIOD * 2
    return swap.budget_tasks(question.text, _able(question), layers, n, stray=True, live=question.live)


def _able(question: Question) -> list[str]:
    return [word for word in question.words if word != UNIFORM]


def points(rows: Sequence[SwapRow]) -> list[Point]:
    """Return the variants and budgets for which all three numbers are known and finite."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.layers:
            own = found.setdefault(row.word, {})
            if isinstance(row, OutputErrorRow):
                own["output"] = row.output
            elif isinstance(row, ReadingRow):
                own["perplexity"] = row.perplexity
            elif isinstance(row, CopyRow):
                own["copied"] = row.copied
    return [
        Point(word=word, output=own["output"], perplexity=own["perplexity"], copied=own["copied"])
        for word, own in found.items()
        if len(own) == 3 and all(map(math.isfinite, own.values()))
    ]


def in_one_sentence(found: Sequence[Point]) -> str:
    """Return how well the error orders perplexity and copying, over all points and between variants."""
    if len(found) < FEWEST:
        return _("Too few points yet to speak of an order.")
    errors = [p.output for p in found]
    keys = [registry.from_word(p.word).key for p in found]
    sentences = []
    for name, values in ((_("perplexity"), [p.perplexity for p in found]), (_("copying"), [p.copied for p in found])):
        rho = metrics.rank_correlation(errors, values)
        off = metrics.farthest_off(errors, values)
        sentences.append(_order(name, rho, called(found[off].word), len(found)))
        sentences.append(_between(name, *metrics.same_order(errors, values, keys)))
    return paragraph(*sentences)


def _between(name: str, same: int, pairs: int) -> str:
    """Return how many pairs of points from different variants have the same order in the error and in a measure."""
    if not pairs:
        return _("All points belong to one variant, so no order between variants can be compared.")
    return _n(
        "Of the {n} pair of points from different variants, {same} has the same order in the error and in {name}.",
        "Of the {n} pairs of points from different variants, {same} have the same order in the error and in {name}.",
        n=pairs,
        same=same,
        name=name,
    )


def _order(name: str, rho: float, who: str, n: int) -> str:
    """Return how well the output error orders another measure, and the variant that fits worst."""
    if math.isnan(rho):
        return _("The output's error cannot be held against {name}: one of the two never changes.", name=name)
    values = {"name": name, "rho": number(rho, 2), "n": n}
    if rho >= CLOSE:
        order = _(
            "The output's error puts {name} in order, with a rank correlation of {rho} over {n} points.", **values
        )
    elif rho >= LOOSE:
        order = _(
            "The output's error puts {name} roughly in order, with a rank correlation of {rho} over {n} points.",
            **values,
        )
    else:
        order = _(
            "The output's error does not predict {name}: its rank correlation is {rho} over {n} points.", **values
        )
    return paragraph(order, _("**{who}** lies farthest off.", who=who))


def _cloud(word: str, found: Sequence[Point], name: str, colour: int) -> Points:
    ladder = {each.word for each in swap.ladder(word, swap.PERIOD * 2)}
    own = [p for p in found if p.word in ladder]
    return Points(
        _(registry.from_word(word).title),
        np.array([p.output for p in own]),
        np.array([getattr(p, name) for p in own]),
        colour=colour,
        notes=[called(p.word) for p in own],
    )
