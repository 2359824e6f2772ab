"""Linformer, explained step by step on the Inside page: queries attend to m mixtures of the n keys and values."""

from dataclasses import replace
from functools import partial

import numpy as np

from app.words.i18n import _, enumeration, paragraph
from attention_core.analysis.low_rank import factors
from attention_core.analysis.masks import provenance
from pages.inside import pictures, pooling
from pages.inside.pictures import symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: projection, weights, best possible error, leakage, comparison with the reference."""
    if data.setting("projection") == "gaussian":
        first, second = _mix(data), _weights_on_mixtures(data)
    else:
        first, second = _window(data), pooling.weights_step(data)
    return (first, second, pooling.best_error_step(data), pooling.leak_step(data), compare_with_reference(data))


def _window(data: HeadData) -> Step:
    """Build the projection step if each row of E averages neighbouring tokens, with flat or triangular weights."""
    plain, P = pooling.pools_step(data, _("Projection E of keys")), data.parts["provenance"]
    heaviest = P.max(-1) / np.where(P > 0, P, np.inf).min(-1)
    conv = data.setting("projection") == "conv"
    shape = (
        _(
            "The middle token of a window has up to {times:.1f}× as much weight as the tokens at the ends of the "
            "window.",
            times=heaviest.max(),
        )
        if conv
        else _("Each projected key gives the same weight to all tokens of its window.")
    )
    return replace(
        plain,
        title=_("Projection"),
        mechanism=_(
            "The n keys and n values are projected to m keys and m values. Here, each projected key "
            "combines a fixed window of neighbouring tokens."
        ),
        formula=rf"\tilde K = {symbol(0, 'E')} K,\qquad \tilde V = F V",
        shapes={"E": P.shape, "F": P.shape},
        findings=paragraph(plain.findings, shape),
    )


def _mix(data: HeadData) -> Step:
    """Build the projection step for a random projection E, with which every projected key mixes all tokens."""
    E, F = data.parts["provenance"], data.parts["right"]
    m, n = E.shape
    back = factors.product(F.T, E)
    noise = back[~np.eye(n, dtype=bool)].std() if n > 1 else 0.0
    token = np.abs(E[0]).argmax()

    def draw(key: str) -> None:
        panel = partial(pictures.panel, columns=data.labels, column=_("token"))
        values = panel(_("Projection F of values"), F, _names(m), row=_("projected value"), mark=1)
        pictures.board(
            f"{key}.mixtures",
            panel(_("Projection E of keys"), E, _names(m), row=_("projected key"), mark=0),
            *([] if np.array_equal(E, F) else [values]),
            panel(_("FᵀE: tokens rebuilt from the projections"), back, data.labels, row=_("token")),
            tone="linear",
            scale="panel",
        )

    return Step(
        title=_("Projection"),
        mechanism=_(
            "The n keys and n values are projected to m keys and m values. Each projected key is a random "
            "mixture of all tokens."
        ),
        formula=rf"\tilde K = {symbol(0, 'E')} K,\qquad \tilde V = {symbol(1, 'F')} V,\qquad "
        r"E_{rj} \sim \mathcal{N}(0, \tfrac{1}{m})",
        shapes={"E": (m, n), "F": (m, n)},
        findings=paragraph(
            _(
                "Each of the **{m} keys** is a weighted sum of all {n} tokens. In absolute value, the weights in key "
                "0 are about as spread out as equal weights on {size:.0f} tokens. The token with the largest weight "
                "in key 0 is “{token}” ({share:+.2f}).",
                m=m,
                n=n,
                size=provenance.effective_tokens(E)[0],
                token=data.token(token),
                share=E[0, token],
            ),
            _(
                "A token rebuilt from the mixtures is a weighted sum of all tokens. The token's own weight in this "
                "sum is {own:.2f} on average. The weights of the other tokens are random, typically ±{noise:.2f}.",
                own=back.diagonal().mean(),
                noise=noise,
            ),
        ),
        draw=draw,
    )


def _weights_on_mixtures(data: HeadData) -> Step:
    left, E = data.parts["left"], data.parts["provenance"]
    i, r = np.unravel_index(int(left.argmax()), left.shape)
    makers = enumeration(
        _("“{token}” {share:+.2f}", token=data.token(j), share=E[r, j])
        for j in np.argsort(-np.abs(E[r]), kind="stable")[:3]
    )

    def draw(key: str) -> None:
        column = _("projected key")
        shown = pictures.panel(_("Weights L"), left, data.labels, _names(left.shape[1]), column=column, mark=0)
        pictures.board(f"{key}.left", shown, scale="panel")

    return Step(
        title=_("Weights on mixtures"),
        mechanism=_("Each query attends to the m projected keys instead of the n keys."),
        formula=symbol(0, "L") + r" = \operatorname{softmax}\left(\frac{Q \tilde K^\top}{\sqrt d}\right)",
        shapes={"Q": data.qkv.q.shape[1:], r"\tilde K": (left.shape[1], data.qkv.k.shape[-1]), "L": left.shape},
        findings=_(
            "**“{query}”** (token {i}) gives {weight:.0%} of its weight to projected key {key}, more than to any "
            "other. The tokens with the largest shares in this key are {makers}.",
            query=data.token(i),
            i=i,
            weight=left[i, r],
            key=r,
            makers=makers,
        ),
        draw=draw,
    )


def _names(m: int) -> list[str]:
    return [_("key {number}", number=number) for number in range(m)]
