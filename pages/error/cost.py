"""The view of the error over the cost, counted in multiply-adds or measured as time on this machine."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.figures.lines.curves import Curve, guide
from app.jobs import runs
from app.state.session import REFERENCE
from app.ui import palette
from app.words.i18n import N_, _
from app.words.labels import readable
from attention_core.experiments import error, error_cost
from attention_core.experiments.error import UNIFORM, ErrorPoint, pareto_front
from attention_core.experiments.error_cost import ROUNDS, ErrorCostRow, ErrorCostSpec
from attention_core.formatting import number
from pages.error import words
from pages.error.options import Question
from pages.error.reading_guide import worse_than_mean
from pages.error.sweep import View, axis_end, curve, in_words

FEW = 3
"""Largest number of variants with a budget for which every point has its setting as text."""


def show(given: tuple[DeltaGenerator, Question]) -> None:
    """Compute the error at every budget of every variant and draw it over the cost."""
    _place, question = given
    timed = question.options.price == "ms"
    times = _times(question) if timed else None
    view = View(
        axis=N_("forward time of all heads, compared with softmax")
        if timed
        else N_("multiply-adds, compared with softmax"),
        lines=partial(lines, times=times),
        describe=partial(words.against_cost, times=times),
        notes=lambda question, found: [
            *worse_than_mean(question, found),
            *(
                []
                if names_all_points(question)
                else [
                    _(
                        "A point with a number is the best at its cost: no point shown is both cheaper and more "
                        "accurate."
                    )
                ]
            ),
        ],
    )
    view.show(given, whole=words.cost_of_softmax(question, times), times=times)


def _times(question: Question) -> dict[str, float]:
    """Return milliseconds by word; empty until they have been measured."""
    tasks = error.tasks(question.source, question.n, question.words, head=question.head, causal=question.causal)
    measured_words = tuple(dict.fromkeys(UNIFORM if task.uniform else task.word for task in tasks))
    spec = ErrorCostSpec(source=question.source, words=measured_words, causal=question.causal)
    row = st.container(horizontal=True, vertical_alignment="bottom", key="controls.error.times")
    with row:
        measured: runs.Run[ErrorCostRow] | None = runs.run_on_button(
            "error_cost",
            spec,
            runs.in_turn(partial(error_cost.next_sample, spec)),
            key="error",
            label=_("Measure times"),
            icon=":material/timer:",
            button="error.measure",
            kind="secondary",
            row=row,
            progress=lambda found: (len(found.rows) / len(spec.words) / ROUNDS, _("Measuring …")),
        )
    taken: dict[str, list[float]] = {word: [] for word in spec.words}
    for sample in measured.rows if measured is not None and measured.request == spec else ():
        taken[sample.word].append(sample.ms)
    whole = min(map(len, taken.values()), default=0)
    if not whole:
        st.info(_("Press “Measure times” to time every point of the chart {n} times on this machine.", n=ROUNDS))
        return {}
    if whole < ROUNDS:
        st.caption(_("The times are incomplete: {count} of {all} rounds are measured.", count=whole, all=ROUNDS))
    return {word: statistics.median(ms) for word, ms in taken.items()}


def names_all_points(question: Question) -> bool:
    """Return whether the variants are few enough to write the setting next to each point."""
    return sum(attention.variant.budget is not None for attention in question.attentions) <= FEW


def step_to_worse(question: Question, own: Sequence[ErrorPoint]) -> int | None:
    """Return the index of the point after which a larger cost raises the error most; None if it never does."""
    rises = {
        i: dearer.middle - cheaper.middle
        for i, (cheaper, dearer) in enumerate(pairwise(own))
        if dearer.multiply_adds > cheaper.multiply_adds
        and cheaper.middle < dearer.middle < math.inf
        and question.written(cheaper.middle) != question.written(dearer.middle)
    }
    return max(rises, key=lambda i: rises[i], default=None)


def lines(question: Question, found: Sequence[ErrorPoint], times: Mapping[str, float] | None) -> list[Curve]:
    """Return one line per variant over its cost, with the settings of points as text.

    If there are many variants, only the points on the Pareto front have a text.

    Args:
        question: what the visitor compares.
        found: points of the variants.
        times: milliseconds by word if the cost is time; None if it is counted. Points without a time are not drawn.
    """
    prices = {p.word: float(p.multiply_adds) for p in found} if times is None else times
    priced = [p for p in found if p.word in prices]
    comparable = [p for p in priced if p.reference == REFERENCE]
    front = [comparable[i] for i in pareto_front([(prices[p.word], p.middle) for p in comparable])]
    drawn, end = [], axis_end(question, found)
    least = min((prices[p.word] for p in priced if p.word != UNIFORM), default=0.0)
    for p in comparable:
        notes = [in_words(question, p)]
        if p.word == UNIFORM:
            ends = [
                least or prices[UNIFORM],
                words.BEYOND * (words.cost_of_softmax(question, times) or prices[UNIFORM]),
            ]
            line = guide(words.equal_weights(question), ends, [p.middle] * 2)
            drawn.append(replace(line, notes=notes * 2, label=_("▲ worse than equal weights"), named_at=1))
        if p.word == REFERENCE:
            # The point is large, because the line of a variant that becomes softmax ends at the same point. Among many
            # lines, its name is at the end of the axis.
            symbol, x = "circle" if names_all_points(question) else "", [prices[p.word]]
            colour = palette.place(REFERENCE)
            drawn.append(Curve(_("Softmax"), x, [p.middle], colour=colour, notes=notes, size=13, symbol=symbol))
    for attention, own in question.by_variant(priced):
        own, knob = sorted(own, key=lambda p: p.budget), attention.variant.budget
        name = _(attention.title)
        line = curve(question, attention, own, [prices[p.word] for p in own], name=name)
        # The point of softmax itself has a name already.
        named = own if names_all_points(question) else front
        named = [p for p in named if question.written(p.middle) != question.written(0.0)]
        texts = [number(p.value, 3) if p in named and isinstance(p.value, (int, float)) else "" for p in own]
        if knob is not None:
            setting, chosen = readable(knob.name), getattr(attention.params, knob.name)
            large = next((i for i, p in enumerate(own) if p.value == chosen), None)
            line = replace(line, label=f"{name} · {setting}", large=large)
            visible = [text != "" and p.middle <= end for text, p in zip(texts, own, strict=True)]
            if names_all_points(question) and True in visible:
                first = visible.index(True)
                line = replace(line, label=f"{line.label} {texts[first]}", named_at=first)
                texts[first] = ""
            elif first_text := next(filter(None, texts), ""):
                # Only the first number has the setting's name: on a narrow screen, more names would overlap.
                texts[texts.index(first_text)] = f"{setting} {first_text}"
            if names_all_points(question) and (i := step_to_worse(question, own)) is not None and texts[i]:
                texts[i] = _("{setting}: smaller error than {dearer}", setting=texts[i], dearer=texts[i + 1])
        line = replace(line, texts=texts)
        alone = "circle-open" if line.hollow else "circle"
        drawn.append(replace(line, symbol=alone) if len(own) == 1 else line)
    return drawn
