"""Where Nyström attention takes its form from: a matrix made from a few of its columns and rows, and why it departs."""

from collections.abc import Mapping

import numpy as np
import streamlit as st

from app import compute
from app.figures.theme import GREY
from app.inside import pictures
from app.inside.pictures import Curve, Grid
from app.inside.step import Seen, Step
from app.naming import label
from app.share import Field, choice
from app.text import _, literal, paragraph
from attention_core.experiments import cur_error
from attention_core.experiments.cur_error import ATTENTION, BEST, FLOOR, FORMULA, UNIFORM
from attention_core.experiments.task import Row
from attention_core.looks.cur import PICKS, RCOND, Cur
from attention_core.writing import number, percent, written

FIELD = "i_pick"
"""How columns and rows are chosen: the choice's name in links."""
EQUAL = 1.02
"""Errors within this ratio are called equal."""
LITTLE = 0.1
"""Relative errors up to this are called small."""


def field() -> Field:
    """What a link carries."""
    return choice(*PICKS)


def on_a_matrix(seen: Seen) -> Step:
    """Nyström's formula and CUR on this head's own softmax, beside Nyström attention."""
    pick, word = st.session_state[FIELD], seen.attention.word
    found = compute.columns_and_rows(seen.source, seen.attention, seen.head, pick)
    (task,) = cur_error.tasks(seen.source, head=seen.head, word=word, pick=pick)
    rows = compute.rows("cur_error", task)
    n, (r, c) = len(found.softmax), (len(found.rows), len(found.columns))

    def draw(key: str) -> None:
        names = _picks()
        st.segmented_control(
            _("Columns and rows"),
            PICKS,
            key=FIELD,
            format_func=names.__getitem__,
            required=True,
            width="content",
            help=_(
                "Evenly spaced: the same tokens for both. Nearest: of the tokens of each landmark the one most like "
                "it. Leverage: what weighs most in the leading singular vectors, for which all of softmax must be "
                "known."
            ),
        )
        _matrices(seen, found, key)
        left, right = st.columns(2)
        with left:
            _against_m(seen, rows, key)
        with right:
            _table(seen, rows)

    return Step(
        title=_("Columns and rows"),
        formula=r"\operatorname{softmax}\!\left(\tfrac{Q K^\top}{\sqrt d}\right) = "
        r"\begin{pmatrix} A & B \\ C & D \end{pmatrix} \approx "
        r"\begin{pmatrix} A \\ C \end{pmatrix} A^{+} \begin{pmatrix} A & B \end{pmatrix},"
        r"\qquad D \approx C A^{+} B",
        shapes={"A": (r, c), "B": (r, n - c), "C": (n - r, c), "D": (n - r, n - c)},
        sentence=told(found, own_errors(rows, pick, _landmarks(seen)), _landmarks(seen), both_ways=seen.qkv.causal),
        draw=draw,
    )


def own_errors(rows: tuple[Row, ...], pick: str, m: int) -> dict[str, float]:
    """The errors at one number of columns and rows, with these picked one way, by what was made."""
    return {str(row["made"]): float(row["error"] or 0) for row in rows if row["m"] == m and row["pick"] in (None, pick)}


def told(found: Cur, errors: Mapping[str, float], m: int, *, both_ways: bool = False) -> str:
    """What the formula makes of this head, and what Nyström attention does in its place.

    Args:
        found: the columns and rows, and what they share.
        errors: beside softmax, by what was made.
        m: landmarks.
        both_ways: whether the model itself hides the future, and is read both ways here.
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
        first += " " + _(
            "**Looking everywhere alike would be off by {uniform} only**: the largest singular value of A is {ratio} "
            "times the smallest, and along the small ones its inverse magnifies.",
            ratio=number(found.condition),
            **words,
        )
    second = _(
        "**Nyström attention** keeps the form and not the formula: each entry of a column of softmax is divided by a "
        "sum over all {n} keys, so even one column takes all {full:,} products of queries and keys. It takes softmax "
        "over landmarks in the place of all three factors, {own:,} products, and is off by {attention}: {beside}.",
        n=n,
        full=n * n,
        own=2 * n * m + m * m,
        beside=_beside(errors[ATTENTION], errors[FORMULA]),
        **words,
    )
    if 2 * n * m + m * m >= n * n:
        second = paragraph(second, _("With so many landmarks for so few tokens that saves nothing."))
    if both_ways:
        second = paragraph(
            second, _("This model hides the future, as no landmark can; its softmax is taken both ways here.")
        )
    return f"{first}\n\n{second}"


def _beside(attention: float, formula: float) -> str:
    if max(attention, formula) <= EQUAL * min(attention, formula):
        return _("as far from softmax as the formula on softmax itself")
    if attention < formula:
        return _("closer to softmax than the formula on softmax itself")
    return _("further from softmax than the formula on softmax itself")


def _picks() -> dict[str, str]:
    return dict(zip(PICKS, (_("evenly spaced"), _("nearest to landmarks"), _("largest leverage")), strict=True))


def _landmarks(seen: Seen) -> int:
    return min(seen.attention.params.landmarks, len(seen.weights))  # type: ignore[attr-defined]


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
    pictures.grids(
        [
            Grid(title=title, caption=words, values=values, rows=seen.labels, columns=seen.labels)
            for title, words, values in shown
        ],
        f"{key}.columns",
        scale="panel",
        masked=_("not read"),
    )


def _names(seen: Seen) -> dict[str, str]:
    return {
        FORMULA: _("Nyström's formula"),
        BEST: _("best middle"),
        ATTENTION: label(seen.attention),
        FLOOR: _("best of rank m (SVD)"),
        UNIFORM: _("uniform attention"),
    }


def _against_m(seen: Seen, rows: tuple[Row, ...], key: str) -> None:
    """Every error over the number of columns and rows."""
    pick, names = st.session_state[FIELD], _names(seen)
    names[ATTENTION] = _("Nyström attention")
    strokes = {FLOOR: (GREY, "dash"), UNIFORM: (GREY, "dot")}
    drawn = []
    for place, (made, name) in enumerate(names.items()):
        points = {
            int(row["m"] or 0): float(row["error"] or 0)
            for row in rows
            if row["made"] == made and row["pick"] in (None, pick)
        }
        colour, dash = strokes.get(made, (place, "solid"))
        drawn.append(
            Curve(
                name=name,
                x=list(points),
                y=[error if error > 0 else None for error in points.values()],
                colour=colour,
                dash=dash,
                marks=made not in strokes,
            )
        )
    pictures.lines(
        drawn,
        key=f"{key}.against",
        x_title=_("columns and rows, or landmarks, m"),
        y_title=_("relative error beside softmax"),
        log_x=True,
        log_y=True,
        mark=_landmarks(seen),
        x_ticks=drawn[0].x,
        height=380,
        alt=_("Lines: how far each matrix is from softmax, over the number of columns and rows"),
    )


def _table(seen: Seen, rows: tuple[Row, ...]) -> None:
    """Every error at the number of landmarks that is looked at, the other choices of columns and rows too."""
    names, m, picks = _names(seen), _landmarks(seen), _picks()
    lines = [f"| m = {m} | {_('off softmax by')} |", "| :-- | --: |"]
    for made in (FLOOR, BEST, FORMULA, ATTENTION, UNIFORM):
        for row in rows:
            if row["made"] == made and row["m"] == m:
                name = ", ".join([names[made], *([picks[str(row["pick"])]] if row["pick"] else [])])
                lines.append(f"| {literal(name)} | **{percent(float(row['error'] or 0))}** |")
    st.markdown("\n".join(lines))
    st.caption(
        _(
            "In double precision; singular values below {least} of the largest are dropped from an inverse. *Off by* "
            "is the Frobenius norm of the difference over softmax's.",
            least=written(RCOND, None),
        )
    )
