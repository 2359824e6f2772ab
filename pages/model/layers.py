"""The Layers view of the Model page: perplexity and copying by the number, or the position, of replaced layers."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from app.figures.heat import Row, heat
from app.ui import chart
from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, _n, paragraph
from attention_core.experiments import swap
from attention_core.experiments.swap import CopyRow, ReadingRow, SwapRow, SwapTask
from attention_core.experiments.swap.derived import CurvePoint, curve_points, first_above, original_rows
from attention_core.formatting import formatted, number
from pages.model import sweep, words
from pages.model.options import Question, depth, display_name, name_in_sentence
from pages.model.view import View

MAX_RATIO = 2.0
"""Ratio to the original perplexity that has the last colour; with one replaced layer, few ratios are larger."""


def _tasks(question: Question) -> tuple[SwapTask, ...]:
    return swap.layer_tasks(question.text, question.words, question.options.edge, depth(), live=question.live)


def _lines(question: Question, rows: Sequence[SwapRow]) -> dict[str, list[CurvePoint]]:
    return {word: points for word in question.words if (points := by_layers(rows, word, single=_single(question)))}


def _single(question: Question) -> bool:
    return question.options.edge == "single"


def _draw(question: Question, rows: Sequence[SwapRow], key: str) -> None:
    if _single(question):
        draw_map(_lines(question, rows), rows, key=key)
    else:
        sweep.draw(_lines(question, rows), rows, key=key, x_title=_axis(question.options.edge))


def _axis(edge: str) -> str:
    """Return the title of the axis of the number of replaced layers, from one of ``swap.EDGES``."""
    return {
        "bottom": _("replaced layers, from the bottom"),
        "middle": _("replaced layers, from the middle"),
        "top": _("replaced layers, from the top"),
    }[edge]


def _notes(_question: Question, rows: Sequence[SwapRow]) -> str:
    return paragraph(
        _(
            "The ability to copy is how much lower the loss is when the model reads {n} random tokens a second time.",
            n=swap.PERIOD,
        ),
        words.results_origin(rows),
    )


def by_layers(rows: Sequence[SwapRow], word: str, *, single: bool) -> list[CurvePoint]:
    """Return one variant's perplexity and copying loss by the number of replaced layers.

    Args:
        rows: all measurements.
        word: the variant and its settings as in links, such as ``local~window~64``.
        single: whether only one layer was replaced at a time; the results are then by the index of this layer.
    """
    variant_rows = [row for row in rows if row.word == word and row.layers]
    return curve_points(variant_rows, lambda row: float(row.layers[0] if single else len(row.layers)))


def describe_layers(lines: dict[str, list[CurvePoint]], rows: Sequence[SwapRow], edge: str) -> Lines:
    """Return the findings about how many layers each variant can replace, or about its most harmful layer.

    Args:
        lines: measurements by layers, by the variant's word.
        rows: all measurements, including those of the original model.
        edge: the end of the model from which layers are replaced, or "single" for one layer at a time.
    """
    reading_row, copy_row = original_rows(rows)
    if reading_row is None or copy_row is None:
        return []
    findings = []
    for word, points in lines.items():
        name = name_in_sentence(word, list(lines))
        if edge == "single":
            findings += _most_harmful(name, points, reading_row.perplexity, copy_row.copied)
        else:
            findings.append(_tolerated_layers(name, points, reading_row.perplexity, copy_row))
    return [[finding] for finding in findings]


def _tolerated_layers(name: str, points: Sequence[CurvePoint], original: float, copy_row: CopyRow) -> Finding:
    reads = first_above(points, "perplexity", words.WORSE_RATIO * original)
    copies = first_above(points, "copied", (copy_row.first + copy_row.copied) / 2)
    values = {"name": name, "worse": words.WORSE_RATIO}
    perplexity = _(
        "With every tested number of replaced layers, {name} keeps perplexity at most {worse:g} times the original.",
        **values,
    )
    if reads is not None:
        perplexity = _n(
            "With {name}, perplexity first exceeds {worse:g} times the original with {n} replaced layer.",
            "With {name}, perplexity first exceeds {worse:g} times the original with {n} replaced layers.",
            n=round(reads),
            **values,
        )
    if copies is None:
        text = _(
            "**{name} keeps at least half of the ability to copy with every tested number of replaced layers.**",
            **values,
        )
        return Finding(text, perplexity)
    lost = _lost_copying(name, points, copies, copy_row)
    if reads is None:
        ratio = max((point.perplexity / original for point in points if point.perplexity is not None), default=1.0)
        highest = _(
            "With {name}, the highest perplexity is {ratio} times the original.",
            name=name,
            ratio=formatted(ratio, ".2f"),
        )
        return Finding(f"**{paragraph(highest, lost)}**")
    return Finding(f"**{lost}**", perplexity)


def _lost_copying(name: str, points: Sequence[CurvePoint], n: float, copy_row: CopyRow) -> str:
    """Return with how many replaced layers over half of the ability to copy is lost, and the loss just below."""
    losses = {point.x: point.copied for point in points if point.copied is not None}
    if not (before := [x for x in losses if x < n]):
        return _n(
            "With only {n} replaced layer, {name} loses over half of the ability to copy.",
            "With only {n} replaced layers, {name} loses over half of the ability to copy.",
            n=round(n),
            name=name,
        )
    lost = max(0.0, (losses[max(before)] - copy_row.copied) / (copy_row.first - copy_row.copied))
    return _(
        "With {n} replaced layers, {name} loses over half of the ability to copy; with {low}, {share}.",
        low=round(max(before)),
        share=formatted(lost, ".0%"),
        n=round(n),
        name=name,
    )


def _most_harmful(name: str, points: Sequence[CurvePoint], original: float, copied: float) -> list[Finding]:
    """Return which layer's replacement raises perplexity, and the copying loss, most, compared with the original."""
    perplexities = {p.x: p.perplexity / original for p in points if p.perplexity is not None and p.copied is not None}
    losses = {p.x: p.copied for p in points if p.x in perplexities and p.copied is not None}
    if not perplexities:
        return []
    reads, copies = max(perplexities, key=perplexities.__getitem__), max(losses, key=losses.__getitem__)
    text = _(
        "**With {name}, no single replaced layer raises perplexity on this text by more than {percent}%.**"
        if perplexities[reads] <= words.SAME_RATIO
        else "**With {name}, layer {reads} matters most: if it alone is replaced, perplexity is {ratio} times the "
        "original.**",
        name=name,
        percent=words.percent_bound(1, perplexities[reads]),
        reads=f"{reads:.0f}",
        ratio=number(perplexities[reads], 3),
    )
    copying = _(
        "With {name}, the copying loss is highest if layer {copies} is replaced ({copied} nats, {before} in the "
        "original model).",
        name=name,
        copies=f"{copies:.0f}",
        copied=number(losses[copies], 2),
        before=number(copied, 2),
    )
    return [Finding(text, copying)]


LAYERS = View(
    tasks=_tasks,
    describe=lambda question, rows: describe_layers(_lines(question, rows), rows, question.options.edge),
    draw=_draw,
    notes=_notes,
)


def draw_map(lines: Mapping[str, Sequence[CurvePoint]], rows: Sequence[SwapRow], *, key: str) -> None:
    """Draw the maps of perplexity and of copying, each as soon as the original model has been measured."""
    reading_row, copy_row = original_rows(rows)
    left, right = st.columns(2)
    if reading_row:
        ticks = {at: f"× {number(MAX_RATIO**at, 2)}" for at in (0, 0.5)} | {1: _("≥ × {n:g}", n=MAX_RATIO)}
        map_rows = [perplexity_row(word, points, reading_row) for word, points in lines.items()]
        with left:
            _show(map_rows, ticks, _("perplexity relative to the original model"), f"{key}.perplexity")
    if copy_row:
        ticks = {0: _("unchanged"), 0.5: _("half lost"), 1: _("lost")}
        map_rows = [copying_row(word, points, copy_row) for word, points in lines.items()]
        with right:
            _show(map_rows, ticks, _("lost share of the gain from copying repeated tokens"), f"{key}.copied")


def perplexity_row(word: str, points: Sequence[CurvePoint], reading_row: ReadingRow) -> Row:
    """Return a variant's row of the perplexity map, with the logarithm of its ratio to the original perplexity."""
    ratios = {
        int(point.x): point.perplexity / reading_row.perplexity for point in points if point.perplexity is not None
    }
    text = N_("{name}, layer {layer}: perplexity {after}, {ratio} times that of the original model")
    notes = {
        layer: _(
            text,
            name=display_name(word),
            layer=layer,
            after=number(ratio * reading_row.perplexity, 3),
            ratio=number(ratio, 3),
        )
        for layer, ratio in ratios.items()
    }
    return _row(word, {layer: math.log(ratio, MAX_RATIO) for layer, ratio in ratios.items()}, notes)


def copying_row(word: str, points: Sequence[CurvePoint], copy_row: CopyRow) -> Row:
    """Return a variant's row of the copying map.

    It shows which share of the original model's gain from copying is lost; the gain is the loss of a token on its first
    occurrence minus the loss on its copy.
    """
    losses = {int(point.x): point.copied for point in points if point.copied is not None}
    saved, whole = max(copy_row.first - copy_row.copied, 1e-9), number(copy_row.copied, 3)
    text = N_("{name}, layer {layer}: copying loss {copied} nats per token, {whole} in the original model")
    notes = {
        layer: _(text, name=display_name(word), layer=layer, copied=number(loss, 3), whole=whole)
        for layer, loss in losses.items()
    }
    return _row(word, {layer: (loss - copy_row.copied) / saved for layer, loss in losses.items()}, notes)


def _row(word: str, values: Mapping[int, float], notes: Mapping[int, str]) -> Row:
    places = np.array([values.get(layer, math.nan) for layer in range(depth())])
    return Row(title=display_name(word), positions=places, notes=[notes.get(layer, "") for layer in range(depth())])


def _show(rows: Sequence[Row], ticks: Mapping[float, str], scale: str, key: str) -> None:
    x_title, dark = _("replaced layer"), st.context.theme.type == "dark"
    figure = heat(rows, ticks, dark=dark, x_title=x_title, scale=scale)
    text = _("Map: {measure}, one row per variant, one cell per layer", measure=scale)
    chart.show(figure, key=key, name="model-layers", alt=text)
