"""Steps that several explanations on the Inside page share, for variants that average neighbouring tokens (pooling).

A pool is a group of neighbouring tokens with one key and one value. The steps show which tokens are averaged, the
smallest error that this allows, and how information from later tokens leaks into earlier outputs.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from app.figures.categories import PRIMITIVES
from app.matrix_board import Category, Panel, matrix_board
from app.words.i18n import N_, _, _n, escape_markdown, paragraph
from app.words.isolation import isolate
from app.words.labels import token_options
from attention_core.analysis.low_rank import factors
from attention_core.analysis.masks import provenance
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import symbol
from pages.inside.story import HeadData, Step, lazy_step
from pages.inside.tokens import Pool, strip

BEST_ERROR_TITLE, LEAK_TITLE = N_("Best possible error"), N_("Leakage")
"""Titles of the steps ``best_error_step`` and ``leak_step``."""


def name(data: HeadData, pool: Pool) -> str:
    """Return the first and the last token of a pool as its name, such as ``the … cat``."""
    first, last = pool
    return " … ".join(isolate(data.labels[i]) for i in dict.fromkeys((first, last)))


def pool_text(data: HeadData, pool: Pool) -> str:
    """Return the name of a pool in quotation marks, with the positions of its first and last token, for a sentence."""
    words = _("“{name}”", name=escape_markdown(name(data, pool)))
    first, last = pool
    return (
        _("{words} (token {first})", words=words, first=first)
        if first == last
        else _("{words} (tokens {first} to {last})", words=words, first=first, last=last)
    )


def block_names(data: HeadData) -> list[str]:
    """Return the label of each block, such as ``0–15``, for a variant with the setting ``block`` (the block size)."""
    n, size = len(data.weights), data.setting("block")
    return [f"{i}–{j}" if j > i else f"{i}" for i in range(0, n, size) for j in [min(i + size, n) - 1]]


def levels(pools: Sequence[Pool]) -> list[list[int]]:
    """Return the indices of the pools, grouped by level. Each level of pools covers the text from token 0 on."""
    result: list[list[int]] = []
    for number, (first, _last) in enumerate(pools):
        if first == 0 or not result:
            result.append([])
        result[-1].append(number)
    return result


def widest(pools: Sequence[Pool], target: int = 0) -> Pool:
    """Return the pool with most tokens; in a tie, the pool with the sum of its end positions closest to ``target``."""
    return max(pools, key=lambda pool: (pool[1] - pool[0], -abs(sum(pool) - target)))


def draw_strip(data: HeadData, weights: np.ndarray | None = None) -> None:
    """Draw the pools as boxes, as wide as their tokens, shaded by ``weights`` (one number per pool) if given."""
    pools = provenance.spans(data.parts["provenance"])
    rows = levels(pools)
    st.html(
        strip(
            [[pools[i] for i in row] for row in rows],
            [[" ".join(data.qkv.tokens[pools[i][0] : pools[i][1] + 1]) for i in row] for row in rows],
            None if weights is None else [[float(weights[i]) for i in row] for row in rows],
        )
    )


def pool_names(data: HeadData) -> list[str]:
    """Return one short label per pool, for the axis of a matrix."""
    pools = provenance.spans(data.parts["provenance"])
    return [f"{first}–{last}" if first < last else f"{first} {isolate(data.labels[first])}" for first, last in pools]


def pools_step(data: HeadData, title: str = "") -> Step:
    """Build the step that shows which tokens each pooled key contains.

    Args:
        data: the variant on a head.
        title: the title of the matrix of pools; "Pools P" if empty.
    """
    P = data.parts["provenance"]
    m, n = P.shape
    widths = [last - first + 1 for first, last in provenance.spans(P)]

    def draw(key: str) -> None:
        draw_strip(data)
        st.caption(_("Each box is a pooled key, which combines the tokens that it spans."))
        shares = pictures.panel(
            title or _("Pools P"), P, pool_names(data), data.labels, row=_("pool"), column=_("token"), mark=0
        )
        pictures.board(f"{key}.provenance", shares, *pictures.result_panels(data), scale="panel")

    return Step(
        title=_("Pooling"),
        mechanism=_(
            "Neighbouring tokens form a pool. Their keys are combined into one key, and their values into one value."
        ),
        formula=rf"\tilde K = {symbol(0, 'P')} K,\qquad \tilde V = {symbol(0, 'P')} V",
        shapes={"P": (m, n), r"\tilde K": (m, data.qkv.k.shape[-1])},
        findings=pools_sentence(n, m, provenance.effective_tokens(P).mean(), min(widths), max(widths)),
        draw=draw,
    )


def pools_sentence(n: int, m: int, size: float, smallest: int, largest: int) -> str:
    """Return the sentences about the number of pools and their sizes.

    Args:
        n: number of tokens.
        m: number of pools.
        size: the mean effective number of tokens in a pool.
        smallest: number of tokens in the smallest pool.
        largest: number of tokens in the largest pool, at most one more than in the smallest.
    """
    if n == 1:
        return _("The only token becomes **1 key**.")
    if m == 1:
        return _("All tokens become **1 key**. This key combines {size:.1f} tokens (effective number).", size=size)
    return paragraph(
        _(
            "{n} tokens become **{m} keys**. On average, each of these keys combines {size:.1f} tokens (effective "
            "number).",
            n=n,
            m=m,
            size=size,
        ),
        _("Each pool has {least} or {most} tokens.", least=smallest, most=largest)
        if smallest < largest
        else _n("Each pool has {n} token.", "Each pool has {n} tokens.", n=largest),
    )


def weights_step(data: HeadData, extra: str = "", *, n_keys: int | None = None) -> Step:
    """Build the step that shows the weights of each query on the pooled keys.

    Args:
        data: the variant on a head.
        extra: the details of the step.
        n_keys: number of first keys among which the largest weight is searched for; None for all keys.
    """
    left, pools = data.parts["left"], provenance.spans(data.parts["provenance"])
    candidates = left[:, :n_keys]
    i, r = np.unravel_index(int(candidates.argmax()), candidates.shape)
    first, last = pools[r]
    heaviest_once = candidates.shape[1] > 1 and (candidates[i] == left[i, r]).sum() == 1
    values = {
        "query": data.token(i),
        "i": i,
        "weight": left[i, r],
        "pool": pool_text(data, (first, last)),
        "exact": data.reference[i, first : last + 1].sum(),
    }

    def draw(key: str) -> None:
        query = InsideOptions.query.draw_with_options(
            fallback=int(i), key=f"{key}.query", width=240, **token_options(data.labels)
        )
        draw_strip(data, left[query])
        st.caption(_("The shading shows how much weight the selected query gives to each pooled key."))
        shown = pictures.panel(_("Weights L"), left, data.labels, pool_names(data), column=_("pool"), mark=0)
        pictures.board(f"{key}.left", shown, scale="panel")

    return Step(
        title=_("Weights on pools"),
        mechanism=_("Each query attends to the keys of pools (groups of combined tokens)."),
        formula=symbol(0, "L") + r" = \operatorname{softmax}\left(\frac{Q \tilde K^\top}{\sqrt d}\right)",
        shapes={"Q": data.qkv.q.shape[1:], r"\tilde K": (left.shape[1], data.qkv.k.shape[-1]), "L": left.shape},
        findings=_("Each pool has one token, so the weights are those of softmax.")
        if all(start == end for start, end in pools[: candidates.shape[1]])
        else _(
            "**“{query}”** (token {i}) gives {weight:.0%} of its weight to {pool}, more than to any other pool. "
            "Softmax gives {exact:.0%} to these tokens.",
            **values,
        )
        if heaviest_once
        else _(
            "**“{query}”** (token {i}) gives {weight:.0%} of its weight to {pool}. Softmax gives {exact:.0%} to these "
            "tokens.",
            **values,
        ),
        details=extra,
        draw=draw,
    )


@lazy_step(BEST_ERROR_TITLE)
def best_error_step(data: HeadData) -> Step:
    """Build the step that compares the error of the variant's matrix with the smallest error that its pools allow."""
    left, right = data.parts["left"], data.parts["right"]
    best = provenance.closest_mixing(data.reference, right)
    floor, error = (factors.relative_error_of(matrix, data.reference) for matrix in (best, data.weights))
    n = len(left)
    return Step(
        mechanism=_(
            "Column j of L holds each query's weight on row j of R, and this row spreads the weight over the tokens in "
            "fixed proportions. This limits how close A can come to softmax's matrix."
        ),
        formula=symbol(pictures.RESULT, "A")
        + r" = L R,\qquad \operatorname{rank} A \le m,\qquad "
        + symbol(1, "X^*")
        + r" = \arg\min_X \lVert S - X R \rVert_F",
        shapes={"L": left.shape, "R": right.shape, "A": (n, n)},
        findings=best_error_sentence(factors.rank(right), n, floor, error),
        draw=lambda key: draw_best_matrix(data, best, key),
    )


def best_error_sentence(rank: int, n: int, floor: float, error: float) -> str:
    """Return the sentence about the error that combining tokens causes, even with the best weights.

    Args:
        rank: the rank of the factor R, which has the weight of each token (column) in each pool (row).
        n: number of tokens.
        floor: the error of the best possible weights on these pools.
        error: the error of the actual weights.
    """
    values = {"rank": rank, "tokens": n, "floor": floor, "error": error}
    if rank == n:
        return _(
            "With the best possible weights instead of L, the matrix error compared with softmax would be "
            "{floor:.0%}, because R has as many linearly independent rows as there are tokens. The actual weights "
            "give a matrix error of {error:.0%}.",
            **values,
        )
    return _(
        "With the best possible weights instead of L, the matrix error compared with softmax would be "
        "**{floor:.0%}**. With the actual weights, it is **{error:.0%}**. R has rank {rank}, so the rank of A is at "
        "most {rank} instead of {tokens}.",
        **values,
    )


def draw_best_matrix(data: HeadData, best: np.ndarray, key: str) -> None:
    """Draw the variant's matrix, the best matrix its pools allow, and softmax.

    Args:
        data: the variant on a head.
        best: the matrix closest to softmax that other weights on these pools can reach, ``[n, n]``.
        key: prefix of the elements' keys.
    """
    own_caption = _("matrix error {error:.0%}", error=factors.relative_error_of(data.weights, data.reference))
    best_caption = _("matrix error {error:.0%}", error=factors.relative_error_of(best, data.reference))
    pictures.board(
        f"{key}.best",
        pictures.pair_panel(data, _("Actual A"), data.weights, own_caption, mark=pictures.RESULT),
        pictures.pair_panel(data, _("Best possible X* R"), best, best_caption, mark=1),
        pictures.pair_panel(data, _("Softmax"), data.reference),
    )


@lazy_step(LEAK_TITLE)
def leak_step(data: HeadData) -> Step:
    """Build the step that shows how a query receives information about later tokens through pooled keys.

    It compares two masks: hiding the keys whose pool begins after the query, and hiding those whose pool ends after it.

    Args:
        data: the variant on a head.
    """
    P, right = data.parts["provenance"], data.parts["right"]
    n = P.shape[1]
    hidden = factors.product(provenance.renormalise_started_mixtures(data.parts["left"], P), right)
    shares = provenance.future_mass(hidden)
    pools = [pool for pool in provenance.spans(P) if pool[1] > pool[0]]
    details = ""
    if not pools:
        words = _("Each key is computed from a single token, so no information leaks from later tokens.")
    else:
        first, last = widest(pools, n)
        worst = int(shares.argmax())
        words = _(
            "Through the pool of tokens {first} to {last}, query **“{query}”** receives information from "
            "the later token **“{token}”**.",
            first=first,
            last=last,
            query=data.token(first),
            token=data.token(last),
        )
        details = _(
            "If only pools that begin after the query are masked, an average of {mean:.0%} of a query's weight "
            "is still on later tokens. The largest such share is {most:.0%}, for query “{worst}” (token {i}).",
            mean=shares.mean(),
            most=shares[worst],
            worst=data.token(worst),
            i=worst,
        )
        details = paragraph(details, masked_pools_sentence(data))
    leaking = _("leaks through a shared key")
    step = leak_map_step(data, hidden, words, leaking, _("Weights with later pools masked"), _("weight"))
    return replace(step, details=details)


def masked_pools_sentence(data: HeadData) -> str:
    """Return the sentence about masking every key whose pool ends after the query."""
    ended = provenance.fully_past_mixtures(data.parts["provenance"])
    blind, n = int((~ended.any(-1)).sum()), len(ended)
    if not blind:
        return _("If every pool that ends after the query is masked, nothing leaks, and each query still has a key.")
    return _n(
        "If every pool that ends after the query is masked, nothing leaks, but {n} of {queries} queries has no key "
        "left.",
        "If every pool that ends after the query is masked, nothing leaks, but {n} of {queries} queries have no key "
        "left.",
        n=blind,
        queries=n,
    )


def leak_map_step(data: HeadData, values: np.ndarray, words: str, leaking: str, title: str, unit: str) -> Step:
    """Build a step that draws which token pairs leak, next to how much each leaks.

    Args:
        data: the variant on a head.
        values: the matrix that is drawn next to the leaking pairs: a number per query and token, ``[n, n]``.
        words: the findings of the step.
        leaking: the legend label of the leaking pairs.
        title: the title of the matrix of ``values``.
        unit: the unit of ``values``.
    """
    P, n = data.parts["provenance"], len(values)
    ahead = np.triu(provenance.shared_mixture_pairs(P), 1)

    def draw(key: str) -> None:
        kinds = {_("the query's own token and earlier tokens"): "window", leaking: "missed"}
        share = _(
            "Information leaks in {share:.1%} of the pairs whose key comes after the query",
            share=ahead.sum() / max(1, n * (n - 1) // 2),
        )
        left, right = st.columns(2)
        with left:
            matrix_board(
                [Panel("flow", _("Information flow"), share, np.tri(n, dtype=np.float32) + 2 * ahead)],
                labels=data.labels,
                key=f"{key}.flow",
                categories=[Category(kind, *PRIMITIVES[like]) for kind, like in kinds.items()],
                zero=_("masked"),
                unit=_("Pairs"),
                panel_size=420,
                file_name="leak",
            )
        with right:
            pictures.board(f"{key}.ahead", pictures.panel(title, values, data.labels, data.labels), unit=unit)

    return Step(
        mechanism=_(
            "A query that attends to a key combined from several tokens (a pool) receives information from all of "
            "these tokens, including later ones."
        ),
        formula=r"j > i,\qquad \exists\, r:\; P_{ri} \ne 0,\; P_{rj} \ne 0 \;\Rightarrow\; j \text{ leaks to } i",
        shapes={"P": P.shape, "A": (n, n)},
        findings=words,
        draw=draw,
    )
