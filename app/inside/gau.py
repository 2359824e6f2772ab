"""The gated attention unit in the story of squared ReLU: one matrix for all channels, its gate, and its price."""

import numpy as np
import streamlit as st

from app import compute, share
from app.inside import pictures
from app.inside.closing import shown
from app.inside.pictures import Curve, Grid
from app.inside.step import Seen, Step
from app.text import _, paragraph
from attention_core.looks.gau import EXPANSION, Look, block_price, shared_size, unit_price
from attention_core.writing import number

SHUT = 0.1
"""A gate below this size lets hardly anything through."""
SAME = 0.005
"""A share that is written as 0 %."""
LENGTHS = tuple(2**i for i in range(5, 16))
"""Lengths at which both prices are worked out."""
DIVISORS = {"length": "n_i", "squared": "n_i^2", "fixed": "n_0", "sum": r"\sum_l \operatorname{relu}^2(\cdot)"}


def steps(seen: Seen) -> tuple[Step, ...]:
    """The unit's matrix beside the heads', its gate, and what it costs."""
    found = compute.gau(seen.source, seen.attention, causal=seen.causal)
    return _one_matrix(seen, found), _gate(seen, found), _price(seen)


def _width(seen: Seen) -> int:
    return seen.qkv.heads * seen.qkv.v.shape[-1]


def _one_matrix(seen: Seen, found: Look) -> Step:
    n, width, s = seen.qkv.n, _width(seen), shared_size(_width(seen))
    divisor = DIVISORS[seen.attention.params.normalizer]  # type: ignore[attr-defined]

    def draw(key: str) -> None:
        named = [
            (_("Gated unit"), _("projections drawn, untrained"), found.weights),
            (_("Squared ReLU"), _("head {head}, its own q and k", head=seen.head), seen.weights),
            *((_("Softmax"), _("head {head}", head=i), head) for i, head in enumerate(found.heads)),
        ]
        pictures.grids(
            [
                Grid(title=title, caption=words, values=shown(seen, values), rows=seen.labels, columns=seen.labels)
                for title, words, values in named
            ],
            key,
            scale="panel",
        )
        if len(found.heads) < seen.qkv.heads:
            st.caption(_("Shown are the first {shown} of {heads} heads.", shown=len(found.heads), heads=seen.qkv.heads))

    return Step(
        title=_("One matrix (GAU)"),
        formula=r"A = \frac{\operatorname{relu}^2(Q K^\top / \sqrt{s})}{" + divisor + r"},\quad "
        r"Q = \gamma_q \odot Z + \beta_q,\quad K = \gamma_k \odot Z + \beta_k,\quad "
        r"Z = \operatorname{SiLU}(X W_z)",
        shapes={"X": (n, width), "Z": (n, s), "A": (n, n)},
        sentence=matrix_sentence(seen.qkv.heads, EXPANSION * width, found.apart),
        draw=draw,
    )


def matrix_sentence(heads: int, channels: int, apart: float) -> str:
    """One matrix for all channels, and how differently the heads of the input look."""
    told = _(
        "Squared ReLU attention comes from the **gated attention unit**: all its {channels} channels share one matrix, "
        "made from one Z. Here X are the values of all heads side by side, every token normalised, and the unit is "
        "untrained.",
        channels=channels,
    )
    if heads == 1:
        return paragraph(told, _("This input has one head, so softmax has a single matrix too."))
    return (
        told
        + " "
        + _(
            "Softmax has a matrix for each of the {heads} heads: {apart:.0%} of a row's mass lies on other tokens than "
            "in the heads' average.",
            heads=heads,
            apart=apart,
        )
    )


def _gate(seen: Seen, found: Look) -> Step:
    (n, channels), total = found.gate.shape, EXPANSION * _width(seen)

    def draw(key: str) -> None:
        names = [str(c) for c in range(channels)]
        pictures.grid(
            _("Gate U"),
            found.gate,
            f"{key}.gate",
            seen.labels,
            names,
            row_title=_("token"),
            col_title=_("channel"),
            unit=_("gate"),
            diverging=True,
            tone="linear",
            caption=_("the first {channels} of {total} channels", channels=channels, total=total)
            if channels < total
            else "",
        )
        own = st.select_slider(
            _("Channel c"), range(channels), **share.mirror("channel", range(channels), 0, key=f"{key}.channel")
        )
        pictures.grids(
            [
                Grid(title=title, caption=words, values=shown(seen, values), rows=seen.labels, columns=seen.labels)
                for title, words, values in (
                    (_("A"), _("shared by all channels"), found.weights),
                    (_("diag(u) A"), _("what channel {own} sees", own=own), found.gate[:, own, None] * found.weights),
                )
            ],
            f"{key}.own",
            diverging=True,
        )

    return Step(
        title=_("Gate"),
        formula=r"O = U \odot (A V),\quad U = \operatorname{SiLU}(X W_u),\quad V = \operatorname{SiLU}(X W_v),\qquad "
        r"O_{\cdot c} = \operatorname{diag}(u_c)\, A\, V_{\cdot c}",
        shapes={"U": (n, total), "V": (n, total), "A": (n, n)},
        sentence=gate_sentence(found),
        draw=draw,
    )


def gate_sentence(found: Look) -> str:
    """How far the gates open, and how far what passes lies from what came."""
    shut, negative = float((np.abs(found.gate) < SHUT).mean()), float((found.gate < 0).mean())
    told = _(
        "{shut:.0%} of these untrained gates are all but shut (between −{bound} and {bound}), {negative:.0%} are "
        "negative; the widest is {most}.",
        shut=shut,
        bound=SHUT,
        negative=negative,
        most=number(float(found.gate.max())),
    )
    if found.distance is None:
        told = paragraph(told, _("Nothing comes through: A V is zero here, or every gate that it meets."))
    elif found.distance < SAME:
        told = paragraph(told, _("They only scale: the gated output is a multiple of A V."))
    else:
        told += " " + _(
            "They do more than scale: the gated output lies {distance:.0%} of its length away from every multiple of "
            "A V.",
            distance=found.distance,
        )
    return f"{told} " + _(
        "So each channel has a matrix of its own, diag(u) A, but only its rows are scaled: in one row all channels "
        "share their weights among the tokens alike."
    )


def _price(seen: Seen) -> Step:
    n, width, heads = seen.qkv.n, _width(seen), seen.qkv.heads

    def draw(key: str) -> None:
        left, right = st.columns(2)
        both = (
            (_("attention and feed-forward"), lambda m: block_price(m, width, heads), 1),
            (_("two gated units"), lambda m: unit_price(m, width), 2),
        )
        for place, title, name in (
            (left, _("multiply-adds"), "multiply_adds"),
            (right, _("numbers in attention matrices"), "matrices"),
        ):
            with place:
                pictures.lines(
                    [
                        Curve(name=word, x=LENGTHS, y=[times * getattr(price(m), name) for m in LENGTHS], colour=i)
                        for i, (word, price, times) in enumerate(both)
                    ],
                    key=f"{key}.{name}",
                    x_title=_("tokens n"),
                    y_title=title,
                    log_x=True,
                    log_y=True,
                    mark=n,
                    x_ticks=LENGTHS[::2],
                    height=380,
                    alt=_("Lines: {what} of both layers against the number of tokens", what=title),
                )

    return Step(
        title=_("Two for one"),
        formula=r"12 D^2 n + 2 D n^2 \quad\text{against}\quad 2\left((6 D^2 + D s)\, n + (2 D + s)\, n^2\right)",
        shapes={"D": (width,), "s": (shared_size(width),), "e = 2D": (EXPANSION * width,)},
        sentence=price_sentence(n, width, heads),
        draw=draw,
    )


def price_sentence(n: int, width: int, heads: int) -> str:
    """What two units cost beside the block they replace, here and at the longest length drawn."""
    block, unit, longest = block_price(n, width, heads), unit_price(n, width), LENGTHS[-1]
    far = 2 * unit_price(longest, width).multiply_adds / block_price(longest, width, heads).multiply_adds
    return _(
        "In the paper two units take the place of one layer of attention and one feed-forward layer. At this width D = "
        "{width} they have {parameters:.2f} times as many parameters; on {n} tokens they take {adds:.2f} times as many "
        "multiply-adds, at {longest:,} tokens {far:.2f} times, as each A mixes twice as many channels. Their attention "
        "matrices hold {own:,} numbers, the layer's {theirs:,}, as it has one for each head.",
        width=width,
        parameters=2 * unit.parameters / block.parameters,
        n=n,
        adds=2 * unit.multiply_adds / block.multiply_adds,
        longest=longest,
        far=far,
        own=2 * unit.matrices,
        theirs=block.matrices,
    )
