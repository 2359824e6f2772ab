"""Latent attention, explained step by step on the Inside page.

The steps show how all heads' keys and values are compressed to few numbers, and at which error.
"""

import numpy as np

from app.words.i18n import _, paragraph
from attention_core.analysis.low_rank.factors import relative_error_of
from pages.inside import pictures
from pages.inside.pictures import Curve
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step

TARGET_ERROR = 0.1
"""The first step reports the smallest rank with which the error of the weights is at most this number."""


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: error by rank, singular values, cache size, comparison with the reference."""
    return _ranks(data), _sizes(data), _cache(data), compare_with_reference(data)


def kept_share(sizes: np.ndarray, rank: int) -> float:
    """Return the sum of the first ``rank`` squared singular values (``sizes``), divided by the sum of all."""
    squares = sizes.astype(np.float64) ** 2
    return float(squares[:rank].sum() / squares.sum()) if squares.any() else 1.0


def _sizes(data: HeadData) -> Step:
    keys, values, rank = data.parts["key_sizes"], data.parts["value_sizes"], data.setting("rank")
    heads, n, d = data.qkv.k.shape
    positions = list(range(1, n + 1))

    def relative(sizes: np.ndarray) -> list[float]:
        found: list[float] = (sizes / (sizes[0] or 1.0)).tolist()
        return found

    return Step(
        title=_("Singular values"),
        mechanism=_(
            "The keys of all heads (here {heads}) are placed side by side in one matrix, the values in another. UΣ "
            "holds the latents, one per row, and all tokens share W.",
            heads=heads,
        ),
        formula=r"[K^{(1)} \cdots K^{(H)}] = U \Sigma W^\top,\qquad [V^{(1)} \cdots V^{(H)}] = U' \Sigma' W'^\top",
        shapes={r"[K^{(1)} \cdots K^{(H)}]": (n, heads * d), r"\Sigma": (min(n, heads * d),) * 2},
        findings=_(
            "With rank {rank}, **{keys:.1%}** of the squared norm of the keys is kept, and {values:.1%} of the squared "
            "norm of the values.",
            rank=min(rank, n, heads * d),
            keys=kept_share(keys, rank),
            values=kept_share(values, rank),
        ),
        details=_("With {n} tokens, at most {n} singular values are not zero.", n=n) if n < heads * d else "",
        draw=lambda key: pictures.lines(
            [
                Curve(_("keys"), positions, relative(keys), colour=0),
                Curve(_("values"), positions, relative(values), colour=1, hollow=True),
            ],
            key=key,
            x_title=_("index of the singular value"),
            y_title=_("singular value / largest one"),
            mark=(min(rank, n), _("rank")),
            alt=_(
                "Lines: singular values of the keys and of the values, all heads taken together, in descending order"
            ),
        ),
    )


def _ranks(data: HeadData) -> Step:
    ranks, first = np.unique(data.parts["ranks"], return_index=True)
    errors = data.parts["errors"][first].astype(np.float64)
    full, (heads, _n, d) = int(ranks[-1]), data.qkv.k.shape
    return Step(
        title=_("Rank"),
        mechanism=_(
            "Each token's keys in all heads are rebuilt from one short vector, its latent. Each latent is a row of "
            "the matrix C. The number of entries in a latent is the rank."
        ),
        formula=r"C = U_r \Sigma_r,\qquad K \approx C\, W_r^\top,\qquad "
        r"A^{(h)} = \operatorname{softmax}\left(\frac{Q^{(h)} (C W_r^{(h)\top})^\top}{\sqrt d}\right)",
        shapes={
            "C": (len(data.weights), min(data.setting("rank"), full)),
            "W_r": (heads * d, min(data.setting("rank"), full)),
        },
        findings=rank_sentence(
            ranks, errors, min(data.setting("rank"), full), relative_error_of(data.weights, data.reference)
        ),
        draw=lambda key: pictures.lines(
            [Curve(_("all heads together"), ranks.tolist(), (100 * errors).tolist(), colour=0, name_at_end=False)],
            key=key,
            x_title=_("rank"),
            y_title=_("matrix error of all heads, %"),
            mark=(min(data.setting("rank"), full), _("current rank")),
            alt=_("Line: the matrix error of all heads together against the rank, the number of entries of a latent"),
        ),
    )


def rank_sentence(ranks: np.ndarray, errors: np.ndarray, rank: int, head_error: float) -> str:
    """Return the sentence about the error at the set rank, and the smallest rank that reaches ``TARGET_ERROR``.

    Args:
        ranks: the measured ranks, ascending; the last is the full rank.
        errors: the error of all heads' weights at each rank.
        rank: the rank that is set, at most the full rank.
        head_error: the error of the shown head.
    """
    full = int(ranks[-1])
    sufficient = int(ranks[errors <= TARGET_ERROR][0]) if (errors <= TARGET_ERROR).any() else full
    text = (
        _("At the full rank of {rank}, the keys are rebuilt without error.", rank=rank)
        if rank == full
        else _(
            "At rank {rank} (full rank: {full}), the matrix error of this head is **{here:.1%}**.",
            rank=rank,
            full=full,
            here=head_error,
        )
    )
    return paragraph(
        text,
        _(
            "Rank {enough} is the smallest tested rank with a matrix error of at most {near:.0%} over all heads "
            "together.",
            enough=sufficient,
            near=TARGET_ERROR,
        ),
    )


def _cache(data: HeadData) -> Step:
    (heads, n, d), d_v = data.qkv.k.shape, data.qkv.v.shape[-1]
    variant, params = data.attention.variant, data.attention.params
    assert variant.cache is not None
    cache, full_numbers = variant.cache(heads, d, d_v, params), heads * (d + d_v)
    return Step(
        title=_("Cache"),
        mechanism=_(
            "For each token, the cache stores short vectors, the latents, instead of keys and values. The matrices "
            "that rebuild the keys and values are stored only once."
        ),
        formula=r"\text{cache} = n\,(r + r') + H\,(r\,d + r'\,d_v) \quad\text{instead of}\quad n\,H\,(d + d_v)",
        shapes={"C": (n, min(data.setting("rank"), heads * d)), "C'": (n, min(data.setting("rank"), heads * d_v))},
        findings=cache_sentence(cache.per_token, cache.fixed, full_numbers, n),
        draw=lambda key: pictures.bars(
            {_("per token"): [n * full_numbers, n * cache.per_token], _("stored once"): [0, cache.fixed]},
            [_("keys and values"), _("latents and shared matrices")],
            key=key,
            stacked=True,
            x_title=_("contents of the cache"),
            y_title=_("stored numbers"),
            alt=_("Bars: how many numbers are cached for this input, as keys and values or as latents"),
        ),
    )


def cache_sentence(token: int, once: int, full_numbers: int, n: int) -> str:
    """Return the sentence about the memory saved by compressed keys and values, and the length from which they save.

    Args:
        token: numbers cached per token.
        once: numbers stored once, for any number of tokens.
        full_numbers: numbers in a token's keys and values.
        n: number of tokens.
    """
    if token >= full_numbers:
        return _(
            "Here, latents save no memory: they take {token:,} numbers per token, and keys and values take {whole:,}.",
            token=token,
            whole=full_numbers,
        )
    min_tokens = once // (full_numbers - token) + 1
    message = _(
        "Each token adds **{token:,} numbers** to the cache instead of {whole:,}. The matrices that rebuild keys and "
        "values are stored once and take {once:,} numbers. Including them, the cache is smaller than a cache of keys "
        "and values from {least:,} tokens on.",
        token=token,
        whole=full_numbers,
        once=once,
        least=min_tokens,
    )
    if n < min_tokens:
        return paragraph(
            message,
            _(
                "For this input, the cache of latents is not smaller than a cache of keys and values. In real models, "
                "the matrices that rebuild keys and values are learned once and then used for all texts."
            ),
        )
    return message
