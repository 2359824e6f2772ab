"""Nyström attention: softmax approximated by the product of three smaller matrices between tokens and landmarks.

Landmarks are means of tokens. The middle matrix is the pseudo-inverse of the attention matrix between landmarks. The
starting value of the iterative inverse depends on the norms of each matrix separately, so that one example of a batch
never changes the output of another.
"""

import math
from collections import deque
from collections.abc import Iterator

import torch
from torch import Tensor

from attention_core import articles
from attention_core.ops.low_rank.inverse import RCOND, exact_inverse, inverse_steps
from attention_core.ops.low_rank.landmarks import METHODS, landmark_multiply_adds, landmarks
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, scores
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Variant, param


class NystromParams(Params):
    """Settings of Nyström attention."""

    landmarks: int = param(
        32,
        low=1,
        high=1024,
        scale="log",
        help="Number m of landmarks for the queries, and also for the keys. A landmark is a mean of several queries "
        "or keys. With as many landmarks as tokens, each query and each key is its own landmark.",
        budget=True,
    )
    method: str = param(
        "segment_means",
        choices=METHODS,
        help='How tokens are grouped. Each landmark is the mean of one group. With "segment means", neighbouring '
        'tokens form a group. With "kmeans", similar tokens at any position form a group.',
    )
    inverse: str = param(
        "iterative",
        choices=("iterative", "exact"),
        help="How to compute the pseudo-inverse of the matrix that contains the attention of query landmarks to key "
        'landmarks. "iterative" approximates it by a few matrix products. "exact" computes it from the singular '
        "values.",
    )
    iterations: int = param(
        6,
        low=1,
        high=12,  # more iterations only amplify the float32 rounding errors of small singular values
        help="Number of steps of the iterative inverse. Close to the exact inverse, a step reduces an error of 1% to "
        "about 0.0001%.",
    )


def to_precision(x: Tensor, p: NystromParams) -> Tensor:
    """Return x in at least float32, or in float64 for the exact inverse, whose large entries cancel."""
    return x.double() if p.inverse == "exact" else at_least_float32(x)


def inverses(middle: Tensor, p: NystromParams) -> Iterator[Tensor]:
    """Return successive approximations of the pseudo-inverse of ``middle``, ``[..., m, m]``; the last one is used."""
    return iter([exact_inverse(middle)]) if p.inverse == "exact" else inverse_steps(middle, p.iterations)


def landmark_count(q: Tensor, k: Tensor, p: NystromParams) -> int:
    """Return the number of landmarks, at most one per query and per key."""
    return min(p.landmarks, q.shape[-2], k.shape[-2])


def weights(q: Tensor, k: Tensor, p: NystromParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q k̃ᵀ/√d) softmax(q̃ k̃ᵀ/√d)⁺ softmax(q̃ kᵀ/√d)``, ``[..., n, n]``, with landmarks q̃ and k̃."""
    queries, keys = to_precision(q, p), to_precision(k, p)
    q_land, k_land = (landmarks(x, landmark_count(q, k, p), p.method) for x in (queries, keys))  # q̃ and k̃, [..., m, d]
    left = scores(queries, k_land).softmax(-1)  # [..., n, m]
    middle = scores(q_land, k_land).softmax(-1)  # [..., m, m]
    right = scores(q_land, keys).softmax(-1)  # [..., m, n]
    if p.inverse == "exact":
        Z = torch.linalg.pinv(middle, rtol=RCOND)  # [..., m, m]
    else:
        rows, columns = middle.abs().sum(-1).amax(-1), middle.abs().sum(-2).amax(-1)  # ‖middle‖_∞ and ‖middle‖₁
        Z, identity = middle.mT / (rows * columns)[..., None, None], middle.new_ones(middle.shape[-1]).diag()
        for _ in range(p.iterations):
            product = middle @ Z
            Z = Z @ (13 * identity - product @ (15 * identity - product @ (7 * identity - product))) / 4
    return (left @ (Z @ right)).to(q.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, p: NystromParams, *, causal: bool) -> Tensor:
    """Multiply v by the three factors from right to left: O(n m d + m³) time for m landmarks."""
    queries, keys, values = (to_precision(x, p) for x in (q, k, v))
    q_land, k_land = (landmarks(x, landmark_count(q, k, p), p.method) for x in (queries, keys))
    summaries = deque(inverses(scores(q_land, k_land).softmax(-1), p), maxlen=1).pop()  # the last inverse
    summaries = summaries @ exact_attention(q_land, keys, values)
    return exact_attention(queries, k_land, summaries).to(v.dtype)


def cost(n: int, d: int, p: NystromParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: four products of n tokens and m landmarks, the landmark search, the inverse unless exact."""
    keys = keys or n
    m = min(p.landmarks, n, keys)
    search = sum(landmark_multiply_adds(tokens, m, d, p.method) for tokens in (n, keys))
    adds = 2 * (n + keys) * m * d + 2 * m * m * d + search
    if p.inverse == "exact":
        # The exact inverse needs float64. At the peak, q, k, v and the output are in memory in that type.
        return Cost(multiply_adds=adds, peak_elements=(5 * n + 4 * keys) * d + 6 * m * d)
    clusters = max(n, keys) * (d + m + 2) if p.method == "kmeans" else 0
    return Cost(
        multiply_adds=adds + 4 * p.iterations * m**3, peak_elements=max(n * (d + 1), 10 * m * m, clusters) + 3 * m * d
    )


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: NystromParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the landmarks, the three factors, and the remaining error of each iteration of the inverse.

    ``query_landmarks`` and ``key_landmarks``, ``[..., m, d]``; ``left [..., n, m]``, ``middle [..., m, m]``,
    ``inverse [..., m, m]`` and ``right [..., m, n]``. ``residuals``, ``[..., T + 1]``, is the Frobenius norm of
    ``I - middle Z`` divided by the norm of ``I``, for the initial inverse Z and after each iteration (one number if
    exact).
    """
    queries, keys = to_precision(q, p), to_precision(k, p)
    q_land, k_land = (landmarks(x, landmark_count(q, k, p), p.method) for x in (queries, keys))
    middle = scores(q_land, k_land).softmax(-1)
    steps = torch.stack(list(inverses(middle, p)), -3)
    identity = torch.eye(middle.shape[-1], dtype=middle.dtype, device=middle.device)
    return {
        "query_landmarks": q_land,
        "key_landmarks": k_land,
        "left": scores(queries, k_land).softmax(-1),
        "middle": middle,
        "inverse": steps[..., -1, :, :],
        "right": scores(q_land, keys).softmax(-1),
        "residuals": (identity - middle.unsqueeze(-3) @ steps).norm(dim=(-2, -1)) / math.sqrt(len(identity)),
    }


VARIANT = Variant(
    __name__,
    title="Nyström",
    summary="The product of three smaller matrices replaces the softmax matrix. These matrices connect queries with "
    "keys through landmarks (means of several queries or keys).",
    formula=r"A = S\!\left(\tfrac{Q \tilde K^\top}{\sqrt d}\right)"
    r"S\!\left(\tfrac{\tilde Q \tilde K^\top}{\sqrt d}\right)^{+}"
    r"S\!\left(\tfrac{\tilde Q K^\top}{\sqrt d}\right),\quad S = \operatorname{softmax}",
    complexity="n m d + m³",
    params=NystromParams,
    approximates="softmax",
    causal_reason="each query uses all landmarks, and some landmarks contain later tokens.",
    rows_sum_to_one=False,
    signed=True,
    source=Paper(
        "Nyströmformer: A Nyström-Based Algorithm for Approximating Self-Attention",
        2021,
        "https://arxiv.org/abs/2102.03902",
        authors="Xiong et al.",
    ),
    further=(articles.NYSTROMFORMER,),
    special_cases=(SpecialCase("softmax", {"landmarks": TOKENS, "inverse": "exact"}),),
)
