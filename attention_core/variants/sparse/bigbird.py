"""BigBird attention: a window, a few global tokens, and random keys that shorten the way between distant tokens."""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.algorithms.anchors import anchor_pairs, anchored_attention, anchored_elements
from attention_core.algorithms.exact import exact_attention
from attention_core.algorithms.layouts import BLOCK, gathered, window_pairs
from attention_core.algorithms.masked import distances
from attention_core.algorithms.partial import Part, partial_attention, placed
from attention_core.algorithms.parts import band
from attention_core.algorithms.pattern import restricted_to
from attention_core.algorithms.random import generator
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Variant, param


@dataclass(frozen=True, kw_only=True)
class BigBirdParams(Params):
    """Settings of BigBird attention."""

    window: int = param(8, low=1, high=4096, scale="log", help="Tokens visible on each side.", budget=True)
    global_tokens: int = param(
        1, low=0, high=64, help="How many tokens at the start see everything and are seen by all."
    )
    random_keys: int = param(
        3,
        low=0,
        high=64,
        help="How many keys are drawn at random for each token; one that it sees already adds nothing.",
    )
    seed: int = param(0, low=0, high=9999, help="Another number draws other random keys.")


def random_keys(n: int, p: BigBirdParams, device: torch.device | None, *, causal: bool) -> Tensor:
    """The keys drawn for each query, uniform over those it may see, in rising order, ``int32 [n, ρ]``.

    The r-th draw of query i is a number in [0, 1) that depends on (seed, r, i) alone, times the count of keys that
    query i may see. So more random keys keep the earlier ones; causal, a longer text keeps the keys of its beginning;
    not causal, they move apart as the text grows.
    """
    seen = torch.arange(1, n + 1) if causal else n
    keys = torch.empty(n, p.random_keys, dtype=torch.int32)
    for r in range(p.random_keys):
        keys[:, r] = torch.rand(n, dtype=torch.float64, generator=generator(p.seed, r)) * seen
    return keys.sort(-1).values.to(device)


def parts(n: int, p: BigBirdParams, device: torch.device | None, *, causal: bool) -> dict[str, Tensor]:
    """The pairs by what allows them, ``bool [n, n]`` each."""
    distance = distances(n, device)  # i - j, [n, n]
    everywhere = torch.arange(n, device=device) < p.global_tokens  # [n]
    drawn = torch.zeros_like(distance, dtype=torch.bool)
    drawn.scatter_(-1, random_keys(n, p, device, causal=causal).long(), True)
    return {"window": distance.abs() <= p.window, "global": everywhere | everywhere[:, None], "random": drawn}


mask, primitives, weights = restricted_to(parts)


def attend(q: Tensor, k: Tensor, v: Tensor, p: BigBirdParams, *, causal: bool) -> Tensor:
    """Global rows, global columns, window and random keys apart, merged: O(n (w + g + ρ) d) time, O(n d) memory."""

    def rest(q: Tensor, k: Tensor, v: Tensor) -> list[Part]:
        drawn = [random_part(q, k, v, p, causal=causal)] if p.random_keys else []
        return [*drawn, band(q, k, v, before=p.window, after=0 if causal else p.window)]

    return anchored_attention(q, k, v, anchors=p.global_tokens, causal=causal, first=exact_attention, rest=rest)


def random_part(q: Tensor, k: Tensor, v: Tensor, p: BigBirdParams, *, causal: bool) -> Part:
    """The random keys of the tokens that are not global, ``[X, 1, n - g, .]``: those neither near nor global."""
    n = q.shape[-2]
    drawn = random_keys(p.global_tokens + n, p, q.device, causal=causal)[p.global_tokens :] - p.global_tokens
    position = torch.arange(n, dtype=torch.int32, device=q.device)[:, None]

    def gathered_rows(start: int, stop: int) -> Part:
        keys = drawn[start:stop]
        fresh = (keys >= 0) & ((position[start:stop] - keys).abs() > p.window)
        fresh[:, 1:] &= keys[:, 1:] != keys[:, :-1]
        places = keys.clamp(min=0).flatten()
        k_rows, v_rows = (x[:, 0].index_select(-2, places).unflatten(-2, keys.shape) for x in (k, v))
        return partial_attention(q[:, 0, start:stop].unsqueeze(-2), k_rows, v_rows, mask=fresh.unsqueeze(-2))

    # As many queries at a time as draw n keys: what is gathered is no larger than k and v themselves.
    size = max(1, n // p.random_keys)
    blocks = (gathered_rows(start, start + size) for start in range(0, n, size))
    return placed(blocks, lambda outs: gathered(outs, q))


def cost(n: int, d: int, p: BigBirdParams, *, causal: bool) -> Cost:
    """Two products for every pair that rows, columns, blocks and draws hold; the outputs and their union, or draws."""
    anchors, after = min(p.global_tokens, n), 0 if causal else p.window
    pairs = anchor_pairs(n, anchors, first_keys=n, causal=causal) + (n - anchors) * p.random_keys
    pairs += window_pairs(n - anchors, block=BLOCK, before=p.window, after=after)
    peak = anchored_elements(n, d, anchors, parts=2 if p.random_keys else 1, reach=p.window + after)
    draws = n * max(3 * d + 4 + p.random_keys, 4 * p.random_keys) if p.random_keys else 0
    return Cost(multiply_adds=2 * pairs * d, peak_elements=max(peak, anchors * d + draws))


VARIANT = Variant(
    key="bigbird",
    title="BigBird",
    family="sparse",
    summary="Each token looks at its neighbours, at a few global tokens and at a few tokens drawn at random.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in S_i} e^{q_i^\top k_l / \sqrt d}},\quad "
    r"j \in S_i \iff |i-j| \le w \text{ or } i < g \text{ or } j < g \text{ or } j \in R_i,\ |R_i| \le \rho",
    complexity="n (w + g + ρ) d",
    params=BigBirdParams,
    mask=mask,
    primitives=primitives,
    pairs="n (2 w + 1 + 2 g + ρ)",
    weights=weights,
    attend=attend,
    cost=cost,
    approximates="softmax",
    random=True,
    note="The paper draws blocks of keys to suit its hardware; here single keys are drawn.",
    source=Paper("Big Bird: Transformers for Longer Sequences", 2020, "https://arxiv.org/abs/2007.14062"),
    special_cases=(
        SpecialCase("longformer", {"random_keys": 0}, {"dilation": 1}, ("window", "global_tokens")),
        SpecialCase("softmax", {"window": TOKENS}),
    ),
)
