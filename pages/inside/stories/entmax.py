"""Story of entmax: the threshold of each row, the keys above it, and how the threshold moves with α."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app.figures.lines.curves import guide
from app.jobs import cached
from app.words.i18n import N_, _, _n, paragraph
from app.words.labels import tokens
from attention_core.formatting import number
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import Curve
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step, later
from pages.inside.tokens import painted

ALPHAS = tuple(1 + i / 20 for i in range(1, 21))
"""Values of α tried on the head's own logits, from nearly softmax to sparsemax."""
SHARE = r"\left[(\alpha - 1)\left(x_{ij} - t_i\right)\right]_+^{1/(\alpha-1)}"


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: logits, the threshold of one row, the effect of α, comparison with the reference."""
    ending = _(
        "{share:.0%} of the weights that may be seen are exactly zero; softmax's never are.",
        share=(seen.weights[seen.visible] == 0).mean(),
    )
    return _logits(seen), _row(seen), _moves(seen), beside_reference(seen, ending)


def _logits(seen: Seen) -> Step:
    logits, above = seen.parts["logits"], seen.parts["threshold"]
    height = np.where(seen.visible, logits - above[:, None], np.nan)

    def draw(key: str) -> None:
        pictures.board(
            key,
            pictures.pairs(seen, _("Logits"), logits),
            pictures.pairs(seen, _("Above the threshold"), height, _("blue: weighs, orange: weighs nothing")),
            unit=_("logit"),
            diverging=True,
            tone="linear",
            scale="panel",
        )

    return Step(
        title=_("A threshold per row"),
        formula=r"x_{ij} = \frac{q_i \cdot k_j}{\sqrt d},\qquad \textstyle\sum_j " + SHARE + " = 1",
        shapes={"x": logits.shape, "t": above.shape},
        sentence=_(
            "Each row looks for the one threshold t at which what lies above it sums to one. Here thresholds lie "
            "between {low} and {high}; a key above weighs the more the higher it stands, a key below weighs nothing.",
            low=number(above.min()),
            high=number(above.max()),
        ),
        draw=draw,
    )


def _row(seen: Seen) -> Step:
    n = len(seen.weights)

    def draw(key: str) -> None:
        query = _query(seen, key)
        weights, visible = seen.weights[query], seen.visible[query]
        shown = np.flatnonzero(visible)
        st.markdown(row_sentence(seen.token(query), weights[visible], [seen.token(i) for i in shown]))
        st.html(
            painted(
                [seen.labels[i] for i in shown],
                [0 if weights[i] else -1 for i in shown],
                notes=[_("key {i}: weight {x:.3f}", i=i, x=weights[i]) for i in shown],
                faded=set(np.flatnonzero(weights[shown] == 0).tolist()),
                places=shown.tolist(),
            )
        )
        st.caption(_("Struck through: exactly zero."))
        pictures.bars(
            {_("entmax"): weights[shown], _("softmax"): seen.reference[query][shown]},
            [seen.labels[i] for i in shown],
            numbers=shown.tolist(),
            key=f"{key}.row",
            x_title=_("key"),
            y_title=_("weight"),
            alt=_("Bars: one row's weights under entmax and softmax"),
        )

    kept = (seen.weights > 0).sum(-1)
    return Step(
        title=_("Who is left"),
        formula=r"A_{ij} = " + SHARE,
        shapes={"A": (n, n)},
        sentence=kept_sentence(kept, seen.visible.sum(-1)),
        draw=draw,
    )


def kept_sentence(kept: np.ndarray, seen: np.ndarray) -> str:
    """Return the sentence about how many of its visible keys each query keeps, both counts ``[n]``."""
    all_kept = int((kept == seen).sum())
    return paragraph(
        _(
            "The median query keeps {kept:g} of the {keys:g} keys it sees, the choosiest {least} and the broadest "
            "{most}.",
            kept=np.median(kept),
            keys=np.median(seen),
            least=kept.min(),
            most=kept.max(),
        ),
        _n("{n} query keeps every key.", "{n} queries keep every key.", n=all_kept)
        if all_kept
        else _("No query keeps every key."),
    )


def row_sentence(token: str, weights: np.ndarray, labels: Sequence[str]) -> str:
    """Return the sentence about which keys a query keeps.

    Args:
        token: the label of the query.
        weights: its weights on the visible keys.
        labels: the labels of these keys.
    """
    zero, top = int((weights == 0).sum()), labels[int(weights.argmax())]
    values = {"token": token, "top": top, "share": weights.max(), "n": len(weights), "zero": zero}
    if not zero:
        return _("“{token}” gives something to each of its {n} keys, most to “{top}” ({share:.0%}).", **values)
    if zero == len(weights) - 1:
        return _("“{token}” gives all it has to “{top}”: the other keys, {zero} of {n}, get exactly nothing.", **values)
    return _(
        "“{token}” gives exactly nothing to {zero} of its {n} keys, and most of what it has to “{top}” ({share:.0%}).",
        **values,
    )


@later(N_("The threshold moves"))
def _moves(seen: Seen) -> Step:
    found = cached.thresholds(seen.source, head=seen.head, causal=seen.causal, alphas=ALPHAS)
    keys = seen.visible.sum(-1)

    def draw(key: str) -> None:
        query = _query(seen, key)
        name = seen.labels[query]
        logits = seen.parts["logits"][query][seen.visible[query]]
        marked = {"mark": seen.setting("alpha"), "x_title": "α", "height": 340}
        left, right = st.columns(2)
        with left:
            pictures.lines(
                [
                    Curve(_("threshold"), ALPHAS, found.thresholds[:, query].tolist(), colour=0, marks=False),
                    guide(_("highest logit"), ALPHAS, [float(logits.max())] * len(ALPHAS)),
                    guide(_("lowest logit"), ALPHAS, [float(logits.min())] * len(ALPHAS), "dash"),
                ],
                key=f"{key}.threshold",
                y_title=_("logit"),
                alt=_("Line: one query's threshold against α, between its lowest and its highest logit"),
                **marked,
            )
        with right:
            pictures.lines(
                [
                    Curve(_("of “{token}”", token=name), ALPHAS, found.kept[:, query].tolist(), colour=0, marks=False),
                    Curve(
                        _("median of all queries"),
                        ALPHAS,
                        np.median(found.kept, 1).tolist(),
                        colour=1,
                        dash="dash",
                        marks=False,
                    ),
                ],
                key=f"{key}.kept",
                y_title=_("keys kept"),
                alt=_("Lines: how many keys a query keeps against α, one and the median of all"),
                **marked,
            )

    return Step(
        formula=r"t_i \to -\infty \text{ as } \alpha \to 1,\qquad "
        r"\alpha = 2:\; A_{ij} = \left[x_{ij} - t_i\right]_+",
        shapes={"t": (len(keys),)},
        sentence=moves_sentence(ALPHAS, np.median(found.kept, 1), float(np.median(keys))),
        draw=draw,
    )


def moves_sentence(alphas: Sequence[float], kept: np.ndarray, keys: float) -> str:
    """Return the sentence about how many keys the median query keeps as α rises.

    Args:
        alphas: values of α, ascending.
        kept: number of kept keys at each α.
        keys: number of visible keys.
    """
    fields = {"low": alphas[0], "high": alphas[-1], "first": kept[0], "last": kept[-1], "keys": keys}
    if kept[-1] == kept[0]:
        return _(
            "As α rises the threshold rises towards the highest logit; from α = {low:g} to {high:g} the median query "
            "still keeps {last:g} of {keys:g} keys.",
            **fields,
        )
    return _(
        "As α rises the threshold rises towards the highest logit: at α = {low:g}, nearly softmax, the median query "
        "keeps {first:g} of {keys:g} keys, at α = {high:g}, sparsemax, {last:g}.",
        **fields,
    )


def _query(seen: Seen, key: str) -> int:
    """Draw the query picker, with the last word as the default, and return the picked query."""
    return InsideOptions.query.draw_with_options(
        otherwise=seen.last_word, key=f"{key}.query", label=N_("Query that looks"), width=240, **tokens(seen.labels)
    )
