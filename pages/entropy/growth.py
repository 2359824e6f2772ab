"""Entropy against length: the sweep, its chart, its sentence, and how steep each curve is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

import attention_core as ac
from app import chart, sweep
from app.figures.curves import Curve, curves
from app.figures.spread import Spread, spread
from app.figures.theme import GREY
from app.naming import label
from app.text import _, literal
from app.visit import Visit
from attention_core.experiments import entropy_length
from attention_core.experiments.task import Row
from attention_core.metrics.fit import PowerFit, fit_power
from pages.entropy import notes, options
from pages.entropy.options import EntropyOptions, Question


@dataclass(frozen=True, kw_only=True)
class Line:
    """One curve to measure: a variant, its name, its colour's place and its stroke."""

    attention: ac.Attention
    name: str
    colour: int
    dash: str = "solid"


def show(question: Question) -> None:
    """Draw the controls, the sweep and what it found."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        EntropyOptions.measure.draw()
        options.show_scales(question.options)
        options.show_extent(question)
    options.show_hint(question)
    with st.container():
        lines = _lines(question)

    def draw(rows: list[Row], key: str) -> None:
        rows = question.of_heads(rows)
        st.markdown(_sentence(rows, lines, question))
        _chart(rows, lines, question, key)

    tasks = entropy_length.tasks(
        question.source, list(lines), longest=question.longest, causal=question.causal, seeds=question.seeds
    )
    rows = sweep.show("entropy_length", tasks, draw, key="entropy.growth", effort=options.effort)
    if rows:
        _table(question.of_heads(rows), lines, question)
        notes.entropy(question)
        notes.take_away(rows, question, "entropy_length", list(lines))


def _lines(question: Question) -> dict[str, Line]:
    """The curves by the variant's word: the chosen variants, then softmax with other scales."""
    lines = {}
    for colour, attention in enumerate(Visit.variants.value):
        if question.causal and (reason := attention.variant.causal_reason):
            told = _("{title} cannot be causal: {reason}", title=_(attention.title), reason=_(reason))
            st.caption(f":material/block: {literal(told)} " + _("It is left out while causal is on."))
        else:
            lines[attention.word] = Line(attention=attention, name=label(attention), colour=colour)
    base, temperature = question.options.base, question.options.temperature
    scaled = {
        "log_n": Line(
            attention=ac.get("softmax_log_n", base_length=base),
            name=_("Softmax · log n, n₀ {base}", base=base),
            colour=0,
            dash="dash",
        ),
        "temperature": Line(
            attention=ac.get("softmax", temperature=temperature),
            name=_("Softmax · temperature {t:g}", t=temperature),
            colour=0,
            dash="dashdot",
        ),
        "unscaled": Line(
            attention=ac.get("nonlocal", similarity="gaussian"), name=_("Softmax · no scale"), colour=0, dash="longdash"
        ),
    }
    for line in (scaled[scale] for scale in question.options.scales):
        lines.setdefault(line.attention.word, line)
    return lines


def _gathered(rows: Sequence[Row], word: str, question: Question, measure: str) -> Spread:
    """One curve's values by length, entropies in the unit asked for."""
    unit = question.per_nat if measure == "entropy" else 1.0
    return spread(((x, unit * y) for x, y in options.points(rows, measure, variant=word)), mean=question.mean)


def _uniform(lengths: Sequence[float], *, causal: bool) -> list[float]:
    """Mean entropy of uniform rows in nats: log n, or the mean of log 1 to log n where the future is hidden."""
    return [math.lgamma(n + 1) / n if causal else math.log(n) for n in lengths]


def _chart(rows: Sequence[Row], lines: dict[str, Line], question: Question, key: str) -> None:
    measure = question.options.measure
    drawn: list[Curve] = []
    for word, line in lines.items():
        found = _gathered(rows, word, question, measure)
        drawn.append(found.curve(line.name, line.colour, dash=line.dash, band=question.options.band))
    lengths = max((curve.x for curve in drawn), key=len)
    if measure == "entropy":
        top = [question.per_nat * h for h in _uniform(lengths, causal=question.causal)]
        title = _("entropy H ({unit})", unit=question.unit)
    else:
        top, title = [1.0] * len(lengths), _("H / log n")
    drawn.append(Curve(name=_("uniform attention"), x=lengths, y=top, colour=GREY, dash="dot", marks=False))
    chart.show(
        curves(drawn, x_title=_("tokens n"), y_title=title, log_x=True, x_ticks=lengths, height=540),
        key=key,
        name="entropy",
        alt=_("Curves: the entropy of every variant's rows against the number of tokens"),
    )


def _slope(lengths: Sequence[float], nats: Sequence[float]) -> PowerFit | None:
    """Entropy against log n: the exponent of the perplexity ``exp H``; None from fewer than two lengths."""
    return fit_power(lengths, [math.exp(h) for h in nats]) if len(lengths) > 1 else None


def _line_slope(rows: Sequence[Row], word: str, question: Question) -> PowerFit | None:
    found = _gathered(rows, word, question, "entropy")
    return _slope(found.x, [h / question.per_nat for h in found.middle])


def _sentence(rows: Sequence[Row], lines: dict[str, Line], question: Question) -> str:
    words = {line.attention.key: word for word, line in reversed(lines.items())}
    found = _gathered(rows, words["softmax"], question, "entropy")
    if not found.x:
        return _("Measuring **softmax** …")
    low, high = found.middle[0], found.middle[-1]
    told = {"a": int(found.x[0]), "b": int(found.x[-1]), "low": low, "high": high, "unit": question.unit}
    own, uniform = (
        _line_slope(rows, words["softmax"], question),
        _slope(found.x, _uniform(found.x, causal=question.causal)),
    )
    if own is None or uniform is None:
        return _("At n = {a} **softmax**'s entropy is {low:.2f} {unit}. A longer input shows how it grows.", **told)
    told["share"] = own.exponent / uniform.exponent
    sentence = (
        _(
            "From n = {a} to {b} **softmax**'s entropy rises from {low:.2f} to {high:.2f} {unit}, {share:.2f} times as "
            "steeply as uniform attention's",
            **told,
        )
        if high >= low
        else _("From n = {a} to {b} **softmax**'s entropy falls from {low:.2f} to {high:.2f} {unit}", **told)
    )
    steered = _line_slope(rows, words["softmax_log_n"], question) if "softmax_log_n" in words else None
    if steered is not None:
        sentence += _("; with the log n scale {share:.2f} times", share=steered.exponent / uniform.exponent)
    return sentence + "."


def _table(rows: Sequence[Row], lines: dict[str, Line], question: Question) -> None:
    """How steep each curve is, and how much heads differ in it."""
    lengths = sorted({x for word in lines for x, _y in options.points(rows, "entropy", variant=word)})
    first, last = lengths[0], lengths[-1]
    unit = question.unit
    slope, heads = _("slope against log n"), _("quartiles over heads")
    shown = []
    for word, line in lines.items():
        found = _gathered(rows, word, question, "entropy")
        ends = dict(zip(found.x, found.middle, strict=True))
        fit = _line_slope(rows, word, question)
        slopes = [_line_slope(head, word, question) for head in options.by_head(rows, variant=word)]
        shown.append(
            {
                _("variant"): line.name,
                f"H({first:g}) {unit}": ends.get(first),
                f"H({last:g}) {unit}": ends.get(last),
                slope: fit and fit.exponent,
                "R²": fit and fit.r2,
                heads: options.quartiles([each.exponent for each in slopes if each]),
            }
        )
    st.dataframe(
        shown,
        hide_index=True,
        column_config=dict.fromkeys(list(shown[0])[1:5], st.column_config.NumberColumn(format="%.2f")),
    )
