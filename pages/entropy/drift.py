"""The Other lengths view: how squared ReLU's rows and outputs change at lengths other than the length of training."""

import math
from collections.abc import Mapping, Sequence

import streamlit as st

from app.figures.curves import curves, guide
from app.figures.spread import Spread, spread
from app.jobs import runs
from app.ui import chart, export, palette
from app.ui.scope import Scope
from app.words.i18n import _, paragraph
from attention_core.experiments import length_drift
from attention_core.experiments.length_drift import NORMALIZERS, SOFTMAX, DriftRow
from attention_core.experiments.lengths import ladder
from attention_core.formatting import number
from attention_core.metrics.fit import fit_growth
from pages.entropy import options
from pages.entropy.options import EntropyOptions, Question, by_head
from pages.entropy.take_away import how_lengths_are_made, take_away

DASHES = dict(zip(NORMALIZERS, ("solid", "dash", "dashdot", "dot"), strict=True))
"""Dash patterns of squared ReLU's normalisers, which share one colour."""


def show(question: Question) -> None:
    """Draw the controls, the sweep over lengths and its results."""
    lengths, measure = ladder(question.longest), question.options.drift
    base = min(lengths, key=lambda n: abs(math.log(n / question.options.trained)))
    EntropyOptions.trained.set(base)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        EntropyOptions.drift.draw()
        EntropyOptions.trained.draw(options=lengths)
        options.show_extent(question)
    options.show_hint(question)

    def draw(rows: list[DriftRow], key: str) -> None:
        found = drifts(question.of_heads(rows), base, measure, mean=question.mean)
        st.markdown(sentence(found, base, measure))
        _chart(found, base, question, key)

    tasks = length_drift.tasks(question.source, longest=question.longest, causal=question.causal, seeds=question.seeds)
    rows = runs.run_immediately("length_drift", tasks, draw, key="entropy.drift", effort=options.effort)
    if rows:
        _table(question.of_heads(rows), base, question)
        _method(question)
        take_away(rows, question, "length_drift")


def scope(question: Question) -> Scope:
    """Return the scope of the numbers of this view."""
    return question.scope_of_sweep((SOFTMAX, "relu2"))


def names() -> dict[str, str]:
    """Return the names of the normalisers on screen."""
    return {
        "length": _("squared ReLU / n"),
        "squared": _("squared ReLU / n²"),
        "fixed": _("squared ReLU / constant"),
        "sum": _("squared ReLU / row sum"),
        SOFTMAX: _("softmax"),
    }


def drifts(rows: Sequence[DriftRow], base: int, measure: str, *, mean: bool) -> dict[str, Spread]:
    """Return each head's measure over its value at length ``base``, by normaliser; heads with 0 there are left out."""
    found = {}
    for name in names():
        ratios = []
        for head in by_head(row for row in rows if row.normalizer == name):
            values: dict[int, float] = {row.n: getattr(row, measure) for row in head}
            start = values.get(base, 0.0)
            ratios += [(n, value / start) for n, value in values.items() if start > 0]
        found[name] = spread(ratios, mean=mean)
    return found


def sentence(found: Mapping[str, Spread], base: int, measure: str) -> str:
    """Return the drift of each normaliser at the measured length farthest from the training length."""
    lengths = found[SOFTMAX].x
    if len(lengths) < 2:
        return _("One length says nothing of drift: give a longer input.")
    far = max(lengths, key=lambda n: (abs(math.log(n / base)), n))
    known = {name: dict(zip(each.x, each.middle, strict=True)) for name, each in found.items()}
    ends = {name: points[far] for name, points in known.items() if far in points}
    if len(ends) < len(known):
        return _("At {base} tokens no row has a positive logit, so squared ReLU has nothing to drift from.", base=base)
    words = {name: number(end) for name, end in ends.items()}
    if measure == "total":
        text = _(
            "Trained at {base} tokens and used at {n}, a row of squared ReLU sums to {length}× what it did if it "
            "is divided by **n**, {squared}× by **n²**, {fixed}× by a **constant** and {sum}× by its "
            "**own sum**; softmax's, {softmax}×.",
            base=base,
            n=int(far),
            **words,
        )
    else:
        text = _(
            "Trained at {base} tokens and used at {n}, the output of squared ReLU has {length}× its size there if "
            "rows are divided by **n**, {squared}× by **n²**, {fixed}× by a **constant** and {sum}× by "
            "their **own sum**; softmax's, {softmax}×.",
            base=base,
            n=int(far),
            **words,
        )
    return paragraph(text, least({name: ends[name] or 0.0 for name in ("length", "squared", "fixed")}))


def least(ends: Mapping[str, float]) -> str:
    """Return which fixed divisor drifts least, in words; doubling and halving count as equal drifts."""
    sizes = {name: abs(math.log(end)) if end > 0 else math.inf for name, end in ends.items()}
    first, second = sorted(sizes.values())[:2]
    if second - first < 0.01:  # One per cent of the value is less than the width of the curves.
        return _("Of the three that do not look at the row, none drifts clearly least.")
    return _(
        "Of the three that do not look at the row, **{name}** drifts least.",
        name={"length": "n", "squared": "n²", "fixed": _("the constant")}[min(sizes, key=sizes.__getitem__)],
    )


def _chart(found: Mapping[str, Spread], base: int, question: Question, key: str) -> None:
    softmax, relu2 = palette.place("softmax"), palette.place("relu2")
    drawn = [
        each.curve(
            names()[name],
            softmax if name == SOFTMAX else relu2,
            dash=DASHES.get(name, "solid"),
            band=question.options.band and name in (SOFTMAX, "length"),
        )
        for name, each in found.items()
    ]
    lengths = found[SOFTMAX].x
    if lengths:
        drawn.append(guide(_("no drift"), lengths, [1.0] * len(lengths)))
    title = (
        _("row total over that at {base} tokens", base=base)
        if question.options.drift == "total"
        else _("output size over that at {base} tokens", base=base)
    )
    figure = curves(
        drawn,
        x_title=_("tokens n"),
        y_title=title,
        log_x=True,
        log_y=True,
        mark=base,
        x_ticks=lengths,
        height=options.HEIGHT,
    )
    chart.show(
        figure,
        key=key,
        name="drift",
        alt=_("Curves: how rows and outputs drift away from the length trained at, by what rows are divided by"),
    )


def _table(rows: Sequence[DriftRow], base: int, question: Question) -> None:
    """Draw the table of both measures at the shortest and longest length, with their exponents."""
    columns = {"total": _("row total"), "size": _("output size")}
    found = {measure: drifts(rows, base, measure, mean=question.mean) for measure in columns}
    shown = []
    for name, title in names().items():
        line: dict[str, str | float | None] = {_("divided by"): title}
        for measure, word in columns.items():
            each = found[measure][name]
            for i in (0, -1) if each.x else ():
                if each.x[i] == base:
                    continue  # The ratio is 1 by definition.
                line[_("{measure} at {n:g}", measure=word, n=each.x[i])] = number(each.middle[i], 3)
            line[_("{measure}, exponent", measure=word)] = _exponent(each)
        shown.append(line)
    exponents = [_("{measure}, exponent", measure=word) for word in columns.values()]
    two = st.column_config.NumberColumn(
        format="%.2f", help=_("a of the power law nᵃ, by least squares through the line: 0 would be no drift.")
    )
    st.dataframe(shown, hide_index=True, column_config=dict.fromkeys(exponents, two))


def _exponent(found: Spread) -> float | None:
    fit = fit_growth(found.x, found.middle) if min(found.middle, default=0) > 0 else None
    return None if fit is None else fit.exponent


def _method(question: Question) -> None:
    """Draw how drift is defined, and why a constant factor does not count."""
    export.formula_expander(
        _("How it is measured"),
        r"A_{ij} = \frac{\operatorname{relu}(x_{ij})^2}{Z_i},\qquad Z_i = n_i,\quad n_i^2,\quad "
        r"\text{a constant}\quad\text{or}\quad \textstyle\sum_l \operatorname{relu}(x_{il})^2,"
        r"\qquad x_{ij} = \frac{q_i\cdot k_j}{\sqrt d}",
        _(
            "- A factor that stays is learned away in training, so every head is measured against itself at n₀. "
            "The constant may be any number; n² is (relu(x) / n)².\n"
            "- **Row total**: mean over queries of a row's sum; a row without a positive logit sums to 0. "
            "**Output size**: root mean square over queries of the length of A v. It may shrink though rows "
            "keep their total, as values that differ cancel in a mean of more of them.\n"
            "- Queries, keys and values are those of the source at each length, not of a model trained with this "
            "attention. Line and band are over heads and seeds."
        )
        + "\n- "
        + how_lengths_are_made(question),
        key="entropy.method",
    )
