"""The Entropy H view: the entropy of each variant's rows against sequence length, and the slope of each curve."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

import attention_core as ac
from app.figures.curves import Curve, curves, guide
from app.figures.spread import Spread, spread
from app.jobs import runs
from app.state.session import SharedOptions
from app.ui import chart, export, palette, variant_picker
from app.ui.scope import Scope
from app.words.i18n import _, paragraph
from app.words.labels import label
from attention_core.experiments import entropy_length
from attention_core.experiments.entropy_length import EntropyRow
from attention_core.experiments.homogeneity import HomogeneityRow
from attention_core.formatting import span
from attention_core.metrics.fit import TAIL, PowerFit, fit_bend, fit_growth
from pages.entropy import options
from pages.entropy.options import EntropyOptions, Question, by_head, quartiles
from pages.entropy.take_away import how_lengths_are_made, take_away


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve to measure: the variant, its name in the legend, its label at the curve's end, and its dash pattern."""

    attention: ac.Attention
    name: str
    label: str
    dash: str = "solid"


def show(question: Question) -> None:
    """Draw the controls, the sweep over lengths and its results."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        EntropyOptions.measure.draw()
        options.show_scales(question.options)
        options.show_extent(question)
    options.show_hint(question)
    lines, refused = lines_of(question)
    with st.container():
        for text in refused:
            st.caption(text)

    def draw(rows: list[EntropyRow], key: str) -> None:
        heads = question.of_heads(rows)
        words = {line.attention.key: word for word, line in reversed(lines.items())}
        scaled = _gathered(heads, words["softmax_log_n"], question) if "softmax_log_n" in words else None
        softmax = _gathered(heads, words["softmax"], question)
        st.markdown(sentence(softmax, scaled, question.unit, per_nat=question.per_nat, causal=question.causal))
        _chart(heads, lines, question, key)

    tasks = entropy_length.tasks(
        question.source, list(lines), longest=question.longest, causal=question.causal, seeds=question.seeds
    )
    rows = runs.run_immediately("entropy_length", tasks, draw, key="entropy.growth", effort=options.effort)
    if rows:
        _table(question.of_heads(rows), lines, question)
        _method(question)
        take_away(rows, question, "entropy_length", list(lines))


def scope(question: Question) -> Scope:
    """Return the scope of the numbers of this view."""
    return question.scope_of_sweep(lines_of(question)[0])


def lines_of(question: Question) -> tuple[dict[str, Line], list[str]]:
    """Return the curves by word (chosen variants, then other scales of softmax), and why variants are left out."""
    lines, refused = {}, []
    for attention in SharedOptions.variants.value:
        if question.causal and (reason := attention.variant.causal_reason):
            text = _("{title} cannot be causal: {reason}", title=_(attention.title), reason=_(reason))
            refused.append(variant_picker.left_out(text))
        else:
            lines[attention.word] = Line(attention=attention, name=label(attention), label=_(attention.title))
    base, temperature = question.options.base, question.options.temperature
    scaled = {
        "log_n": Line(
            attention=ac.get("softmax_log_n", base_length=base),
            name=_("Softmax · log n, n₀ {base}", base=base),
            label=_("log n"),
            dash="dash",
        ),
        "temperature": Line(
            attention=ac.get("softmax", temperature=temperature),
            name=_("Softmax · temperature {t:g}", t=temperature),
            label=_("temperature {t:g}", t=temperature),
            dash="dashdot",
        ),
        "unscaled": Line(
            attention=ac.get("nonlocal", similarity="gaussian"),
            name=_("Softmax · no scale"),
            label=_("no scale"),
            dash="dash",
        ),
    }
    for line in (scaled[scale] for scale in question.options.scales):
        lines.setdefault(line.attention.word, line)
    return lines, refused


def _gathered(rows: Sequence[EntropyRow], word: str, question: Question, measure: str = "entropy") -> Spread:
    """Return one curve's values by length, with entropies in the chosen unit."""
    unit = question.per_nat if measure == "entropy" else 1.0
    own = ((row.n, getattr(row, measure)) for row in rows if row.variant == word)
    return spread(((n, unit * value) for n, value in own if value is not None), mean=question.mean)


def uniform(lengths: Sequence[float], *, causal: bool) -> list[float]:
    """Return the mean entropy of uniform rows in nats: log n, or the mean of log 1 to log n with a causal mask."""
    return [math.lgamma(n + 1) / n if causal else math.log(n) for n in lengths]


def _chart(rows: Sequence[EntropyRow], lines: dict[str, Line], question: Question, key: str) -> None:
    measure = question.options.measure
    drawn: list[Curve] = []
    for word, line in lines.items():
        found = _gathered(rows, word, question, measure)
        colour = palette.place(line.attention.key)
        curve = found.curve(line.name, colour, dash=line.dash, band=question.options.band)
        drawn.append(replace(curve, label=line.label))
    lengths = max((curve.x for curve in drawn), key=len)
    if measure == "entropy":
        top = [question.per_nat * h for h in uniform(lengths, causal=question.causal)]
        title = _("entropy H ({unit})", unit=question.unit)
    else:
        top, title = [1.0] * len(lengths), "S = E|a| / √E a²" if measure == "sparsity" else _("H / log n")
    drawn.append(guide(_("uniform attention"), lengths, top))
    chart.show(
        curves(drawn, x_title=_("tokens n"), y_title=title, log_x=True, x_ticks=lengths, height=options.HEIGHT),
        key=key,
        name="entropy",
        alt=_("Curves: the entropy of every variant's rows against the number of tokens"),
    )


def _slope(lengths: Sequence[float], nats: Sequence[float]) -> PowerFit | None:
    """Fit entropy against log n, as the exponent of the perplexity ``exp H``; return None for too few lengths."""
    return fit_growth(lengths, [math.exp(h) for h in nats])


def _slope_of(found: Spread, per_nat: float) -> PowerFit | None:
    return _slope(found.x, [h / per_nat for h in found.middle])


def sentence(softmax: Spread, scaled: Spread | None, unit: str, *, per_nat: float, causal: bool) -> str:
    """Return how softmax's entropy grows compared with uniform attention, with and without the log n scale.

    Args:
        softmax: softmax's entropies by length, in ``unit``.
        scaled: softmax's entropies with the log n scale; None if that curve is not drawn.
        unit: name on screen of the entropies' unit.
        per_nat: number of these units in one nat.
        causal: whether a causal mask is used.
    """
    if not softmax.x:
        return _("Measuring **softmax** …")
    own, alike = _slope_of(softmax, per_nat), _slope(softmax.x, uniform(softmax.x, causal=causal))
    low, high = softmax.middle[0], softmax.middle[-1]
    values = {"a": int(softmax.x[0]), "b": int(softmax.x[-1]), "low": low, "high": high, "unit": unit}
    if len(softmax.x) == 1:
        return _("At n = {a} **softmax**'s entropy is {low:.2f} {unit}. A longer input shows how it grows.", **values)
    if own is None or alike is None:
        return _(
            "At n = {a} **softmax**'s entropy is {low:.2f} {unit}, at n = {b} {high:.2f}. These lengths are too close "
            "to show how it grows: give a longer input.",
            **values,
        )
    values["share"] = own.exponent / alike.exponent
    bend = _bend(softmax, per_nat=per_nat, causal=causal)
    steered = _slope_of(scaled, per_nat) if scaled else None
    if steered is None:
        if high < low:
            words = _("From n = {a} to {b} **softmax**'s entropy falls from {low:.2f} to {high:.2f} {unit}.", **values)
        else:
            words = _(
                "From n = {a} to {b} **softmax**'s entropy rises from {low:.2f} to {high:.2f} {unit}, {share:.2f}× "
                "as steeply as uniform attention's.",
                **values,
            )
        return paragraph(words, bend)
    values["steered"] = steered.exponent / alike.exponent
    if high < low:
        words = _(
            "From n = {a} to {b} **softmax**'s entropy falls from {low:.2f} to {high:.2f} {unit}; with the log n scale "
            "its slope is {steered:.2f}× uniform attention's.",
            **values,
        )
    else:
        words = _(
            "From n = {a} to {b} **softmax**'s entropy rises from {low:.2f} to {high:.2f} {unit}, {share:.2f}× as "
            "steeply as uniform attention's; with the log n scale {steered:.2f}×.",
            **values,
        )
    return paragraph(words, bend)


def _bend(softmax: Spread, *, per_nat: float, causal: bool) -> str:
    """Return the slope over the last lengths if the curve bends; empty if one slope describes the whole curve."""
    tail = fit_bend(softmax.x, [math.exp(h / per_nat) for h in softmax.middle])
    last = softmax.x[-TAIL:]
    alike = fit_growth(last, [math.exp(h) for h in uniform(last, causal=causal)])
    if tail is None or alike is None:
        return ""
    return _(
        "The curve bends: over its last {n} lengths, from n = {a} to {b}, its slope is {share:.2f}× uniform "
        "attention's.",
        n=TAIL,
        a=int(last[0]),
        b=int(last[-1]),
        share=tail.exponent / alike.exponent,
    )


def _table(rows: Sequence[EntropyRow], lines: dict[str, Line], question: Question) -> None:
    """Draw the table of the slopes of all curves and their spread over heads."""
    lengths = {row.n for row in rows}
    first, last = min(lengths), max(lengths)
    slope, heads = _("slope against log n"), _("quartiles over heads")
    shown = []
    for word, line in lines.items():
        found = _gathered(rows, word, question)
        ends, fit = dict(zip(found.x, found.middle, strict=True)), _slope_of(found, question.per_nat)
        own = by_head(row for row in rows if row.variant == word)
        slopes = [_slope_of(_gathered(head, word, question), question.per_nat) for head in own]
        shown.append(
            {
                _("variant"): line.name,
                f"H({first:g}) {question.unit}": ends.get(first),
                f"H({last:g}) {question.unit}": ends.get(last),
                slope: fit and fit.exponent,
                "R²": fit and fit.r2,
                heads: quartiles([each.exponent for each in slopes if each]),
                f"S({last:g})": _at(_gathered(rows, word, question, "sparsity"), last),
                _("row sums"): sums_in_words([row for row in rows if row.variant == word]),
            }
        )
    numbers = [*list(shown[0])[1:5], f"S({last:g})"]
    st.dataframe(
        shown, hide_index=True, column_config=dict.fromkeys(numbers, st.column_config.NumberColumn(format="%.2f"))
    )


def _at(found: Spread, n: float) -> float | None:
    """Return a curve's value at a length."""
    return dict(zip(found.x, found.middle, strict=True)).get(n)


def sums_in_words(rows: Sequence[EntropyRow | HomogeneityRow]) -> str:
    """Return the row sums of a variant over all measurements, in words: one number, or a range."""
    if not rows:
        return ""
    return span(min(row.row_low for row in rows), max(row.row_high for row in rows), ".3g")


def _method(question: Question) -> None:
    """Draw the definition of entropy, including rows that are not probabilities."""
    export.formula_expander(
        _("How it is measured"),
        r"H_i = -\sum_j p_{ij}\log p_{ij},\qquad p_{ij} = \frac{|A_{ij}|}{\sum_l |A_{il}|}",
        _(
            "- **0** where a query looks at one key, **log n** where it looks at all alike; *exp H* is how many "
            "equally weighted keys have the same entropy.\n"
            "- **Signed or unnormalised rows** are measured by their absolute values, scaled to sum to one; so "
            "neither signs nor a row's total count, which stands under *row sums*: the smallest and the largest of all "
            "lengths. A row of zeros has 0.\n"
            "- **S** is the mean of |a| over the root of the mean of a², over the keys a query may see: 1 where all "
            "weigh alike, 1/√n where one of n has all.\n"
            "- A head's value is the mean over its queries. The line is the median (or mean) over heads and seeds, "
            "the band their quartiles.\n"
            "- **H / log n** divides each query's entropy by the logarithm of the keys it may see.\n"
            "- **Slope**: least squares of H on log n through the line, both in nats. 1: attention dilutes as fast "
            "as looking everywhere alike; 0: not at all."
        )
        + "\n- "
        + how_lengths_are_made(question),
        key="entropy.method",
    )
