"""Nyström attention: landmarks, three thin factors, and an inverse that is better when it is not exact."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app import compute
from app.figures.theme import GREY
from app.inside import columns_rows, landmarks, pictures
from app.inside.closing import beside_softmax
from app.inside.pictures import Curve, Grid
from app.inside.step import Seen, Step
from app.text import _, paragraph
from attention_core.experiments import nystrom_inverse
from attention_core.experiments.task import Row
from attention_core.looks.factors import product
from attention_core.writing import number

EQUAL = 1.02
"""Errors within this ratio are called equal."""
LITTLE = 0.1
"""Relative errors up to this are called small."""


def steps(seen: Seen) -> tuple[Step, ...]:
    """Landmarks, factors, inverse, what the formula comes from, product."""
    rows = seen.weights.sum(-1)
    ending = _(
        "{negative:.1%} of its mass is negative and its rows sum to {low:.2f} … {high:.2f}; softmax's are positive and "
        "sum to one.",
        negative=np.abs(np.minimum(seen.weights, 0)).sum() / np.abs(seen.weights).sum(),
        low=rows.min(),
        high=rows.max(),
    )
    return (
        landmarks.which(seen),
        _factors(seen),
        _inverse(seen),
        columns_rows.on_a_matrix(seen),
        beside_softmax(seen, ending),
    )


def _factors(seen: Seen) -> Step:
    left, middle, right = (seen.parts[name] for name in ("left", "middle", "right"))
    n, m = left.shape
    told = _(
        "Softmax is taken three times, each time with landmarks on one side at least: {own:,} weights in place of "
        "{full:,}. A landmark gives itself {self:.0%} of its weight on average.",
        own=left.size + middle.size + right.size,
        full=n * n,
        self=float(np.diagonal(middle).mean()),
    )
    if m < n <= 2 * m:
        told = paragraph(told, _("With so many landmarks for so few tokens nothing is saved."))

    def draw(key: str) -> None:
        queries, keys = landmarks.names(seen)
        left_side, right_side = landmarks.sides(seen)
        between = Grid(
            title=_("Middle M"),
            caption=_("landmarks among themselves"),
            values=middle,
            rows=queries,
            columns=keys,
            row_title=_("landmark"),
            col_title=_("landmark"),
        )
        pictures.grids([left_side, between, right_side], f"{key}.factors")

    return Step(
        title=_("Three factors"),
        formula=r"L = S\!\left(\tfrac{Q \tilde K^\top}{\sqrt d}\right),\quad "
        r"M = S\!\left(\tfrac{\tilde Q \tilde K^\top}{\sqrt d}\right),\quad "
        r"R = S\!\left(\tfrac{\tilde Q K^\top}{\sqrt d}\right),\quad S = \operatorname{softmax}",
        shapes={"L": left.shape, "M": middle.shape, "R": right.shape},
        sentence=told,
        draw=draw,
    )


def _inverse(seen: Seen) -> Step:
    middle, inverse = seen.parts["middle"], seen.parts["inverse"]
    (task,) = nystrom_inverse.tasks(seen.source, head=seen.head, word=seen.attention.word)
    rows = compute.rows("nystrom_inverse", task)

    def draw(key: str) -> None:
        queries, keys = landmarks.names(seen)
        landmark, turned = _("landmark"), {"rows": keys, "columns": queries}
        pictures.grids(
            [
                Grid(
                    title=_("Middle M"),
                    values=middle,
                    rows=queries,
                    columns=keys,
                    row_title=landmark,
                    col_title=landmark,
                ),
                Grid(
                    title=_("Its inverse V"),
                    caption=_("as set: {how}", how=_how(seen)),
                    values=inverse,
                    row_title=landmark,
                    col_title=landmark,
                    **turned,
                ),
                Grid(
                    title=_("M V"),
                    caption=_("the identity, if V were an inverse"),
                    values=product(middle, inverse),
                    rows=queries,
                    columns=queries,
                    row_title=landmark,
                    col_title=landmark,
                ),
            ],
            f"{key}.inverse",
            unit=_("entry"),
            scale="panel",
        )
        left, right = st.columns(2)
        with left:
            st.markdown("**" + _("Each iteration makes a better inverse …") + "**")
            _against(_residuals(rows), f"{key}.residual", _("residual ‖I − M V‖ / ‖I‖"), log=True)
        with right:
            st.markdown("**" + _("… and not always a better matrix") + "**")
            _against(_errors(rows), f"{key}.error", _("relative error of the matrix"))
        _directions(seen, key)

    return Step(
        title=_("The inverse"),
        formula=r"V_0 = \frac{M^\top}{\|M\|_1 \|M\|_\infty},\qquad "
        r"V \leftarrow \tfrac14 V \left(13 I - M V \left(15 I - M V \left(7 I - M V\right)\right)\right)",
        shapes={"M": middle.shape, "V": inverse.shape},
        sentence=_told(seen, rows),
        draw=draw,
    )


def _how(seen: Seen) -> str:
    params = seen.attention.params
    if params.inverse == "exact":  # type: ignore[attr-defined]
        return _("exact")
    return _("{count} iterations", count=params.iterations)  # type: ignore[attr-defined]


def _told(seen: Seen, rows: tuple[Row, ...]) -> str:
    *iterated, exact = (float(row["error"] or 0) for row in rows)
    best = int(np.argmin(iterated))
    values, _shares = nystrom_inverse.inverted(seen.parts["middle"], 0)
    told = _(
        "The best matrix comes after {best} of {all} iterations, off by {error:.0%}; the exact inverse is off by "
        "{exact:.0%}.",
        best=best + 1,
        all=len(iterated),
        error=iterated[best],
        exact=exact,
    )
    worse = exact > EQUAL * iterated[best]
    if worse and exact > LITTLE:
        return (
            told
            + " "
            + _(
                "**An exact inverse is worse than stopping early here**: the largest singular value of M is {ratio} "
                "times the smallest, along the small ones an inverse magnifies what the averages got wrong (its "
                "entries reach {largest:,.0f}), and stopping early leaves these alone.",
                ratio=number(values[0] / max(values[-1], np.finfo(float).tiny)),
                largest=rows[-1]["largest"],
            )
        )
    if worse:
        return paragraph(
            told, _("Stopping early does slightly better than an exact inverse here, and both come close.")
        )
    if exact > LITTLE:
        return paragraph(told, _("What is still wrong lies in the landmarks, not in how their matrix is inverted."))
    return paragraph(told, _("Here a better inverse makes a better matrix: the landmarks miss little."))


def _against(of: Sequence[Curve], key: str, title: str, *, log: bool = False) -> None:
    """One number per count of iterations."""
    pictures.lines(
        of,
        key=key,
        x_title=_("iterations"),
        y_title=title,
        log_y=log,
        x_ticks=of[0].x,
        height=320,
        alt=_("Lines: {what} over the number of iterations", what=title),
    )


def _residuals(rows: tuple[Row, ...]) -> list[Curve]:
    *iterated, exact = rows
    name = _("iterative (the exact inverse leaves {residual})", residual=number(float(exact["residual"] or 0), 1))
    return [Curve(name=name, x=_counts(iterated), y=[_above_zero(float(row["residual"] or 0)) for row in iterated])]


def _errors(rows: tuple[Row, ...]) -> list[Curve]:
    *iterated, exact = rows
    x, flat = _counts(iterated), float(exact["error"] or 0)
    return [
        Curve(name=_("iterative"), x=x, y=[float(row["error"] or 0) for row in iterated]),
        Curve(name=_("exact inverse"), x=[x[0], x[-1]], y=[flat, flat], colour=1, dash="dash", marks=False),
    ]


def _counts(rows: Sequence[Row]) -> list[int]:
    return [int(row["iterations"] or 0) for row in rows]


def _above_zero(number: float) -> float | None:
    """The number where a logarithmic axis can show it."""
    return number if number > 0 else None


def _directions(seen: Seen, key: str) -> None:
    """The singular values of the middle factor, and how much of each direction some iterations have inverted."""
    iterations = int(seen.attention.params.iterations)  # type: ignore[attr-defined]
    values, share = nystrom_inverse.inverted(seen.parts["middle"], iterations)
    x = list(range(1, len(values) + 1))
    st.markdown("**" + _("Why: small directions are inverted last") + "**")
    st.caption(
        _(
            "{done} of {m} directions are inverted to nine tenths after {count} iterations; the exact inverse inverts "
            "all, down to a singular value of {least}.",
            done=(share >= 0.9).sum(),
            m=len(values),
            count=iterations,
            least=number(float(values[-1])),
        )
    )
    left, right = st.columns(2)
    with left:
        pictures.lines(
            [Curve(name=_("singular values of M"), x=x, y=[_above_zero(float(s)) for s in values])],
            key=f"{key}.values",
            x_title=_("direction"),
            y_title=_("singular value"),
            log_y=True,
            height=300,
            alt=_("A line: the singular values of the middle factor, descending"),
        )
    with right:
        shown = sorted({1, iterations, 12})
        pictures.lines(
            [
                *(
                    Curve(
                        name=f"T = {count}",
                        x=x,
                        colour=i,
                        y=nystrom_inverse.inverted(seen.parts["middle"], count)[1].tolist(),
                    )
                    for i, count in enumerate(shown)
                ),
                Curve(name=_("exact inverse"), x=[x[0], x[-1]], y=[1.0, 1.0], colour=GREY, dash="dash", marks=False),
            ],
            key=f"{key}.shares",
            x_title=_("direction"),
            y_title=_("share inverted after T iterations"),
            height=300,
            alt=_("Lines: how much of each direction is inverted after T iterations"),
        )
