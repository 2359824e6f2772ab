"""Two heat maps, of perplexity and of copying, for the replacement of one layer at a time: a row per variant."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from app.figures.heat import Row, heat
from app.ui import chart
from app.words.i18n import N_, _
from attention_core.experiments.swap import CopyRow, ReadingRow, SwapRow
from attention_core.experiments.swap.derived import Both, originals
from attention_core.formatting import number
from pages.model.options import called, depth

TIMES = 2.0
"""Ratio of perplexities at which the colour saturates; one replaced layer seldom exceeds it."""


def draw(lines: Mapping[str, Sequence[Both]], rows: Sequence[SwapRow], *, key: str) -> None:
    """Draw the maps of perplexity and of copying, each as soon as the original model has been measured.

    Args:
        lines: measurements of each word, by replaced layer.
        rows: all rows, including those of the original model.
        key: prefix of the elements' keys.
    """
    read, copy = originals(rows)
    left, right = st.columns(2)
    if read:
        ticks = {at: f"× {number(TIMES**at, 2)}" for at in (0, 0.5)} | {1: _("≥ × {n:g}", n=TIMES)}
        found = [of_reading(word, pairs, read) for word, pairs in lines.items()]
        with left:
            _show(found, ticks, _("perplexity relative to the original model"), f"{key}.perplexity")
    if copy:
        ticks = {0: _("unchanged"), 0.5: _("half lost"), 1: _("lost")}
        found = [of_copying(word, pairs, copy) for word, pairs in lines.items()]
        with right:
            _show(found, ticks, _("lost share of copying"), f"{key}.copied")


def of_reading(word: str, pairs: Sequence[Both], read: ReadingRow) -> Row:
    """Return a row of the perplexity map: the logarithm to base ``TIMES`` of the ratio to the original perplexity."""
    ratios = {int(pair.x): pair.perplexity / read.perplexity for pair in pairs if pair.perplexity is not None}
    text = N_("{name}, layer {layer}: perplexity {after}, {ratio}× that of the original model")
    notes = {
        layer: _(text, name=called(word), layer=layer, after=number(ratio * read.perplexity, 3), ratio=number(ratio, 3))
        for layer, ratio in ratios.items()
    }
    return _row(word, {layer: math.log(ratio, TIMES) for layer, ratio in ratios.items()}, notes)


def of_copying(word: str, pairs: Sequence[Both], copy: CopyRow) -> Row:
    """Return a row of the copying map: the lost share of what copying saves."""
    losses = {int(pair.x): pair.copied for pair in pairs if pair.copied is not None}
    saved, whole = max(copy.first - copy.copied, 1e-9), number(copy.copied, 3)
    text = N_("{name}, layer {layer}: copying loss {copied} nats per token, {whole} in the original model")
    notes = {
        layer: _(text, name=called(word), layer=layer, copied=number(loss, 3), whole=whole)
        for layer, loss in losses.items()
    }
    return _row(word, {layer: (loss - copy.copied) / saved for layer, loss in losses.items()}, notes)


def _row(word: str, values: Mapping[int, float], notes: Mapping[int, str]) -> Row:
    places = np.array([values.get(layer, math.nan) for layer in range(depth())])
    return Row(title=called(word), places=places, notes=[notes.get(layer, "") for layer in range(depth())])


def _show(rows: Sequence[Row], ticks: Mapping[float, str], scale: str, key: str) -> None:
    x_title, dark = _("replaced layer"), st.context.theme.type == "dark"
    figure = heat(rows, ticks, dark=dark, x_title=x_title, scale=scale)
    text = _("Map: {measure}, one row per variant, one cell per layer", measure=scale)
    chart.show(figure, key=key, name="model-layers", alt=text)
