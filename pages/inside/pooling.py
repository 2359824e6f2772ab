"""Steps that variants which mix tokens share: who is mixed, what that blurs, and what it gives away of the future."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app.figures.categories import PRIMITIVES
from app.matrix_board import Category, Panel, matrix_board
from app.text import _, literal, paragraph
from attention_core.looks import factors, provenance
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.story import Seen, Step
from pages.inside.tokens import Pool, strip


def name(seen: Seen, pool: Pool) -> str:
    """A pool by its first and last token."""
    first, last = pool
    return seen.labels[first] if first == last else f"{seen.labels[first]} … {seen.labels[last]}"


def told(seen: Seen, pool: Pool) -> str:
    """The same for a sentence, with the places of its tokens."""
    words = _("“{name}”", name=literal(name(seen, pool)))
    first, last = pool
    return (
        _("{words} (token {first})", words=words, first=first)
        if first == last
        else _("{words} (tokens {first} to {last})", words=words, first=first, last=last)
    )


def levels(pools: Sequence[Pool]) -> list[list[int]]:
    """The numbers of the pools level by level: each level begins with the first token anew."""
    found: list[list[int]] = []
    for number, (first, _last) in enumerate(pools):
        if first == 0 or not found:
            found.append([])
        found[-1].append(number)
    return found


def draw_strip(seen: Seen, weights: np.ndarray | None = None) -> None:
    """The pools over the text, shaded by weights ``[m]`` where there are some."""
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
    """One short label per pool, for the axis of a matrix."""
    pools = provenance.spans(seen.parts["provenance"])
    return [f"{first}–{last}" if first < last else f"{first} {seen.labels[first]}" for first, last in pools]


def cover(seen: Seen, what: str = "") -> Step:
    """Which tokens each pooled key holds.

    Args:
        seen: the variant on a head.
        what: a mixture's name in the singular, a key if not given.
    """
    what = what or _("key")
    P = seen.parts["provenance"]
    m, n = P.shape
    pools, sizes = provenance.spans(P), provenance.blended(P)
    widest = max(pools, key=lambda pool: (pool[1] - pool[0], -pool[0]))

    def draw(key: str) -> None:
        draw_strip(seen)
        st.caption(_("Each box is one {what}, as wide as the tokens it holds.", what=what))
        pictures.grid(
            _("What each {what} is made of", what=what),
            P,
            f"{key}.provenance",
            pool_names(seen),
            seen.labels,
            what,
            _("token"),
            unit=_("share of the token"),
            tone="linear",
        )

    return Step(
        title=_("Pool the keys"),
        formula=r"\tilde K = P K,\qquad \tilde V = P V,\qquad P \in \mathbb{R}^{m \times n}",
        shapes={"P": (m, n), r"\tilde K": (m, seen.qkv.k.shape[-1])},
        sentence=_(
            "{n} tokens become **{m} keys**. The widest holds {pool}; a key amounts to {size:.1f} equally weighted "
            "tokens on average.",
            n=n,
            m=m,
            pool=told(seen, widest),
            size=sizes.mean(),
        ),
        draw=draw,
    )


def look(seen: Seen, extra: str = "", *, among: int | None = None) -> Step:
    """What each query weighs the pooled keys with.

    Args:
        seen: the variant on a head.
        extra: what the story adds to the sentence.
        among: how many of the first keys the firmest look is sought among; all if not given.
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
        query = InsideOptions.query.draw_among(
            range(len(left)), int(i), key=f"{key}.query", format_func=lambda at: f"{at}  {seen.labels[at]}"
        )
        draw_strip(seen, left[query])
        st.caption(_("The pools, shaded by the weight that this query gives each."))
        pictures.grid(_("Left factor: softmax over these keys"), left, f"{key}.left", seen.labels, pool_names(seen))

    return Step(
        title=_("Look at the pools"),
        formula=r"L = \operatorname{softmax}\left(\frac{Q \tilde K^\top}{\sqrt d}\right) \in \mathbb{R}^{n \times m}",
        shapes={"Q": seen.qkv.q.shape[1:], r"\tilde K": (left.shape[1], seen.qkv.k.shape[-1]), "L": left.shape},
        sentence=paragraph(
            firmest.format(
                query=literal(seen.labels[i]),
                i=int(i),
                weight=float(left[i, r]),
                pool=told(seen, (first, last)),
                exact=float(seen.reference[i, first : last + 1].sum()),
            ),
            extra,
        ),
        draw=draw,
    )


def blur(seen: Seen, *, queries: bool = False) -> Step:
    """The product beside the best that any weights could do with these mixtures: what mixing alone costs.

    Args:
        seen: the variant on a head.
        queries: whether queries are mixed, so that rows and not columns are alike.
    """
    left, right = seen.parts["left"], seen.parts["right"]
    mixed, wanted = (left.T, seen.reference.T) if queries else (right, seen.reference)
    best = provenance.closest(wanted, mixed)
    best = best.T if queries else best
    floor, error = (factors.off(matrix, seen.reference) for matrix in (best, seen.weights))
    n, rank, kinds = len(left), factors.rank(mixed), factors.kinds(mixed)
    return Step(
        title=_("Multiply: what blurs"),
        formula=r"A = L R,\qquad \operatorname{rank} A \le m,\qquad "
        + (r"\min_X \lVert S - L X \rVert_F" if queries else r"\min_X \lVert S - X R \rVert_F"),
        shapes={"L": left.shape, "R": right.shape, "A": (n, n)},
        sentence=blur_sentence(rank, n, kinds, floor, error, queries=queries),
        draw=lambda key: draw_best(seen, best, key),
    )


def blur_sentence(rank: int, n: int, kinds: int, floor: float, error: float, *, queries: bool) -> str:
    """What mixing alone costs.

    Args:
        rank: of the product.
        n: tokens.
        kinds: different columns of the product, or rows.
        floor: the error of the best weights on these mixtures.
        error: of the actual ones.
        queries: whether queries are mixed.
    """
    told = {"rank": rank, "n": n, "kinds": kinds, "floor": floor, "error": error}
    if rank == n:
        return _(
            "With as many independent mixtures as tokens nothing has to be blurred: the best weights would come within "
            "{floor:.0%} of softmax, the actual ones are {error:.0%} off.",
            **told,
        )
    if queries:
        return _(
            "The product has rank {rank} of {n} and {kinds} different rows. That blur alone makes it **{floor:.0%}** "
            "off softmax (Frobenius), whatever the weights; the actual ones make it **{error:.0%}**.",
            **told,
        )
    return _(
        "The product has rank {rank} of {n} and {kinds} different columns. That blur alone makes it **{floor:.0%}** "
        "off softmax (Frobenius), whatever the weights; the actual ones make it **{error:.0%}**.",
        **told,
    )


def draw_best(seen: Seen, best: np.ndarray, key: str) -> None:
    """The variant's matrix, the best that could be made of its mixtures, and softmax.

    Args:
        seen: the variant on a head.
        best: the closest to softmax that other weights on these mixtures can come, ``[n, n]``.
        key: of the elements.
    """
    pictures.grids(
        [
            pictures.pairs(
                seen,
                _("Product of the factors"),
                seen.weights,
                _("off by {error:.0%}", error=factors.off(seen.weights, seen.reference)),
            ),
            pictures.pairs(
                seen,
                _("Best with these mixtures"),
                best,
                _("off by {error:.0%}, whatever the weights", error=factors.off(best, seen.reference)),
            ),
            pictures.pairs(seen, _("Softmax"), seen.reference),
        ],
        f"{key}.best",
    )


def leak(seen: Seen) -> Step:
    """What pooled keys tell a query of its future, where keys that begin after it are hidden or those that end."""
    P, right = seen.parts["provenance"], seen.parts["right"]
    n = P.shape[1]
    hidden = factors.product(provenance.begun(seen.parts["left"], P), right)
    shares = provenance.ahead(hidden)
    pools = [pool for pool in provenance.spans(P) if pool[1] > pool[0]]
    if not pools:
        words = _("Every key holds a single token, so none can tell of another: here pooling does nothing, nor leaks.")
    else:
        first, last = max(pools, key=lambda pool: (pool[1] - pool[0], -abs(sum(pool) - n)))
        worst = int(shares.argmax())
        words = _(
            "The key of tokens {first} to {last} tells query {first}, **“{query}”**, of token {last}, **“{token}”**, "
            "{distance} ahead. Hide every key that begins after its query: still {mean:.0%} of the weight lies on the "
            "future on average, {most:.0%} for “{worst}” (token {i}).",
            first=first,
            last=last,
            query=literal(seen.labels[first]),
            token=literal(seen.labels[last]),
            distance=last - first,
            mean=float(shares.mean()),
            most=float(shares[worst]),
            worst=literal(seen.labels[worst]),
            i=worst,
        )
        words = paragraph(words, hidden_whole(seen))
    return Step(
        title=_("Why it leaks"),
        formula=r"j > i,\qquad \exists\, r:\; P_{ri} \ne 0,\; P_{rj} \ne 0 \;\Rightarrow\; i \text{ hears of } j",
        shapes={"P": P.shape, "A": (n, n)},
        sentence=words,
        draw=lambda key: draw_leak(
            seen, key, hidden, _("told by a key that holds both"), _("Weights, later keys hidden"), _("weight")
        ),
    )


def hidden_whole(seen: Seen) -> str:
    """What hiding every key that ends after its query would leave."""
    ended = provenance.ended(seen.parts["provenance"])
    blind, n = int((~ended.any(-1)).sum()), len(ended)
    if not blind:
        return _("Hide every key that ends after its query, and nothing leaks; each query still sees a key.")
    return _(
        "Hide every key that ends after its query, and nothing leaks; but {blind} of {n} queries see no key then.",
        blind=blind,
        n=n,
    )


def draw_leak(seen: Seen, key: str, values: np.ndarray, leaking: str, title: str, unit: str) -> None:
    """Who hears of whom ahead of time, beside how much.

    Args:
        seen: the variant on a head.
        key: of the elements.
        values: what each row makes of each token, ``[n, n]``.
        leaking: the kind of pair that leaks.
        title: of their matrix.
        unit: what they are.
    """
    n = len(values)
    ahead = np.triu(provenance.together(seen.parts["provenance"]), 1)
    kinds = np.tri(n, dtype=np.float32) + 2 * ahead
    categories = [Category(_("past and itself"), *PRIMITIVES["window"]), Category(leaking, *PRIMITIVES["missed"])]
    share = ahead.sum() / max(1, n * (n - 1) // 2)
    left, right = st.columns(2)
    with left:
        matrix_board(
            [
                Panel(
                    key="told",
                    title=_("Who hears of whom"),
                    values=kinds,
                    caption=_("{share:.1%} of all looks ahead leak", share=share),
                )
            ],
            row_labels=seen.labels,
            col_labels=seen.labels,
            key=f"{key}.told",
            categories=categories,
            none=_("hidden"),
            unit=_("Pairs"),
            panel_size=420,
            file_name="leak",
        )
    with right:
        pictures.grid(title, values, f"{key}.ahead", seen.labels, seen.labels, unit=unit)
