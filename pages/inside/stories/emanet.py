"""EMANet, explained step by step on the Inside page: rounds of soft clustering assign the tokens to a few bases."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app.words.i18n import _, _n, enumeration, escape_markdown, paragraph, quoted
from app.words.isolation import isolated
from attention_core.formatting import at_most
from pages.inside import pictures
from pages.inside.pictures import symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import Later, Seen, Step

SHOWN = 4
"""Largest number of rounds drawn; the first and the last are always included."""
NAMED = 6
"""Tokens named for each basis."""


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: rounds, contents of the bases, product, comparison with the reference."""
    b = seen.parts["given"].shape[-1]
    ending = _("The rank of the matrix is at most {b}, the number of bases.", b=b)
    return _rounds(seen), _contents(seen), _product(seen), compare_with_reference(seen, ending)


def _normalised(z: np.ndarray) -> np.ndarray:
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
        panels = (pictures.panel(_("Round {t}", t=t + 1), z[t], seen.labels, mark=0, **words) for t in chosen)
        pictures.board(key, *panels, unit=_("responsibility"))

    return Step(
        title=_("Rounds"),
        mechanism=_(
            "Bases are the centres of soft clusters of keys. In each round, a softmax assigns every token to the "
            "bases. Every basis then moves to the weighted mean of its keys."
        ),
        formula=r"\begin{gathered}"
        + symbol(0, "z")
        + r"_{jb} = \frac{e^{\lambda k_j\cdot\mu_b}}{\sum_c e^{\lambda k_j\cdot\mu_c}},\\[14pt] "
        r"\mu_b \leftarrow \frac{\sum_j z_{jb} k_j}{\left\|\sum_j z_{jb} k_j\right\|}\end{gathered}",
        shapes={"z": (n, b), r"\mu": seen.parts["bases"].shape[1:]},
        findings=rounds_sentence(count, len(np.unique(owner[-1])), b, moved),
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
    text = _n(
        "After {n} round, {used} of {b} bases are nearest to at least one token.",
        "After {n} rounds, {used} of {b} bases are nearest to at least one token.",
        n=count,
        used=used,
        b=bases,
    )
    if not moved:
        return text
    changed = (
        _("The nearest basis changed for {first:.0%} of the tokens in the second round.", first=moved[0])
        if len(moved) == 1
        else _(
            "The nearest basis changed for {first:.0%} of the tokens in the second round, and for {last:.0%} in the "
            "last round.",
            first=moved[0],
            last=moved[-1],
        )
    )
    return paragraph(text, changed)


def _contents(seen: Seen) -> Step:
    z = seen.parts["responsibilities"][-1]
    sizes, shares = z.sum(0), _normalised(z)
    order = sizes.argsort()[::-1].tolist()
    named = {b: [seen.labels[j] for j in shares[:, b].argsort()[::-1][:NAMED]] for b in order}

    def draw(key: str) -> None:
        st.dataframe(
            [
                {
                    _("basis"): b,
                    _("size in tokens"): float(sizes[b]),
                    _("largest share"): float(shares[:, b].max()),
                    _("largest tokens"): "  ·  ".join(map(isolated, named[b])),
                }
                for b in order
            ],
            hide_index=True,
            key=key,
            height="auto" if len(order) <= SHOWN * 4 else 460,
            column_config={
                _("size in tokens"): st.column_config.NumberColumn(format="%.1f"),
                _("largest share"): st.column_config.NumberColumn(format="percent"),
            },
        )

    return Step(
        title=_("Bases"),
        mechanism=_("Each basis is a weighted mean of the keys that are assigned to it."),
        formula=r"\hat z_{jb} = \frac{z_{jb}}{\sum_l z_{lb}},\qquad \text{size of } b:\ \sum_j z_{jb}",
        shapes={r"\hat z": z.shape},
        findings=_(
            "The largest basis contains {most:.1f} of {n} tokens, mainly {tokens}. The smallest basis "
            "contains {least:.1f} tokens.",
            most=sizes.max(),
            n=len(z),
            least=sizes.min(),
            tokens=enumeration(quoted(escape_markdown(token)) for token in named[sizes.argmax()][:3]),
        ),
        draw=draw,
    )


def _product(seen: Seen) -> Step:
    z, over_bases = seen.parts["responsibilities"][-1], seen.parts["given"]
    shares = _normalised(z).T

    def draw(key: str) -> None:
        words = {"row": _("basis"), "column": _("token")}
        queries = pictures.panel(_("Queries over bases"), over_bases, seen.labels, column=_("basis"), mark=0)
        tokens = pictures.panel(_("Bases over tokens"), shares, columns=seen.labels, mark=1, **words)
        pictures.board(key, queries, tokens, unit=_("share"), scale="panel")

    return Step(
        title=_("Two factors"),
        mechanism=_("Each query attends to the bases, and each basis attends to its tokens."),
        formula=r"A = "
        + symbol(0, r"\operatorname{softmax}_b(\lambda Q \mu^\top)")
        + r"\, "
        + symbol(1, r"\hat Z^\top"),
        shapes={
            r"\operatorname{softmax}_b(\cdot)": over_bases.shape,
            r"\hat Z^\top": shares.shape,
            "A": seen.weights.shape,
        },
        findings=_(
            "The two factors contain {stored:,} numbers. The full matrix contains {whole:,}. Because the rows of both "
            "factors sum to one, the rows of the product do too, to within {off}.",
            stored=2 * over_bases.size,
            whole=seen.weights.size,
            off=at_most(np.abs(seen.weights.sum(-1) - 1).max()),
        ),
        draw=draw,
    )
