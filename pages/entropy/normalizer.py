"""The Normaliser Z view: the row totals of softmax and squared ReLU against length, with fitted exponents."""

import math
from collections.abc import Sequence
from statistics import fmean

import streamlit as st

from app.figures.curves import Curve, curves, guide
from app.figures.spread import Spread, spread
from app.jobs import runs
from app.ui import chart, export, palette
from app.ui.scope import Scope
from app.words.i18n import _, paragraph
from attention_core.experiments import normalizer_length
from attention_core.experiments.normalizer_length import NormalizerRow
from attention_core.formatting import number
from attention_core.metrics.fit import TAIL, PowerFit, fit_bend, fit_growth
from pages.entropy import options
from pages.entropy.options import Question, by_head, quartiles
from pages.entropy.take_away import how_lengths_are_made, take_away

SUITS = 0.05
"""Distance of an exponent from 1 up to which dividing by n fits a total."""
LARGEST = 700.0
"""Largest logarithm of a number that is drawn; the number itself must fit into a float64."""


def show(question: Question) -> None:
    """Draw the controls, the sweep over lengths and its results."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        options.show_extent(question)
    options.show_hint(question)

    def draw(rows: list[NormalizerRow], key: str) -> None:
        found = {name: growth(question.of_heads(rows), name, mean=question.mean) for name in normalizer_length.TOTALS}
        st.markdown(sentence(found))
        _chart(found, question, key)

    tasks = normalizer_length.tasks(
        question.source, longest=question.longest, causal=question.causal, seeds=question.seeds
    )
    rows = runs.run_immediately("normalizer_length", tasks, draw, key="entropy.normalizer", effort=options.effort)
    if rows:
        _table(question.of_heads(rows), question)
        _method(question)
        take_away(rows, question, "normalizer_length")


def scope(question: Question) -> Scope:
    """Return the scope of the numbers of this view."""
    return question.scope_of_sweep(normalizer_length.TOTALS)


def names() -> dict[str, str]:
    """Return the names of the totals on screen."""
    return {"softmax": _("softmax: Σ exp(x)"), "relu2": _("squared ReLU: Σ relu(x)²")}


def growth(rows: Sequence[NormalizerRow], name: str, *, mean: bool) -> Spread:
    """Return each head's total relative to its total at the shortest length where it has one."""
    grown = []
    for head in by_head(row for row in rows if row.normalizer == name):
        logs = [(row.n, row.log_z) for row in head if row.log_z is not None]
        grown += [(n, math.exp(z - logs[0][1])) for n, z in logs if z - logs[0][1] < LARGEST]
    return spread(grown, mean=mean)


def fit(found: Spread) -> PowerFit | None:
    """Fit a power law to the median or mean growth of a total; return None for too few lengths."""
    return fit_growth(found.x, found.middle)


def _chart(found: dict[str, Spread], question: Question, key: str) -> None:
    drawn: list[Curve] = []
    for name, each in found.items():
        colour = palette.place(name)
        drawn.append(each.curve(names()[name], colour, band=question.options.band))
        if law := fit(each):
            title = _("fit n<sup>{a:.2f}</sup>, R² {r2:.2f}", a=law.exponent, r2=law.r2)
            y = [law.at(x) for x in each.x]
            drawn.append(
                Curve(
                    title, each.x, y, colour=colour, dash="dash", marks=False, label=_("fit: {a:.2f}", a=law.exponent)
                )
            )
    lengths = max((each.x for each in found.values()), key=len)
    if lengths:
        y = [n / lengths[0] for n in lengths]
        drawn.append(guide(_("n itself"), lengths, y))
    first = f"{lengths[0]:g}" if lengths else "n₀"
    figure = curves(
        drawn,
        x_title=_("tokens n"),
        y_title=f"Z(n) / Z({first})",
        log_x=True,
        log_y=True,
        x_ticks=lengths,
        height=options.HEIGHT,
    )
    chart.show(
        figure,
        key=key,
        name="normalizer",
        alt=_("Curves: how a row's total grows with the number of tokens, with fitted power laws"),
    )


def sentence(found: dict[str, Spread]) -> str:
    """Return how fast the totals grow, and whether dividing by n fits squared ReLU."""
    softmax, relu2 = found["softmax"], found["relu2"]
    law, other = fit(softmax), fit(relu2)
    if law is None:
        return _("These lengths are too few or too close to tell how the totals grow: give a longer input.")
    text = _(
        "While n grows {n:.3g}-fold, from {a} to {b}, **softmax**'s normaliser Z grows {z:.3g}-fold: about as n to the "
        "power {exponent:.2f}.",
        n=softmax.x[-1] / softmax.x[0],
        a=int(softmax.x[0]),
        b=int(softmax.x[-1]),
        z=softmax.middle[-1],
        exponent=law.exponent,
    )
    if other is None:
        return text
    tail = fit_bend(relu2.x, relu2.middle)
    numbers = {"exponent": other.exponent, "tail": tail.exponent if tail else other.exponent, "n": TAIL}
    sides = {(exponent > 1 - SUITS) + (exponent > 1 + SUITS) for exponent in (numbers["exponent"], numbers["tail"])}
    if len(sides) > 1:
        verdict = _(
            "**Squared ReLU**'s grows as n to the power {exponent:.2f} over all lengths, but {tail:.2f} over the last "
            "{n}: no one exponent describes it.",
            **numbers,
        )
    elif sides == {0}:
        verdict = _(
            "**Squared ReLU**'s grows as n to the power {exponent:.2f}: dividing by n makes its rows fade in long "
            "texts.",
            **numbers,
        )
    elif sides == {2}:
        verdict = _(
            "**Squared ReLU**'s grows as n to the power {exponent:.2f}: dividing by n lets its rows swell in long "
            "texts.",
            **numbers,
        )
    else:
        verdict = _("**Squared ReLU**'s grows as n to the power {exponent:.2f}: dividing by n suits it.", **numbers)
    return paragraph(text, verdict)


def _table(rows: Sequence[NormalizerRow], question: Question) -> None:
    """Draw the table of the totals at the shortest and longest length, and the exponents' spread over heads."""
    shown = []
    for name, title in names().items():
        found, own = growth(rows, name, mean=question.mean), [row for row in rows if row.normalizer == name]
        law = fit(found)
        logs = spread(((row.n, row.log_z) for row in own if row.log_z is not None), mean=question.mean)
        laws = [fit(growth(head, name, mean=False)) for head in by_head(own)]
        shown.append(
            {
                _("total of a row"): title,
                **{f"Z({logs.x[i]:g})": readable(logs.middle[i]) for i in (0, -1) if logs.x},
                _("exponent"): law and law.exponent,
                "R²": law and law.r2,
                _("quartiles over heads"): quartiles([each.exponent for each in laws if each]),
                _("rows without any"): fmean(row.empty for row in own),
            }
        )
    two = st.column_config.NumberColumn(format="%.2f")
    percent = st.column_config.NumberColumn(format="percent")
    st.dataframe(shown, hide_index=True, column_config={_("exponent"): two, "R²": two, _("rows without any"): percent})


def readable(log: float) -> str:
    """Return a number, given by its logarithm, as text."""
    return number(math.exp(log), 3) if log < LARGEST else f"e^{log:.0f}"


def _method(question: Question) -> None:
    """Draw the definition of Z and how its exponent is fitted."""
    export.formula_expander(
        _("How it is measured"),
        r"Z_i = \sum_j e^{x_{ij}}\quad\text{or}\quad Z_i = \sum_j \operatorname{relu}(x_{ij})^2,"
        r"\qquad x_{ij} = \frac{q_i\cdot k_j}{\sqrt d}",
        _(
            "- Logits are taken as they stand, no maximum subtracted: with all logits zero softmax's Z is n.\n"
            "- Sums are taken in log space. A head's Z is the geometric mean over its queries; a query whose Z is "
            "0 (squared ReLU without a positive logit) is left out, and their share is in the table.\n"
            "- Drawn is Z(n) over the same head's Z at the shortest length; line and band are over heads and "
            "seeds.\n"
            "- **Exponent** a: least squares of log Z on log n through the line, Z ~ nᵃ. Where a < 1, dividing by "
            "n divides by too much."
        )
        + "\n- "
        + how_lengths_are_made(question),
        key="entropy.method",
    )
