"""The ``View`` class of the Error page. A view measures each variant's error over one quantity.

The quantity is the cost in multiply-adds, the variant's budget (the setting that decides its cost) or the length. The
chart is drawn while the measurement runs; a summary and downloads follow. The functions draw the parts that all
views share: axis ends, ticks and curves.
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
from app.figures.lines.curve import Curve, doublings
from app.figures.theme import GREY
from app.state.session import REFERENCE
from app.ui import chart, export, navigation, palette, sweep
from app.ui.lazy import lazy_expander
from app.words.finding import Lines, text_above, text_below
from app.words.i18n import N_, _, paragraph
from app.words.labels import axis_title, label, reference_name, setting_name
from attention_core.experiments import error
from attention_core.experiments.error import UNIFORM, ErrorPoint, ErrorRow, ErrorTask
from attention_core.formatting import number
from pages.error import words
from pages.error.options import Question
from pages.error.reading_guide import explain_marks, reading_guide
from pages.error.reasons import reasons

HEADROOM, COST_HEADROOM = 2.1, 1.25
"""Upper end of a linear axis as a multiple of the error of uniform attention; larger errors need no distinction.

The second number is that of the view “By cost”, whose important points have small errors.
"""
HEIGHT, TALL = 364, 430
"""Heights of a chart in pixels: over the cost, with more text below it, and in the other views."""
MAX_LEAST_SHARE = 0.1
"""Largest share of softmax's cost at which an axis that begins there counts as long."""
MAX_REASONS = 3
"""Largest number of explanations below the chart; further ones are folded away."""
TOKENS_AXIS = N_("tokens n")
"""Title of the axis of lengths."""
SETTINGS_AXIS = N_("value of each line's setting")
"""Title of the axis of settings if more than two variants have one; see ``settings_title``."""
FLOOR_COLUMNS = ["floor", "floor_kind", "rank", "keys"]
"""Columns of the floors, which not every view computes."""


@dataclass(frozen=True, kw_only=True)
class View:
    """One view: the error against one quantity.

    Attributes:
        axis_title: title of the horizontal axis, to be translated.
        tasks: returns the tasks of the error experiment.
        lines: returns the curves of the points.
        describe: returns the findings about the points.
        linked_point: returns the point to whose matrix the page links; None for no link.
        notes: returns notes on how to read the chart.
        key: returns what the marks of the view mean, for the line below the chart.
    """

    axis_title: str
    tasks: Callable[[Question], Sequence[ErrorTask]] = lambda question: error.tasks(
        question.source, question.n, question.words, head=question.head, causal=question.causal
    )
    lines: Callable[[Question, Sequence[ErrorPoint]], list[Curve]]
    describe: Callable[[Question, Sequence[ErrorPoint]], Lines]
    linked_point: Callable[[Question, Sequence[ErrorPoint]], ErrorPoint | None] = lambda question, points: None
    notes: Callable[[Question, Sequence[ErrorPoint]], list[str]] = lambda question, points: []
    key: Callable[[Question, Sequence[ErrorPoint]], list[str]] = lambda question, points: []

    def horizontal_title(self, question: Question) -> str:
        """Return the translated title of the horizontal axis."""
        if self.axis_title == SETTINGS_AXIS:
            return settings_title(question)
        return _("keys n") if self.axis_title == TOKENS_AXIS and question.queries else _(self.axis_title)

    def show(
        self,
        top_result: tuple[DeltaGenerator, Question],
        *,
        full_cost: float | None = None,
        times: Mapping[str, float] | None = None,
    ) -> None:
        """Run the sweep, describe and draw its results as they arrive, and offer its numbers as a file.

        Args:
            top_result: the place of the sentence, and what the visitor compares.
            full_cost: softmax's cost if the horizontal axis is the cost. The axis ends there.
            times: milliseconds by word, for the file; no chart is drawn if they are empty.
        """
        placeholder, question = top_result
        x_end = None if full_cost is None else words.AXIS_END_RATIO * full_cost
        linked, is_drawn = has_matrix_links(question), times != {}

        def compute_curves(rows: Sequence[ErrorRow]) -> tuple[list[ErrorPoint], list[Curve], float]:
            points = error.points(rows, question.options.measure)
            return points, self.lines(question, points) if is_drawn else [], axis_end(question, points)

        def draw(rows: list[ErrorRow]) -> tuple[list[Curve], dict[str, Any]]:
            _points, curves, y_end = compute_curves(rows)
            highest = max((y for line in curves for y in line.y if y is not None), default=0.0)
            # On a phone, the title of the cost axis has no room for "log scale". The ticks show the scale.
            names_scale = full_cost is None or not chart.is_narrow()
            return curves, {
                "x_title": axis_title(self.horizontal_title(question), log=names_scale),
                "y_title": f"{axis_title(question.axis_title, log=question.options.log)}<br>"
                f"{words.metric_scale(question)}",
                "log_x": True,
                "log_y": question.options.log,
                "percent": question.options.is_share,
                "top": y_end if highest > y_end else 1.08 * highest or 1.0,
                "right": x_end,
                "mark": None if full_cost is None else (words.CHEAP_SHARE * full_cost, _("half of softmax's cost")),
                "shaded": None
                if full_cost is None
                else (full_cost, "" if chart.is_narrow() else _("costs more than softmax")),
                "x_ticks": doublings(curves)
                if full_cost is None
                else cost_share_ticks(curves, full_cost, narrow=chart.is_narrow()),
                "link_prefix": navigation.link_prefix("matrices", first_variant=REFERENCE) if linked else "",
            }

        rows = sweep.show(
            "error",
            self.tasks(question),
            draw if is_drawn else None,
            lambda rows: text_above(self.describe(question, error.points(rows, question.options.measure))),
            container=placeholder,
            key=f"error.{question.options.against}",
            name=f"error-against-{question.options.against}",
            height=TALL if full_cost is None else HEIGHT,
            effort=lambda task: (task.tokens or 1) ** 2,
        )
        points, curves, y_end = compute_curves(rows)

        def explain() -> None:
            st.markdown(reading_guide(question, points, self.notes(question, points)))

        best = self.linked_point(question, points)
        captions = [
            *self.key(question, points),
            *explain_marks(curves, y_end, x_end),
            _("Grey area: costs more than softmax.") if full_cost is not None and chart.is_narrow() else "",
        ]
        if is_drawn and any(captions):
            st.caption(paragraph(*captions))
        explanation = text_below(self.describe(question, points))
        if is_drawn and (why := reasons(question, points, explanation)):
            st.markdown(why[0] if len(why) == 1 else as_list(why[:MAX_REASONS]))
            if more := why[MAX_REASONS:]:
                lazy_expander(_("Other findings"), lambda: st.markdown(as_list(more)), key="error.more")
        if is_drawn:
            lazy_expander(_("How to read the chart"), explain, key="error.words")
        with st.container(horizontal=True, vertical_alignment="center", key="controls.error.below"):
            if best:
                attention = ac.from_word(best.word)
                text = _("Matrix of {name}", name=label(attention))
                navigation.link("matrices", text, variants=tuple(dict.fromkeys((ac.get(REFERENCE), attention))))
            if rows:
                export.download(_("Numbers (CSV)"), lambda: csv(rows, times), "error.csv", kind="tertiary")


def settings_title(question: Question) -> str:
    """Return the title of the axis of settings, such as “window of Local or landmarks of Nyström”."""
    names = [
        _("{setting} of {variant}", setting=setting_name(attention.variant.budget.name), variant=_(attention.title))
        for attention in question.attentions
        if attention.variant.budget is not None
    ]
    if len(names) == 2:
        return _("{first} or {second}", first=names[0], second=names[1])
    return names[0] if len(names) == 1 else _(SETTINGS_AXIS)


def as_list(texts: Sequence[str]) -> str:
    """Return texts as a list in Markdown."""
    return "\n".join(f"- {text}" for text in texts)


def csv(rows: Sequence[ErrorRow], times: Mapping[str, float] | None) -> bytes:
    """Return the rows as CSV, with measured times if there are any, and without floor columns if all are empty."""
    table = pd.DataFrame(rows, dtype=object)
    if table[FLOOR_COLUMNS].isna().all(axis=None):
        table = table.drop(columns=FLOOR_COLUMNS)
    if times:
        table["milliseconds"] = table["word"].map(times)
    return export.to_csv(list(table), table.to_numpy())


def axis_end(question: Question, points: Sequence[ErrorPoint]) -> float:
    """Return the error above which points lie outside the axis; infinite on a logarithmic axis."""
    uniform_errors = [p.middle for p in points if p.variant == UNIFORM and math.isfinite(p.middle)]
    headroom = COST_HEADROOM if question.options.against == "cost" else HEADROOM
    return math.inf if question.options.log else headroom * max(uniform_errors, default=0.0) or math.inf


def cost_share_ticks(curves: Sequence[Curve], full_cost: float, *, narrow: bool) -> dict[float, str]:
    """Return ticks at shares of softmax's cost, from the cheapest point to the end of the axis, with their texts.

    On a narrow screen, a long axis has ticks at powers of ten only, because more texts would overlap.
    """
    least = min(x for line in curves for x in line.x) / full_cost
    powers = [10.0**power for power in range(math.floor(math.log10(least)), 1)]
    shares = [digit * power for power in powers[:-1] for digit in (1, 2, 5)] + [1, words.AXIS_END_RATIO]
    if narrow and least <= MAX_LEAST_SHARE:
        shares = powers
    return {share * full_cost: f"{100 * share:g}%" for share in shares if share >= least}


def curve(
    question: Question,
    attention: ac.Attention,
    group: Sequence[ErrorPoint],
    xs: Sequence[float],
    *,
    name: str,
    markers: bool = True,
) -> Curve:
    """Return a variant's line, with a band if heads or seeds differ; dash-dotted if it does not approximate softmax."""
    spread, replaces = any(p.low < p.high for p in group), words.is_replacement(attention)
    return Curve(
        name,
        xs,
        [finite_or_none(p.middle) for p in group],
        # The upper edge of the band may be infinite at a point with a finite middle. The band has no width there,
        # because a chart cannot draw infinity.
        low=[p.low if math.isfinite(p.high) else p.middle for p in group] if spread else None,
        high=[p.high if math.isfinite(p.high) else p.middle for p in group] if spread else None,
        colour=palette.index(attention.key),
        dash="dashdot" if replaces else "solid",
        markers=markers,
        notes=[
            _("{numbers}<br>Click to open this matrix", numbers=tooltip(question, p))
            if has_matrix_links(question)
            else tooltip(question, p)
            for p in group
        ],
        links=[quote_plus(p.word) for p in group] if has_matrix_links(question) else (),
    )


def has_matrix_links(question: Question) -> bool:
    """Return whether points link to their matrices; a link cannot name the inputs of other lengths."""
    return question.options.against != "length"


def uniform_curves(
    question: Question, points: Sequence[ErrorPoint], xs: Callable[[ErrorPoint], Sequence[float]]
) -> list[Curve]:
    """Return a line with the error of uniform attention for each reference.

    The line is grey for softmax, and has the reference's colour for other references.
    """
    curves = []
    for reference in dict.fromkeys(p.reference for p in points if p.variant == UNIFORM):
        comparable = [
            p for p in points if p.variant == UNIFORM and p.reference == reference and math.isfinite(p.middle)
        ]
        placed = [(position, p) for p in comparable for position in xs(p)]
        is_softmax = reference == REFERENCE
        curves.append(
            Curve(
                words.equal_weights(question)
                if is_softmax
                else _("Equal weights, compared with {reference}", reference=reference_name(ac.get(reference))),
                [position for position, _p in placed],
                [p.middle for _position, p in placed],
                colour=GREY if is_softmax else palette.index(reference),
                dash="dot",
                markers=False,
                notes=[tooltip(question, p) for _position, p in placed],
            )
        )
    return curves


def finite_or_none(value: float | None) -> float | None:
    """Return a value that can be drawn; None if it is missing or not finite."""
    return value if value is not None and math.isfinite(value) else None


def tooltip(question: Question, point: ErrorPoint) -> str:
    """Return a point's numbers for its tooltip."""
    low, middle, high = (question.format_error(error, 3) for error in (point.low, point.middle, point.high))
    text = _("error {error}", error=middle)
    if point.reference != REFERENCE:
        name = reference_name(ac.get(point.reference))
        text = _("error {error}, compared with {reference}", error=middle, reference=name)
    if point.low < point.high:
        text = paragraph(text, _("({low} to {high})", low=low, high=high))
    if point.setting is not None and isinstance(point.value, (int, float)):
        text = f"{setting_name(point.setting)} {number(point.value, 3)}<br>{text}"
    if point.floor and question.options.measure == "matrix":
        text += f"<br>{floor_text(point)}"
    counts = {"n": point.n, "count": point.multiply_adds}
    if question.queries:
        return text + "<br>" + _("{n} keys · {count:,} multiply-adds", **counts)
    return text + "<br>" + _("{n} tokens · {count:,} multiply-adds", **counts)


def floor_text(point: ErrorPoint) -> str:
    """Return the name and value of the lower bound of a point's matrix error."""
    floor = f"{number(100 * (point.floor or 0.0), 3)}%"
    values = {
        "rank": _("lower bound {floor}: error of the best matrix of the same rank", floor=floor),
        "keys": _("lower bound {floor}: error of the best matrix with the same number of keys per row", floor=floor),
    }
    return values.get(point.floor_kind, "")
