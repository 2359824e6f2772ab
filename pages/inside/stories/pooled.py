"""Memory-compressed attention, explained step by step on the Inside page: neighbouring tokens share a key and value."""

from dataclasses import replace

import numpy as np

from app.figures.categories import PRIMITIVES
from app.matrix_board import Category, Panel, matrix_board
from app.words.i18n import _, paragraph
from attention_core.analysis.low_rank import factors
from attention_core.analysis.masks import provenance
from pages.inside import pooling
from pages.inside.pictures import symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import Later, Seen, Step, later


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: pool, attend, blur, leak (or causal mask), comparison with the reference."""
    if seen.causal:
        return _cover(seen), _weights_on_pools(seen), _blur(seen), _masks(seen), compare_with_reference(seen)
    does = _(
        "The causal form uses this mask. In addition, each query attends to the individual tokens of its own pool."
    )
    leak = pooling.leak(seen, does if (seen.parts["provenance"] != 0).sum(-1).max() > 1 else "")
    return pooling.cover(seen), pooling.weights_on_pools(seen), pooling.blur(seen), leak, compare_with_reference(seen)


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
        "{n} tokens form **{m} pools** of {stride} tokens. A query attends to at most {most} keys instead of {n}.",
        n=n,
        m=m,
        stride=stride,
        most=_keys(P),
    )
    if last - first + 1 < stride:
        words = paragraph(
            words,
            _(
                "The last pool (group of tokens with one mean key) has only {size} tokens. No query uses its mean "
                "key, because no token comes after this pool.",
                size=last - first + 1,
            ),
        )
    return replace(
        pooling.cover(seen),
        mechanism=_(
            "A query attends to the pooled keys of earlier pools. Within its own pool, it attends to the "
            "individual tokens up to itself."
        ),
        formula=r"\tilde K = \begin{bmatrix} P K \\ K \end{bmatrix},\qquad "
        r"\tilde V = \begin{bmatrix} P V \\ V \end{bmatrix}",
        shapes={"P": (m, n), r"\tilde K": (m + n, seen.qkv.k.shape[-1])},
        findings=words,
    )


def _keys(P: np.ndarray) -> int:
    """Return the most keys a query sees: the earlier pools, and its own pool's tokens up to itself."""
    return max(r + last - first + 1 for r, (first, last) in enumerate(provenance.spans(P)))


def _weights_on_pools(seen: Seen) -> Step:
    """Build the step that shows the weights of the queries on the pools before their own."""
    m = len(_pools(seen))
    own = _("On average, {share:.0%} of a query's weight falls on the tokens of its own pool.", share=_own_share(seen))
    step = pooling.weights_on_pools(seen, own, among=m)
    return replace(
        step,
        formula=symbol(0, "L") + r" = \operatorname{softmax}\left(\frac{Q \tilde K^\top}{\sqrt d} + M\right)",
        findings=step.findings if m > 1 else _("One pool holds all tokens, so no query has an earlier pool."),
    )


def _own_share(seen: Seen) -> float:
    return float(seen.parts["left"][:, len(_pools(seen)) :].sum(-1).mean())


@later(pooling.BLURS)
def _blur(seen: Seen) -> Step:
    """Build the causal blur step, in which only the earlier pools are blurred."""
    own = _own(seen)
    best = np.where(own, seen.reference, provenance.closest(seen.reference, _pools(seen)))
    n, left, right = len(own), seen.parts["left"], seen.parts["right"]
    return Step(
        mechanism=_(
            "The tokens of an earlier pool share the weight of the pool. The tokens of the query's own pool "
            "have individual weights."
        ),
        formula=symbol(0, "A") + r" = L R,\qquad R = \begin{bmatrix} P \\ I \end{bmatrix},\qquad "
        r"\min_X \lVert S - X R \rVert_F,\; X_{ir} = 0 \text{ where } i \text{ may not see } r",
        shapes={"L": left.shape, "R": right.shape, "A": (n, n)},
        findings=_(
            "Pooling alone costs accuracy: even with the best weights on the pooled keys, the matrix error would be "
            "**{floor:.0%}**. With the actual weights, it is **{error:.0%}**.",
            floor=factors.relative_error_of(best, seen.reference),
            error=factors.relative_error_of(seen.weights, seen.reference),
        ),
        draw=lambda key: pooling.draw_best(seen, best, key),
    )


def _masks(seen: Seen) -> Step:
    """Build the step that compares hiding pools that begin after a query with hiding pools that end after it."""
    P, own = _pools(seen), _own(seen)
    n = len(own)
    ahead = np.triu(own, 1)
    share, blind = ahead.sum() / max(1, n * (n - 1) // 2), (~provenance.fully_past_mixtures(P).any(-1)).sum()
    if not ahead.any():
        words = _("Each pool contains a single token, so this is causal softmax attention.")
    else:
        i = ahead.sum(-1).argmax()
        hidden = np.flatnonzero(ahead[i])[-1]
        words = paragraph(
            _(
                "Query **“{query}”** (token {i}) is in one pool with the later token **“{token}”** (token {hidden}), "
                "which the causal mask must hide.",
                i=i,
                query=seen.token(i),
                hidden=hidden,
                token=seen.token(hidden),
            ),
            _(
                "If only pools that begin after the query were masked, information would leak in {share:.1%} "
                "of the pairs with a later key.",
                share=share,
            ),
            _(
                "If queries could attend only to pools without later tokens, {blind} of {n} queries would have no key.",
                blind=blind,
                n=n,
            ),
        )

    def draw(key: str) -> None:
        past = np.tri(n, dtype=np.float32)
        cuts = (
            (
                "open",
                _("Masked: pools that begin later"),
                past + 3 * ahead,
                _("Information leaks in {share:.1%} of the pairs with a later key"),
            ),
            ("whole", _("Masked: pools that end later"), past + np.tril(own), _("nothing leaks")),
        )
        kinds = (("window", _("as part of a pool")), ("block", _("as a single token")), ("missed", _("leaks")))
        matrix_board(
            [Panel(cut, title, words.format(share=share), codes) for cut, title, codes, words in cuts],
            labels=seen.labels,
            key=f"{key}.cuts",
            categories=[Category(name, *PRIMITIVES[kind]) for kind, name in kinds],
            none=_("masked"),
            unit=_("Pairs"),
            panel_size=420,
            file_name="cuts",
        )

    return Step(
        title=_("No leakage"),
        mechanism=_("Every pool that ends after a query is masked, so no later token can leak through a shared key."),
        formula=r"i \text{ attends to pool } r \iff r < \left\lfloor i / s \right\rfloor",
        shapes={"P": P.shape, "A": (n, n)},
        findings=words,
        draw=draw,
    )
