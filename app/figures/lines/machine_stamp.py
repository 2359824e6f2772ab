"""The stamp: small print below a timing chart that says on which machine, how and when each run was measured."""

import html
from collections.abc import Sequence

from app.figures.theme import GREY, SERIES, Figure, annotation

MAX_LETTERS = 145
"""Largest number of letters of a line below a wide figure; longer lines would be cut off on a projector's screen."""


def add_machine_stamp(figure: Figure, runs: Sequence[Sequence[str]], *, narrow: bool = False) -> Figure:
    """Return the figure with a stamp below it: text on how each run was measured, which saved pictures also contain.

    Args:
        figure: finished figure.
        runs: the facts of each run as plain text; markup is escaped.
        narrow: whether the figure is narrow. Each fact then has its own line; otherwise each line has as many facts of
            a run as fit.
    """
    lines = [line for facts in runs for line in (facts if narrow else _joined(facts))]
    layout, extra_height = figure["layout"], 16 * len(lines)
    text = "<br>".join(html.escape(line, quote=False) for line in lines)
    # A narrow figure has no room to the right, so the stamp begins below the labels of the vertical axis.
    anchor = {
        "xshift": -45 if narrow else 0,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "top",
        "yshift": -50,
        "align": "left",
    }
    stamp = annotation(text, 0, 0, font={"size": 11 if narrow else 13, "color": SERIES[GREY]}, **anchor)
    changes = {
        "xaxis": {**layout["xaxis"], "tickangle": 0},  # Tilted tick labels would push the axis title into the stamp.
        "annotations": [*layout.get("annotations", ()), stamp],
        "margin": {**layout["margin"], "b": 62 + extra_height},
        "height": layout["height"] + extra_height,
    }
    return {**figure, "layout": {**layout, **changes}}


def _joined(facts: Sequence[str]) -> list[str]:
    """Return facts in lines, each with as many facts as fit."""
    lines: list[str] = []
    for fact in facts:
        if lines and len(longer := f"{lines[-1]} · {fact}") <= MAX_LETTERS:
            lines[-1] = longer
        else:
            lines.append(fact)
    return lines
