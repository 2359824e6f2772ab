"""Performer's error against the number of its features: the sweep and what it shows."""

from dataclasses import replace

import numpy as np
import streamlit as st

from app import run, share
from app.figures.spread import Spread, spread
from app.figures.theme import GREY
from app.inside import pictures
from app.inside.closing import visible
from app.inside.pictures import Curve
from app.inside.step import Seen, Step
from app.text import _
from attention_core.experiments import performer_error
from attention_core.experiments.performer_error import LADDER, SEEDS, TOKENS, WAYS
from attention_core.experiments.task import Row
from attention_core.looks.performer_bias import chance, pair_sizes, positive_bias
from attention_core.metrics.fit import fit_power
from attention_core.writing import number

MEASURES = ("kernel", "matrix")
"""What the error may be of: the similarities, or the matrix made of them."""
FACTORS = (1.0, 0.25, 0.05)
"""What logits may be multiplied by: as they are, and small enough for the theory to show."""


NEAR_ALL = 0.8
"""Relative error from which nearly all of the truth is missed; what exceeds its inverse is too large instead."""


def setting(seen: Seen, name: str) -> object:
    """One of the variant's settings."""
    return getattr(seen.attention.params, name)


def more_features(seen: Seen) -> Step:
    """The step that draws ever more features, in every way, with many seeds."""
    ways = dict.fromkeys([*WAYS, (str(setting(seen, "kind")), bool(setting(seen, "orthogonal")))])
    kinds = list(dict.fromkeys(kind for kind, _way in ways))
    typical = float(np.median(pair_sizes(seen.qkv, seen.head)[visible(seen)]))
    norms = str(setting(seen, "row_norms"))

    def draw(key: str) -> None:
        measures = {"kernel": _("similarities"), "matrix": _("matrix")}
        names = {1.0: _("as they are"), 0.25: _("a quarter"), 0.05: _("a twentieth")}
        with st.container(horizontal=True):
            measure = st.segmented_control(
                _("Error of"),
                list(measures),
                format_func=measures.__getitem__,
                required=True,
                **share.mirror("feature_error", MEASURES, MEASURES[0], key=f"{key}.measure"),
            )
            factor = st.segmented_control(
                _("Logits"),
                FACTORS,
                format_func=names.__getitem__,
                required=True,
                help=_("The theory speaks of small logits: see what it promises there, and what is left of it here."),
                **share.mirror("logits", FACTORS, FACTORS[0], key=f"{key}.factor"),
            )

        def chart(rows: list[Row], drawn_key: str) -> None:
            found = {
                way: spread(
                    (float(r["features"] or 0), float(r[measure] or 0))
                    for r in rows
                    if (r["kind"], r["orthogonal"]) == way
                )
                for way in ways
            }
            lines = [
                each.curve(
                    f"{_(kind)}, {_('orthogonal') if straight else _('independent')}",
                    kinds.index(kind),
                    dash="solid" if straight else "dot",
                    band=straight,
                )
                for (kind, straight), each in found.items()
            ]
            # Positive and hyperbolic features err alike where both fail: dashes on top leave both to be seen.
            over = [
                replace(curve, hollow=True, dash="dash" if straight else "dot")
                for curve, (kind, straight) in zip(lines, found, strict=True)
                if kind == "positive"
            ]
            lines = [curve for curve, (kind, _way) in zip(lines, found, strict=True) if kind != "positive"] + over
            start = found["hyperbolic", True].middle[0] if found["hyperbolic", True].x else 1.0
            guide = [start * (LADDER[0] / m) ** 0.5 for m in LADDER]
            lines.append(Curve(name="1/√m", x=LADDER, y=guide, colour=GREY, dash="dash", marks=False))
            st.markdown(_fall(found, row_norms=norms))
            pictures.lines(
                lines,
                key=drawn_key,
                x_title=_("directions m"),
                y_title=_("relative error"),
                log_x=True,
                log_y=True,
                x_ticks=LADDER,
                height=440,
                alt=_("Lines: the error of each way to draw features against their number"),
            )

        tasks = performer_error.tasks(
            seen.source, head=seen.head, causal=seen.causal, row_norms=norms, factor=factor, ways=tuple(ways)
        )
        run.at_once("performer_error", tasks, chart, key=f"{key}.sweep", effort=lambda task: 64 + task.features)

    n = min(seen.qkv.n, TOKENS)
    return Step(
        title=_("Error against features"),
        formula=r"\sqrt{\mathbb{E}\left[\text{error}^2\right]} \sim \frac{1}{\sqrt m}"
        if norms == "chi"
        else r"\mathbb{E}\left[\text{error}^2\right] = \text{bias}^2 + \frac{\text{chance}^2}{m}",
        shapes={"W": (LADDER[-1], seen.qkv.q.shape[-1]), r"\varphi(Q)\,\varphi(K)^\top": (n, n)},
        sentence=what_to_expect(typical, seen.qkv.q.shape[-1], row_norms=norms),
        draw=draw,
    )


def what_to_expect(typical: float, d: int, *, row_norms: str) -> str:
    """What theory says of independent positive features on a pair: their chance, or the bias that chance leaves.

    Args:
        typical: the median pair's ``‖x + y‖²``.
        d: head size.
        row_norms: the directions' lengths.
    """
    if row_norms == "fixed":
        return _(
            "Positive features of fixed length miss {bias:.0%} of the truth in the mean on the median pair of this "
            "head, however many they are: only what chance adds falls like 1/√m. Divide the logits by four and they "
            "miss {quarter:.0%}.",
            bias=positive_bias(typical, d),
            quarter=positive_bias(typical / 4, d),
        )
    half, quarter = (f"$e^{{{chance(square):.1f}}}$" for square in (typical, typical / 4))
    words = _(
        "Independent positive features err by {half} / √m on the median pair of this head, as a root mean square over "
        "the draws.",
        half=half,
    )
    if typical > np.log(LADDER[-1]):
        words += " " + _(
            "The mean over all draws is the truth, but a few huge ones carry it: a typical draw misses the rare "
            "directions that matter, and its estimate is too small."
        )
    return f"{words} " + _(
        "Divide the logits by four and it is {quarter} / √m: see where the promised slope begins.", quarter=quarter
    )


def _fall(found: dict[tuple[str, bool], Spread], *, row_norms: str) -> str:
    """How far the error falls, in one sentence."""
    first = found["positive", True]
    if len(first.x) < 2 or not found["trig", False].x:
        return _("Drawing directions …")
    if not all(np.isfinite(error) and error > 0 for error in first.middle):
        return _("Nothing falls here: the similarities of this head are all alike, or beyond a number's range.")
    ends = {way: each.middle[-1] for way, each in found.items() if np.isfinite(each.middle[-1])}
    best = min(ends, key=ends.__getitem__)
    slope = fit_power(first.x, first.middle).exponent
    promise = (
        _(
            "From {a:.0f} to {b:.0f} directions **positive** features' error falls from {start} to {end}, as m to the "
            "power {slope} where {promised} was promised of a root mean square. The least is {least}, by **{best}**; "
            "**trig** has {trig}."
        )
        if row_norms == "chi"
        else _(
            "From {a:.0f} to {b:.0f} directions **positive** features' error falls from {start} to {end}, as m to the "
            "power {slope} where {promised} is promised of what chance adds, not of the bias. The least is {least}, by "
            "**{best}**; **trig** has {trig}."
        )
    )
    told = promise.format(
        a=first.x[0],
        b=first.x[-1],
        start=number(first.middle[0]),
        end=number(first.middle[-1]),
        slope=number(slope),
        promised=number(-0.5, 1),
        least=number(ends[best]),
        best=_(best[0]),
        trig=number(found["trig", True].middle[-1], 3),
    )
    if first.middle[-1] > NEAR_ALL and max(first.middle) < 1 / NEAR_ALL:
        told += " " + _(
            "The median of {seeds} draws stays near 1: an estimate far too small misses nearly all of the truth.",
            seeds=SEEDS,
        )
    return told
