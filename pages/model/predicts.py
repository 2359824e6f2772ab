"""The Forecast view: whether a variant's mean output error predicts its perplexity and its copying loss."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

from app.figures.scatter import Points, scatter
from app.ui import chart, palette
from app.words.i18n import _, _n, paragraph
from attention_core import metrics, registry
from attention_core.experiments import swap
from attention_core.experiments.swap import SwapRow, SwapTask
from attention_core.experiments.swap.derived import ErrorPoint, error_points
from attention_core.formatting import number
from attention_core.model_patching import UNIFORM
from pages.model import reading, sweep, words
from pages.model.options import Question, called

FEWEST = 5
"""Minimum number of points for which an order is reported."""
CLOSE, LOOSE = 0.9, 0.6
"""Rank correlations from which on an order is reported as the same, and as roughly the same."""
PERFECT = 0.995
"""Rank correlation from which on no outlier is reported."""
EXACT = 1e-4
"""Errors below this value are rounding errors and are not drawn on the logarithmic axis."""


def show(question: Question) -> None:
    """Measure output error, perplexity and copying of every variant at every budget, and compare their orders."""
    able = _able(question)
    if not able:
        st.info(_("Add a variant other than “Mean of v”."))
        return

    def draw(rows: list[SwapRow], key: str) -> None:
        found = error_points(rows)
        sides = (("perplexity", _("perplexity")), ("copied", _("copying loss (nats per token)")))
        x_title = _("relative output error")
        for place, (name, title) in zip(st.columns(2), sides, strict=True):
            clouds = [
                _cloud(word, [p for p in found if p.output > EXACT], name, colour)
                for word, colour in zip(able, palette.places(able), strict=True)
            ]
            figure = scatter(clouds, x_title=x_title, y_title=title, diagonal="", log=True, height=sweep.HEIGHT)
            with place:
                message = _("Points: {measure} against {axis}", measure=title, axis=x_title)
                chart.show(figure, key=f"{key}.{name}", name=f"forecast-{name}", alt=message)
        st.caption(
            paragraph(
                _(
                    "Each point is one variant with one budget. The output error is measured on the original "
                    "model's queries, keys and values. It is averaged over heads and replaced layers."
                ),
                words.origin(rows),
            )
        )

    rows = sweep.run(tasks(question), draw, key="model.predicts", describe=lambda rows: in_words(error_points(rows)))
    reading.take_away(rows)


def tasks(question: Question) -> tuple[SwapTask, ...]:
    """Return the tasks of this view."""
    layers, n = question.layers, swap.PERIOD * 2
    return swap.budget_tasks(question.text, _able(question), layers, n, stray=True, live=question.live)


def _able(question: Question) -> list[str]:
    return [word for word in question.words if word != UNIFORM]


def in_words(found: Sequence[ErrorPoint]) -> str:
    """Return how well the error orders perplexity and copying, over all points and between variants."""
    if len(found) < FEWEST:
        return _("At least {n} points are needed to compare the rankings.", n=FEWEST)
    errors = [p.output for p in found]
    keys = [registry.from_word(p.word).key for p in found]
    lines = []
    for name, values in ((_("perplexity"), [p.perplexity for p in found]), (_("copying"), [p.copied for p in found])):
        rho = metrics.rank_correlation(errors, values)
        outlier = found[metrics.farthest_off(errors, values)].word
        lines.append(
            paragraph(
                _order(name, rho, called(outlier), len(found)), _between(*metrics.same_order(errors, values, keys))
            )
        )
    return "  \n".join(lines)


def _between(same: int, pairs: int) -> str:
    """Return how many pairs of points from different variants have the same order in the error and in a measure."""
    if not pairs:
        return _("All points belong to one variant, so variants cannot be compared.")
    return _n(
        "Output error puts {same} of {n} pair of points from different variants in the correct order.",
        "Output error puts {same} of {n} pairs of points from different variants in the correct order.",
        n=pairs,
        same=same,
    )


def _order(name: str, rho: float, outlier: str, n: int) -> str:
    """Return how well the output error orders another measure, and the variant that fits worst."""
    if math.isnan(rho):
        return _(
            "The rankings by output error and by {name} cannot be compared, because one of the two "
            "quantities is constant.",
            name=name,
        )
    values = {"name": name, "rho": number(rho, 2), "n": n}
    if rho >= CLOSE:
        order = _("Output error predicts the **{name}** ranking (rank correlation {rho} over {n} points).", **values)
    elif rho >= LOOSE:
        order = _(
            "Output error roughly predicts the **{name}** ranking (rank correlation {rho} over {n} points).", **values
        )
    else:
        order = _(
            "Output error does not predict the **{name}** ranking (rank correlation {rho} over {n} points).", **values
        )
    return paragraph(order, _("The largest outlier is {outlier}.", outlier=outlier) if rho < PERFECT else "")


def _cloud(word: str, found: Sequence[ErrorPoint], name: str, colour: int) -> Points:
    ladder = {each.word for each in swap.ladder(word, swap.PERIOD * 2)}
    own = [p for p in found if p.word in ladder]
    return Points(
        _(registry.from_word(word).title),
        np.array([p.output for p in own]),
        np.array([getattr(p, name) for p in own]),
        colour=colour,
        notes=[called(p.word) for p in own],
    )
