"""The “One part removed” view of the Learn page: how well models learn if one part is removed.

The part is the short convolution, the gate, the position encoding or the last layer.
"""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app.figures.lines.curves import Curve, curves
from app.figures.lines.spread import spread
from app.ui import chart
from app.words.i18n import N_, _, escape_markdown, paragraph
from attention_core.experiments.learning import LearnRow
from attention_core.formatting import percent
from pages.learn import gaps, part_words, words
from pages.learn.options import full_models
from pages.learn.outcomes import Outcome, PartOutcome, part_outcomes
from pages.learn.race import AXES

HEIGHT = 250
COLUMNS = {
    "convolution": N_("no convolution"),
    "gate": N_("no gate"),
    "positions": N_("no positions"),
    "layer": N_("one layer less"),
}
"""Names of the models with one removed part, in the table and next to the lines of the chart, by part."""
DASHES = {"convolution": "dash", "gate": "dot", "positions": "dashdot", "layer": "longdash"}
"""Plotly's name of the line style, by removed part."""


def part_results(rows: Sequence[LearnRow]) -> list[PartOutcome]:
    """Return the measurements of each chosen variant with all parts and with one part removed."""
    return part_outcomes(rows, full_models())


def show(rows: Sequence[LearnRow], key: str) -> None:
    """Draw a table of accuracies, and for each variant the accuracy during training with and without each part."""
    results = part_results(rows)
    st.markdown(table(results))
    st.caption(paragraph(part_words.not_removable(results), gaps.not_trained_without(results)))
    with st.grid("auto", min_column_width=320, key=f"learn.parts.{key}"):
        for number, each in enumerate(each for each in results if each.ablations):
            with st.container(gap=None):
                st.markdown(f"**{escape_markdown(each.full.name)}**")
                _curves(each, f"learn.parts.{key}.{number}")
    st.caption(words.medians_note(len({each.row.seed for each in rows})))


def table(results: Sequence[PartOutcome]) -> str:
    """Return a Markdown table of the accuracies with all parts and without each part; a dash if there is no model."""
    columns = [part for part in COLUMNS if any(part in each.parts for each in results)]
    lines = [
        f"| {_('Variant')} | {_('all parts')} | " + " | ".join(_(COLUMNS[part]) for part in columns) + " |",
        "| :-- |" + " --: |" * (1 + len(columns)),
    ]
    for each in results:
        shares = [percent(each.ablated_accuracy[part]) if part in each.ablated_accuracy else "–" for part in columns]
        lines.append(f"| {escape_markdown(each.full.name)} | {percent(each.full.accuracy)} | {' | '.join(shares)} |")
    return "\n".join(lines)


def _curves(each: PartOutcome, key: str) -> None:
    """Draw the accuracy of a variant's models during training, one line per removed part."""
    lines = [_line(_("all parts"), each.full, each.full.colour, "solid")]
    lines += [
        _line(_(COLUMNS[part]), outcome, each.full.colour, DASHES[part]) for part, outcome in each.ablations.items()
    ]
    x_title, y_title = _(AXES["step"]), _(AXES["accuracy"])
    figure = curves(lines, x_title=x_title, y_title=y_title, height=HEIGHT, top=1.03, percent=True, form=".0%")
    alt = _("{name}: {y} against {x}", name=each.full.name, y=y_title, x=x_title)
    chart.show(figure, key=key, name="learn-parts", alt=alt)


def _line(name: str, outcome: Outcome, colour: int, dash: str) -> Curve:
    points = ((each.row.step, each.row.accuracy) for each in outcome.rows)
    return replace(spread(points).curve(name, colour, dash=dash, band=False), markers=False)
