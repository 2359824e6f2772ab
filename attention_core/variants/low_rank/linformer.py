"""Linformer: queries attend to m linear mixtures of the n keys and values.

The paper trains the two projections E and F, ``[m, n]``. Here, they are fixed. They are segment means, segment means
with a triangular window (the paper's convolution with a window as wide as its stride), or Gaussian random numbers (the
Johnson-Lindenstrauss projection of the paper's proof).

Linformer approximates softmax. With either kind of mean, the result is softmax when m reaches n. With the Gaussian
projection, it is not softmax at any m.
"""

from torch import Tensor

from attention_core.ops.low_rank.pooling import even_segments, pool, pooling_matrix
from attention_core.ops.random import normal
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, scores
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Trainable, Variant, param


class LinformerParams(Params):
    """Settings of Linformer."""

    rank: int = param(
        16,
        low=1,
        high=1024,
        scale="log",
        budget=True,
        help="Number m of mixed keys and values that replace those of the tokens. A larger m usually brings the "
        "result closer to softmax but costs more. The maximum is one per token.",
    )
    projection: str = param(
        "mean",
        choices=("mean", "conv", "gaussian"),
        help='How keys and values are mixed without training. "mean" averages neighbouring tokens, and "conv" gives '
        'the middle ones more weight in these averages. "gaussian" mixes all tokens at random.',
    )
    share: bool = param(
        True, help='Mix keys and values by the same random matrix. Used only with the projection "gaussian".'
    )
    seed: int = param(
        0,
        low=0,
        high=9999,
        help='Random seed of the matrices that mix keys and values. Used only with the projection "gaussian".',
    )


def projections(n: int, p: LinformerParams, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return E for the keys and F for the values, ``[m, n]`` each; all batches and heads share them.

    A trained model adds learned matrices to them. Type and device are those of ``like``.
    """
    E, F = _untrained(n, p, like)
    if not p.learned:
        return E, F
    m, keys = len(E), p.learned["E"]
    values = p.learned.get("F", keys)
    return E + keys[:m, :n].to(E.dtype), F + values[:m, :n].to(F.dtype)


def _untrained(n: int, p: LinformerParams, like: Tensor) -> tuple[Tensor, Tensor]:
    if p.projection != "gaussian":
        window = pooling_matrix(even_segments(n, p.rank), like, p.projection)
        return window, window
    m = min(p.rank, n)
    E = normal((m, n), p.seed, like, 0).mul_(m**-0.5)
    return E, E if p.share else normal((m, n), p.seed, like, 1).mul_(m**-0.5)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: LinformerParams, *, causal: bool) -> dict[str, Tensor]:
    """Return ``provenance = E [m, n]``, the tokens in m projected keys, and the factors ``left @ right = weights``."""
    E, F = projections(k.shape[-2], p, q)
    return {"provenance": E, "left": scores(q, E @ k).softmax(-1), "right": F}


def weights(q: Tensor, k: Tensor, p: LinformerParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q (E k)ᵀ / √d) F``, ``[..., n, n]``, with the projections E and F."""
    E, F = projections(k.shape[-2], p, q)  # [m, n] each
    return scores(q, E @ k).softmax(-1) @ F


def attend(q: Tensor, k: Tensor, v: Tensor, p: LinformerParams, *, causal: bool) -> Tensor:
    """Compute full attention to m projected keys and values: O(n m d) time."""
    queries, keys, values = at_least_float32(q), at_least_float32(k), at_least_float32(v)
    if p.projection == "gaussian" or p.learned:
        E, F = projections(k.shape[-2], p, queries)
        return exact_attention(queries, E @ keys, F @ values).to(v.dtype)
    segments = even_segments(k.shape[-2], p.rank)
    projected = (pool(x, segments, p.projection) for x in (keys, values))
    return exact_attention(queries, *projected).to(v.dtype)


def cost(n: int, d: int, p: LinformerParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost of two n x m x d products; the projection "gaussian" takes two more, and memory for E and F."""
    keys = keys or n
    m = min(p.rank, keys)
    n_random = 0 if p.projection != "gaussian" else 1 if p.share else 2
    # The projection "conv" weights the tokens of a segment by a window, which copies them. The copies for all
    # segments of one length exist at the same time.
    conv_copies = max(run.number * run.size for run in even_segments(keys, m)) * d if p.projection == "conv" else 0
    return Cost(
        multiply_adds=2 * (n + keys * (n_random > 0)) * m * d,
        peak_elements=max(n * (d + 1), conv_copies) + 2 * m * d + n_random * m * keys,
    )


def _shape(p: LinformerParams, tokens: int, d: int) -> tuple[int, int]:
    return min(p.rank, tokens), tokens


VARIANT = Variant(
    __name__,
    title="Linformer",
    summary="The keys and values of all n tokens are mixed into m keys and m values, and every query attends to these "
    "m mixtures.",
    formula=r"A = \operatorname{softmax}\left(\frac{Q (E K)^\top}{\sqrt{d}}\right) F,"
    r"\quad E, F \in \mathbb{R}^{m \times n}",
    complexity="n m d",
    params=LinformerParams,
    trainable=(
        Trainable(name="E", title="matrices E for the keys", per="layer", shape=_shape, over_positions=True),
        Trainable(
            name="F",
            title="matrices F for the values",
            per="layer",
            shape=_shape,
            over_positions=True,
            when=lambda p: not p.share,
        ),
    ),
    source=Paper(
        "Linformer: Self-Attention with Linear Complexity",
        2020,
        "https://arxiv.org/abs/2006.04768",
        authors="Wang et al.",
    ),
    approximates="softmax",
    causal_reason="each projected key is a mixture of tokens from the whole text, including later tokens.",
    rows_sum_to_one=False,
    signed=True,
    random=True,
    note="In the paper, the matrices that mix keys and values are trained. The Learn page can train them too. On "
    "other pages, they are not trained, so a trained Linformer may have a much smaller error than shown.",
    special_cases=(SpecialCase("softmax", {"rank": TOKENS}),),
)
