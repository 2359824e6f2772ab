"""Story of Nyström attention: landmarks, three thin factors, and an inverse that is often better when inexact."""

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from app.figures.lines.curves import guide
from app.figures.theme import GREY
from app.jobs import cached, dispatch
from app.matrix_board import Panel
from app.words.i18n import N_, _, _n, escape_markdown, paragraph
from app.words.labels import label
from attention_core.analysis.low_rank.cur import RCOND, Cur
from attention_core.analysis.low_rank.factors import product
from attention_core.experiments import cur_error, nystrom_inverse
from attention_core.experiments.cur_error import ATTENTION, BEST, FLOOR, FORMULA, UNIFORM, CurRow
from attention_core.experiments.nystrom_inverse import InverseRow
from attention_core.formatting import format_readable, number, percent
from pages.inside import landmarks, pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import Curve
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step, later

EQUAL = 1.02
"""Errors within this ratio count as equal."""
LITTLE = 0.1
"""Relative errors up to this count as small."""


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: landmarks, factors, inverse, column-row formula, comparison with the reference."""
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
        _columns_and_rows(seen),
        beside_reference(seen, ending),
    )


def _factors(seen: Seen) -> Step:
    left, middle, right = (seen.parts[name] for name in ("left", "middle", "right"))
    n, m = left.shape
    text = _(
        "Softmax is taken three times, each time with landmarks on one side at least: {own:,} weights in place of "
        "{full:,}. A landmark gives itself {self:.0%} of its weight on average.",
        own=left.size + middle.size + right.size,
        full=n * n,
        self=np.diagonal(middle).mean(),
    )
    if m < n <= 2 * m:
        text = paragraph(text, _("With so many landmarks for so few tokens nothing is saved."))

    def draw(key: str) -> None:
        queries, keys = landmarks.names(seen)
        left_side, right_side = landmarks.sides(seen)
        between = _among(_("Middle M"), middle, queries, keys, caption=_("landmarks among themselves"))
        result = pictures.pairs(seen, _("Result L V R"), seen.weights, _("V: the inverse of M"))
        pictures.board(f"{key}.factors", left_side, between, right_side, result, scale="panel")

    return Step(
        title=_("Three factors"),
        formula=r"L = S\!\left(\tfrac{Q \tilde K^\top}{\sqrt d}\right),\quad "
        r"M = S\!\left(\tfrac{\tilde Q \tilde K^\top}{\sqrt d}\right),\quad "
        r"R = S\!\left(\tfrac{\tilde Q K^\top}{\sqrt d}\right),\quad S = \operatorname{softmax}",
        shapes={"L": left.shape, "M": middle.shape, "R": right.shape},
        sentence=text,
        draw=draw,
    )


@later(N_("The inverse"))
def _inverse(seen: Seen) -> Step:
    middle, inverse = seen.parts["middle"], seen.parts["inverse"]
    (task,) = nystrom_inverse.tasks(seen.source, head=seen.head, word=seen.attention.word)
    rows = dispatch.rows("nystrom_inverse", task, in_process=True)
    values, _shares = nystrom_inverse.inverted_shares(middle, 0)

    def draw(key: str) -> None:
        queries, keys = landmarks.names(seen)
        how, identity = _("as set: {how}", how=_how(seen)), _("the identity, if V were an inverse")
        pictures.board(
            f"{key}.inverse",
            _among(_("Middle M"), middle, queries, keys),
            _among(_("Its inverse V"), inverse, keys, queries, caption=how),
            _among(_("M V"), product(middle, inverse), queries, queries, caption=identity),
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
        formula=r"V_0 = \frac{M^\top}{\|M\|_1 \|M\|_\infty},\qquad "
        r"V \leftarrow \tfrac14 V \left(13 I - M V \left(15 I - M V \left(7 I - M V\right)\right)\right)",
        shapes={"M": middle.shape, "V": inverse.shape},
        sentence=inverse_sentence(rows, condition=float(values[0] / max(values[-1], np.finfo(float).tiny))),
        draw=draw,
    )


def _among(title: str, values: np.ndarray, rows: list[str], columns: list[str], caption: str = "") -> Panel:
    """Return a panel of a landmark-by-landmark matrix."""
    return pictures.panel(title, values, rows, columns, row=_("landmark"), column=_("landmark"), caption=caption)


def _how(seen: Seen) -> str:
    if seen.setting("inverse") == "exact":
        return _("exact")
    return _n("{n} iteration", "{n} iterations", n=seen.setting("iterations"))


def inverse_sentence(rows: Sequence[InverseRow], condition: float) -> str:
    """Return the sentence that says if a more exact inverse gives a better matrix.

    Args:
        rows: one row per number of iterations, followed by the exact inverse.
        condition: the ratio of the middle factor's largest singular value to its smallest.
    """
    *iterated, exact = (row.error for row in rows)
    best = int(np.argmin(iterated))
    text = _(
        "The best matrix comes after {best} of {all} iterations, off by {error:.0%}; the exact inverse is off by "
        "{exact:.0%}.",
        best=best + 1,
        all=len(iterated),
        error=iterated[best],
        exact=exact,
    )
    worse = exact > EQUAL * iterated[best]
    if worse and exact > LITTLE:
        why = _(
            "**An exact inverse is worse than stopping early here**: the largest singular value of M is {ratio} times "
            "the smallest, along the small ones an inverse magnifies what the averages got wrong (its entries reach "
            "{largest:,.0f}), and stopping early leaves these alone.",
            ratio=number(condition),
            largest=rows[-1].largest,
        )
    elif worse:
        why = _("Stopping early does slightly better than an exact inverse here, and both come close.")
    elif exact > LITTLE:
        why = _("What is still wrong lies in the landmarks, not in how their matrix is inverted.")
    else:
        why = _("Here a better inverse makes a better matrix: the landmarks miss little.")
    return paragraph(text, why)


def _against(of: Sequence[Curve], key: str, title: str, *, log: bool = False) -> None:
    """Draw curves of one measure over the number of iterations."""
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


def _residuals(rows: Sequence[InverseRow]) -> list[Curve]:
    *iterated, exact = rows
    name = _("iterative (the exact inverse leaves {residual})", residual=number(exact.residual, 1))
    return [Curve(name, _counts(rows), [row.residual for row in iterated])]


def _errors(rows: Sequence[InverseRow]) -> list[Curve]:
    *iterated, exact = rows
    x = _counts(rows)
    ends = [x[0], x[-1]]
    return [
        Curve(_("iterative"), x, [row.error for row in iterated]),
        Curve(_("exact inverse"), ends, [exact.error] * 2, colour=1, dash="dash", marks=False),
    ]


def _counts(rows: Sequence[InverseRow]) -> list[int]:
    return [row.iterations for row in rows if row.iterations is not None]


def _directions(seen: Seen, key: str) -> None:
    """Draw the singular values of the middle factor, and the inverted share of each after some iterations."""
    iterations = int(seen.setting("iterations"))
    values, share = nystrom_inverse.inverted_shares(seen.parts["middle"], iterations)
    x = list(range(1, len(values) + 1))
    st.markdown("**" + _("Why: small directions are inverted last") + "**")
    st.caption(inverted_sentence((share >= 0.9).sum(), len(values), iterations, values[-1]))
    left, right = st.columns(2)
    with left:
        pictures.lines(
            [Curve(_("singular values of M"), x, values.tolist())],
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
                        f"T = {count}",
                        x,
                        colour=i,
                        y=nystrom_inverse.inverted_shares(seen.parts["middle"], count)[1].tolist(),
                    )
                    for i, count in enumerate(shown)
                ),
                guide(_("exact inverse"), [x[0], x[-1]], [1.0, 1.0], "dash"),
            ],
            key=f"{key}.shares",
            x_title=_("direction"),
            y_title=_("share inverted after T iterations"),
            height=300,
            alt=_("Lines: how much of each direction is inverted after T iterations"),
        )


def inverted_sentence(done: int, m: int, iterations: int, least: float) -> str:
    """Return the sentence about how many of m directions are inverted, and the smallest singular value ``least``."""
    return _n(
        "{done} of {m} directions are inverted to nine tenths after {n} iteration; the exact inverse inverts all, down "
        "to a singular value of {least}.",
        "{done} of {m} directions are inverted to nine tenths after {n} iterations; the exact inverse inverts all, "
        "down to a singular value of {least}.",
        n=iterations,
        done=done,
        m=m,
        least=number(least),
    )


@later(N_("Columns and rows"))
def _columns_and_rows(seen: Seen) -> Step:
    """Build the step that compares Nyström's formula and CUR on this head's softmax with Nyström attention."""
    pick, m = InsideOptions.pick.value, min(seen.setting("landmarks"), len(seen.weights))
    found = cached.columns_and_rows(seen.source, seen.attention, seen.head, pick)
    (task,) = cur_error.tasks(seen.source, head=seen.head, word=seen.attention.word, pick=pick)
    rows = dispatch.rows("cur_error", task, in_process=True)
    n, (r, c) = len(found.softmax), (len(found.rows), len(found.columns))

    def draw(key: str) -> None:
        InsideOptions.pick.draw()
        _matrices(seen, found, key)
        left, right = st.columns(2)
        with left:
            _against_m(rows, pick, m, key)
        with right:
            _table(seen, rows, m)

    return Step(
        formula=r"\operatorname{softmax}\!\left(\tfrac{Q K^\top}{\sqrt d}\right) = "
        r"\begin{pmatrix} A & B \\ C & D \end{pmatrix} \approx "
        r"\begin{pmatrix} A \\ C \end{pmatrix} A^{+} \begin{pmatrix} A & B \end{pmatrix},"
        r"\qquad D \approx C A^{+} B",
        shapes={"A": (r, c), "B": (r, n - c), "C": (n - r, c), "D": (n - r, n - c)},
        sentence=formula_sentence(found, own_errors(rows, pick, m), m, both_ways=seen.qkv.causal),
        draw=draw,
    )


def own_errors(rows: Sequence[CurRow], pick: str, m: int) -> dict[str, float]:
    """Return the error of each kind of matrix for ``m`` columns and rows selected by ``pick``."""
    return {row.made: row.error for row in rows if row.m == m and row.pick in (None, pick)}


def formula_sentence(found: Cur, errors: Mapping[str, float], m: int, *, both_ways: bool = False) -> str:
    """Return the sentence about the error of Nyström's formula, and what Nyström attention does instead.

    Args:
        found: the chosen columns and rows, and the block they share.
        errors: the error relative to softmax, by kind of matrix.
        m: number of landmarks.
        both_ways: whether the model hides later tokens but this page shows them.
    """
    n = len(found.softmax)
    words = {name: percent(error) for name, error in errors.items()}
    if len(found.columns) == len(found.rows) == n:
        first = _("All {n} columns and rows are chosen, D is empty, and the formula is off by {formula}.", n=n, **words)
    else:
        first = _(
            "Softmax's matrix with {columns} of its columns and {rows} of its rows moved to the front: **Nyström's "
            "formula** makes D out of the other three blocks, and is exact where A has the rank of the whole. Here A "
            "has rank {common} and softmax {rank}. The formula is off by {formula}, the best middle between the same "
            "columns and rows, for which all of softmax must be known, by {best}; no matrix of rank {m} is off by less "
            "than {floor}.",
            columns=len(found.columns),
            rows=len(found.rows),
            common=found.common_rank,
            rank=found.rank,
            m=m,
            **words,
        )
    if errors[FORMULA] > max(errors[UNIFORM], LITTLE):
        first = paragraph(
            first,
            _(
                "**Looking everywhere alike would be off by {uniform} only**: the largest singular value of A is "
                "{ratio} times the smallest, and along the small ones its inverse magnifies.",
                ratio=number(found.condition),
                **words,
            ),
        )
    second = _(
        "**Nyström attention** keeps the form and not the formula: each entry of a column of softmax is divided by a "
        "sum over all {n} keys, so even one column takes all {full:,} products of queries and keys.",
        n=n,
        full=n * n,
    )
    own = 2 * n * m + m * m
    second = paragraph(second, _rank(errors[ATTENTION], errors[FORMULA]).format(own=own, **words))
    if own >= n * n:
        second = paragraph(second, _("With so many landmarks for so few tokens that saves nothing."))
    if both_ways:
        second = paragraph(
            second, _("This model hides the future, as no landmark can; its softmax is taken both ways here.")
        )
    return f"{first}\n\n{second}"


def _rank(attention: float, formula: float) -> str:
    if max(attention, formula) <= EQUAL * min(attention, formula):
        return _(
            "It takes softmax over landmarks in the place of all three factors, {own:,} products, and is off by "
            "{attention}: as far from softmax as the formula on softmax itself."
        )
    if attention < formula:
        return _(
            "It takes softmax over landmarks in the place of all three factors, {own:,} products, and is off by "
            "{attention}: closer to softmax than the formula on softmax itself."
        )
    return _(
        "It takes softmax over landmarks in the place of all three factors, {own:,} products, and is off by "
        "{attention}: further from softmax than the formula on softmax itself."
    )


def _matrices(seen: Seen, found: Cur, key: str) -> None:
    read = np.zeros(found.softmax.shape, bool)
    read[found.rows], read[:, found.columns] = True, True
    shown = (
        (_("Softmax"), _("all of it"), found.softmax),
        (
            _("Columns and rows"),
            _("{share:.0%} of the entries", share=read.mean()),
            np.where(read, found.softmax, np.nan),
        ),
        (_("Nyström's formula"), _("from these columns and rows"), found.formula),
        (label(seen.attention), _("softmax is never made"), seen.weights),
    )
    panels = (pictures.pairs(seen, title, values, words) for title, words, values in shown)
    pictures.board(f"{key}.columns", *panels, scale="panel", masked=_("not read"))


def _names(attention: str) -> dict[str, str]:
    return {
        FORMULA: _("Nyström's formula"),
        BEST: _("best middle"),
        ATTENTION: attention,
        FLOOR: _("best of rank m (SVD)"),
        UNIFORM: _("uniform attention"),
    }


def _against_m(rows: Sequence[CurRow], pick: str, m: int, key: str) -> None:
    """Draw every error over the number of columns and rows."""
    names = _names(_("Nyström attention"))
    strokes = {FLOOR: (GREY, "dash"), UNIFORM: (GREY, "dot")}
    drawn = []
    for place, (made, name) in enumerate(names.items()):
        points = {row.m: row.error for row in rows if row.made == made and row.pick in (None, pick)}
        colour, dash = strokes.get(made, (place, "solid"))
        drawn.append(
            Curve(name, list(points), list(points.values()), colour=colour, dash=dash, marks=made not in strokes)
        )
    pictures.lines(
        drawn,
        key=f"{key}.against",
        x_title=_("columns and rows, or landmarks, m"),
        y_title=_("relative error beside softmax"),
        log_x=True,
        log_y=True,
        mark=m,
        x_ticks=drawn[0].x,
        height=380,
        alt=_("Lines: how far each matrix is from softmax, over the number of columns and rows"),
    )


def _table(seen: Seen, rows: Sequence[CurRow], m: int) -> None:
    """Draw a table of every error at the current number of landmarks, for all ways to choose columns and rows."""
    names = _names(label(seen.attention))
    lines = [f"| m = {m} | {_('off softmax by')} |", "| :-- | --: |"]
    for made in (FLOOR, BEST, FORMULA, ATTENTION, UNIFORM):
        for row in rows:
            if row.made == made and row.m == m:
                name = names[made] if row.pick is None else f"{names[made]}, {InsideOptions.pick.label_of(row.pick)}"
                lines.append(f"| {escape_markdown(name)} | **{percent(row.error)}** |")
    st.markdown("\n".join(lines))
    st.caption(
        _(
            "In double precision; singular values below {least} of the largest are dropped from an inverse. *Off by* "
            "is the Frobenius norm of the difference over softmax's.",
            least=format_readable(RCOND, None),
        )
    )
