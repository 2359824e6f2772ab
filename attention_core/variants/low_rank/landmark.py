"""Double softmax: queries attend to m key landmarks, and m query landmarks attend to all keys.

A landmark is a mean of some tokens. This is Nyström attention without its middle factor, the inverse of the attention
matrix between landmarks. Without that factor, it does not approximate softmax: if every token is its own landmark, the
matrix is the softmax matrix multiplied by itself. More landmarks raise the rank of the matrix, but do not reduce its
error relative to softmax.
"""

from torch import Tensor

from attention_core import articles
from attention_core.ops.low_rank.landmarks import METHODS, landmark_multiply_adds, landmarks
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, scores
from attention_core.variant import Cost, Intermediate, Params, Variant, param


class LandmarkParams(Params):
    """Settings of the double softmax."""

    landmarks: int = param(
        16,
        low=1,
        high=1024,
        scale="log",
        budget=True,
        help="Number m of landmarks for the queries, and also for the keys. A landmark is a mean of several queries "
        "or keys. More landmarks keep more detail but cost more. The maximum is one per token.",
    )
    method: str = param(
        "segment_means",
        choices=METHODS,
        help='How tokens are grouped. Each landmark is the mean of one group. With "segment means", neighbouring '
        'tokens form a group. With "kmeans", similar tokens at any position form a group.',
    )


def _landmarks(q: Tensor, k: Tensor, p: LandmarkParams) -> tuple[Tensor, Tensor]:
    """Return the landmarks of queries and of keys, ``[..., m, d]`` each, at most one per query and per key."""
    m = min(p.landmarks, q.shape[-2], k.shape[-2])
    return landmarks(q, m, p.method), landmarks(k, m, p.method)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: LandmarkParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the factors ``left [..., n, m]`` and ``right [..., m, n]`` for m landmarks.

    ``left`` holds each token's weights on landmarks, and ``right`` each landmark's weights on tokens.
    """
    q_land, k_land = _landmarks(q, k, p)  # [..., m, d]
    return {"left": scores(q, k_land).softmax(-1), "right": scores(q_land, k).softmax(-1)}


def weights(q: Tensor, k: Tensor, p: LandmarkParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q k̃ᵀ / √d) softmax(q̃ kᵀ / √d)``, ``[..., n, n]``, with landmarks q̃ and k̃."""
    q_land, k_land = _landmarks(q, k, p)  # q̃ and k̃, [..., m, d]
    return scores(q, k_land).softmax(-1) @ scores(q_land, k).softmax(-1)


def attend(q: Tensor, k: Tensor, v: Tensor, p: LandmarkParams, *, causal: bool) -> Tensor:
    """Compute the output as ``left @ (right @ v)`` with the fused kernel: O(n m d) time for m landmarks."""
    queries, keys, values = at_least_float32(q), at_least_float32(k), at_least_float32(v)
    query_landmarks, key_landmarks = _landmarks(queries, keys, p)
    return exact_attention(queries, key_landmarks, exact_attention(query_landmarks, keys, values)).to(v.dtype)


def cost(n: int, d: int, p: LandmarkParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost of four n x m x d products and the products that find the landmarks."""
    keys = keys or n
    m = min(p.landmarks, n, keys)
    search = sum(landmark_multiply_adds(tokens, m, d, p.method) for tokens in (n, keys))
    return Cost(
        multiply_adds=2 * (n + keys) * m * d + search,
        peak_elements=3 * m * d + max(n * (d + 1), max(n, keys) * (d + m + 2) if search else 0),
    )


VARIANT = Variant(
    __name__,
    title="Landmarks",
    summary="The attention matrix is the product of two softmax matrices: queries attend to a few landmarks, which "
    "are means of tokens, and landmarks attend to all keys.",
    formula=r"A = \operatorname{softmax}\left(\frac{Q \tilde{K}^\top}{\sqrt{d}}\right)"
    r"\operatorname{softmax}\left(\frac{\tilde{Q} K^\top}{\sqrt{d}}\right),"
    r"\quad \tilde{Q}, \tilde{K} \in \mathbb{R}^{m \times d}",
    complexity="n m d",
    params=LandmarkParams,
    source=articles.NYSTROMFORMER,
    causal_reason="each landmark is a mean of several tokens, including later tokens.",
    intermediates=(
        Intermediate(
            name="left",
            title="Left factor",
            symbol="L",
            formula=r"L = \operatorname{softmax}\left(\frac{Q \tilde K^\top}{\sqrt d}\right)",
            mechanism="Each query attends to the landmarks of the keys. Each of these landmarks is a mean of keys.",
            columns="landmark",
        ),
        Intermediate(
            name="right",
            title="Right factor",
            symbol="R",
            formula=r"R = \operatorname{softmax}\left(\frac{\tilde Q K^\top}{\sqrt d}\right),\qquad A = L R",
            mechanism="Each landmark of the queries, a mean of queries, attends to all keys. The attention matrix is "
            "L times R, without the inverse that Nyström attention has between these two factors.",
            rows="landmark",
        ),
    ),
    note="Landmarks are means of tokens. With as many landmarks as tokens, each landmark is a single token. The "
    "attention matrix is then softmax's matrix multiplied by itself, not softmax's matrix.",
)
