"""The view of the Error page that draws errors over each variant's cost, in multiply-adds or in measured time."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.figures.lines.curve import Curve, guide
from app.jobs import runs
from app.state.session import REFERENCE
from app.ui import palette
from app.words.i18n import N_, _, _n, enumeration
from app.words.labels import setting_name
from attention_core.experiments import error, error_cost
from attention_core.experiments.error import UNIFORM, ErrorPoint, pareto_front
from attention_core.experiments.error_cost import ROUNDS, ErrorCostRow, ErrorCostSpec
from attention_core.formatting import number
from pages.error import cost_words, reasons, words
from pages.error.options import Question
from pages.error.sweep import View, axis_end, curve, tooltip

MAX_LABELLED_VARIANTS = 3
"""Largest number of variants with a budget whose first, last and current settings are written next to their points."""
CROWDED = 0.1
"""Distance to softmax's point, as a share of the error axis and of softmax's cost, below which a label is left out."""


def show(top_result: tuple[DeltaGenerator, Question]) -> None:
    """Compute the error at every budget of every variant and draw it over the cost."""
    _place, question = top_result
    timed = question.options.price == "ms"
    times = _measured_times(question) if timed else None
    view = View(
        axis_title=N_("forward time relative to softmax") if timed else N_("multiply-adds relative to softmax"),
        lines=partial(lines, times=times),
        describe=partial(cost_words.cost_findings, times=times),
        linked_point=partial(cost_words.best_cheap_point, times=times),
        notes=lambda question, points: (
            []
            if labels_all_points(question)
            else [_("A point with a number is the best at its cost: no point shown is both cheaper and more accurate.")]
        ),
        key=lambda question, points: [undrawn_variants(question, points, times)],
    )
    view.show(top_result, full_cost=words.cost_of_softmax(question, times), times=times)


def undrawn_variants(question: Question, points: Sequence[ErrorPoint], times: Mapping[str, float] | None) -> str:
    """Return which variants have only points beyond the right end of the chart; empty without such variants."""
    end = words.AXIS_END_RATIO * (words.cost_of_softmax(question, times) or math.inf)
    names = [
        _(attention.title)
        for attention, group in question.by_variant(points)
        if all((p.multiply_adds if times is None else times.get(p.word, 0.0)) > end for p in group)
    ]
    if not names:
        return ""
    return _n(
        "{names} is outside the chart, because it costs more than twice as much as softmax.",
        "{names} are outside the chart, because they cost more than twice as much as softmax.",
        n=len(names),
        names=enumeration(names),
    )


def _measured_times(question: Question) -> dict[str, float]:
    """Draw the button that measures times; return median milliseconds by ``word``, or {} before a round is complete."""
    tasks = error.tasks(question.source, question.n, question.words, head=question.head, causal=question.causal)
    measured_words = tuple(dict.fromkeys(UNIFORM if task.is_uniform else task.word for task in tasks))
    spec = ErrorCostSpec(source=question.source, words=measured_words, causal=question.causal)
    row = st.container(horizontal=True, vertical_alignment="bottom", key="controls.error.times")
    with row:
        measured: runs.Run[ErrorCostRow] | None = runs.run_on_button(
            "error_cost",
            spec,
            runs.one_at_a_time(partial(error_cost.next_sample, spec)),
            key="error",
            label=_("Measure times"),
            icon=":material/timer:",
            button="error.measure",
            kind="secondary",
            row=row,
            progress=lambda points: (len(points.rows) / len(spec.words) / ROUNDS, _("Measuring …")),
        )
    samples: dict[str, list[float]] = {word: [] for word in spec.words}
    for sample in measured.rows if measured is not None and measured.request == spec else ():
        samples[sample.word].append(sample.ms)
    complete_rounds = min(map(len, samples.values()), default=0)
    if not complete_rounds:
        return {}
    if complete_rounds < ROUNDS:
        st.caption(
            _("The times are incomplete: {count} of {all} rounds are measured.", count=complete_rounds, all=ROUNDS)
        )
    return {word: statistics.median(ms) for word, ms in samples.items()}


def labels_all_points(question: Question) -> bool:
    """Return whether the variants are few enough to write their settings next to points off the Pareto front."""
    return sum(attention.variant.budget is not None for attention in question.attentions) <= MAX_LABELLED_VARIANTS


def _mark_best(label: str) -> str:
    """Return the label of the point with the lowest error at up to half of softmax's cost."""
    return _("{setting}: lowest error<br>at up to half the cost", setting=label)


def lines(question: Question, points: Sequence[ErrorPoint], times: Mapping[str, float] | None) -> list[Curve]:
    """Return one line per variant over its cost, with labels at its ends and at points that other texts name.

    If there are many variants, the points on the Pareto front have a text instead.

    Args:
        question: what the visitor compares.
        points: points of the variants.
        times: milliseconds by word if the cost is time; None if it is counted. Points without a time are not drawn.
    """
    costs = {p.word: float(p.multiply_adds) for p in points} if times is None else times
    points_with_cost = [p for p in points if p.word in costs]
    comparable = [p for p in points_with_cost if p.reference == REFERENCE]
    front = [comparable[i] for i in pareto_front([(costs[p.word], p.middle) for p in comparable])]
    curves, end = [], axis_end(question, points)
    right = words.AXIS_END_RATIO * (words.cost_of_softmax(question, times) or math.inf)
    best, next_best = (
        cost_words.best_cheap_point(question, points, times, share)
        for share in (words.CHEAP_SHARE, cost_words.NEXT_BEST * words.CHEAP_SHARE)
    )
    if best is not None and any(p.word == UNIFORM and p.middle <= best.middle for p in comparable):
        best = None  # Equal weights have no larger error than the best variant, so the finding recommends no variant.
    full_cost = words.cost_of_softmax(question, times) or math.inf
    lowest_cost = min((costs[p.word] for p in points_with_cost if p.word != UNIFORM), default=0.0)
    for p in comparable:
        notes = [tooltip(question, p)]
        if p.word == UNIFORM:
            xs = [
                lowest_cost or costs[UNIFORM],
                right if math.isfinite(right) else words.AXIS_END_RATIO * costs[UNIFORM],
            ]
            line = guide(words.equal_weights(question), xs, [p.middle] * 2)
            label = _("↑ worse than equal weights")
            curves.append(replace(line, notes=notes * 2, label=label, name_index=1))
        if p.word == REFERENCE:
            # Softmax's point is large, so that it stays visible where lines of other variants end. Its name is next to
            # it only if all points have labels. Otherwise, the title of the cost axis names softmax.
            symbol, x = "circle" if labels_all_points(question) else "", [costs[p.word]]
            colour = palette.index(REFERENCE)
            curves.append(Curve(_("Softmax"), x, [p.middle], colour=colour, notes=notes, size=13, symbol=symbol))
    for attention, group in question.by_variant(points_with_cost):
        group, budget = sorted(group, key=lambda p: p.budget), attention.variant.budget
        name = _(attention.title)
        line = curve(question, attention, group, [costs[p.word] for p in group], name=name)
        # A point with error 0 has no label, because its variant equals softmax, which has a label of its own.
        zero, current = question.format_error(0.0), None if budget is None else getattr(attention.params, budget.name)
        labelled = [p for p in front if question.format_error(p.middle) != zero]
        if labels_all_points(question):
            shown = [p for p in group if p.middle <= end and costs[p.word] <= right]
            shown = [p for p in shown if question.format_error(p.middle) != zero]
            step = reasons.worst_step(question, group) if attention.key == "nystrom" else None
            last = [
                p
                for p in shown[-1:]
                if not (abs(costs[p.word] / full_cost - 1) < CROWDED and p.middle < CROWDED * end < math.inf)
            ]
            others = (*shown[:1], *last, best, next_best, *(step or ()))
            labelled = [p for p in shown if p.value == current or p in others]
        texts = [number(p.value, 3) if p in labelled and isinstance(p.value, (int, float)) else "" for p in group]
        if budget is not None:
            setting = setting_name(budget.name)
            large = next((i for i, p in enumerate(group) if p.value == current), None)
            line = replace(line, label=f"{name} · {setting}", large_index=large)
            if first_text := next(filter(None, texts), ""):
                first = texts.index(first_text)
                if labels_all_points(question):
                    texts = [text and f"{setting} {text}" for text in texts]
                    line, texts[first] = replace(line, label=f"{name} · {texts[first]}", name_index=first), ""
                else:  # Only the first label contains the setting's name, because more names would overlap.
                    texts[first] = f"{setting} {first_text}"
        if best in group:
            i = group.index(best)
            line = replace(line, star_index=i)
            value = group[i].value
            if budget is not None and texts[i] and isinstance(value, (int, float)):
                texts[i] = _mark_best(f"{setting_name(budget.name)} {number(value, 3)}")
            elif budget is None or i == line.name_index:
                line = replace(line, label=_mark_best(line.label or name))
        line = replace(line, texts=texts)
        if len(group) == 1:
            line = replace(line, symbol="circle")
        if budget is None:  # A variant without a budget has one point, its current setting.
            line = replace(line, large_index=0)
        curves.append(line)
    if labels_all_points(question):
        # If several points have the same label, only the first also shows its variant's name, because names need space.
        named = {text: line for line in reversed(curves) for text in line.texts}
        counts = Counter(text for line in curves for text in line.texts if text)
        curves = [
            replace(line, texts=[f"{line.name} {x}" if counts[x] > 1 and named[x] is line else x for x in line.texts])
            for line in curves
        ]
    return curves
