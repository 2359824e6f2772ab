"""Nyström attention, explained step by step on the Inside page.

The steps show landmarks, three small factors, and the inverse of the middle factor. With an approximate inverse, the
product is often closer to softmax than with the exact one.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, floor, log10

import numpy as np
import streamlit as st

from app.figures.lines.curve import guide
from app.jobs import cached, dispatch
from app.matrix_board import Panel
from app.words.i18n import N_, _, _n, paragraph
from app.words.labels import axis_title
from attention_core.analysis.low_rank.factors import product, relative_error_of
from attention_core.analysis.masks import membership
from attention_core.experiments import nystrom_inverse
from attention_core.experiments.nystrom_inverse import InverseRow
from attention_core.formatting import number, percent
from pages.inside import pictures
from pages.inside.pictures import RESULT, Curve, symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step, lazy_step
from pages.inside.tokens import alternating_colours, coloured_text
from pages.inside.words.nystrom import (
    blur_sentence,
    error_caption,
    inverse_benefit,
    inverse_count,
    inverse_effect,
    inverse_sentence,
    inverse_size,
    inverted_sentence,
    landmark_sizes,
    negative_weights,
    product_headline,
    sized,
)

LEFT, INVERSE, RIGHT = range(3)
"""Indices of the colours of the three factors L, Z and R."""
MIN_TICKS = 3
"""Smallest number of ticks of a logarithmic axis."""
MAX_RATIO = 1000
"""If the largest value is more than this number of times the smallest, plotly's own ticks are dense enough."""


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: factors, landmarks, inverse, comparison with the reference."""
    rows = data.weights.sum(-1)
    ending = _(
        "Negative entries account for {negative:.1%} of the total absolute weight. The row sums range "
        "from {low:.2f} to {high:.2f}.",
        negative=np.abs(np.minimum(data.weights, 0)).sum() / np.abs(data.weights).sum(),
        low=rows.min(),
        high=rows.max(),
    )
    return _factors(data), _landmarks(data), _inverse(data), compare_with_reference(data, ending)


def _shares(data: HeadData) -> dict[str, np.ndarray]:
    """Return the share of each token in each landmark, ``[m, n]``, under the keys ``"query"`` and ``"key"``."""
    return {
        name: membership.membership(x, *_settings(data))
        for name, x in membership.landmark_inputs(data.qkv, data.head).items()
    }


def _settings(data: HeadData) -> tuple[int, str]:
    return data.setting("landmarks"), data.setting("method")


def _labels(data: HeadData, shares: np.ndarray) -> list[str]:
    """Return one label per landmark: its number, its first three tokens, and "…" if it has more.

    Args:
        data: the variant on a head.
        shares: the share of each token in each landmark, ``[m, n]``.
    """
    members = [[data.labels[j] for j in np.flatnonzero(row)] for row in shares]
    return [f"{i}: {' '.join(tokens[:3])}{' …' if len(tokens) > 3 else ''}" for i, tokens in enumerate(members)]


@lazy_step(N_("Landmarks"))
def _landmarks(data: HeadData) -> Step:
    """Build the step that shows which tokens each landmark averages."""
    found = _shares(data)
    m, n = found["query"].shape
    means = data.setting("method") == "segment_means" or m == n
    vectors = membership.landmark_inputs(data.qkv, data.head)
    lost = {name: membership.lost_variance(vectors[name], share) for name, share in found.items()}
    findings, sizes = _landmark_findings(data, found, lost, means=means)
    drawn = {"query": found["query"]} if means else found
    titles = {"query": _("Query landmarks"), "key": _("Key landmarks")}

    def draw(key: str) -> None:
        for name, of in drawn.items():
            owners, members = of.argmax(0).tolist(), _labels(data, of)
            if not means:
                st.markdown(f"**{titles[name]}**")
            notes = [members[owner] for owner in owners]
            st.html(coloured_text(data.qkv.tokens, alternating_colours(owners), notes=notes, tags=owners))
        if m < n:
            st.markdown("**" + _("Variance that each landmark discards") + "**")
            pictures.bars(
                {_("queries"): 100 * lost["query"], _("keys"): 100 * lost["key"]},
                _labels(data, found["query"]) if means else [str(i) for i in range(m)],
                key=f"{key}.lost",
                x_title=_("landmark"),
                y_title=_("% of all variance"),
                alt=_("Bars: the share of the variance of queries and of keys that each landmark discards"),
            )

    return Step(
        mechanism=_(
            "Similar tokens are averaged into landmarks, separately for queries and keys. In the text, each small "
            "number is the number of a landmark. All tokens from there to the next number belong to this landmark."
        )
        if not means
        else _(
            "Neighbouring queries are averaged into query landmarks, and neighbouring keys into key "
            "landmarks. In the text, a small number marks the first token of each landmark."
        ),
        formula=r"\tilde q_i = \frac{1}{|S_i|} \sum_{j \in S_i} q_j, \qquad "
        r"\tilde k_i = \frac{1}{|S'_i|} \sum_{j \in S'_i} k_j",
        shapes={r"\tilde Q": (m, data.qkv.q.shape[-1]), r"\tilde K": (m, data.qkv.k.shape[-1])},
        findings=findings,
        details=sizes,
        draw=draw,
    )


def _landmark_findings(
    data: HeadData, shares: dict[str, np.ndarray], lost: dict[str, np.ndarray], *, means: bool
) -> tuple[str, str]:
    """Return the findings and the details of the step about landmarks."""
    m, n = shares["query"].shape
    if m == n:
        alone = _n(
            "The only token is its own landmark, so nothing is averaged.",
            "Each of the {n} tokens is its own landmark, so nothing is averaged.",
            n=n,
        )
        return alone, ""
    sizes = {name: (share > 0).sum(-1) for name, share in shares.items()}
    if means:
        text = landmark_sizes(m, sizes["query"].min(), sizes["query"].max())
    else:
        text = paragraph(
            _n(
                "{tokens} tokens are averaged into {n} landmark.",
                "{tokens} tokens are averaged into {n} landmarks of similar tokens. The largest query landmark "
                "averages {query} queries, and the largest key landmark averages {key} keys.",
                n=m,
                tokens=n,
                query=sizes["query"].max(),
                key=sizes["key"].max(),
            ),
            _(
                "One more iteration of k-means would move the landmarks by {drift:.1%} of their length.",
                drift=max(
                    membership.landmark_drift(x, *_settings(data))
                    for x in membership.landmark_inputs(data.qkv, data.head).values()
                ),
            ),
        )
    return blur_sentence(lost["query"].sum(), lost["key"].sum()), text


def _factors(data: HeadData) -> Step:
    left, middle, right, inverse = (data.parts[name] for name in ("left", "middle", "right", "inverse"))
    n, m = left.shape
    without, error = (relative_error_of(each, data.reference) for each in (product(left, right), data.weights))

    def draw(key: str) -> None:
        landmark = _("landmark")
        inverted = _("exact inverse") if data.setting("inverse") == "exact" else _("approximate inverse")
        sides_top = float(max(left.max(), right.max()))
        top = float(max(np.abs(data.weights).max(), np.abs(data.reference).max()))
        lookup = pictures.panel(
            "L", left, data.labels, column=landmark, caption=sized(_("queries to landmarks"), left), mark=LEFT
        )
        spread = pictures.panel(
            "R", right, None, data.labels, row=landmark, caption=sized(_("landmarks to keys"), right), mark=RIGHT
        )
        approximation = pictures.pair_panel(data, "A", data.weights, error_caption(error), mark=RESULT)
        target = replace(
            pictures.reference_panel(data),
            title=_("{name} (target)", name=pictures.reference_title(data)),
            caption=pictures.strong_column(data),
            scale_panel="A",
        )
        pictures.board(
            f"{key}.factors",
            replace(lookup, top=sides_top, full_side=n),
            replace(_landmark_panel("Z", inverse, sized(inverted, inverse), mark=INVERSE), full_side=n, sign="×"),
            replace(spread, top=sides_top, full_side=n, scale_panel="L", sign="×"),
            replace(approximation, top=top, sign="="),
            replace(target, top=top, sign="≈"),
            scale="panel",
        )

    return Step(
        title=_("Three factors"),
        headline=product_headline(averaged=m < n),
        mechanism=paragraph(
            _("The product L × R without Z would blur the weights twice.")
            if m == n
            else _("Each landmark is an average of neighbouring tokens, so L and R both blur.")
            if data.setting("method") == "segment_means"
            else _("Each landmark is an average of similar tokens, so L and R both blur."),
            _("Z is meant to undo one blur."),
        ),
        formula=rf"{symbol(RESULT, 'A')} = "
        rf"{symbol(LEFT, 'L')} \times {symbol(INVERSE, 'Z')} \times {symbol(RIGHT, 'R')}",
        shapes={
            r"L = \operatorname{softmax}(Q \tilde K^\top / \sqrt d)": left.shape,
            r"Z \approx \operatorname{softmax}(\tilde Q \tilde K^\top / \sqrt d)^{-1}": middle.shape,
            r"R = \operatorname{softmax}(\tilde Q K^\top / \sqrt d)": right.shape,
        },
        findings=paragraph(
            ""
            if m < n
            else _("Every token is its own landmark, so no tokens are averaged and no information is lost."),
            inverse_benefit(without, error),
            inverse_count(cached.heads_closer_without_inverse(data.source, data.attention), len(data.qkv.q)),
            inverse_effect(without, error, float(np.abs(inverse).max()), averaged=m < n),
            negative_weights(data.weights),
        ),
        draw=draw,
    )


@lazy_step(N_("The inverse"))
def _inverse(data: HeadData) -> Step:
    middle, inverse = data.parts["middle"], data.parts["inverse"]
    (task,) = nystrom_inverse.tasks(data.source, head=data.head, word=data.attention.word)
    rows = dispatch.rows("nystrom_inverse", task, in_process=True)
    values, _inverted = nystrom_inverse.inverted_shares(middle, 0)

    def draw(key: str) -> None:
        how, identity = (
            _("computed with: {how}", how=_inverse_method(data)),
            _("identity matrix if Z is the exact inverse"),
        )
        left, right = st.columns(2)
        with left:
            st.markdown("**" + axis_title(_("Error of the inverse Z"), log=True) + "**")
            _draw_curves(_residuals(rows), f"{key}.residual", _("residual ‖I − M Z‖ / ‖I‖"))
        with right:
            st.markdown("**" + axis_title(_("Error of the attention matrix A"), log=True) + "**")
            _draw_curves(_errors(rows), f"{key}.error", _("error of A compared with softmax"), percent=True)
        pictures.board(
            f"{key}.inverse",
            _landmark_panel(_("Matrix M"), middle),
            _landmark_panel(_("Inverse Z"), inverse, caption=how, mark=INVERSE),
            _landmark_panel(_("M Z"), product(middle, inverse), caption=identity),
            scale="panel",
        )
        _directions(data, key)

    return Step(
        mechanism=_(
            "M holds the landmarks' weights on each other. An iteration that uses only matrix products computes Z, an "
            "approximate inverse of M."
        )
        if data.setting("inverse") == "iterative"
        else _(
            "M holds the landmarks' weights on each other, and Z is its exact inverse. The charts compare the "
            "exact inverse with an iteration that uses matrix products only."
        ),
        formula=rf"{symbol(INVERSE, 'Z')} \leftarrow \tfrac14 Z \left(13 I - M Z \left(15 I - M Z "
        r"\left(7 I - M Z\right)\right)\right)",
        shapes={"M": middle.shape, r"Z_0 = M^\top / (\|M\|_1 \|M\|_\infty)": inverse.shape, "Z": inverse.shape},
        findings=inverse_sentence(rows),
        details=inverse_size(rows[-1].largest, values),
        draw=draw,
    )


def _landmark_panel(title: str, values: np.ndarray, caption: str = "", mark: int | None = None) -> Panel:
    landmark = _("landmark")
    return pictures.panel(title, values, row=landmark, column=landmark, caption=caption, mark=mark)


def _inverse_method(data: HeadData) -> str:
    if data.setting("inverse") == "exact":
        return _("exact inverse")
    return _iteration_count(data.setting("iterations"))


def _iteration_count(count: int) -> str:
    return _n("{n} iteration", "{n} iterations", n=count)


def _draw_curves(curves_: Sequence[Curve], key: str, title: str, *, percent: bool = False) -> None:
    """Draw curves of one measure over the number of iterations; ``percent`` writes it as a percentage."""
    pictures.lines(
        curves_,
        key=key,
        x_title=_("iterations"),
        y_title=title,
        log_y=True,
        percent=percent,
        x_ticks=curves_[0].x,
        y_ticks=round_ticks([y for line in curves_ for y in line.y if y is not None], percent=percent),
        height=320,
        alt=_("Lines: {what} against the number of iterations", what=title),
    )


def round_ticks(values: Sequence[float], *, percent: bool) -> dict[float, str] | None:
    """Return at least three ticks of a logarithmic axis with their texts; None to use plotly's ticks.

    Plotly has as few as one tick for values within one power of ten.
    """
    low, high = min(values), max(values)
    if not 0 < low < high <= MAX_RATIO * low:
        return None
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= MIN_TICKS:
            return {tick: f"{100 * tick:,.10g}%" if percent else f"{tick:g}" for tick in ticks}
    return None


def _residuals(rows: Sequence[InverseRow]) -> list[Curve]:
    residuals = [row.residual for row in rows[:-1]]
    ends = (0, len(residuals) - 1)
    texts = [number(each, 1) if i in ends else "" for i, each in enumerate(residuals)]
    return [Curve(_("iterative"), _counts(rows), residuals, texts=texts)]


def _errors(rows: Sequence[InverseRow]) -> list[Curve]:
    *iterated, exact = rows
    x = _counts(rows)
    ends = [x[0], x[-1]]
    errors = [row.error for row in iterated]
    best = int(np.argmin(errors))
    texts = [_("smallest: {error}", error=percent(errors[i])) if i == best else "" for i in range(len(errors))]
    return [
        Curve(_("iterative"), x, errors, large_index=best, texts=texts),
        guide(_("exact inverse"), ends, [exact.error] * 2, "dash"),
    ]


def _counts(rows: Sequence[InverseRow]) -> list[int]:
    return [row.iterations for row in rows if row.iterations is not None]


def _directions(data: HeadData, key: str) -> None:
    """Draw the singular values of the middle factor, and which share of each is inverted after some iterations."""
    iterations = int(data.setting("iterations"))
    values, share = nystrom_inverse.inverted_shares(data.parts["middle"], iterations)
    x = list(range(1, len(values) + 1))
    step = 5 * ceil(len(x) / 40) if len(x) > 10 else 1
    ticks = [1, *range(max(2, step), len(x) + 1, step)]
    st.markdown("**" + _("The iteration inverts small singular values last") + "**")
    exact = data.setting("inverse") == "exact"
    st.caption(inverted_sentence((share >= 0.9).sum(), len(values), iterations, values[-1], exact=exact))
    left, right = st.columns(2)
    with left:
        pictures.lines(
            [Curve(_("singular values of M"), x, values.tolist(), name_at_end=False)],
            key=f"{key}.values",
            x_title=_("singular vector"),
            x_ticks=ticks,
            y_title=_("singular value of M"),
            log_y=True,
            height=300,
            alt=_("Line: the singular values of the landmark matrix M, in descending order"),
        )
    with right:
        shown = sorted({1, iterations, 12})
        pictures.lines(
            [
                *(
                    Curve(
                        _iteration_count(count),
                        x,
                        colour=i,
                        y=nystrom_inverse.inverted_shares(data.parts["middle"], count)[1].tolist(),
                    )
                    for i, count in enumerate(shown)
                ),
                guide(_("exact inverse"), [x[0], x[-1]], [1.0, 1.0], "dash"),
            ],
            key=f"{key}.shares",
            x_title=_("singular vector"),
            x_ticks=ticks,
            y_title=_("factor of M Z (exact inverse: 1)"),
            height=300,
            alt=_(
                "Lines: the factor by which M Z scales each singular vector of the landmark matrix M, where Z is "
                "its approximate inverse after different numbers of iterations"
            ),
        )
