"""Memory-compressed attention, explained step by step on the Inside page: neighbouring tokens share a key and value."""

from dataclasses import replace

import numpy as np

from app.figures.categories import PRIMITIVES
from app.matrix_board import Category, Panel, matrix_board
from app.words.i18n import _, _n, paragraph
from attention_core.analysis.low_rank import factors
from attention_core.analysis.masks import provenance
from pages.inside import pooling
from pages.inside.pictures import RESULT, symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step, lazy_step


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: pooling, weights, best possible error, leakage or causal mask, comparison with the reference."""
    if data.causal:
        return _cover(data), _weights_on_pools(data), _best_error(data), _masks(data), compare_with_reference(data)
    return (
        pooling.pools_step(data),
        pooling.weights_step(data),
        pooling.best_error_step(data),
        pooling.leak_step(data),
        compare_with_reference(data),
    )


def _pools(data: HeadData) -> np.ndarray:
    """Return the weight of each token in each pool of a causal variant, ``[m, n]``.

    The rows of the n keys that are single tokens are left out.
    """
    P = data.parts["provenance"]
    return P[: len(P) - P.shape[1]]


def _same_pool(data: HeadData) -> np.ndarray:
    """Return the mask of the pairs within one pool, ``bool [n, n]``."""
    return provenance.shared_mixture_pairs(_pools(data))


def _cover(data: HeadData) -> Step:
    """Build the pooling step of the causal variant, which has pools of one size and single tokens as keys."""
    P = _pools(data)
    m, n = P.shape
    first, last = provenance.spans(P)[-1]
    stride: int = data.setting("stride")
    words = _n(
        "{tokens} tokens form **{m} pools** of {n} token. A query attends to at most {most} keys instead of {tokens}.",
        "{tokens} tokens form **{m} pools** of {n} tokens. A query attends to at most {most} keys instead of {tokens}.",
        n=stride,
        m=m,
        tokens=n,
        most=_max_keys(P),
    )
    if last - first + 1 < stride:
        words = paragraph(
            words,
            _n(
                "The last pool (group of tokens with one mean key) has only {n} token. No query uses its mean key, "
                "because no token comes after this pool.",
                "The last pool (group of tokens with one mean key) has only {n} tokens. No query uses its mean key, "
                "because no token comes after this pool.",
                n=last - first + 1,
            ),
        )
    return replace(
        pooling.pools_step(data),
        mechanism=_(
            "A query attends to the pooled keys of earlier pools. Within its own pool, it attends to the "
            "individual tokens up to itself."
        ),
        formula=r"\tilde K = \begin{bmatrix} P K \\ K \end{bmatrix},\qquad "
        r"\tilde V = \begin{bmatrix} P V \\ V \end{bmatrix}",
        shapes={"P": (m, n), r"\tilde K": (m + n, data.qkv.k.shape[-1])},
        findings=words if m > 1 else _no_earlier_pool(),
    )


def _max_keys(P: np.ndarray) -> int:
    """Return the largest number of keys of a query: the earlier pools, and its own pool's tokens up to itself.

    Args:
        P: the weight of each token in each pool, ``[m, n]``.
    """
    return max(r + last - first + 1 for r, (first, last) in enumerate(provenance.spans(P)))


def _weights_on_pools(data: HeadData) -> Step:
    """Build the step that shows the weights of the queries on the pools before their own."""
    m = len(_pools(data))
    share_text = _(
        "On average, {share:.0%} of a query's weight falls on the tokens of its own pool.", share=_own_share(data)
    )
    step = pooling.weights_step(data, share_text, n_keys=m)
    return replace(
        step,
        mechanism=_(
            "Each query attends to the keys of earlier pools (groups of combined tokens), and to the keys of the "
            "single tokens of its own pool."
        ),
        formula=symbol(0, "L") + r" = \operatorname{softmax}\left(\frac{Q \tilde K^\top}{\sqrt d} + M\right)",
        findings=step.findings if m > 1 else _no_earlier_pool(),
        details=step.details if m > 1 else "",
    )


def _no_earlier_pool() -> str:
    return _("One pool holds all tokens, so no query has an earlier pool.")


def _own_share(data: HeadData) -> float:
    return float(data.parts["left"][:, len(_pools(data)) :].sum(-1).mean())


@lazy_step(pooling.BEST_ERROR_TITLE)
def _best_error(data: HeadData) -> Step:
    """Build the step about the best possible error of the causal variant, which averages only earlier pools."""
    same_pool = _same_pool(data)
    best = np.where(same_pool, data.reference, provenance.closest_mixing(data.reference, _pools(data)))
    n, left, right = len(same_pool), data.parts["left"], data.parts["right"]
    return Step(
        mechanism=_(
            "The tokens of an earlier pool share the weight of the pool. The tokens of the query's own pool "
            "have individual weights."
        ),
        formula=symbol(RESULT, "A") + r" = L R,\qquad R = \begin{bmatrix} P \\ I \end{bmatrix},\qquad "
        r"\min_X \lVert S - X R \rVert_F,\; X_{ir} = 0 \text{ where } i \text{ may not see } r",
        shapes={"L": left.shape, "R": right.shape, "A": (n, n)},
        findings=_(
            "With the best possible weights on the pooled keys, the matrix error would be **{floor:.0%}**. With the "
            "actual weights, it is **{error:.0%}**.",
            floor=factors.relative_error_of(best, data.reference),
            error=factors.relative_error_of(data.weights, data.reference),
        ),
        draw=lambda key: pooling.draw_best_matrix(data, best, key),
    )


def _masks(data: HeadData) -> Step:
    """Build the step that compares hiding pools that begin after a query with hiding pools that end after it."""
    P, same_pool = _pools(data), _same_pool(data)
    n = len(same_pool)
    ahead = np.triu(same_pool, 1)
    share, blind = ahead.sum() / max(1, n * (n - 1) // 2), (~provenance.fully_past_mixtures(P).any(-1)).sum()
    others = ""
    if not ahead.any():
        words = _("Each pool contains a single token, so this is causal softmax attention.")
    else:
        i = ahead.sum(-1).argmax()
        hidden = np.flatnonzero(ahead[i])[-1]
        words = _(
            "Query **“{query}”** (token {i}) is in one pool with the later token **“{token}”** (token {hidden}), "
            "which the causal mask must hide.",
            i=i,
            query=data.token(i),
            hidden=hidden,
            token=data.token(hidden),
        )
        others = paragraph(
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
            ("whole", _("Masked: pools that end later"), past + np.tril(same_pool), _("nothing leaks")),
        )
        kinds = (("window", _("as part of a pool")), ("block", _("as a single token")), ("missed", _("leaks")))
        matrix_board(
            [Panel(cut, title, words.format(share=share), codes) for cut, title, codes, words in cuts],
            labels=data.labels,
            key=f"{key}.cuts",
            categories=[Category(name, *PRIMITIVES[kind]) for kind, name in kinds],
            zero=_("masked"),
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
        details=others,
        draw=draw,
    )
