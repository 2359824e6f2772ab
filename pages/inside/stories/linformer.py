"""Linformer: all keys and values are mixed down to m of each before any query looks."""

from dataclasses import replace

import numpy as np

from app.text import _, literal, paragraph
from attention_core.looks import factors, provenance
from pages.inside import pictures, pooling
from pages.inside.pictures import Grid
from pages.inside.reference import beside_reference
from pages.inside.story import Seen, Step


def steps(seen: Seen) -> tuple[Step, ...]:
    """Project, look, multiply, leak, compare."""
    if seen.setting("projection") == "gaussian":
        first, second = _mix(seen), _look(seen)
    else:
        first, second = _window(seen), pooling.look(seen)
    return first, second, pooling.blur(seen), pooling.leak(seen), beside_reference(seen, _(seen.attention.variant.note))


def _window(seen: Seen) -> Step:
    """E without training: a window over neighbours, flat or triangular."""
    plain, P = pooling.cover(seen), seen.parts["provenance"]
    heaviest = P.max(-1) / np.where(P > 0, P, np.inf).min(-1)
    conv = seen.setting("projection") == "conv"
    shape = (
        _(
            "The window is a triangle: in a key the middle counts up to {times:.1f} times its ends.",
            times=heaviest.max(),
        )
        if conv
        else _("The window is flat: each token of a key counts alike.")
    )
    return replace(
        plain,
        title=_("Project n keys to m"),
        formula=r"\tilde K = E K,\qquad \tilde V = F V,\qquad E, F \in \mathbb{R}^{m \times n}",
        shapes={"E": P.shape, "F": P.shape},
        sentence=paragraph(plain.sentence, shape, _("The paper trains E and F; here they are untrained.")),
    )


def _mix(seen: Seen) -> Step:
    """E drawn at random: every key holds something of every token."""
    E, F = seen.parts["provenance"], seen.parts["right"]
    m, n = E.shape
    back = factors.product(F.T, E)
    noise = float(back[~np.eye(n, dtype=bool)].std()) if n > 1 else 0.0
    token = int(np.abs(E[0]).argmax())
    same = np.array_equal(E, F)

    def draw(key: str) -> None:
        names = [_("key {number}", number=r) for r in range(m)]
        drawn = [
            Grid(
                title=_("E: what each key is made of"),
                values=E,
                rows=names,
                columns=seen.labels,
                row_title=_("projected key"),
                col_title=_("token"),
            )
        ]
        if not same:
            drawn.append(
                Grid(
                    title=_("F: what each value is made of"),
                    values=F,
                    rows=names,
                    columns=seen.labels,
                    row_title=_("projected value"),
                    col_title=_("token"),
                )
            )
        drawn.append(
            Grid(
                title=_("FᵀE: what comes back of each token"),
                values=back,
                rows=seen.labels,
                columns=seen.labels,
                row_title=_("token"),
                col_title=_("token"),
            )
        )
        pictures.grids(drawn, f"{key}.mixtures", unit=_("share of the token"), tone="linear", scale="panel")

    return Step(
        title=_("Project n keys to m"),
        formula=r"\tilde K = E K,\qquad \tilde V = F V,\qquad E_{rj} \sim \mathcal{N}(0, \tfrac{1}{m})",
        shapes={"E": (m, n), "F": (m, n)},
        sentence=_(
            "Each of **{m} keys** is a random sum over all {n} tokens, with plus and minus: key 0 amounts to "
            "{size:.0f} equally weighted ones, most of all “{token}” ({share:+.2f}). A token comes back as {own:.2f} "
            "of itself and ±{noise:.2f} of every other. The paper trains E and F; here they are untrained.",
            m=m,
            n=n,
            size=float(provenance.blended(E)[0]),
            token=literal(seen.labels[token]),
            share=float(E[0, token]),
            own=float(back.diagonal().mean()),
            noise=noise,
        ),
        draw=draw,
    )


def _look(seen: Seen) -> Step:
    """Softmax over random mixtures."""
    left, E = seen.parts["left"], seen.parts["provenance"]
    i, r = np.unravel_index(int(left.argmax()), left.shape)
    makers = ", ".join(
        _("“{token}” {share:+.2f}", token=literal(seen.labels[j]), share=float(E[r, j]))
        for j in np.argsort(-np.abs(E[r]), kind="stable")[:3]
    )
    return Step(
        title=_("Look at the mixtures"),
        formula=r"L = \operatorname{softmax}\left(\frac{Q \tilde K^\top}{\sqrt d}\right) \in \mathbb{R}^{n \times m}",
        shapes={"Q": seen.qkv.q.shape[1:], r"\tilde K": (left.shape[1], seen.qkv.k.shape[-1]), "L": left.shape},
        sentence=_(
            "The firmest look: **“{query}”** (token {i}) puts {weight:.0%} of its weight on key {key}, which is mostly "
            "{makers}: no token in particular.",
            query=literal(seen.labels[i]),
            i=int(i),
            weight=float(left[i, r]),
            key=int(r),
            makers=makers,
        ),
        draw=lambda key: pictures.grid(
            _("Left factor: softmax over the mixtures"),
            left,
            f"{key}.left",
            seen.labels,
            [_("key {number}", number=number) for number in range(left.shape[1])],
            col_title=_("projected key"),
        ),
    )
