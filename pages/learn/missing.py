"""The “One part removed” view of the Learn page: how well models learn if one part is removed.

The part is the short convolution, the gate, the position encoding or the last layer.
"""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app.figures.lines.curves import Curve, curves
from app.figures.lines.spread import spread
from app.figures.theme import COLOURS
from app.ui import chart
from app.words.i18n import N_, _, escape_markdown, paragraph
from attention_core.experiments.learning import LearnRow
from attention_core.formatting import percent
from pages.learn import gaps, part_words, words
from pages.learn.options import full_models
from pages.learn.outcomes import Outcome, PartOutcome, part_outcomes
from pages.learn.race import AXES

HEIGHT = 300
COLUMNS = {"convolution": N_("no convolution"), "gate": N_("no gate"), "positions": N_("no position encoding")}
"""Names at the lines of the models with one removed part, by part. For a layer, ``layers_text`` returns the name."""
COLOURS_BY_PART = {"convolution": 7, "gate": 10, "positions": 8, "layer": 9}
"""Indices of the colours of the lines, by removed part. No variant of a first visit has one of them."""
CLASHES = {7: "convolution", 0: "gate", 10: "gate", 4: "positions", 8: "positions", 3: "layer", 5: "layer", 9: "layer"}
"""The part whose colour equals or resembles that of the variant, by the index of the variant's colour."""
SPARE_COLOUR = 2
"""Index of the colour that replaces the colour of such a part."""
DASHES = {"convolution": "dash", "gate": "dot", "positions": "dashdot", "layer": "longdash"}
"""Plotly's name of the line style, by removed part."""


def part_results(rows: Sequence[LearnRow]) -> list[PartOutcome]:
    """Return the measurements of each chosen variant with all parts and with one part removed."""
    return part_outcomes(rows, full_models())


def show(rows: Sequence[LearnRow], key: str) -> None:
    """Draw for each variant the accuracy during training with and without each part."""
    results = part_results(rows)
    shown = [each for each in results if each.ablations]
    # Three charts share a row, so that no cell of the grid is empty.
    with st.grid("auto", min_column_width=370 if len(shown) == 3 else 480, key=f"learn.parts.{key}"):
        for number, each in enumerate(shown):
            with st.container(gap=None):
                st.markdown(f"**{escape_markdown(each.full.name)}**")
                _curves(each, f"learn.parts.{key}.{number}")
    notes = [part_words.convolution_note(results), part_words.not_removable(shown)]
    if key == "end":  # During training, the other models are still to come.
        notes += gaps.not_trained_without(results)
    st.caption(paragraph(*notes, words.medians_note(len({each.row.seed for each in rows}))))


def _curves(each: PartOutcome, key: str) -> None:
    """Draw the accuracy of a variant's models during training, one line per removed part."""
    # The remainder modulo ``COLOURS`` keeps the variant's colour and selects a style whose line is solid.
    lines = [_line(_("all parts"), each.full, each.full.colour % COLOURS, "solid")]
    for part, outcome in each.ablations.items():
        name = part_words.layers_text(each.full.rows[0].spec.model.layers) if part == "layer" else _(COLUMNS[part])
        lines.append(_line(name, outcome, part_colour(part, each.full.colour), DASHES[part]))
    x_title, y_title, steps = _(AXES["step"]), _(AXES["accuracy"]), each.full.rows[0].spec.steps
    figure = curves(
        lines,
        x_title=x_title,
        y_title=y_title,
        height=HEIGHT,
        top=1.03,
        percent=True,
        form=".0%",
        x_ticks=(0, steps // 2, steps),
    )
    alt = _("{name}: {y} against {x}", name=each.full.name, y=y_title, x=x_title)
    chart.show(figure, key=key, name="learn-parts", alt=alt)


def part_colour(part: str, variant_colour: int) -> int:
    """Return the index of the colour of the line without a part, in the chart of a variant with the given colour."""
    clashes = CLASHES.get(variant_colour % COLOURS) == part
    # In the second row of styles, a colour of a part never counts as that of the variant.
    return COLOURS + (SPARE_COLOUR if clashes else COLOURS_BY_PART[part])


def _line(name: str, outcome: Outcome, colour: int, dash: str) -> Curve:
    points = ((each.row.step, each.row.accuracy) for each in outcome.rows)
    name = _("{name}: {share}", name=name, share=percent(outcome.accuracy))
    return replace(spread(points).curve(name, colour, dash=dash, band=False), markers=False)
