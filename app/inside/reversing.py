"""Reformer's other saving: residuals that can be run backwards, so that no activations are kept."""

from collections.abc import Sequence

import streamlit as st

from app import run
from app.inside import pictures
from app.inside.pictures import Curve
from app.inside.step import Seen, Step
from app.text import _
from attention_core.experiments import reversible
from attention_core.experiments.reversible import CHECKPOINTS, MOST, PLAIN, REVERSIBLE, WAYS
from attention_core.experiments.task import Row
from attention_core.writing import MIB, memory, written


def memory_over_depth(seen: Seen) -> Step:
    """What forward and backward hold of a stack, the deeper the stack, in three ways."""
    n, d = seen.qkv.n, seen.qkv.q.shape[-1]
    shown = min(n, MOST)

    def draw(key: str) -> None:
        tasks = reversible.tasks(seen.source, n, d, head=seen.head)
        run.at_once("reversible", tasks, _draw, key=f"{key}.memory")

    return Step(
        title=_("Keep no activations"),
        formula=r"\begin{aligned} y_1 &= x_1 + F(x_2) & x_2 &= y_2 - G(y_1) \\ "
        r"y_2 &= x_2 + G(y_1) & x_1 &= y_1 - F(x_2) \end{aligned}",
        shapes={r"x_1, x_2, y_1, y_2": (shown, d)},
        sentence=_(
            "The paper's other half: every block adds to one of **two streams** what it makes of the other, so the "
            "last streams give back all earlier ones, and a backward pass needs no more. Here this head's queries, "
            "{n} tokens, go through blocks of softmax attention F and a feed-forward layer G with drawn weights.",
            n=shown,
        ),
        draw=draw,
    )


def _draw(rows: Sequence[Row], key: str) -> None:
    if told := in_one_sentence(rows):
        st.markdown(told)
    names = {
        PLAIN: _("plain residuals"),
        CHECKPOINTS: _("a checkpoint every √L blocks"),
        REVERSIBLE: _("reversible residuals"),
    }
    promised = reversible.promised(rows)
    lines = []
    for place, way in enumerate(WAYS):
        counted = [(int(r["depth"] or 0), float(r["peak_bytes"] or 0) / MIB) for r in rows if r["way"] == way]
        by_formula = [(depth, found / MIB) for depth, found in promised[way]]
        for points, dash in ((counted, "solid"), (by_formula, "dash")):
            if points:
                x, y = zip(*points, strict=True)
                lines.append(
                    Curve(
                        name=names[way],
                        x=x,
                        y=y,
                        colour=place,
                        dash=dash,
                        marks=dash == "solid",
                        group=way,
                        listed=dash == "solid",
                    )
                )
    pictures.lines(
        lines,
        key=f"{key}.lines",
        x_title=_("blocks L"),
        y_title=_("MiB at the peak, forward + backward"),
        log_x=True,
        log_y=True,
        x_ticks=sorted({int(r["depth"] or 0) for r in rows}),
        alt=_("Lines: bytes that a forward and backward pass holds against the number of blocks, in three ways"),
    )
    st.caption(
        _(
            "Points: counted tensor by tensor, beyond the input, the weights and their gradients. Dashes, at most "
            "{off:.1%} off: what one block holds, and what the formula adds for more of them: all that a block keeps, "
            "L·a; two streams per checkpoint and one segment's blocks, √L·(2nd + a); nothing, but once the streams "
            "that are restored.",
            off=reversible.miss(rows),
        )
    )


def in_one_sentence(rows: Sequence[Row]) -> str:
    """What the deepest stack holds in all three ways, and how well its input comes back; empty before there is one."""
    held = {(r["way"], int(r["depth"] or 0)): float(r["peak_bytes"] or 0) for r in rows}
    depths = sorted({depth for _way, depth in held if all((way, depth) in held for way in WAYS)} - {1})
    if not depths:
        return ""
    first, last = depths[0], depths[-1]
    error = next(float(r["error"] or 0) for r in rows if r["way"] == REVERSIBLE and r["depth"] == last)
    plain, checkpoints, own = (held[way, last] for way in (PLAIN, CHECKPOINTS, REVERSIBLE))
    words = _(
        "At **{blocks} blocks** plain residuals hold {plain}, a checkpoint every {every} blocks {checkpoints}, "
        "reversible ones **{own}**: {factor:.1f} times less than plain.",
        blocks=last,
        plain=memory(plain),
        every=reversible.segment(last),
        checkpoints=memory(checkpoints),
        own=memory(own),
        factor=plain / own,
    )
    if last > first:
        words += " " + _(
            "From {first} blocks to {blocks} theirs grows {growth:.2f}-fold, plain ones' {plain:.2f}-fold.",
            first=first,
            blocks=last,
            growth=own / held[REVERSIBLE, first],
            plain=plain / held[PLAIN, first],
        )
    return (
        words
        + " "
        + _(
            "Run backwards in float32, the blocks give the input back to within {error} of its size.",
            error=written(error, 2),
        )
    )
