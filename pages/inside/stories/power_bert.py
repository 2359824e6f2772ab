"""Story of PoWER-BERT: which tokens receive enough attention to stay, and what is lost with the others."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from app.figures.lines.curves import guide
from app.words.i18n import _, _n
from pages.inside import pictures
from pages.inside.pictures import Curve
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step
from pages.inside.tokens import painted

STEEP = 8
"""Multiple of the median received attention from which the bars use a log scale."""


@dataclass(frozen=True, eq=False)
class Tally:
    """The tokens that stay and those that are dropped.

    Attributes:
        received: attention that each token receives, as a multiple of the mean, ``[n]``.
        stays: whether each token stays, ``bool [n]``.
        ranked: the tokens by received attention, descending.
    """

    received: np.ndarray
    stays: np.ndarray
    ranked: np.ndarray

    @property
    def gone(self) -> np.ndarray:
        """The dropped tokens in text order."""
        return np.flatnonzero(~self.stays)


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: received attention, dropped tokens, rows, lost mass, comparison with the reference."""
    significance = seen.parts["significance"].astype(np.float64)
    stays = np.zeros(len(significance), bool)
    stays[seen.parts["survivors"]] = True
    tally = Tally(significance / significance.mean(), stays, np.argsort(-significance, kind="stable"))
    return _count(seen, tally), _drop(seen, tally), _rows(seen, tally), _lost(seen, tally), beside_reference(seen)


def _count(seen: Seen, tally: Tally) -> Step:
    received, top = tally.received, tally.ranked[:3]
    n = len(received)
    shares = np.cumsum(received[tally.ranked]) / n

    return Step(
        title=_("Attention received"),
        formula=r"s_j = \sum_{\text{heads}} \sum_i P_{ij},\qquad P = \operatorname{softmax}"
        r"\left(\frac{QK^\top}{\sqrt d}\right)",
        shapes={"P": (seen.qkv.heads, n, n), "s": (n,)},
        sentence=_(
            "Over all {heads} heads {first} receives most attention, **{times:.1f}×** what it would if all were "
            "alike; {others} follow. Half of all attention goes to {count} of {n} tokens.",
            heads=seen.qkv.heads,
            first=_quoted(seen, top[:1]),
            times=received[top[0]],
            others=_quoted(seen, top[1:]) or _("none"),
            count=(shares < 0.5).sum() + 1,
            n=n,
        ),
        draw=lambda key: _bars(seen, tally, key, range(n), _("token, in the order of the text")),
    )


def _drop(seen: Seen, tally: Tally) -> Step:
    n, kept = len(tally.received), int(tally.stays.sum())

    def draw(key: str) -> None:
        st.html(
            painted(
                seen.labels,
                np.where(tally.stays, 0, -1).tolist(),
                notes=[_("token {i}: {x:.2f}× the mean", i=i, x=x) for i, x in enumerate(tally.received)],
                faded=set(tally.gone.tolist()),
            )
        )
        st.caption(_("Struck through: dropped after this layer."))
        _bars(seen, tally, key, tally.ranked, _("token, by what it receives"))

    return Step(
        title=_("Who stays"),
        formula=r"\text{token } j \text{ stays} \iff s_j \text{ is among the } "
        r"\max(1, \lfloor \kappa n + \tfrac12 \rfloor) \text{ largest}",
        shapes={"s": (n,), r"\text{survivors}": (kept,)},
        sentence=_("All {n} tokens stay: nothing is dropped at this share.", n=n)
        if kept == n
        else _(
            "**{kept} of {n}** tokens stay. The last to stay is {last} with {low:.2f}× the mean, the first to go "
            "{first} with {next:.2f}; {gone} receive least.",
            kept=kept,
            n=n,
            last=_quoted(seen, tally.ranked[kept - 1 : kept]),
            low=tally.received[tally.ranked[kept - 1]],
            first=_quoted(seen, tally.ranked[kept : kept + 1]),
            next=tally.received[tally.ranked[kept]],
            gone=_quoted(seen, tally.ranked[max(kept, n - 3) :]),
        ),
        draw=draw,
    )


def _rows(seen: Seen, tally: Tally) -> Step:
    n, gone = len(tally.received), tally.gone
    zero = (np.abs(seen.weights).sum(-1) == 0).sum()
    moved = np.abs(seen.weights - seen.reference)[tally.stays].max()
    return Step(
        title=_("Zero rows"),
        formula=r"A_{ij} = \begin{cases} P_{ij} & i \text{ stays} \\ 0 & \text{otherwise} \end{cases}",
        shapes={"A": (n, n), r"A_{\text{survivors}}": (n - len(gone), n)},
        sentence=_(
            "**{zero} of {n}** rows are zero, {part:.0%} of the matrix: these outputs are not computed. The other rows "
            "differ from softmax's by {moved:.1g} at most: they still look at dropped tokens.",
            zero=zero,
            n=n,
            part=zero / n,
            moved=moved,
        ),
        draw=lambda key: pictures.board(
            f"{key}.rows",
            pictures.pairs(
                seen, _("Weights, dropped rows masked"), np.where(tally.stays[:, None], seen.weights, np.nan)
            ),
            pictures.pairs(seen, _("Softmax"), seen.reference),
        ),
    )


def _lost(seen: Seen, tally: Tally) -> Step:
    n, gone, kept = len(tally.received), tally.gone, int(tally.stays.sum())
    every = tally.received[gone].sum() / n
    here = seen.reference[:, gone].sum(-1)
    worst = here.argmax()
    lost = 100 * (1 - np.cumsum(tally.received[tally.ranked]) / n)
    column = 100 * (1 - np.cumsum(seen.reference.mean(0)[tally.ranked]))

    def draw(key: str) -> None:
        shares = (100 * np.arange(1, n + 1) / n).tolist()
        pictures.lines(
            [
                Curve(_("all heads"), shares, lost.clip(min=0).tolist(), marks=False),
                Curve(_("head {head}", head=seen.head), shares, column.clip(min=0).tolist(), marks=False, colour=1),
                guide(_("were all tokens alike"), shares, [100 - x for x in shares]),
            ],
            key=key,
            x_title=_("tokens kept, %"),
            y_title=_("attention to dropped tokens, %"),
            mark=100 * kept / n,
            alt=_("Lines: the share of softmax's mass on the dropped tokens against the share kept"),
        )

    return Step(
        title=_("What is lost"),
        formula=r"\text{lost} = \frac{\sum_{j \text{ dropped}} s_j}{\sum_j s_j}",
        shapes={"s": (n,)},
        sentence=_("Nothing is dropped, so nothing is lost.")
        if kept == n
        else _n(
            "The {n} dropped token held **{every:.1%}** of all attention, where an even share would be {even:.0%}; in "
            "head {head} {here:.1%}. Of “{query}” (token {i}) it held {most:.0%}.",
            "The {n} dropped tokens held **{every:.1%}** of all attention, where an even share would be {even:.0%}; in "
            "head {head} {here:.1%}. Of “{query}” (token {i}) they held {most:.0%}.",
            n=len(gone),
            every=every,
            even=len(gone) / n,
            head=seen.head,
            here=here.mean(),
            query=seen.token(worst),
            i=worst,
            most=here[worst],
        ),
        draw=draw,
    )


def _bars(seen: Seen, tally: Tally, key: str, order: range | np.ndarray, title: str) -> None:
    places = np.asarray(order)
    values, stays = tally.received[places], tally.stays[places]
    log = bool(values.max() > STEEP * np.median(values))
    pictures.bars(
        {_("stays"): np.where(stays, values, 0), _("goes"): np.where(stays, 0, values)},
        [seen.labels[i] for i in places],
        key=f"{key}.bars",
        stacked=True,
        x_title=title,
        y_title=_("times the mean (log)") if log else _("times the mean"),
        log=log,
        alt=_("Bars: the attention each token receives"),
    )


def _quoted(seen: Seen, tokens: np.ndarray) -> str:
    return ", ".join(_("“{token}”", token=seen.token(i)) for i in tokens)
