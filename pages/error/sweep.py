"""The class of all views of the Error page. A view measures the error of each variant over one quantity.

The quantity is the cost, the budget or the length. The chart is drawn while the measurement runs; a summary and
downloads follow. The functions draw the parts that all views share: axis ends, ticks and curves.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.figures.lines.curves import Curve, doublings
from app.figures.theme import GREY
from app.state.session import REFERENCE
from app.ui import chart, export, navigation, palette, sweep
from app.ui.lazy import lazy_popover
from app.words.i18n import N_, _, paragraph
from app.words.labels import label, readable, reference_name
from attention_core.experiments import error
from attention_core.experiments.error import UNIFORM, ErrorPoint, ErrorRow, ErrorTask, points
from attention_core.formatting import number
from pages.error import words
from pages.error.options import Question
from pages.error.reading_guide import above, beyond, marks, reading_guide
from pages.error.reasons import reasons

HEADROOM = 2.1
"""Upper end of a linear axis as a multiple of the error of uniform attention; larger errors need no distinction."""
HEIGHT = 364
"""Height of the chart in pixels: with the sentence above it, it fits a projector's screen."""
TOKENS = N_("tokens n")
"""Title of the axis of lengths."""
FLOOR = ["floor", "floor_kind", "rank", "keys"]
"""Columns of the floors, which not every view computes."""


@dataclass(frozen=True, kw_only=True)
class View:
    """One view: the error against one quantity.

    Attributes:
        axis: title of the horizontal axis, to be translated.
        tasks: returns the tasks of the error experiment.
        lines: returns the curves of some points.
        describe: returns the sentence about some points.
        notes: returns notes on how to read the chart.
    """

    axis: str
    tasks: Callable[[Question], Sequence[ErrorTask]] = lambda question: error.tasks(
        question.source, question.n, question.words, head=question.head, causal=question.causal
    )
    lines: Callable[[Question, Sequence[ErrorPoint]], list[Curve]]
    describe: Callable[[Question, Sequence[ErrorPoint]], str]
    notes: Callable[[Question, Sequence[ErrorPoint]], list[str]] = lambda question, found: []

    def show(
        self,
        given: tuple[DeltaGenerator, Question],
        *,
        whole: float | None = None,
        times: Mapping[str, float] | None = None,
    ) -> None:
        """Run the sweep, describe and draw its results as they arrive, and offer its numbers as a file.

        Args:
            given: the place of the sentence, and what the visitor compares.
            whole: softmax's cost if the horizontal axis is the cost. The axis ends there.
            times: milliseconds by word, for the file; no chart is drawn if they are empty.
        """
        place, question = given
        right = None if whole is None else words.BEYOND * whole
        linked, is_drawn = has_matrix_links(question), times != {}

        def find(rows: Sequence[ErrorRow]) -> tuple[list[ErrorPoint], list[Curve], float]:
            found = points(rows, question.options.measure)
            return found, self.lines(question, found) if is_drawn else [], axis_end(question, found)

        def draw(rows: list[ErrorRow]) -> tuple[list[Curve], dict[str, Any]]:
            _found, drawn, end = find(rows)
            highest = max((y for line in drawn for y in line.y if y is not None), default=0.0)
            return drawn, {
                "x_title": _("keys n") if self.axis == TOKENS and question.queries else _(self.axis),
                "y_title": question.axis,
                "log_x": True,
                "log_y": question.options.log,
                "percent": question.is_share,
                "top": end if highest > end else 1.08 * highest or 1.0,
                "right": right,
                "mark": None if whole is None else (words.SHARE * whole, _("half of softmax's cost")),
                "shaded": None if whole is None else (whole, "" if chart.is_narrow() else _("costs more than softmax")),
                "x_ticks": doublings(drawn) if whole is None else shares(drawn, whole),
                "link_prefix": navigation.link_prefix("matrices", first_variant=REFERENCE) if linked else "",
            }

        rows = sweep.show(
            "error",
            self.tasks(question),
            draw if is_drawn else None,
            lambda rows: self.describe(question, points(rows, question.options.measure)),
            place=place,
            key=f"error.{question.options.against}",
            name=f"error-against-{question.options.against}",
            height=HEIGHT,
            effort=lambda task: (task.tokens or 1) ** 2,
        )
        found, drawn, end = find(rows)

        def explain() -> None:
            st.markdown(reading_guide(question, found, self.notes(question, found)))

        captions = [
            paragraph(*marks(question, found, drawn)),
            above(question, drawn, end, right),
            "" if whole is None else beyond(question, found, times, whole),
        ]
        if is_drawn and any(captions):
            st.caption("  \n".join(filter(None, captions)))
        if is_drawn and (why := reasons(question, found)):
            st.markdown(why)
        with st.container(horizontal=True, vertical_alignment="center", key="controls.error.below"):
            if linked and (best := words.nearest(question, found)):
                own = ac.from_word(best.word)
                text = _("Matrix of {name}", name=label(own))
                navigation.link("matrices", text, variants=tuple(dict.fromkeys((ac.get(REFERENCE), own))))
            if rows:
                export.download(_("Numbers (CSV)"), lambda: csv(rows, times), "error.csv")
            lazy_popover(
                _("How to read the chart"), explain, key="error.words", icon=":material/menu_book:", type="tertiary"
            )


def csv(rows: Sequence[ErrorRow], times: Mapping[str, float] | None) -> bytes:
    """Return the rows as CSV, with measured times if there are any, and without floor columns if all are empty."""
    table = pd.DataFrame(rows, dtype=object)
    if table[FLOOR].isna().all(axis=None):
        table = table.drop(columns=FLOOR)
    if times:
        table["milliseconds"] = table["word"].map(times)
    return export.to_csv(list(table), table.to_numpy())


def axis_end(question: Question, found: Sequence[ErrorPoint]) -> float:
    """Return the error above which points lie outside the axis; infinite on a logarithmic axis."""
    zeros = [p.middle for p in found if p.variant == UNIFORM and math.isfinite(p.middle)]
    return math.inf if question.options.log else HEADROOM * max(zeros, default=0.0) or math.inf


def shares(drawn: Sequence[Curve], whole: float) -> dict[float, str]:
    """Return ticks at shares of softmax's cost, from the cheapest point to the end of the axis, with their texts."""
    least = min(x for line in drawn for x in line.x) / whole
    every = [digit * 10.0**power for power in range(math.floor(math.log10(least)), 0) for digit in (1, 2, 5)]
    return {share * whole: f"{100 * share:g}%" for share in (*every, 1, words.BEYOND) if share >= least}


def curve(
    question: Question,
    attention: ac.Attention,
    own: Sequence[ErrorPoint],
    xs: Sequence[float],
    *,
    name: str,
    marks: bool = True,
) -> Curve:
    """Return a variant's line, with a band if heads or seeds differ; dash-dotted if the variant replaces softmax."""
    spread, other = any(p.low < p.high for p in own), words.is_replacement(attention)
    return Curve(
        name,
        xs,
        [drawable(p.middle) for p in own],
        # The upper edge of the band may be infinite at a point with a finite middle. The band has no width there,
        # because a chart cannot draw infinity.
        low=[p.low if math.isfinite(p.high) else p.middle for p in own] if spread else None,
        high=[p.high if math.isfinite(p.high) else p.middle for p in own] if spread else None,
        colour=palette.place(attention.key),
        dash="dashdot" if other else "solid",
        hollow=other,
        marks=marks,
        notes=[
            _("{numbers}<br>Click to open this matrix", numbers=in_words(question, p))
            if has_matrix_links(question)
            else in_words(question, p)
            for p in own
        ],
        links=[quote_plus(p.word) for p in own] if has_matrix_links(question) else (),
    )


def has_matrix_links(question: Question) -> bool:
    """Return whether points link to their matrices; a link cannot name the inputs of other lengths."""
    return question.options.against != "length"


def uniform(
    question: Question, found: Sequence[ErrorPoint], xs: Callable[[ErrorPoint], Sequence[float]]
) -> list[Curve]:
    """Return the error of uniform attention against softmax (grey), and against other references in their colour."""
    drawn = []
    for reference in dict.fromkeys(p.reference for p in found if p.variant == UNIFORM):
        own = [p for p in found if p.variant == UNIFORM and p.reference == reference and math.isfinite(p.middle)]
        x = [(position, p) for p in own for position in xs(p)]
        common = reference == REFERENCE
        drawn.append(
            Curve(
                words.equal_weights(question)
                if common
                else _("Equal weights, compared with {reference}", reference=reference_name(ac.get(reference))),
                [position for position, _p in x],
                [p.middle for _position, p in x],
                colour=GREY if common else palette.place(reference),
                dash="dot",
                marks=False,
                notes=[in_words(question, p) for _position, p in x],
            )
        )
    return drawn


def drawable(value: float | None) -> float | None:
    """Return a value that can be drawn; None if it is missing or not finite."""
    return value if value is not None and math.isfinite(value) else None


def in_words(question: Question, point: ErrorPoint) -> str:
    """Return a point's numbers for its tooltip."""
    low, middle, high = (question.written(error, 3) for error in (point.low, point.middle, point.high))
    text = _("error {error}", error=middle)
    if point.reference != REFERENCE:
        name = reference_name(ac.get(point.reference))
        text = _("error {error}, compared with {reference}", error=middle, reference=name)
    if point.low < point.high:
        text = paragraph(text, _("({low} to {high})", low=low, high=high))
    if point.setting is not None and isinstance(point.value, (int, float)):
        text = f"{readable(point.setting)} {number(point.value, 3)}<br>{text}"
    if point.floor:
        text += f"<br>{floor_in_words(point)}"
    counts = {"n": point.n, "count": point.multiply_adds}
    if question.queries:
        return text + "<br>" + _("{n} keys · {count:,} multiply-adds", **counts)
    return text + "<br>" + _("{n} tokens · {count:,} multiply-adds", **counts)


def floor_in_words(point: ErrorPoint) -> str:
    """Return the name and value of the lower bound of a point's matrix error."""
    floor = f"{number(100 * (point.floor or 0.0), 3)}%"
    values = {
        "rank": _("lower bound {floor}: error of the best matrix of the same rank", floor=floor),
        "keys": _("lower bound {floor}: error of the best matrix with as many keys per row", floor=floor),
    }
    return values.get(point.floor_kind, "")
