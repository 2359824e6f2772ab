"""The “One part removed” view of the Learn page: how well models learn if one part is removed.

The part is the short convolution, the gate, the position encoding or the last layer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from app.figures.lines.curve import Curve
from app.figures.lines.curves import curves
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
NAMES = part_words.MISSING_PARTS | {"layer": N_("no last layer")}
"""Names at the lines of the models with one removed part, by part."""
HUES = ((7,), (8, 4), (10, 0), (9, 3, 5), (6, 2), (1,))
"""Groups of similar colours, by index. The first colour of a group is that of a removed part; best groups first.

The last group is the colour of local attention, with which the page opens.
"""
DASHES = {"convolution": "dash", "gate": "dot", "positions": "dashdot", "layer": "longdash"}
"""Plotly's name of the line style, by removed part."""


def part_results(rows: Sequence[LearnRow]) -> list[PartOutcome]:
    """Return the measurements of each chosen variant with all parts and with one part removed."""
    return part_outcomes(rows, full_models())


def show(rows: Sequence[LearnRow], key: str) -> None:
    """Draw for each variant the accuracy during training with and without each part."""
    results = part_results(rows)
    shown = [each for each in results if each.ablations]
    colours = part_colours(shown)
    # Three charts share a row, so that no cell of the grid is empty.
    with st.grid("auto", min_column_width=370 if len(shown) == 3 else 480, key=f"learn.parts.{key}"):
        for number, each in enumerate(shown):
            with st.container(gap=None):
                st.markdown(f"**{escape_markdown(each.full.name)}**")
                _curves(each, colours, f"learn.parts.{key}.{number}")
    notes = [part_words.convolution_note(results)]
    if key == "end":  # During training, the other models are still to come.
        notes += gaps.not_trained_without(results)
    st.caption(paragraph(*notes, words.medians_note(len({each.row.seed for each in rows}))))


def _curves(each: PartOutcome, colours: Mapping[str, int], key: str) -> None:
    """Draw the accuracy of a variant's models during training, one line per removed part in the part's colour."""
    # Colours repeat after ``COLOURS`` styles. The remainder is the style with the variant's colour and a solid line.
    lines = [_line(_("all parts"), each.full, each.full.colour % COLOURS, "solid")]
    lines += [_line(_(NAMES[part]), outcome, colours[part], DASHES[part]) for part, outcome in each.ablations.items()]
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


def part_colours(shown: Sequence[PartOutcome]) -> dict[str, int]:
    """Return the index of the colour of each removed part, which is the same in all charts.

    Colours that resemble the colour of a shown variant are used last.
    """
    variants = {each.full.colour % COLOURS for each in shown}
    hues = sorted(HUES, key=lambda hue: not variants.isdisjoint(hue))
    parts = [part for part in DASHES if any(part in each.ablations for each in shown)]
    # Parts have styles of the second row and variants of the first, so their indices always differ.
    return {part: COLOURS + hue[0] for part, hue in zip(parts, hues, strict=False)}


def _line(name: str, outcome: Outcome, colour: int, dash: str) -> Curve:
    points = ((each.row.step, each.row.accuracy) for each in outcome.rows)
    name = _("{name}: {share}", name=name, share=percent(outcome.accuracy))
    return replace(spread(points).curve(name, colour, dash=dash, band=False), markers=False)
