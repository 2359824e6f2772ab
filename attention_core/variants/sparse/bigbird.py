"""BigBird attention: each query attends to a window, a few global tokens, and random keys.

With the random keys, information reaches distant tokens in few layers.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from attention_core.ops.gpu_steps import step_size
from attention_core.ops.pattern.pieces import anchor_pairs, anchored_elements, anchored_pieces, tokens_per_piece
from attention_core.ops.pattern.primitives import mask_and_primitives
from attention_core.ops.pattern.window import window_piece_counts, window_pieces
from attention_core.ops.random import generator
from attention_core.ops.softmax.masked import distances, masked_softmax, positions, scores
from attention_core.ops.softmax.union import Piece, ScatteredPiece, union_attention
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Variant, param


class BigBirdParams(Params):
    """Settings of BigBird attention."""

    window: int = param(
        8,
        low=1,
        high=4096,
        scale="log",
        help="Number w of tokens that a query can attend to on each side of its own position.",
        budget=True,
    )
    global_tokens: int = param(
        1,
        low=0,
        high=64,
        help="Number g of global tokens. They are the first tokens of the text: all tokens attend to them, and they "
        "attend to all tokens.",
    )
    random_keys: int = param(
        3,
        low=0,
        high=64,
        help="Number ρ of random keys per query. Some of them may be keys that the query attends to anyway.",
    )
    seed: int = param(0, low=0, high=9999, help="Random seed of the random keys.")


def random_keys(n: int, p: BigBirdParams, device: torch.device | None, *, causal: bool) -> Tensor:
    """Draw ρ random keys for each query, uniform over the visible keys, in ascending order, ``int32 [n, ρ]``.

    The r-th draw of query i is a number in [0, 1) that depends on (seed, r, i) alone, times the number of keys
    visible to query i. Raising ``random_keys`` therefore keeps the earlier draws. If causal, adding tokens to a
    text does not change the keys of earlier queries. If not causal, the keys move further apart in a longer text.
    """
    seen = torch.arange(1, n + 1, device="cpu") if causal else n
    keys = torch.empty(n, p.random_keys, dtype=torch.int32, device="cpu")
    for r in range(p.random_keys):
        draws = torch.rand(n, dtype=torch.float64, device="cpu", generator=generator(p.seed, r))
        keys[:, r] = draws * seen
    keys.numpy().sort(-1)  # in place, because torch's sort would also allocate an int64 index of the same shape
    return keys.to(device)


def rule_masks(n: int, p: BigBirdParams, device: torch.device | None, *, causal: bool) -> dict[str, Tensor]:
    """Return the mask of each rule of the pattern by the rule's name, ``bool [n, n]`` each."""
    distance = distances(n, device)  # i - j, [n, n]
    is_global = torch.arange(n, device=device) < p.global_tokens  # [n]
    random_index = torch.zeros_like(distance, dtype=torch.bool)
    random_index.scatter_(-1, random_keys(n, p, device, causal=causal).long(), True)
    return {"window": distance.abs() <= p.window, "global": is_global | is_global[:, None], "random": random_index}


mask, primitives = mask_and_primitives(rule_masks)


def weights(q: Tensor, k: Tensor, p: BigBirdParams, *, causal: bool) -> Tensor:
    """Compute softmax over the window, the global tokens and the drawn keys, ``[..., n, n]``."""
    i, j = positions(q.shape[-2], q.device)
    keys = random_keys(q.shape[-2], p, q.device, causal=causal).long()  # [n, ρ]
    allowed = torch.zeros_like(i - j, dtype=torch.bool).scatter(-1, keys, True)  # [n, n]
    allowed |= ((i - j).abs() <= p.window) | (i < p.global_tokens) | (j < p.global_tokens)
    return masked_softmax(scores(q, k), allowed & (j <= i) if causal else allowed)


def attend(q: Tensor, k: Tensor, v: Tensor, p: BigBirdParams, *, causal: bool) -> Tensor:
    """Compute the output by merging attention from and to the global tokens, in the window, and to random keys.

    With window w, g global tokens and ρ random keys, it takes O(n (w + g + ρ) d) time and O(n (d + ρ)) memory.
    """

    def pieces(like: Tensor, *, backward: bool) -> Iterator[Piece | ScatteredPiece]:
        n = like.shape[-2]
        random_index = random_keys(n, p, like.device, causal=causal)  # drawn before any piece takes up memory
        random_index = random_index.short() if n < 2**15 else random_index
        other_pieces = partial(window_pieces, reach=p.window, causal=causal, backward=backward)
        yield from anchored_pieces(like, anchors=p.global_tokens, causal=causal, other_pieces=other_pieces)
        yield from random_key_pieces(random_index, p, heads=len(like), d=like.shape[-1])

    return union_attention(pieces, q, k, v)


def random_key_pieces(random_index: Tensor, p: BigBirdParams, *, heads: int, d: int) -> Iterator[ScatteredPiece]:
    """Yield the steps (``ScatteredPiece``) of attention to the random keys, for the queries that are not global.

    Keys in the window, global keys and keys drawn twice are excluded, since each pair must count once.

    Args:
        random_index: the result of ``random_keys``.
        p: the settings.
        heads: number of all heads, batches included.
        d: head size.
    """
    n = len(random_index)
    step = step_size(queries_per_piece(n, d, p, heads=heads), random_index.device, numbers=n)
    for start in range(p.global_tokens, n if p.random_keys else 0, step):
        rows = slice(start, min(start + step, n))
        keys = random_index[rows].int()
        position = torch.arange(rows.start, rows.stop, dtype=torch.int32, device=keys.device)[:, None]
        allowed = (keys >= p.global_tokens) & ((position - keys).abs() > p.window)
        allowed[:, 1:] &= keys[:, 1:] != keys[:, :-1]
        yield from (ScatteredPiece(head=head, rows=rows, positions=keys, allowed=allowed) for head in range(heads))


def queries_per_piece(n: int, d: int, p: BigBirdParams, *, heads: int = 1) -> int:
    """Return the number of queries in one step, so that a step needs little memory compared with all outputs."""
    return min(n, max(1, heads * tokens_per_piece(n) * d // (d + 4 * p.random_keys)))


def cost(n: int, d: int, p: BigBirdParams, *, causal: bool) -> Cost:
    """Return the cost: products with k and v over the pairs of all steps; memory for output, draws and one step."""
    anchors = min(p.global_tokens, n)
    window_pairs, rows, mask = window_piece_counts(n - anchors, p.window, causal=causal)
    pairs = anchor_pairs(n, anchors, first_keys=n, causal=causal) + (n - anchors) * p.random_keys + window_pairs
    peak = anchored_elements(n, d, anchors, rows=rows, mask=mask)
    if p.random_keys:
        rows = min(queries_per_piece(n, d, p), n - anchors)
        index_elements = n * p.random_keys // (2 if n < 2**15 else 1)
        peak = max(peak, n * (d + 1) + rows * (4 * p.random_keys + d + 4)) + index_elements
        peak = max(peak, n * p.random_keys + index_elements)  # the peak may be reached while the keys are drawn
    return Cost(multiply_adds=2 * pairs * d, peak_elements=peak)


VARIANT = Variant(
    __name__,
    title="BigBird",
    summary="Each query attends to a local window, to a few random keys, and to the first tokens of the text, which "
    "are called global tokens.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in S_i} e^{q_i^\top k_l / \sqrt d}},\quad "
    r"j \in S_i \iff |i-j| \le w \text{ or } i < g \text{ or } j < g \text{ or } j \in R_i,\ |R_i| \le \rho",
    complexity="n (w + g + ρ) d",
    params=BigBirdParams,
    pairs="n (2 w + 1 + 2 g + ρ)",
    approximates="softmax",
    random=lambda p: p.random_keys > 0,
    note="The first tokens of the text are global: all tokens attend to them, and they attend to all tokens. In the "
    "paper, the random keys are whole blocks of neighbouring keys, because GPUs and TPUs process blocks faster. "
    "Here, each random key is drawn separately.",
    source=Paper("Big Bird: Transformers for Longer Sequences", 2020, "https://arxiv.org/abs/2007.14062"),
    special_cases=(
        SpecialCase("longformer", {"random_keys": 0}, {"dilation": 1}, ("window", "global_tokens")),
        SpecialCase("softmax", {"window": TOKENS}),
    ),
)
