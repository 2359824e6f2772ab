"""The Logits × λ view: a factor on all logits changes softmax's entropy, but not squared ReLU's."""

from collections.abc import Sequence

import streamlit as st

from app.figures.curves import curves, guide
from app.figures.spread import Spread, spread
from app.jobs import runs
from app.ui import chart, export, palette
from app.ui.scope import Scope
from app.words.i18n import _
from attention_core.experiments import homogeneity, powers
from attention_core.experiments.homogeneity import FACTORS, VARIANTS, HomogeneityRow
from attention_core.experiments.powers import POWERS, PowerRow
from attention_core.formatting import at_most, number
from pages.entropy.growth import sums_in_words
from pages.entropy.options import HEIGHT, EntropyOptions, Question
from pages.entropy.take_away import take_away

MOST = 256
"""Maximum tokens: the effect needs no more, and every factor is computed for every head."""
SAME = 0.005
"""Smallest difference of entropies that is visible with two decimals."""


def show(question: Question) -> None:
    """Draw the choice of the factor, the sweep over factors and the effect of the chosen factor."""
    EntropyOptions.factor.draw()

    def draw(rows: list[HomogeneityRow], key: str) -> None:
        kept = question.of_heads(rows)
        factor, (softmax, relu2) = question.options.factor, (_entropy(kept, word, question) for word in VARIANTS[:2])
        st.markdown(sentence(factor, softmax, relu2, _change(kept, VARIANTS[1], factor), question.unit))
        _chart(kept, question, key)

    n = measured(question)
    tasks = homogeneity.tasks(question.source, n=n, causal=question.causal)
    rows = runs.run_immediately("homogeneity", tasks, draw, key="entropy.factor")
    if rows:
        kept = question.of_heads(rows)
        _table(kept, question)
        _powers(_at(_entropy(kept, VARIANTS[0], question), 1.0), question, n)
        _method(n)
        take_away(rows, question, "homogeneity", n=n)


def measured(question: Question) -> int:
    """Return the number of the input's tokens that are measured."""
    return min(question.record.n, MOST)


def scope(question: Question) -> Scope:
    """Return the scope of the numbers of this view."""
    return question.scope(tokens=measured(question), variants=VARIANTS)


def names() -> dict[str, str]:
    """Return the variants' names on screen."""
    return dict(zip(VARIANTS, (_("Softmax"), _("Squared ReLU / row sum"), _("Squared ReLU / length")), strict=True))


def _entropy(rows: Sequence[HomogeneityRow], word: str, question: Question) -> Spread:
    """Return a variant's entropy by factor, in the chosen unit."""
    own = ((row.factor, question.per_nat * row.entropy) for row in rows if row.variant == word)
    return spread(own, mean=question.mean)


def _at(found: Spread, x: float) -> float | None:
    return dict(zip(found.x, found.middle, strict=True)).get(x)


def _change(rows: Sequence[HomogeneityRow], word: str, factor: float) -> float:
    return max((row.change for row in rows if row.variant == word and row.factor == factor), default=0.0)


def _chart(rows: Sequence[HomogeneityRow], question: Question, key: str) -> None:
    softmax, relu2 = palette.place("softmax"), palette.place("relu2")
    drawn = []
    for word, colour, dash in zip(VARIANTS, (softmax, relu2, relu2), ("solid", "solid", "dash"), strict=True):
        found = _entropy(rows, word, question)
        drawn.append(found.curve(names()[word], colour, dash=dash, band=question.options.band and dash == "solid"))
    figure = curves(
        drawn,
        x_title=_("factor λ on every logit"),
        y_title=_("entropy H ({unit})", unit=question.unit),
        log_x=True,
        mark=question.options.factor,
        height=HEIGHT,
        x_ticks=FACTORS,
    )
    chart.show(
        figure, key=key, name="factor", alt=_("Curves: the entropy of softmax and squared ReLU against the factor")
    )


def sentence(factor: float, softmax: Spread, relu2: Spread, change: float, unit: str) -> str:
    """Return the effect of a factor on softmax's entropy, and that squared ReLU over its row sum does not change.

    Args:
        factor: the factor.
        softmax: softmax's entropies by factor.
        relu2: squared ReLU's entropies by factor.
        change: largest change of any weight of squared ReLU.
        unit: unit of the entropies.
    """
    plain, steered, still = _at(softmax, 1.0), _at(softmax, factor), _at(relu2, factor)
    if plain is None or steered is None or still is None:
        return _("Measuring λ = {factor:g} …", factor=factor)
    return _(
        "At λ = {factor:g} **softmax**'s entropy goes from {plain:.2f} to {steered:.2f} {unit}. **Squared ReLU** "
        "divided by its row sum stays at {still:.2f}: the largest change of any weight is {change:.1g}.",
        factor=factor,
        plain=plain,
        steered=steered,
        unit=unit,
        still=still,
        change=change,
    )


def _table(rows: Sequence[HomogeneityRow], question: Question) -> None:
    factor, unit = question.options.factor, question.unit
    change = f"max |A(λ={factor:g}) − A(1)|"
    shown = [
        {
            _("variant"): title,
            f"H, λ = 1 ({unit})": _at(_entropy(rows, word, question), 1.0),
            f"H, λ = {factor:g} ({unit}) ": _at(_entropy(rows, word, question), factor),
            change: number(_change(rows, word, factor)),
            _("row sums, λ = {factor:g}", factor=factor): sums_in_words(
                [row for row in rows if row.variant == word and row.factor == factor]
            ),
        }
        for word, title in names().items()
    ]
    two = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(shown, hide_index=True, column_config=dict.fromkeys(list(shown[0])[1:3], two))


def _powers(softmax: float | None, question: Question, n: int) -> None:
    """Draw the entropy of ReLU to other powers than 2, compared with softmax without a factor."""
    colour = palette.place("relu2")
    st.markdown("**" + _("Other powers than the square") + "**")

    def draw(rows: list[PowerRow], key: str) -> None:
        kept = question.of_heads(rows)
        found = spread(((row.power, question.per_nat * row.entropy) for row in kept), mean=question.mean)
        moved = max((row.change for row in kept), default=0.0)
        st.markdown(power_sentence(found, question.unit, moved))
        lines = [found.curve(_("ReLU to the power p / row sum"), colour, band=question.options.band)]
        if softmax is not None:
            lines.append(guide(_("Softmax, λ = 1"), POWERS, [softmax] * len(POWERS), "dash"))
        figure = curves(
            lines,
            x_title=_("power p"),
            y_title=_("entropy H ({unit})", unit=question.unit),
            log_x=True,
            mark=2.0,
            height=340,
            x_ticks=POWERS,
        )
        chart.show(figure, key=key, name="power", alt=_("Curve: the entropy of ReLU to a power against the power"))

    tasks = powers.tasks(question.source, n=n, causal=question.causal)
    runs.run_immediately("powers", tasks, draw, key="entropy.power")


def power_sentence(found: Spread, unit: str, moved: float) -> str:
    """Return the effect of the power on the entropy, and the largest change that a factor on the logits causes."""
    if len(found.x) < 2:
        return _("Measuring other powers …")
    values = {
        "low": found.x[0],
        "high": found.x[-1],
        "first": found.middle[0],
        "last": found.middle[-1],
        "unit": unit,
        "moved": at_most(moved),
    }
    if found.middle[0] - found.middle[-1] < SAME:
        return _(
            "From p = {low:g} to p = {high:g} the entropy stays at {first:.2f} {unit}, and logits twice as large move "
            "no weight by more than {moved} at any of these powers.",
            **values,
        )
    return _(
        "From p = {low:g} to p = {high:g} the entropy falls from {first:.2f} to {last:.2f} {unit}, while logits twice "
        "as large move no weight by more than {moved} at any of these powers: it is the power, not a factor, that "
        "sharpens a row.",
        **values,
    )


def _method(n: int) -> None:
    """Draw why a factor cancels in squared ReLU, and why the power sharpens its rows instead."""
    export.formula_expander(
        _("Why"),
        r"\frac{\operatorname{relu}(\lambda x_{ij})^2}{\sum_l \operatorname{relu}(\lambda x_{il})^2}"
        r"= \frac{\lambda^2\operatorname{relu}(x_{ij})^2}{\lambda^2\sum_l \operatorname{relu}(x_{il})^2}"
        r"\qquad\text{but}\qquad \frac{e^{\lambda x_{ij}}}{\sum_l e^{\lambda x_{il}}} = "
        r"\frac{(e^{x_{ij}})^\lambda}{\sum_l (e^{x_{il}})^\lambda}",
        _(
            "Squared ReLU is homogeneous: a factor on the logits leaves the sum as λ² and cancels, so no "
            "temperature and no log n scale can sharpen it. Divided by the length instead, its weights grow with "
            "λ², all alike: the output grows, what is looked at stays. Measured on the first {n} tokens.",
            n=n,
        )
        + "\n\n"
        + _(
            "The same holds for every other power p: λᵖ cancels. The power itself is what sharpens: relu(x)ᵖ = "
            "exp(p log x) where x > 0, so a row is softmax of its positive logits' logarithms, with p in the place "
            "of 1 / temperature, and a higher power never makes it more even."
        ),
        key="entropy.method",
    )
