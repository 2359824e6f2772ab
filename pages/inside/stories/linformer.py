"""Story of Linformer: n keys and values are projected to m before the queries attend to them."""

from dataclasses import replace
from functools import partial

import numpy as np

from app.words.i18n import _, paragraph
from attention_core.analysis.low_rank import factors
from attention_core.analysis.masks import provenance
from pages.inside import pictures, pooling
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: project, attend, blur, leak, comparison with the reference."""
    if seen.setting("projection") == "gaussian":
        first, second = _mix(seen), _look(seen)
    else:
        first, second = _window(seen), pooling.look(seen)
    return first, second, pooling.blur(seen), pooling.leak(seen), beside_reference(seen, _(seen.attention.variant.note))


def _window(seen: Seen) -> Step:
    """Build the projection step for an untrained E that is a flat or triangular window over neighbours."""
    plain, P = pooling.cover(seen), seen.parts["provenance"]
    heaviest = P.max(-1) / np.where(P > 0, P, np.inf).min(-1)
    conv = seen.setting("projection") == "conv"
    shape = (
        _("The window is a triangle: in a key the middle counts up to {times:.1f}× its ends.", times=heaviest.max())
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
    """Build the projection step for a random E, in which every key contains a share of every token."""
    E, F = seen.parts["provenance"], seen.parts["right"]
    m, n = E.shape
    back = factors.product(F.T, E)
    noise = back[~np.eye(n, dtype=bool)].std() if n > 1 else 0.0
    token = np.abs(E[0]).argmax()

    def draw(key: str) -> None:
        panel = partial(pictures.panel, columns=seen.labels, column=_("token"))
        values = panel(_("F: what each value is made of"), F, _names(m), row=_("projected value"))
        pictures.board(
            f"{key}.mixtures",
            panel(_("E: what each key is made of"), E, _names(m), row=_("projected key")),
            *([] if np.array_equal(E, F) else [values]),
            panel(_("FᵀE: what comes back of each token"), back, seen.labels, row=_("token")),
            unit=_("share of the token"),
            tone="linear",
            scale="panel",
        )

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
            size=provenance.effective_tokens(E)[0],
            token=seen.token(token),
            share=E[0, token],
            own=back.diagonal().mean(),
            noise=noise,
        ),
        draw=draw,
    )


def _look(seen: Seen) -> Step:
    """Build the step that shows softmax over the random mixtures."""
    left, E = seen.parts["left"], seen.parts["provenance"]
    i, r = np.unravel_index(int(left.argmax()), left.shape)
    makers = ", ".join(
        _("“{token}” {share:+.2f}", token=seen.token(j), share=E[r, j])
        for j in np.argsort(-np.abs(E[r]), kind="stable")[:3]
    )

    def draw(key: str) -> None:
        title, column = _("Left factor: softmax over the mixtures"), _("projected key")
        looks = pictures.panel(title, left, seen.labels, _names(left.shape[1]), column=column)
        pictures.board(f"{key}.left", looks)

    return Step(
        title=_("Look at the mixtures"),
        formula=r"L = \operatorname{softmax}\left(\frac{Q \tilde K^\top}{\sqrt d}\right) \in \mathbb{R}^{n \times m}",
        shapes={"Q": seen.qkv.q.shape[1:], r"\tilde K": (left.shape[1], seen.qkv.k.shape[-1]), "L": left.shape},
        sentence=_(
            "The firmest look: **“{query}”** (token {i}) puts {weight:.0%} of its weight on key {key}, which is mostly "
            "{makers}: no token in particular.",
            query=seen.token(i),
            i=i,
            weight=left[i, r],
            key=r,
            makers=makers,
        ),
        draw=draw,
    )


def _names(m: int) -> list[str]:
    return [_("key {number}", number=number) for number in range(m)]
