"""All logits multiplied by one factor: softmax's entropy moves, squared ReLU's does not; another power moves it."""

from collections.abc import Sequence

import streamlit as st

from app import chart, sweep
from app.figures.curves import Curve, curves
from app.figures.spread import Spread, spread
from app.figures.theme import GREY
from app.text import _
from attention_core.experiments import homogeneity, powers
from attention_core.experiments.homogeneity import FACTORS, VARIANTS
from attention_core.experiments.powers import POWERS
from attention_core.experiments.task import Row
from pages.entropy import notes, options
from pages.entropy.options import EntropyOptions, Question

MOST = 256
"""Tokens at most: the effect needs no more, and every factor is computed for every head."""
SAME = 0.005
"""Difference of entropies that two decimals do not show."""


def show(question: Question) -> None:
    """Draw the factor, the sweep over factors and what the chosen one does."""
    EntropyOptions.factor.draw()

    def draw(rows: list[Row], key: str) -> None:
        kept = question.of_heads(rows)
        st.markdown(_sentence(kept, question))
        _chart(kept, question, key)

    n = min(question.record.n, MOST)
    tasks = homogeneity.tasks(question.source, n=n, causal=question.causal)
    rows = sweep.show("homogeneity", tasks, draw, key="entropy.factor")
    if rows:
        kept = question.of_heads(rows)
        _table(kept, question)
        _powers(_entropy(kept, VARIANTS[0], 1.0, question), question, n)
        notes.homogeneity(n)
        notes.take_away(rows, question, "homogeneity", n=n)


def names() -> dict[str, str]:
    """The variants' names on screen."""
    return dict(zip(VARIANTS, (_("Softmax"), _("Squared ReLU / row sum"), _("Squared ReLU / length")), strict=True))


def _entropy(rows: Sequence[Row], word: str, factor: float, question: Question) -> float | None:
    found = [h for x, h in options.points(rows, "entropy", x="factor", variant=word) if x == factor]
    return question.per_nat * spread(((factor, h) for h in found), mean=question.mean).middle[0] if found else None


def _change(rows: Sequence[Row], word: str, factor: float) -> float:
    return max((y for x, y in options.points(rows, "change", x="factor", variant=word) if x == factor), default=0.0)


def _chart(rows: Sequence[Row], question: Question, key: str) -> None:
    softmax, relu2 = options.colours("softmax", "relu2")
    drawn = []
    for word, colour, dash in zip(VARIANTS, (softmax, relu2, relu2), ("solid", "solid", "dash"), strict=True):
        values = options.points(rows, "entropy", x="factor", variant=word)
        found = spread(((x, question.per_nat * y) for x, y in values), mean=question.mean)
        drawn.append(found.curve(names()[word], colour, dash=dash, band=question.options.band and dash == "solid"))
    figure = curves(
        drawn,
        x_title=_("factor λ on every logit"),
        y_title=_("entropy H ({unit})", unit=question.unit),
        log_x=True,
        mark=question.options.factor,
        height=380,
        x_ticks=FACTORS,
    )
    chart.show(
        figure, key=key, name="factor", alt=_("Curves: the entropy of softmax and squared ReLU against the factor")
    )


def _sentence(rows: Sequence[Row], question: Question) -> str:
    factor = question.options.factor
    softmax, relu2 = VARIANTS[:2]
    plain, steered = (_entropy(rows, softmax, x, question) for x in (1.0, factor))
    still = _entropy(rows, relu2, factor, question)
    if plain is None or steered is None or still is None:
        return _("Measuring λ = {factor:g} …", factor=factor)
    return _(
        "At λ = {factor:g} **softmax**'s entropy goes from {plain:.2f} to {steered:.2f} {unit}. **Squared ReLU** "
        "divided by its row sum stays at {still:.2f}: the largest change of any weight is {change:.1g}.",
        factor=factor,
        plain=plain,
        steered=steered,
        unit=question.unit,
        still=still,
        change=_change(rows, relu2, factor),
    )


def _table(rows: Sequence[Row], question: Question) -> None:
    factor, unit = question.options.factor, question.unit
    change = f"max |A(λ={factor:g}) − A(1)|"
    shown = [
        {
            _("variant"): title,
            f"H, λ = 1 ({unit})": _entropy(rows, word, 1.0, question),
            f"H, λ = {factor:g} ({unit}) ": _entropy(rows, word, factor, question),
            change: f"{_change(rows, word, factor):.2g}",
        }
        for word, title in names().items()
    ]
    two = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(shown, hide_index=True, column_config=dict.fromkeys(list(shown[0])[1:3], two))


def _powers(softmax: float | None, question: Question, n: int) -> None:
    """What another power than the square does, beside softmax as it is."""
    colour = options.colours("softmax", "relu2")[1]
    st.markdown("**" + _("Other powers than the square") + "**")

    def draw(rows: list[Row], key: str) -> None:
        found = spread(
            ((x, question.per_nat * y) for x, y in options.points(question.of_heads(rows), "entropy", x="power")),
            mean=question.mean,
        )
        moved = max((y for _x, y in options.points(question.of_heads(rows), "change", x="power")), default=0.0)
        st.markdown(power_sentence(found, question.unit, moved))
        lines = [found.curve(_("ReLU to the power p / row sum"), colour, band=question.options.band)]
        if softmax is not None:
            lines.append(
                Curve(
                    name=_("Softmax, λ = 1"), x=POWERS, y=[softmax] * len(POWERS), colour=GREY, dash="dash", marks=False
                )
            )
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
    sweep.show("powers", tasks, draw, key="entropy.power")


def power_sentence(found: Spread, unit: str, moved: float) -> str:
    """What the power does to the entropy; at any one of them a factor on the logits does nothing."""
    if len(found.x) < 2:
        return _("Measuring other powers …")
    low, high, first, last = found.x[0], found.x[-1], found.middle[0], found.middle[-1]
    still = _("logits twice as large move no weight by more than {moved:.1g} at any of these powers", moved=moved)
    if first - last < SAME:
        return _(
            "From p = {low:g} to p = {high:g} the entropy stays at {first:.2f} {unit}, and {still}.",
            low=low,
            high=high,
            first=first,
            unit=unit,
            still=still,
        )
    return _(
        "From p = {low:g} to p = {high:g} the entropy falls from {first:.2f} to {last:.2f} {unit}, while {still}: it "
        "is the power, not a factor, that sharpens a row.",
        low=low,
        high=high,
        first=first,
        last=last,
        unit=unit,
        still=still,
    )
