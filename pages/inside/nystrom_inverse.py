"""Nyström's step about the inverse: the matrices M, Z and M Z, and charts of the residual and the errors."""

from collections.abc import Sequence
from functools import partial
from math import ceil, floor, log10

import numpy as np
import streamlit as st

from app.figures.lines.curve import guide
from app.jobs import dispatch
from app.matrix_board import Panel
from app.ui.lazy import lazy_expander
from app.words.i18n import N_, _, _n
from app.words.labels import axis_title
from attention_core.analysis.low_rank.factors import product
from attention_core.experiments import nystrom_inverse
from attention_core.experiments.nystrom_inverse import InverseRow
from attention_core.formatting import number, percent
from pages.inside import pictures
from pages.inside.pictures import Curve, symbol
from pages.inside.story import HeadData, Step, lazy_step
from pages.inside.words.nystrom import inverse_sentence, inverted_sentence

LEFT, INVERSE, RIGHT = range(3)
"""Indices of the colours of the three factors L, Z and R."""
MIN_TICKS = 3
"""Smallest number of ticks of a logarithmic axis."""
MAX_RATIO = 1000
"""If the largest value is more than this number of times the smallest, plotly's own ticks are dense enough."""


@lazy_step(N_("The inverse"))
def inverse_step(data: HeadData) -> Step:
    """Build the step: how well the inverse is computed, and what its errors cost."""
    middle, inverse = data.parts["middle"], data.parts["inverse"]
    (task,) = nystrom_inverse.tasks(data.source, head=data.head, word=data.attention.word)
    rows = dispatch.rows("nystrom_inverse", task, in_process=True)
    is_number = len(middle) == 1

    def draw(key: str) -> None:
        if is_number:
            _draw_matrices(data, key)
            return
        _draw_errors(rows, key)
        _directions(data, key)
        lazy_expander(_("Matrices M, Z and M Z"), partial(_draw_matrices, data, key), key=f"{key}.matrices")

    headline, reason = (
        (_("With one landmark, M is the number 1, so its inverse is exact."), "")
        if is_number
        else inverse_sentence(rows, averaged=len(middle) < data.qkv.n)
    )

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
        findings=headline,
        details=reason,
        draw=draw,
    )


def _draw_matrices(data: HeadData, key: str) -> None:
    middle, inverse = data.parts["middle"], data.parts["inverse"]
    how = _("computed with: {how}", how=_inverse_method(data))
    identity = _("identity matrix if Z is the exact inverse")
    pictures.board(
        f"{key}.inverse",
        landmark_panel(_("Matrix M"), middle),
        landmark_panel(_("Inverse Z"), inverse, caption=how, mark=INVERSE),
        landmark_panel(_("M Z"), product(middle, inverse), caption=identity),
        scale="panel",
    )


def landmark_panel(title: str, values: np.ndarray, caption: str = "", mark: int | None = None) -> Panel:
    """Return a panel of a matrix between landmarks."""
    landmark = _("landmark")
    return pictures.panel(title, values, row=landmark, column=landmark, caption=caption, mark=mark)


def _inverse_method(data: HeadData) -> str:
    if data.setting("inverse") == "exact":
        return _("exact inverse")
    return _iteration_count(data.setting("iterations"))


def _iteration_count(count: int) -> str:
    return _n("{n} iteration", "{n} iterations", n=count)


def _draw_errors(rows: Sequence[InverseRow], key: str) -> None:
    left, right = st.columns(2)
    with left:
        st.markdown("**" + axis_title(_("Error of the inverse Z"), log=True) + "**")
        _draw_curves(_residuals(rows), f"{key}.residual", _("residual ‖I − M Z‖ / ‖I‖"))
    with right:
        st.markdown("**" + axis_title(_("Error of the attention matrix A"), log=True) + "**")
        _draw_curves(_errors(rows), f"{key}.error", _("error of A compared with softmax"), percent=True)


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
    """Draw which share of each singular value of the middle factor is inverted after some iterations."""
    iterations = int(data.setting("iterations"))
    values, share = nystrom_inverse.inverted_shares(data.parts["middle"], iterations)
    x = list(range(1, len(values) + 1))
    step = 5 * ceil(len(x) / 40) if len(x) > 10 else 1
    ticks = [1, *range(max(2, step), len(x) + 1, step)]
    st.markdown("**" + _("The iteration inverts small singular values last") + "**")
    exact = data.setting("inverse") == "exact"
    st.caption(inverted_sentence((share >= 0.9).sum(), len(values), iterations, values[-1], exact=exact))
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
