"""Performer, explained step by step on the Inside page.

The steps show random vectors (directions), the features made with them, and how well these estimate the exponential.
"""

from dataclasses import replace

import numpy as np
import streamlit as st

from app.figures.lines.curve import guide
from app.figures.lines.spread import Spread, spread
from app.jobs import runs
from app.words.i18n import _, paragraph
from app.words.labels import setting_name
from attention_core.analysis.low_rank import factors
from attention_core.analysis.matrix.inside import anatomy_of_head, logits
from attention_core.experiments import performer_error
from attention_core.experiments.performer_error import FEATURE_COUNTS, FEATURE_KINDS, SEEDS, TOKENS, PerformerErrorRow
from attention_core.settings import Value
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import Curve, symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step
from pages.inside.words.performer import (
    POSITIVE,
    bias_sentence,
    directions_sentence,
    error_headline,
    estimate_sentence,
    fall_sentence,
    feature_captions,
    length_name,
    mean_formula,
)

MIN_COSINE = 0.005
"""Smaller absolute cosines count as zero, because they would be printed as 0.00."""

MAX_SHOWN = 128
"""Largest number of directions whose cosines are drawn."""


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: estimate, directions, features, more features, comparison with the reference."""
    return (
        _estimate(data),
        _directions(data),
        _features(data),
        _more_features(data),
        compare_with_reference(data, _logits(data)),
    )


def _unmasked_parts(data: HeadData, tokens: int | None = None, **changes: Value) -> dict[str, np.ndarray]:
    """Return the variant's intermediate results without a mask and with some settings changed.

    Args:
        data: the variant on a head.
        tokens: number of tokens from the beginning that are used; all if None.
        changes: the changed settings, by name.
    """
    changed = data.attention.with_settings(**changes)
    return anatomy_of_head(data.qkv, changed, data.head, tokens=tokens)


def _logits(data: HeadData) -> str:
    if data.setting("kind") == "relu":  # This kernel's error does not depend on the scale of the logits.
        return ""
    return _(
        "Performer's random error grows with the logits. The largest logit of this head is {largest:.1f}.",
        largest=logits(data.qkv, data.head)[data.visible].max(),
    )


def _directions(data: HeadData) -> Step:
    orthogonal: bool = data.setting("orthogonal")
    drawn = {each: _unmasked_parts(data, 1, orthogonal=each)["directions"] for each in (orthogonal, not orthogonal)}
    m, d = drawn[orthogonal].shape
    cosines = {each: factors.cosines(W, W) for each, W in drawn.items()}
    cosines = {each: np.where(np.abs(c) < MIN_COSINE, 0, c) for each, c in cosines.items()}  # rounding errors
    groups = np.arange(m) // d
    is_across = groups[:, None] != groups
    across = float(np.abs(cosines[True][is_across]).mean()) if m > d else None
    free = float(np.abs(cosines[False][~np.eye(m, dtype=bool)]).mean()) if m > 1 else None
    shown = min(m, MAX_SHOWN)

    def draw(key: str) -> None:
        names = {True: _("Orthogonal directions"), False: _("Independent directions")}
        direction = _("direction")
        first = _("first {d} of {m}", d=shown, m=m) if m > shown else ""
        panels = (
            pictures.panel(
                names[each],
                cosines[each][:shown, :shown],
                row=direction,
                column=direction,
                caption=" · ".join(filter(None, (_("the chosen kind") if each == orthogonal else "", first))),
            )
            for each in (orthogonal, not orthogonal)
        )
        left, right = st.columns([3, 2])
        with left:
            pictures.board(f"{key}.cosines", *panels, unit=_("cosine"), diverging=True, tone="linear")
        norms = {
            form: np.sort(factors.lengths(_unmasked_parts(data, 1, row_norms=form)["directions"]))
            for form in ("fixed", "chi")
        }
        lines = [
            Curve(
                length_name(name, chosen=name == data.setting("row_norms")),
                range(1, m + 1),
                norm.tolist(),
                colour=int(name != data.setting("row_norms")),
                markers=False,
                dash="solid" if name == data.setting("row_norms") else "dot",
            )
            for name, norm in norms.items()
        ]
        with right:
            st.markdown("**" + _("Lengths of the directions") + "**")
            pictures.lines(
                lines,
                key=f"{key}.lengths",
                x_title=_("direction, sorted by length"),
                y_title=_("length"),
                height=440,
                alt=_(
                    "Lines: the sorted lengths of random vectors that are scaled to a fixed length, and of "
                    "normally distributed vectors"
                ),
            )

    return Step(
        title=_("Directions"),
        mechanism=_(
            "Each random vector, called a direction, gives one or two features. Orthogonal directions overlap less "
            "than independent ones, which usually makes the estimate more accurate."
        ),
        formula=(
            r"w_f \sim \mathcal{N}(0, I_d)"
            if data.setting("row_norms") == "chi"
            else r"w_f \text{ uniform on } \lVert w \rVert = \sqrt d"
        )
        + r",\quad W \in \mathbb{R}^{m \times d}",
        shapes={"W": (m, d)},
        findings=directions_sentence(d, across, free),
        draw=draw,
    )


def _features(data: HeadData) -> Step:
    parts = _unmasked_parts(data) if data.causal else data.parts
    q, k = parts["query_features"], parts["key_features"]
    bearing = factors.participation_ratio(q * k.sum(0))
    return Step(
        title=_("Features"),
        mechanism=_(
            "Queries and keys are projected onto the random directions. A non-linear function of these "
            "projections gives the features."
        ),
        formula={
            "positive": r"\varphi(x) = \tfrac{1}{\sqrt m}\, e^{W x - \|x\|^2/2}",
            "hyperbolic": r"\varphi(x) = \tfrac{1}{\sqrt{2m}}\, e^{-\|x\|^2/2} \left[e^{W x},\ e^{-W x}\right]",
            "trig": r"\varphi(x) = \tfrac{1}{\sqrt m}\, e^{\|x\|^2/2} \left[\cos W x,\ \sin W x\right]",
            "relu": r"\varphi(x) = \tfrac{1}{\sqrt m} \operatorname{relu}(W x)",
        }[data.setting("kind")]
        + r",\qquad "
        + symbol(0, r"\varphi(q)")
        + r":\ x = q / d^{1/4},\quad "
        + symbol(1, r"\varphi(k)")
        + r":\ x = k / d^{1/4}",
        shapes={r"\varphi(Q)": q.shape, r"\varphi(K)": k.shape},
        findings=_(
            "A few large features can outweigh all others. The weights of a query effectively depend on "
            "{bearing:.1f} of the {features} features (median over queries).",
            bearing=np.median(bearing),
            features=q.shape[-1],
        ),
        details=_(
            "The largest value in a row of φ(q) marks the feature that contributes most to one of this query's weights."
        )
        if data.setting("kind") in POSITIVE
        else "",
        draw=lambda key: pictures.features(data, q, k, key, feature_captions(data.setting("kind"))),
    )


def _estimate(data: HeadData) -> Step:
    allowed, kind, norms = data.visible, data.setting("kind"), data.setting("row_norms")
    estimate, kernel = data.parts["estimate"][allowed], data.parts["kernel"][allowed]
    ratio = estimate / np.maximum(kernel, np.finfo(float).tiny)

    def draw(key: str) -> None:
        pictures.scatter_plot(
            _("query–key pairs"),
            kernel,
            estimate,
            key=key,
            x_title=_("true similarity, relative to the largest in its row"),
            y_title=_("estimated similarity (same unit)"),
            height=360,
            alt=_("Points: the estimated similarity of each pair against the true one"),
        )
        if (estimate <= 0).any():
            text = _(
                "{share:.0%} of the estimates are not positive, so they cannot be drawn on logarithmic axes.",
                share=(estimate <= 0).mean(),
            )
            st.caption(text)

    return Step(
        title=_("Estimate"),
        mechanism=_(
            "Each point is a query–key pair. On the diagonal, the estimate equals softmax's exponential, "
            "exp(q · k / √d)."
        )
        if kind != "relu"
        else _(
            "With ReLU, the dot product of a query's and a key's random features does not estimate softmax's "
            "exponential. It estimates the arc-cosine kernel, a function of the lengths of the query and the key and "
            "of the angle between them."
        ),
        formula=mean_formula(kind, norms),
        shapes={r"\varphi(Q)\,\varphi(K)^\top": data.weights.shape},
        findings=paragraph(
            estimate_sentence(float(((ratio > 0.5) & (ratio < 2)).mean()), float(np.median(ratio))),
            bias_sentence(kind, norms, float(np.median(ratio))),
        ),
        draw=draw,
    )


def _more_features(data: HeadData) -> Step:
    """Build the step that measures the error over the number of features, for every kind and many seeds."""
    forms = dict.fromkeys([*FEATURE_KINDS, (data.setting("kind"), data.setting("orthogonal"))])
    kinds = list(dict.fromkeys(kind for kind, _orthogonal in forms))
    norms = data.setting("row_norms")

    def draw(key: str) -> str:
        with st.container(horizontal=True):
            measure = InsideOptions.feature_error.draw()
            factor = InsideOptions.logits.draw()

        def summarise(rows: list[PerformerErrorRow]) -> dict[tuple[str, bool], Spread]:
            return {
                form: spread(
                    (row.features, getattr(row, measure)) for row in rows if (row.kind, row.orthogonal) == form
                )
                for form in forms
            }

        def chart(rows: list[PerformerErrorRow], drawn_key: str) -> None:
            errors = summarise(rows)
            lines = [
                replace(
                    each.curve(
                        f"{setting_name(kind)} · {_('orthogonal') if orthogonal else _('independent')}",
                        kinds.index(kind),
                        dash=("dash" if kind == "positive" else "solid") if orthogonal else "dot",
                        band=orthogonal,
                    ),
                    hollow=not orthogonal,
                    label=setting_name(kind),
                    name_at_end=orthogonal,
                )
                for (kind, orthogonal), each in errors.items()
            ]
            # The curves of positive and of hyperbolic features coincide where both have the same large error. The
            # curves of positive features are drawn last and dashed, so that both stay visible.
            lines.sort(key=lambda curve: curve.colour == kinds.index("positive"))
            start = errors["hyperbolic", True].middle[0] if errors["hyperbolic", True].x else 1.0
            fall = [start * (FEATURE_COUNTS[0] / m) ** 0.5 for m in FEATURE_COUNTS]
            zero = [1.0] * len(FEATURE_COUNTS)
            lines = [
                guide("1/√m", FEATURE_COUNTS, fall, "dash"),
                guide(_("zero everywhere: 1"), FEATURE_COUNTS, zero, "dash"),
                *lines,
            ]
            pictures.lines(
                lines,
                key=drawn_key,
                x_title=_("number of directions m"),
                y_title=_("relative error of the similarities")
                if measure == "kernel"
                else _("relative error of the matrix"),
                log_x=True,
                log_y=True,
                x_ticks=FEATURE_COUNTS,
                height=440,
                alt=_("Lines: the error of each kind of feature against the number of directions"),
            )
            st.markdown(fall_sentence(errors, divides=factor < 1))

        tasks = performer_error.tasks(
            data.source, head=data.head, causal=data.causal, row_norms=norms, factor=factor, kinds=tuple(forms)
        )
        rows = runs.run_immediately(
            "performer_error", tasks, chart, key=f"{key}.sweep", effort=lambda task: 64 + task.params.features
        )
        return error_headline(summarise(rows)["positive", True])

    n = min(data.qkv.n, TOKENS)
    return Step(
        title=_("Number of features"),
        headline=_("Measuring …"),
        mechanism=paragraph(
            _(
                "Each coloured line shows the measured error of one kind of feature with m random directions (median "
                "over {seeds} random draws).",
                seeds=SEEDS,
            ),
            _("Directions are orthogonal (filled circles) or independent (open circles)."),
            _("In theory, the random error of the estimate decreases like 1/√m."),
        ),
        formula=r"\sqrt{\mathbb{E}\left[\text{error}^2\right]} \sim \frac{1}{\sqrt m}"
        if norms == "chi"
        else r"\mathbb{E}\left[\text{error}^2\right] = \text{bias}^2 + \frac{\text{chance}^2}{m}",
        shapes={"W": (FEATURE_COUNTS[-1], data.qkv.q.shape[-1]), r"\varphi(Q)\,\varphi(K)^\top": (n, n)},
        findings="",
        draw=draw,
    )
