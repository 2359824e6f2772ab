"""Steps shared by the variants that mix (pool) tokens.

The steps show which tokens are mixed, how much accuracy mixing costs, and how it leaks information from later tokens.
"""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app.figures.categories import PRIMITIVES
from app.matrix_board import Category, Panel, matrix_board
from app.words.i18n import N_, _, escape_markdown, paragraph
from app.words.isolation import isolated
from app.words.labels import tokens
from attention_core.analysis.low_rank import factors
from attention_core.analysis.masks import provenance
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.story import Seen, Step, later
from pages.inside.tokens import Pool, strip

BLURS, LEAKS = N_("Multiply: what blurs"), N_("Why it leaks")
"""Titles of the steps ``blur`` and ``leak``."""


def name(seen: Seen, pool: Pool) -> str:
    """Return the name of a pool: its first and last token."""
    first, last = pool
    return " … ".join(isolated(seen.labels[i]) for i in dict.fromkeys((first, last)))


def told(seen: Seen, pool: Pool) -> str:
    """Return the name of a pool for a sentence, with the positions of its first and last token."""
    words = _("“{name}”", name=escape_markdown(name(seen, pool)))
    first, last = pool
    return (
        _("{words} (token {first})", words=words, first=first)
        if first == last
        else _("{words} (tokens {first} to {last})", words=words, first=first, last=last)
    )


def levels(pools: Sequence[Pool]) -> list[list[int]]:
    """Return the indices of the pools grouped by level; a pool that begins with token 0 starts a new level."""
    found: list[list[int]] = []
    for number, (first, _last) in enumerate(pools):
        if first == 0 or not found:
            found.append([])
        found[-1].append(number)
    return found


def widest(pools: Sequence[Pool], about: int = 0) -> Pool:
    """Return the pool with most tokens; ties go to the pool whose ends sum to the number closest to ``about``."""
    return max(pools, key=lambda pool: (pool[1] - pool[0], -abs(sum(pool) - about)))


def draw_strip(seen: Seen, weights: np.ndarray | None = None) -> None:
    """Draw the pools as a strip over the text, shaded by ``weights`` ``[m]`` if given."""
    pools = provenance.spans(seen.parts["provenance"])
    rows = levels(pools)
    st.html(
        strip(
            [[pools[i] for i in row] for row in rows],
            [[" ".join(seen.qkv.tokens[pools[i][0] : pools[i][1] + 1]) for i in row] for row in rows],
            None if weights is None else [[float(weights[i]) for i in row] for row in rows],
        )
    )


def pool_names(seen: Seen) -> list[str]:
    """Return one short label per pool, for the axis of a matrix."""
    pools = provenance.spans(seen.parts["provenance"])
    return [f"{first}–{last}" if first < last else f"{first} {isolated(seen.labels[first])}" for first, last in pools]


def cover(seen: Seen, what: str = "") -> Step:
    """Build the step that shows which tokens each pooled key contains.

    Args:
        seen: the variant on a head.
        what: what a mixture is called, in the singular; "key" if empty.
    """
    what = what or _("key")
    P = seen.parts["provenance"]
    m, n = P.shape
    pools, sizes = provenance.spans(P), provenance.effective_tokens(P)

    def draw(key: str) -> None:
        draw_strip(seen)
        st.caption(_("Each box is one {what}, as wide as the tokens it holds.", what=what))
        title = _("What each {what} is made of", what=what)
        shares = pictures.panel(title, P, pool_names(seen), seen.labels, row=what, column=_("token"))
        pictures.board(f"{key}.provenance", shares, unit=_("share of the token"), tone="linear")

    return Step(
        title=_("Pool the keys"),
        formula=r"\tilde K = P K,\qquad \tilde V = P V,\qquad P \in \mathbb{R}^{m \times n}",
        shapes={"P": (m, n), r"\tilde K": (m, seen.qkv.k.shape[-1])},
        sentence=_(
            "{n} tokens become **{m} keys**. The widest holds {pool}; a key amounts to {size:.1f} equally weighted "
            "tokens on average.",
            n=n,
            m=m,
            pool=told(seen, widest(pools)),
            size=sizes.mean(),
        ),
        draw=draw,
    )


def look(seen: Seen, extra: str = "", *, among: int | None = None) -> Step:
    """Build the step that shows the weights of each query on the pooled keys.

    Args:
        seen: the variant on a head.
        extra: a text of the story that is appended to the sentence.
        among: search the largest weight among this many first keys only; all keys if None.
    """
    left, pools = seen.parts["left"], provenance.spans(seen.parts["provenance"])
    sought = left[:, :among]
    i, r = np.unravel_index(int(sought.argmax()), sought.shape)
    first, last = pools[r]
    firmest = (
        _(
            "The firmest look: **“{query}”** (token {i}) puts {weight:.0%} of its weight on {pool}. Softmax itself "
            "puts {exact:.0%} there."
        )
        if among is None
        else _(
            "The firmest look at a pool: **“{query}”** (token {i}) puts {weight:.0%} of its weight on {pool}. Softmax "
            "itself puts {exact:.0%} there."
        )
    )

    def draw(key: str) -> None:
        query = InsideOptions.query.draw_with_options(otherwise=int(i), key=f"{key}.query", **tokens(seen.labels))
        draw_strip(seen, left[query])
        st.caption(_("The pools, shaded by the weight that this query gives each."))
        title = _("Left factor: softmax over these keys")
        pictures.board(f"{key}.left", pictures.panel(title, left, seen.labels, pool_names(seen)))

    return Step(
        title=_("Look at the pools"),
        formula=r"L = \operatorname{softmax}\left(\frac{Q \tilde K^\top}{\sqrt d}\right) \in \mathbb{R}^{n \times m}",
        shapes={"Q": seen.qkv.q.shape[1:], r"\tilde K": (left.shape[1], seen.qkv.k.shape[-1]), "L": left.shape},
        sentence=paragraph(
            firmest.format(
                query=seen.token(i),
                i=i,
                weight=left[i, r],
                pool=told(seen, (first, last)),
                exact=seen.reference[i, first : last + 1].sum(),
            ),
            extra,
        ),
        draw=draw,
    )


@later(BLURS)
def blur(seen: Seen, *, queries: bool = False) -> Step:
    """Build the step that compares the product with the best matrix that any weights on the same mixtures can reach.

    Args:
        seen: the variant on a head.
        queries: whether queries are mixed (equal rows) rather than keys (equal columns).
    """
    left, right = seen.parts["left"], seen.parts["right"]
    mixed, wanted = (left.T, seen.reference.T) if queries else (right, seen.reference)
    best = provenance.closest(wanted, mixed)
    best = best.T if queries else best
    floor, error = (factors.relative_error_of(matrix, seen.reference) for matrix in (best, seen.weights))
    n, rank, kinds = len(left), factors.rank(mixed), factors.distinct_columns(mixed)
    return Step(
        formula=r"A = L R,\qquad \operatorname{rank} A \le m,\qquad "
        + (r"\min_X \lVert S - L X \rVert_F" if queries else r"\min_X \lVert S - X R \rVert_F"),
        shapes={"L": left.shape, "R": right.shape, "A": (n, n)},
        sentence=blur_sentence(rank, n, kinds, floor, error, queries=queries),
        draw=lambda key: draw_best(seen, best, key),
    )


def blur_sentence(rank: int, n: int, kinds: int, floor: float, error: float, *, queries: bool) -> str:
    """Return the sentence about the error that mixing alone causes.

    Args:
        rank: the rank of the product.
        n: number of tokens.
        kinds: number of distinct columns of the product, or of distinct rows if queries are mixed.
        floor: the error of the best possible weights on these mixtures.
        error: the error of the actual weights.
        queries: whether queries are mixed.
    """
    values = {"rank": rank, "n": n, "kinds": kinds, "floor": floor, "error": error}
    if rank == n:
        return _(
            "With as many independent mixtures as tokens nothing has to be blurred: the best weights would come within "
            "{floor:.0%} of softmax, the actual ones are {error:.0%} off.",
            **values,
        )
    if queries:
        return _(
            "The product has rank {rank} of {n} and {kinds} different rows. That blur alone makes it **{floor:.0%}** "
            "off softmax (Frobenius), whatever the weights; the actual ones make it **{error:.0%}**.",
            **values,
        )
    return _(
        "The product has rank {rank} of {n} and {kinds} different columns. That blur alone makes it **{floor:.0%}** "
        "off softmax (Frobenius), whatever the weights; the actual ones make it **{error:.0%}**.",
        **values,
    )


def draw_best(seen: Seen, best: np.ndarray, key: str) -> None:
    """Draw the variant's matrix, the best matrix its mixtures allow, and softmax.

    Args:
        seen: the variant on a head.
        best: the matrix closest to softmax that other weights on these mixtures can reach, ``[n, n]``.
        key: prefix of the elements' keys.
    """
    own = _("off by {error:.0%}", error=factors.relative_error_of(seen.weights, seen.reference))
    least = _("off by {error:.0%}, whatever the weights", error=factors.relative_error_of(best, seen.reference))
    pictures.board(
        f"{key}.best",
        pictures.pairs(seen, _("Product of the factors"), seen.weights, own),
        pictures.pairs(seen, _("Best with these mixtures"), best, least),
        pictures.pairs(seen, _("Softmax"), seen.reference),
    )


@later(LEAKS)
def leak(seen: Seen, extra: str = "") -> Step:
    """Build the step that shows how pooled keys leak later tokens to a query.

    It compares two masks: hiding the keys whose pool begins after the query, and hiding those whose pool ends after it.

    Args:
        seen: the variant on a head.
        extra: a text of the story that is appended to the sentence.
    """
    P, right = seen.parts["provenance"], seen.parts["right"]
    n = P.shape[1]
    hidden = factors.product(provenance.renormalise_started_mixtures(seen.parts["left"], P), right)
    shares = provenance.future_mass(hidden)
    pools = [pool for pool in provenance.spans(P) if pool[1] > pool[0]]
    if not pools:
        words = _("Every key holds a single token, so none can tell of another: here pooling does nothing, nor leaks.")
    else:
        first, last = widest(pools, n)
        worst = int(shares.argmax())
        words = _(
            "The key of tokens {first} to {last} tells query {first}, **“{query}”**, of token {last}, **“{token}”**, "
            "{distance} ahead. Hide every key that begins after its query: still {mean:.0%} of the weight lies on the "
            "future on average, {most:.0%} for “{worst}” (token {i}).",
            first=first,
            last=last,
            query=seen.token(first),
            token=seen.token(last),
            distance=last - first,
            mean=shares.mean(),
            most=shares[worst],
            worst=seen.token(worst),
            i=worst,
        )
        words = paragraph(words, hidden_whole(seen))
    leaking = _("told by a key that holds both")
    return leaks(seen, hidden, paragraph(words, extra), leaking, _("Weights, later keys hidden"), _("weight"))


def hidden_whole(seen: Seen) -> str:
    """Return the sentence about hiding every key whose pool ends after the query."""
    ended = provenance.fully_past_mixtures(seen.parts["provenance"])
    blind, n = int((~ended.any(-1)).sum()), len(ended)
    if not blind:
        return _("Hide every key that ends after its query, and nothing leaks; each query still sees a key.")
    return _(
        "Hide every key that ends after its query, and nothing leaks; but {blind} of {n} queries see no key then.",
        blind=blind,
        n=n,
    )


def leaks(seen: Seen, values: np.ndarray, words: str, leaking: str, title: str, unit: str) -> Step:
    """Build a step that draws which token pairs leak, next to how much each leaks.

    Args:
        seen: the variant on a head.
        values: the share of each token (column) in each row, ``[n, n]``.
        words: the sentence of the step.
        leaking: the legend label of the leaking pairs.
        title: the title of the matrix of ``values``.
        unit: the unit of ``values``.
    """
    P, n = seen.parts["provenance"], len(values)
    ahead = np.triu(provenance.shared_mixture_pairs(P), 1)

    def draw(key: str) -> None:
        kinds = {_("past and itself"): "window", leaking: "missed"}
        share = _("{share:.1%} of all looks ahead leak", share=ahead.sum() / max(1, n * (n - 1) // 2))
        left, right = st.columns(2)
        with left:
            matrix_board(
                [Panel("told", _("Who hears of whom"), share, np.tri(n, dtype=np.float32) + 2 * ahead)],
                labels=seen.labels,
                key=f"{key}.told",
                categories=[Category(kind, *PRIMITIVES[like]) for kind, like in kinds.items()],
                none=_("hidden"),
                unit=_("Pairs"),
                panel_size=420,
                file_name="leak",
            )
        with right:
            pictures.board(f"{key}.ahead", pictures.panel(title, values, seen.labels, seen.labels), unit=unit)

    return Step(
        formula=r"j > i,\qquad \exists\, r:\; P_{ri} \ne 0,\; P_{rj} \ne 0 \;\Rightarrow\; i \text{ hears of } j",
        shapes={"P": P.shape, "A": (n, n)},
        sentence=words,
        draw=draw,
    )
