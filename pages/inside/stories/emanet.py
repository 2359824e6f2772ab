"""Story of EMANet: tokens are assigned to bases in rounds of expectation maximisation; both maps give the matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from app.words.i18n import _, _n, escape_markdown
from app.words.isolation import isolated
from attention_core.analysis.low_rank.factors import perplexity, product
from attention_core.formatting import at_most
from pages.inside import pictures
from pages.inside.pictures import Curve
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step

SHOWN = 4
"""Largest number of rounds drawn; the first and the last are always included."""
NAMED = 6
"""Tokens named for each basis."""


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: rounds, sharpening, contents of the bases, bases, product, comparison with the reference."""
    b = seen.parts["given"].shape[-1]
    ending = _("Its rank is at most b = {b}: tokens that mix the bases alike look alike.", b=b)
    return (
        _rounds(seen),
        _sharpening(seen),
        _holdings(seen),
        _bases(seen),
        _product(seen),
        beside_reference(seen, ending),
    )


def _taken(z: np.ndarray) -> np.ndarray:
    """Return the share of each token in each basis; each column sums to one, ``[n, b]``."""
    shares: np.ndarray = z / np.maximum(z.sum(0), np.finfo(np.float32).tiny)
    return shares


def _rounds(seen: Seen) -> Step:
    z = seen.parts["responsibilities"]
    count, n, b = z.shape
    owner = z.argmax(-1)
    moved = [float((owner[t] != owner[t - 1]).mean()) for t in range(1, count)]

    def draw(key: str) -> None:
        chosen = np.unique(np.linspace(0, count - 1, min(count, SHOWN)).round().astype(int))
        words = {"row": _("token"), "column": _("basis")}
        panels = (pictures.panel(_("Round {t}", t=t + 1), z[t], seen.labels, **words) for t in chosen)
        pictures.board(key, *panels, unit=_("responsibility"))

    return Step(
        title=_("Rounds"),
        formula=r"\begin{gathered}z_{jb} = \frac{e^{\lambda k_j\cdot\mu_b}}{\sum_c e^{\lambda k_j\cdot\mu_c}},\\[14pt] "
        r"\mu_b \leftarrow \frac{\sum_j z_{jb} k_j}{\left\|\sum_j z_{jb} k_j\right\|}\end{gathered}",
        shapes={"z": (n, b), r"\mu": seen.parts["bases"].shape[1:]},
        sentence=rounds_sentence(count, len(np.unique(owner[-1])), b, moved),
        draw=draw,
    )


def rounds_sentence(count: int, used: int, bases: int, moved: Sequence[float]) -> str:
    """Return the sentence about how many bases are in use, and how much the rounds still change.

    Args:
        count: number of rounds.
        used: number of bases that are nearest to at least one token.
        bases: number of all bases.
        moved: the share of tokens whose nearest basis changed, from the second round on.
    """
    values: dict[str, Any] = {"count": count, "used": used, "b": bases}
    if not moved:
        return _n(
            "After {n} round {used} of {b} bases are the nearest of some token.",
            "After {n} rounds {used} of {b} bases are the nearest of some token.",
            n=count,
            **values,
        )
    if len(moved) == 1:
        return _(
            "After {count} rounds {used} of {b} bases are the nearest of some token; {first:.0%} of the tokens changed "
            "their nearest basis in the second round.",
            first=moved[0],
            **values,
        )
    return _(
        "After {count} rounds {used} of {b} bases are the nearest of some token; {first:.0%} of the tokens changed "
        "their nearest basis in the second round, {last:.0%} in the last.",
        first=moved[0],
        last=moved[-1],
        **values,
    )


def _sharpening(seen: Seen) -> Step:
    z = seen.parts["responsibilities"]
    largest = z.max(-1).mean(-1)
    wide = perplexity(z).mean(-1)
    rounds = range(1, len(z) + 1)

    def draw(key: str) -> None:
        titles = {"largest": (_("largest responsibility"), largest), "wide": (_("bases per token, exp H"), wide)}
        for colour, (place, (name, (title, values))) in enumerate(zip(st.columns(2), titles.items(), strict=True)):
            with place:
                pictures.lines(
                    [Curve(title, rounds, values.tolist(), colour=colour)],
                    key=f"{key}.{name}",
                    x_title=_("round"),
                    y_title=title,
                    x_ticks=rounds,
                    height=280,
                    alt=_("Line: {what} in every round", what=title),
                )

    return Step(
        title=_("Firmness"),
        formula=r"\frac{1}{n}\sum_j \max_b z_{jb},\qquad \frac{1}{n}\sum_j e^{H(z_j)}",
        shapes={"z": z.shape},
        sentence=_(
            "A token's largest responsibility goes from {first:.0%} to {last:.0%} (alike would be {alike:.0%}); it is "
            "shared among {wide:.1f} bases at first and among {narrow:.1f} at last.",
            first=largest[0],
            last=largest[-1],
            alike=1 / z.shape[-1],
            wide=wide[0],
            narrow=wide[-1],
        ),
        draw=draw,
    )


def _holdings(seen: Seen) -> Step:
    z = seen.parts["responsibilities"][-1]
    held, taken = z.sum(0), _taken(z)
    order = held.argsort()[::-1].tolist()
    named = {b: [seen.labels[j] for j in taken[:, b].argsort()[::-1][:NAMED]] for b in order}

    def draw(key: str) -> None:
        st.dataframe(
            [
                {
                    _("basis"): b,
                    _("tokens held"): float(held[b]),
                    _("largest share"): float(taken[:, b].max()),
                    _("tokens it takes most from"): "  ·  ".join(map(isolated, named[b])),
                }
                for b in order
            ],
            hide_index=True,
            key=key,
            height="auto" if len(order) <= SHOWN * 4 else 460,
            column_config={
                _("tokens held"): st.column_config.NumberColumn(format="%.1f"),
                _("largest share"): st.column_config.NumberColumn(format="percent"),
            },
        )

    return Step(
        title=_("Holdings"),
        formula=r"\hat z_{jb} = \frac{z_{jb}}{\sum_l z_{lb}},\qquad \text{held by } b:\ \sum_j z_{jb}",
        shapes={r"\hat z": z.shape},
        sentence=_(
            "The largest basis holds {most:.1f} of {n} tokens, above all {tokens}; the smallest holds {least:.1f}.",
            most=held.max(),
            n=len(z),
            least=held.min(),
            tokens=", ".join(f"“{escape_markdown(token)}”" for token in named[held.argmax()][:3]),
        ),
        draw=draw,
    )


def _bases(seen: Seen) -> Step:
    bases = seen.parts["bases"]
    similar = product(bases, bases.swapaxes(-1, -2))
    beside = ~np.eye(bases.shape[1], dtype=bool)
    means = [float(each[beside].mean()) if beside.any() else 1.0 for each in (similar[0], similar[-1])]
    twins = int((np.triu(similar[-1], 1) > 0.99).sum())

    def draw(key: str) -> None:
        words, ends = {"row": _("basis"), "column": _("basis")}, sorted({0, len(bases) - 1})
        panels = (pictures.panel(_("After round {t}", t=t + 1), similar[t], **words) for t in ends)
        pictures.board(key, *panels, unit=_("cosine"), diverging=True, tone="linear")

    return Step(
        title=_("Bases"),
        formula=r"\mu_b \cdot \mu_c",
        shapes={r"\mu": bases.shape[1:]},
        sentence=bases_sentence(means[0], means[1], twins),
        draw=draw,
    )


def bases_sentence(first: float, last: float, twins: int) -> str:
    """Return the sentence about the similarity of the bases.

    Args:
        first: mean cosine of two bases after the first round.
        last: mean cosine after the last round.
        twins: number of pairs with a cosine above 0.99.
    """
    return _n(
        "The mean cosine of two bases is {first:.2f} after the first round and {last:.2f} after the last; {n} pair is "
        "all but the same (above 0.99).",
        "The mean cosine of two bases is {first:.2f} after the first round and {last:.2f} after the last; {n} pairs "
        "are all but the same (above 0.99).",
        n=twins,
        first=first,
        last=last,
    )


def _product(seen: Seen) -> Step:
    z, given = seen.parts["responsibilities"][-1], seen.parts["given"]
    taken = _taken(z).T

    def draw(key: str) -> None:
        words = {"row": _("basis"), "column": _("token")}
        queries = pictures.panel(_("Queries over bases"), given, seen.labels, column=_("basis"))
        tokens = pictures.panel(_("Bases over tokens"), taken, columns=seen.labels, **words)
        pictures.board(key, queries, tokens, unit=_("share"), scale="panel")

    return Step(
        title=_("Two maps"),
        formula=r"A = \operatorname{softmax}_b(\lambda Q \mu^\top)\, \hat Z^\top",
        shapes={r"\operatorname{softmax}_b(\cdot)": given.shape, r"\hat Z^\top": taken.shape, "A": seen.weights.shape},
        sentence=_(
            "{n} × {b} times {b} × {n}: {held} numbers instead of {whole}, and rows that sum to one with no division "
            "(off by at most {off}).",
            n=len(given),
            b=given.shape[-1],
            held=2 * given.size,
            whole=seen.weights.size,
            off=at_most(np.abs(seen.weights.sum(-1) - 1).max()),
        ),
        draw=draw,
    )
