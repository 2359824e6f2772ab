"""Story of Performer: random directions, their features, and how well features estimate the exponential."""

import math
from dataclasses import replace

import numpy as np
import streamlit as st

from app.figures.lines.curves import guide
from app.figures.lines.spread import Spread, spread
from app.jobs import cached, runs
from app.words.i18n import N_, _, paragraph
from attention_core.analysis.low_rank import factors
from attention_core.analysis.low_rank.performer_bias import chance, pair_sizes, positive_bias
from attention_core.analysis.matrix.inside import anatomy_of_head, logits
from attention_core.experiments import performer_error
from attention_core.experiments.performer_error import LADDER, SEEDS, TOKENS, WAYS, PerformerErrorRow
from attention_core.formatting import number
from attention_core.metrics.fit import fit_power
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import Curve, Points
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step, later

WANTED = 0.1
"""Relative error of a similarity that counts as good."""
POSITIVE = ("positive", "hyperbolic")
"""Kinds with positive features, whose estimates are rarely far too large and often far too small."""
FAR = 0.5
"""A median estimate below this share of the true value counts as far too small."""
NEAR_ALL = 0.8
"""Relative error from which nearly all of the true value is missed; estimates above its inverse are far too large."""


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: directions, features, estimate, more features, comparison with the reference."""
    return (
        _directions(seen),
        _features(seen),
        _estimate(seen),
        _more_features(seen),
        beside_reference(seen, _logits(seen)),
    )


def _anatomy(seen: Seen, tokens: int | None = None, **changes: object) -> dict[str, np.ndarray]:
    """Return the variant's intermediates on the head's first ``tokens``, with some settings changed and no mask."""
    changed = replace(seen.attention, params=replace(seen.attention.params, **changes))
    return anatomy_of_head(seen.qkv, changed, seen.head, tokens=tokens)


def _logits(seen: Seen) -> str:
    return _("Logits reach {largest:.1f} on this head.", largest=logits(seen.qkv, seen.head)[seen.visible].max())


def _directions(seen: Seen) -> Step:
    own: bool = seen.setting("orthogonal")
    drawn = {way: _anatomy(seen, 1, orthogonal=way)["directions"] for way in (own, not own)}
    m, d = drawn[own].shape
    lengths = {way: factors.lengths(W) for way, W in drawn.items()}
    cosines = {way: factors.cosines(W[:d], W[:d]) for way, W in drawn.items()}
    beside = ~np.eye(min(m, d), dtype=bool)
    sizes = {way: float(np.abs(c[beside]).mean()) if beside.any() else 0.0 for way, c in cosines.items()}

    def draw(key: str) -> None:
        names = {True: _("Orthogonal"), False: _("Independent")}
        words = {"row": _("direction"), "column": _("direction")}
        panels = (
            pictures.panel(names[way], cosines[way], caption=_("chosen") if way == own else "", **words)
            for way in (own, not own)
        )
        pictures.board(f"{key}.cosines", *panels, unit=_("cosine"), diverging=True, tone="linear")
        norms = {
            way: np.sort(factors.lengths(_anatomy(seen, 1, row_norms=way)["directions"])) for way in ("fixed", "chi")
        }
        lines = [
            Curve(
                _(name),
                range(1, m + 1),
                norm.tolist(),
                colour=i,
                marks=False,
                dash="solid" if name == seen.setting("row_norms") else "dot",
            )
            for i, (name, norm) in enumerate(norms.items())
        ]
        pictures.lines(
            lines,
            key=f"{key}.lengths",
            x_title=_("direction, the shortest first"),
            y_title=_("length"),
            height=260,
            alt=_("Lines: the lengths of the directions, fixed and as of normal vectors"),
        )

    return Step(
        title=_("Directions"),
        formula=(
            r"w_f \sim \mathcal{N}(0, I_d)"
            if seen.setting("row_norms") == "chi"
            else r"w_f \text{ uniform on } \lVert w \rVert = \sqrt d"
        )
        + r",\quad W \in \mathbb{R}^{m \times d}",
        shapes={"W": (m, d)},
        sentence=_(
            "In a block of {count} directions the mean |cosine| of two is {straight:.2f} if they are made orthogonal, "
            "{free:.2f} if chance decides. Here their lengths lie between {low:.1f} and {high:.1f}; √d is {root:.1f}.",
            count=min(m, d),
            straight=sizes[True],
            free=sizes[False],
            low=lengths[own].min(),
            high=lengths[own].max(),
            root=d**0.5,
        ),
        draw=draw,
    )


def _features(seen: Seen) -> Step:
    parts = _anatomy(seen) if seen.causal else seen.parts
    q, k = parts["query_features"], parts["key_features"]
    bearing = factors.participation_ratio(q * k.sum(0))

    def draw(key: str) -> None:
        pictures.features(
            seen, q, k, key, (_("each query over its largest term"), _("each feature over its largest key"))
        )

    return Step(
        title=_("Features"),
        formula={
            "positive": r"\varphi(x) = \tfrac{1}{\sqrt m}\, e^{W x - \|x\|^2/2}",
            "hyperbolic": r"\varphi(x) = \tfrac{1}{\sqrt{2m}}\, e^{-\|x\|^2/2} \left[e^{W x},\ e^{-W x}\right]",
            "trig": r"\varphi(x) = \tfrac{1}{\sqrt m}\, e^{\|x\|^2/2} \left[\cos W x,\ \sin W x\right]",
            "relu": r"\varphi(x) = \tfrac{1}{\sqrt m} \operatorname{relu}(W x)",
        }[seen.setting("kind")]
        + r",\qquad x = q / d^{1/4}",
        shapes={r"\varphi(Q)": q.shape, r"\varphi(K)": k.shape},
        sentence=_(
            "The median query's row rests on {bearing:.1f} of its {features} features: the others add next to nothing "
            "to it, and a direction that would matter may not have been drawn.",
            bearing=np.median(bearing),
            features=q.shape[-1],
        ),
        draw=draw,
    )


@later(N_("Estimate against truth"))
def _estimate(seen: Seen) -> Step:
    allowed, kind, norms = seen.visible, seen.setting("kind"), seen.setting("row_norms")
    estimate, kernel = seen.parts["estimate"][allowed], seen.parts["kernel"][allowed]
    ratio = estimate / np.maximum(kernel, np.finfo(float).tiny)
    means = cached.performer_means(seen.source, seen.attention, head=seen.head)
    n = len(means.truth)
    near = allowed[:n, :n] & (means.truth > 0)
    truth, drawn, share = (part[near] for part in (means.truth, means.drawn, means.share))
    expected, found = (float(np.median(x)) if len(x) else math.nan for x in (share[np.isfinite(share)], drawn / truth))
    size = float(np.median(pair_sizes(seen.qkv, seen.head)[seen.visible]))

    def draw(key: str) -> None:
        names = (
            _("this draw"),
            _("mean of {draws} draws: {share} of the truth", draws=means.draws, share=number(found)),
            _("mean over all draws: {share} of the truth", share=number(expected)),
        )
        clouds = ((kernel, estimate), (truth, drawn), (truth, share * truth))
        pictures.cloud(
            [Points(name, x, y, colour=i) for i, (name, (x, y)) in enumerate(zip(names, clouds, strict=True))],
            key=key,
            x_title=_("true similarity, over its row's largest"),
            y_title=_("estimate, over the same"),
            height=460,
            alt=_("Points: the estimated similarity of each pair against the true one, in one draw and in the mean"),
        )
        if (estimate <= 0).any():
            st.caption(_("{share:.0%} of the estimates are not positive: no logarithm.", share=(estimate <= 0).mean()))

    return Step(
        formula=mean_formula(kind, norms),
        shapes={r"\varphi(Q)\,\varphi(K)^\top": seen.weights.shape},
        sentence=paragraph(
            estimate_sentence(float(((ratio > 0.5) & (ratio < 2)).mean()), float(np.median(ratio))),
            in_the_mean(kind=kind, row_norms=norms, expected=expected, found=found, draws=means.draws),
            _("Both means are of the first {n} tokens.", n=n) if n < len(seen.weights) else "",
            rare_sentence(kind, norms, float(np.median(ratio))),
            price_sentence(kind, size),
        ),
        draw=draw,
    )


def estimate_sentence(near: float, middle: float) -> str:
    """Return the sentence about the accuracy of one draw.

    Args:
        near: the share of estimates within a factor of two of the true value.
        middle: the median ratio of estimate to true value.
    """
    return _(
        "{near:.0%} of the similarities are estimated within a factor of two; the median estimate is {middle} of the "
        "truth.",
        near=near,
        middle=number(middle),
    )


def rare_sentence(kind: str, row_norms: str, middle: float) -> str:
    """Return the reason why the median unbiased estimate is far too small; empty if it is not."""
    if kind not in POSITIVE or row_norms != "chi" or middle >= FAR:
        return ""
    return _(
        "A few huge draws carry that mean: a typical draw misses the rare directions that matter, and its estimate "
        "comes out far too small."
    )


def price_sentence(kind: str, size: float) -> str:
    """Return the sentence about the number of features that a good estimate of the median pair needs.

    Empty for relu features, which estimate relu's own kernel. ``size`` is ``‖x + y‖²`` of the median pair.
    """
    if kind == "relu":
        return ""
    needed = 2 * (chance(size) / math.log(10) - math.log10(WANTED))
    return _(
        "The median pair has ‖x + y‖² = {size:.0f}, so that independent positive features of random length err by "
        "{wanted:.0%}, as a root mean square over the draws, only from about {needed} of them on.",
        size=size,
        wanted=WANTED,
        needed=f"$10^{{{max(0.0, needed):.0f}}}$",
    )


def in_the_mean(*, kind: str, row_norms: str, expected: float, found: float, draws: int) -> str:
    """Return the sentence about bias and chance in the mean estimate of the median pair.

    Args:
        kind: the kind of feature.
        row_norms: the lengths of the directions.
        expected: the ratio of the mean over all draws to the true value; NaN if it overflows.
        found: the ratio of the mean over some draws to the true value.
        draws: number of these draws.
    """
    values = {"expected": number(expected), "found": number(found), "draws": draws}
    if kind == "relu":
        return _(
            "The truth is relu's own kernel here, and the mean over all draws is just that, whatever the lengths; the "
            "mean of {draws} draws is {found} of it at the median pair.",
            **values,
        )
    if row_norms == "chi":
        return _(
            "The mean over all draws is the truth: there is no bias. By chance the mean of {draws} draws is {found} of "
            "it at the median pair.",
            **values,
        )
    if not math.isfinite(expected):
        return _("Directions of fixed length are biased, here beyond what a number can hold.")
    return _(
        "Directions of fixed length are biased: the mean over all draws is {expected} of the truth at the median pair, "
        "however many features there are. By chance the mean of {draws} draws is {found} of it.",
        **values,
    )


def mean_formula(kind: str, row_norms: str) -> str:
    """Return the formula of the mean and the variance of the estimate, in LaTeX."""
    product, truth = r"\mathbb{E}\left[\varphi(q)^\top\varphi(k)\right] = ", r"e^{q\cdot k/\sqrt d}"
    if kind == "relu":
        return (
            product + r"\frac{\lVert q\rVert \lVert k\rVert}{2\pi\sqrt d} \left(\sin\theta + (\pi - \theta) "
            r"\cos\theta\right),\quad \theta = \angle(q, k)"
        )
    sign, turned = ("-", "-") if kind == "trig" else ("+", "")
    square = rf"\lVert x {sign} y\rVert^2"
    if row_norms == "fixed":
        down = "" if kind == "trig" else "-"
        return (
            product
            + truth
            + rf"\; {{}}_0F_1\!\left(;\tfrac d2; {turned}\tfrac d4 {square}\right) e^{{{down}{square}/2}}"
        )
    spread = rf"e^{{{square}}} - 1" if kind == "positive" else rf"\cosh {square} - 1"
    return (
        rf"\begin{{gathered}}{product}{truth},\\[14pt] \frac{{\operatorname{{Var}}}}{{\text{{mean}}^2}} = "
        rf"\frac{{{spread}}}{{m}}\ \text{{(independent)}}\end{{gathered}}"
    )


def _more_features(seen: Seen) -> Step:
    """Build the step that measures the error over the number of features, for every kind and many seeds."""
    ways = dict.fromkeys([*WAYS, (seen.setting("kind"), seen.setting("orthogonal"))])
    kinds = list(dict.fromkeys(kind for kind, _way in ways))
    typical = float(np.median(pair_sizes(seen.qkv, seen.head)[seen.visible]))
    norms = seen.setting("row_norms")

    def draw(key: str) -> None:
        with st.container(horizontal=True):
            measure = InsideOptions.feature_error.draw()
            factor = InsideOptions.logits.draw()

        def chart(rows: list[PerformerErrorRow], drawn_key: str) -> None:
            found = {
                way: spread((row.features, getattr(row, measure)) for row in rows if (row.kind, row.orthogonal) == way)
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
            # Positive and hyperbolic features err equally where both fail. Dashes on top keep both curves visible.
            over = [
                replace(curve, hollow=True, dash="dash" if straight else "dot")
                for curve, (kind, straight) in zip(lines, found, strict=True)
                if kind == "positive"
            ]
            lines = [curve for curve, (kind, _way) in zip(lines, found, strict=True) if kind != "positive"] + over
            start = found["hyperbolic", True].middle[0] if found["hyperbolic", True].x else 1.0
            lines.append(guide("1/√m", LADDER, [start * (LADDER[0] / m) ** 0.5 for m in LADDER], "dash"))
            st.markdown(fall_sentence(found, row_norms=norms))
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
        runs.run_immediately(
            "performer_error", tasks, chart, key=f"{key}.sweep", effort=lambda task: 64 + task.features
        )

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
    """Return the sentence about the theoretical error of independent positive features on the median pair.

    Args:
        typical: the median pair's ``‖x + y‖²``.
        d: head size.
        row_norms: the lengths of the directions; with fixed lengths the error contains a bias.
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
    rare = _(
        "The mean over all draws is the truth, but a few huge ones carry it: a typical draw misses the rare directions "
        "that matter, and its estimate is too small."
    )
    small = _(
        "Divide the logits by four and it is {quarter} / √m: see where the promised slope begins.", quarter=quarter
    )
    return paragraph(words, rare if typical > np.log(LADDER[-1]) else "", small)


def fall_sentence(found: dict[tuple[str, bool], Spread], *, row_norms: str) -> str:
    """Return the sentence about how the error falls, by kind of feature and orthogonality of the directions."""
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
    text = promise.format(
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
        text = paragraph(
            text,
            _(
                "The median of {seeds} draws stays near 1: an estimate far too small misses nearly all of the truth.",
                seeds=SEEDS,
            ),
        )
    return text
