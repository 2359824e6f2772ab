"""The Distance and RoPE view: softmax's weights and logits by distance, with RoPE, with ALiBi or with neither."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import streamlit as st

from app.figures.curves import Curve, curves, guide
from app.figures.spread import spread
from app.figures.theme import GREY
from app.jobs import runs
from app.ui import chart, export
from app.ui.scope import Scope
from app.words.i18n import _, escape_markdown, paragraph
from attention_core.experiments import distance
from attention_core.experiments.distance import BIASED, PLAIN, TURNED, DistanceRow
from attention_core.formatting import formatted, number, percent
from attention_core.inputs.source import Source
from pages.entropy.options import HEIGHT, EntropyOptions, Question, by_head, quartiles
from pages.entropy.take_away import take_away

DASHES = {TURNED: "solid", PLAIN: "dash", BIASED: "dashdot"}
ALIKE = 1.05
"""Ratio up to which two numbers count as equal."""


def show(question: Question) -> None:
    """Draw the choice of the curves, the measurement and its results."""
    curves = {"weight": _weights, "logit": _logits, "bound": _bounded, "alone": _alone}[EntropyOptions.distance.draw()]
    n = question.record.n

    def draw(rows: list[DistanceRow], key: str) -> None:
        kept = question.of_heads(rows)
        st.markdown(sentence(kept, n, question.unit, per_nat=question.per_nat, mean=question.mean))
        curves(kept, question, key)

    tasks = distance.tasks(question.source, n=n, causal=question.causal, seeds=question.seeds)
    rows = runs.run_immediately("distance", tasks, draw, key="entropy.distance")
    if rows:
        st.caption(origin(question.source))
        _table(question.of_heads(rows), n, question)
        _method()
        take_away(rows, question, "distance", n=n, seeds=question.seeds)


def scope(question: Question) -> Scope:
    """Return the scope of the numbers of this view."""
    return question.scope(tokens=question.record.n, seeds=question.seeds, variants=("softmax",))


def origin(source: Source) -> str:
    """Return whether the input's own queries and keys have RoPE, and how the other form is made, as Markdown."""
    told = source.rope_notice()
    return _(told.template, **{name: escape_markdown(f) if isinstance(f, str) else f for name, f in told.fields})


def points(rows: Iterable[DistanceRow], name: str, form: str | None = None) -> list[tuple[int, float]]:
    """Return ``(distance, measure)`` of the rows with a number, of one form or of all forms."""
    return [
        (row.distance, value)
        for row in rows
        if row.distance is not None and form in (None, row.form) and (value := getattr(row, name)) is not None
    ]


def ends(
    rows: Sequence[DistanceRow], form: str, name: str, n: int, *, mean: bool = False
) -> tuple[float, float] | None:
    """Return a measure at distance 1 and beyond n / 2, median or mean of the heads; None if no pair is that far."""
    near, far = [], []
    for head in by_head(row for row in rows if row.form == form):
        found = points(head, name)
        here, there = [y for x, y in found if x == 1], [y for x, y in found if x > max(n / 2, 1)]
        if here and there:
            near.append(here[0])
            far.append(float(np.mean(there)))
    if not near:
        return None
    middle = np.mean if mean else np.median
    return float(middle(near)), float(middle(far))


def _entropy(rows: Sequence[DistanceRow], form: str, *, mean: bool) -> float:
    """Return the median or mean of the heads' entropies, in nats."""
    values = [row.entropy for row in rows if row.form == form and row.entropy is not None]
    return float((np.mean if mean else np.median)(values))


def sentence(rows: Sequence[DistanceRow], n: int, unit: str, *, per_nat: float, mean: bool) -> str:
    """Return how weights and logits change with distance in each form, and the entropies.

    Args:
        rows: rows of the chosen heads.
        n: tokens.
        unit: name on screen of the entropies' unit.
        per_nat: number of these units in one nat.
        mean: whether heads are combined by the mean instead of the median.
    """
    forms = [form for form in (TURNED, PLAIN, BIASED) if any(row.form == form for row in rows)]
    nats = {form: per_nat * _entropy(rows, form, mean=mean) for form in forms}
    entropies = spread_out(nats, unit)
    weights, logits = (
        {form: found for form in forms if (found := ends(rows, form, name, n, mean=mean))}
        for name in ("weight", "logit")
    )
    if len(weights) < len(forms):
        text = _("With so few tokens nothing is far apart; a longer input shows what distance does.")
        return paragraph(text, entropies, biased(None, nats, unit))
    kept = {form: far / near for form, (near, far) in weights.items()}
    sizes, bounds = (ends(rows, TURNED, name, n, mean=mean) for name in ("size", "bound"))
    sized = bounded(sizes, bounds) if sizes and bounds and min(sizes) > 0 else ""
    return paragraph(compared(kept, n), scored(logits), sized, entropies, biased(kept.get(BIASED), nats, unit))


def compared(kept: Mapping[str, float], n: int) -> str:
    """Return the weight of keys beyond n / 2 relative to adjacent keys, and whether RoPE makes attention more local."""
    values = {"half": n / 2, **{form: percent(share) for form, share in kept.items()}}
    if PLAIN not in kept:
        return _(
            "Beyond n / 2 = {half:g} tokens, **softmax** with RoPE gives a key {turned} of the weight it gives to one "
            "next door.",
            **values,
        )
    if kept[TURNED] * ALIKE < kept[PLAIN]:
        return _(
            "Beyond n / 2 = {half:g} tokens, **softmax** with RoPE gives a key {turned} of the weight it gives to one "
            "next door, without it {plain}: **RoPE makes attention more local here**.",
            **values,
        )
    if kept[TURNED] > ALIKE * kept[PLAIN]:
        return _(
            "Beyond n / 2 = {half:g} tokens, **softmax** with RoPE gives a key {turned} of the weight it gives to one "
            "next door, without it {plain}: **RoPE makes attention less local here**.",
            **values,
        )
    return _(
        "Beyond n / 2 = {half:g} tokens, **softmax** with RoPE gives a key {turned} of the weight it gives to one "
        "next door, without it {plain}: RoPE hardly changes how local attention is here.",
        **values,
    )


def scored(logits: Mapping[str, tuple[float, float]]) -> str:
    """Return the mean logit at distance 1 and beyond n / 2, with and without RoPE."""
    near, far = map(number, logits[TURNED])
    if PLAIN not in logits:
        return _("Its mean logit is {near} next door and {far} there.", near=near, far=far)
    first, last = map(number, logits[PLAIN])
    return _(
        "Its mean logit is {near} next door and {far} there, without RoPE {first} and {last}.",
        near=near,
        far=far,
        first=first,
        last=last,
    )


def bounded(sizes: tuple[float, float], bounds: tuple[float, float]) -> str:
    """Return how the logits' size and its bound change from distance 1 to beyond n / 2."""
    said = {
        "bound": percent(bounds[1] / bounds[0]),
        "size": percent(sizes[1] / sizes[0]),
        "times": number(bounds[1] / sizes[1]),
    }
    if sizes[1] > ALIKE * sizes[0]:
        return _(
            "What bounds the logits' size with RoPE is there {bound} of what it is next door; the size itself "
            "**grows** to {size}, {times}× below its bound.",
            **said,
        )
    return _(
        "What bounds the logits' size with RoPE is there {bound} of what it is next door, and the size itself {size}, "
        "{times}× below its bound.",
        **said,
    )


def spread_out(entropies: Mapping[str, float], unit: str) -> str:
    """Return the entropy of the rows with and without RoPE."""
    turned, plain = entropies[TURNED], entropies.get(PLAIN)
    if plain is None:
        return _("The entropy of its rows is {turned:.2f} {unit}.", turned=turned, unit=unit)
    return _(
        "The entropy of its rows is {turned:.2f} {unit} with RoPE and {plain:.2f} without.",
        turned=turned,
        plain=plain,
        unit=unit,
    )


def biased(share: float | None, entropies: Mapping[str, float], unit: str) -> str:
    """Return the effect of ALiBi on distant weights and on entropy; empty if ALiBi was not measured.

    Args:
        share: weight of distant keys relative to adjacent keys with ALiBi; None if no keys are distant.
        entropies: entropy of each form, in ``unit``.
        unit: name on screen of the entropies' unit.
    """
    if BIASED not in entropies:
        return ""
    values = {"biased": entropies[BIASED], "plain": entropies[PLAIN], "unit": unit}
    if share is None:
        return _("With ALiBi in its place the entropy is {biased:.2f} {unit}, without both {plain:.2f}.", **values)
    return _(
        "With **ALiBi** in its place distant keys keep {share} of the weight next door, and the entropy is "
        "{biased:.2f} {unit}.",
        share=percent(share),
        **values,
    )


def _lines(rows: Sequence[DistanceRow], name: str, question: Question) -> list[Curve]:
    drawn = []
    for colour, (form, title) in enumerate(names().items()):
        found = spread(points(rows, name, form), mean=question.mean)
        if found.x:
            drawn.append(found.curve(title, colour, band=question.options.band, dash=DASHES[form]))
    return drawn


def names() -> dict[str, str]:
    """Return the names of the forms on screen."""
    return {TURNED: _("with RoPE"), PLAIN: _("without RoPE"), BIASED: _("with ALiBi")}


def _weights(rows: Sequence[DistanceRow], question: Question, key: str) -> None:
    drawn, n = _lines(rows, "weight", question), question.record.n
    alike = [float(np.mean(1 / np.arange(x + 1, n + 1))) if question.causal else 1 / n for x in drawn[0].x]
    drawn.append(guide(_("uniform attention"), drawn[0].x, alike))
    _draw(drawn, key, _("mean weight of softmax"), _("Curves: softmax's mean weight over distance"), log=True)


def _logits(rows: Sequence[DistanceRow], question: Question, key: str) -> None:
    drawn = _lines(rows, "logit", question)
    _draw(drawn, key, _("mean q·k / √d"), _("Curves: the mean logit over distance"))


def _bounded(rows: Sequence[DistanceRow], question: Question, key: str) -> None:
    drawn = _lines(rows, "size", question)
    bound = spread(points(rows, "bound", TURNED), mean=question.mean)
    if bound.x:
        drawn.append(bound.curve(_("bound, with RoPE"), GREY, dash="dot", band=False))
    title = _("mean |q·k| / √d")
    _draw(drawn, key, title, _("Curves: the mean size of logits over distance, and what bounds it"), log=True)


def _alone(rows: Sequence[DistanceRow], question: Question, key: str) -> None:
    far = range(max(row.distance or 0 for row in rows) + 1)
    d = distance.size(question.record, question.source)
    found = distance.theory(far, d, distance.base(question.source))
    drawn = [
        Curve(_("bound: mean of |S|"), far, found["sums"], colour=0),
        Curve(_("q = k: mean of cos Δθ"), far, found["cosines"], colour=1),
    ]
    _draw(drawn, key, _("relative to distance 0"), _("Curves: what RoPE makes of distance, whatever the input"))


def _draw(drawn: Sequence[Curve], key: str, title: str, alt: str, *, log: bool = False) -> None:
    thin = [Curve(**{**vars(line), "marks": False}) for line in drawn]
    figure = curves(thin, x_title=_("distance |i − j|, in tokens"), y_title=title, log_y=log, height=HEIGHT)
    chart.show(figure, key=key, name="distance", alt=alt)


def _table(rows: Sequence[DistanceRow], n: int, question: Question) -> None:
    """Draw the table of entropies, weights and logits by form."""
    unit, shown = question.unit, []
    for form, title in names().items():
        own = [row for row in rows if row.form == form]
        if not own:
            continue
        nats = [question.per_nat * row.entropy for row in own if row.entropy is not None]
        weight, logit = (ends(own, form, name, n, mean=question.mean) for name in ("weight", "logit"))
        shown.append(
            {
                _("softmax"): title,
                f"H ({unit})": formatted(question.per_nat * _entropy(own, form, mean=question.mean), ".2f"),
                _("quartiles over heads"): quartiles(nats),
                _("weight, next door"): weight and number(weight[0]),
                _("beyond n / 2"): weight and number(weight[1]),
                _("logit, next door"): logit and number(logit[0]),
                _("beyond n / 2") + " ": logit and number(logit[1]),
            }
        )
    st.dataframe(shown, hide_index=True)


def _method() -> None:
    """Draw the effect of RoPE on a dot product, and the bound of the result."""
    export.formula_expander(
        _("How it is measured"),
        r"q_i\cdot k_j = \operatorname{Re}\sum_{p<d/2} h_p\, e^{\mathrm{i}(i-j)\theta_p},\qquad "
        r"\theta_p = \text{base}^{-2p/d},\qquad "
        r"|q_i\cdot k_j| \le \max_p |h_{p+1}-h_p| \sum_{p=1}^{d/2} |S_p|,\quad "
        r"S_p = \sum_{r<p} e^{\mathrm{i}(i-j)\theta_r}",
        _(
            "- RoPE turns pair p of every query and key by its position times θ; h is the pair's product before, "
            "as complex numbers, and 0 beyond the last. Sizes of queries and keys do not change.\n"
            "- What [the article](https://kexue.fm/archives/8265) shows to fall with distance is the mean of the "
            "|S|, and so a **bound**: products of "
            "random queries and keys, whose mean is 0 at any distance, have nothing that could fall.\n"
            "- Drawn is each head's mean over all pairs of tokens that far apart of which one may see the other, "
            "up to three quarters of n; line and band are over heads and seeds. *Next door* is one token away, "
            "*beyond n / 2* the mean over the distances drawn there."
        ),
        key="entropy.method",
    )
