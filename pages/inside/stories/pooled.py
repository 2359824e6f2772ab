"""Story of pooled keys: neighbouring tokens share one key and one value."""

from dataclasses import replace

import numpy as np

from app.figures.categories import PRIMITIVES
from app.matrix_board import Category, Panel, matrix_board
from app.words.i18n import _, paragraph
from attention_core.analysis.low_rank import factors
from attention_core.analysis.masks import provenance
from pages.inside import pooling
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step, later


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: pool, attend, blur, leak (or causal mask), comparison with the reference."""
    if seen.causal:
        return _cover(seen), _look(seen), _blur(seen), _hide(seen), beside_reference(seen)
    does = _("Causal, this variant does so, and lets each query see the tokens of its own pool one by one.")
    leak = pooling.leak(seen, does if (seen.parts["provenance"] != 0).sum(-1).max() > 1 else "")
    return pooling.cover(seen), pooling.look(seen), pooling.blur(seen), leak, beside_reference(seen)


def _pools(seen: Seen) -> np.ndarray:
    """Return the pools of a causal variant, ``[m, n]``: its provenance without the single tokens appended to it."""
    P = seen.parts["provenance"]
    return P[: len(P) - P.shape[1]]


def _own(seen: Seen) -> np.ndarray:
    """Return the mask of the pairs within one pool, ``bool [n, n]``."""
    return provenance.shared_mixture_pairs(_pools(seen))


def _cover(seen: Seen) -> Step:
    """Build the causal pooling step: pools of one size in addition to the single tokens."""
    P = _pools(seen)
    m, n = P.shape
    first, last = provenance.spans(P)[-1]
    stride: int = seen.setting("stride")
    words = _(
        "{n} tokens make **{m} pools** of {stride}, counted from the first. A query sees the pools before its own "
        "and, one by one, the tokens of its own up to itself: at most {most} keys instead of {n}.",
        n=n,
        m=m,
        stride=stride,
        most=_keys(P),
    )
    if last - first + 1 < stride:
        words = paragraph(words, _("The last pool is {size} long, and no query is behind it.", size=last - first + 1))
    return replace(
        pooling.cover(seen),
        formula=r"\tilde K = \begin{bmatrix} P K \\ K \end{bmatrix},\qquad "
        r"\tilde V = \begin{bmatrix} P V \\ V \end{bmatrix},\qquad P \in \mathbb{R}^{m \times n}",
        shapes={"P": (m, n), r"\tilde K": (m + n, seen.qkv.k.shape[-1])},
        sentence=words,
    )


def _keys(P: np.ndarray) -> int:
    """Return the most keys a query sees: the earlier pools, and its own pool's tokens up to itself."""
    return max(r + last - first + 1 for r, (first, last) in enumerate(provenance.spans(P)))


def _look(seen: Seen) -> Step:
    """Build the step that shows the weights of the queries on the pools before their own."""
    m = len(_pools(seen))
    own = _("On average {share:.0%} of a query's weight stays in its own pool.", share=_stays(seen))
    step = pooling.look(seen, own, among=m)
    return replace(
        step,
        formula=r"L = \operatorname{softmax}\left(\frac{Q \tilde K^\top}{\sqrt d} + M\right) \in "
        r"\mathbb{R}^{n \times (m+n)}",
        sentence=step.sentence if m > 1 else _("One pool holds all tokens, so no query has another before its own."),
    )


def _stays(seen: Seen) -> float:
    return float(seen.parts["left"][:, len(_pools(seen)) :].sum(-1).mean())


@later(pooling.BLURS)
def _blur(seen: Seen) -> Step:
    """Build the causal blur step, in which only the earlier pools are blurred."""
    own = _own(seen)
    best = np.where(own, seen.reference, provenance.closest(seen.reference, _pools(seen)))
    n, left, right = len(own), seen.parts["left"], seen.parts["right"]
    return Step(
        formula=r"A = L R,\qquad R = \begin{bmatrix} P \\ I \end{bmatrix},\qquad "
        r"\min_X \lVert S - X R \rVert_F,\; X_{ir} = 0 \text{ where } i \text{ may not see } r",
        shapes={"L": left.shape, "R": right.shape, "A": (n, n)},
        sentence=_(
            "Pools before a query's own are blurred, its own is not. That blur alone makes the product **{floor:.0%}** "
            "off softmax (Frobenius), whatever the weights; the actual ones make it **{error:.0%}**.",
            floor=factors.relative_error_of(best, seen.reference),
            error=factors.relative_error_of(seen.weights, seen.reference),
        ),
        draw=lambda key: pooling.draw_best(seen, best, key),
    )


def _hide(seen: Seen) -> Step:
    """Build the step that compares hiding pools that begin after a query with hiding pools that end after it."""
    P, own = _pools(seen), _own(seen)
    n = len(own)
    ahead = np.triu(own, 1)
    share, blind = ahead.sum() / max(1, n * (n - 1) // 2), (~provenance.fully_past_mixtures(P).any(-1)).sum()
    if not ahead.any():
        words = _("Every pool holds a single token, so none can tell of another: this is causal softmax itself.")
    else:
        i = ahead.sum(-1).argmax()
        hidden = np.flatnonzero(ahead[i])[-1]
        words = _(
            "The pool of query {i}, **“{query}”**, also holds token {hidden}, **“{token}”**. Hiding only the pools "
            "that begin after a query would let {share:.1%} of all looks ahead through; hiding every pool that ends "
            "after it lets **none** through. With pools alone {blind} of {n} queries would then see nothing, so each "
            "sees the tokens of its own pool up to itself.",
            i=i,
            query=seen.token(i),
            hidden=hidden,
            token=seen.token(hidden),
            share=share,
            blind=blind,
            n=n,
        )

    def draw(key: str) -> None:
        past = np.tri(n, dtype=np.float32)
        cuts = (
            ("open", _("Pools that begin later hidden"), past + 3 * ahead, _("{share:.1%} of all looks ahead leak")),
            ("whole", _("Pools that end later hidden"), past + np.tril(own), _("nothing leaks")),
        )
        kinds = (
            ("window", _("through its pool's key")),
            ("block", _("one by one")),
            ("missed", _("told ahead of time")),
        )
        matrix_board(
            [Panel(cut, title, words.format(share=share), codes) for cut, title, codes, words in cuts],
            labels=seen.labels,
            key=f"{key}.cuts",
            categories=[Category(name, *PRIMITIVES[kind]) for kind, name in kinds],
            none=_("hidden"),
            unit=_("Pairs"),
            panel_size=420,
            file_name="cuts",
        )

    return Step(
        title=_("Why it does not leak"),
        formula=r"i \text{ sees pool } r \iff r < \left\lfloor i / s \right\rfloor",
        shapes={"P": P.shape, "A": (n, n)},
        sentence=words,
        draw=draw,
    )
