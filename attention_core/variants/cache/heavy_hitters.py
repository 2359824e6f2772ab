"""Heavy hitters: a cache of fixed size holds the last tokens and those that received most attention so far.

The cache holds a window of the last tokens, and the heavy hitters: earlier tokens that received the most attention.
When a token leaves the window, it is compared with the heavy hitters by the attention that each has received since it
entered the cache. The token that received the least is evicted permanently; on a tie, the later one. Without a causal
mask, the text is read once in order, then every query attends to the final cache.
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.causal_scan import run_decoder
from attention_core.ops.pattern.primitives import pattern_from_primitives
from attention_core.ops.softmax.blockwise import n_pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, masked_softmax, scores
from attention_core.variant import TOKENS, Cost, Decoder, Paper, Params, SpecialCase, Variant, param


class HeavyHittersParams(Params):
    """Settings of heavy hitters."""

    recent: int = param(
        8,
        low=1,
        high=4096,
        scale="log",
        help="Number w of most recent tokens that are always in the cache, including the newest token.",
    )
    heavy: int = param(
        8,
        low=0,
        high=4096,
        budget=True,
        help="Number s of earlier tokens that stay in the cache: the tokens that have received the most attention so "
        "far.",
    )


class CacheState(NamedTuple):
    """The cache: first the slots of the heavy hitters, then a ring buffer with the slots of the last tokens.

    Attributes:
        keys: ``[..., c, d]``.
        values: ``[..., c, d_v]``.
        received: sum of the attention weights that each token has received, ``float64 [..., c]``; -1 in an empty
            slot.
        positions: the token's position, ``int64 [..., c]``; -1 in an empty slot.
        token_count: how many tokens were read.
        heavy_slots: how many slots belong to the heavy hitters.
    """

    keys: Tensor
    values: Tensor
    received: Tensor
    positions: Tensor
    token_count: int
    heavy_slots: int


def init_state(q: Tensor, v: Tensor, p: HeavyHittersParams) -> CacheState:
    """Return an empty cache; one token's q, ``[..., d]``, and v, ``[..., d_v]``, give shapes and type."""
    keys, values = (at_least_float32(x).new_zeros(*q.shape[:-1], p.recent + p.heavy, x.shape[-1]) for x in (q, v))
    received = torch.full_like(keys[..., 0], -1.0, dtype=torch.float64)
    return CacheState(keys, values, received, torch.full_like(received, -1, dtype=torch.int64), 0, p.heavy)


def step(state: CacheState, q: Tensor, k: Tensor, v: Tensor, p: HeavyHittersParams) -> tuple[Tensor, CacheState]:
    """Return the output of one token, ``[..., d_v]``, and the next cache."""
    heavy, size = state.heavy_slots, state.keys.shape[-2]
    slot = heavy + state.token_count % (size - heavy)
    keys, values, received, positions = state.keys, state.values, state.received, state.positions
    if heavy and state.token_count >= size - heavy:
        target = slot_to_evict(received, positions, slot, heavy)
        keys, values, received, positions = (_copy_slot(x, slot, target) for x in (keys, values, received, positions))
    keys, values = _write_slot(keys, slot, at_least_float32(k)), _write_slot(values, slot, at_least_float32(v))
    received, positions = _write_slot(received, slot, 0.0), _write_slot(positions, slot, state.token_count)
    # Small weights decide which token is evicted; in float32 many would tie.
    logits = (keys.double() @ q.double().unsqueeze(-1)).squeeze(-1) * q.shape[-1] ** -0.5
    weight = logits.masked_fill(positions < 0, -torch.inf).softmax(-1)
    out = (weight.to(values).unsqueeze(-2) @ values).squeeze(-2)
    return out.to(v.dtype), CacheState(
        keys, values, received + weight.detach(), positions, state.token_count + 1, heavy
    )


def slot_to_evict(received: Tensor, positions: Tensor, slot: int, heavy: int) -> Tensor:
    """Return the slot of the token to evict when the token in slot ``slot`` leaves the window, ``int64 [..., 1]``.

    ``received`` and ``positions`` are as in ``CacheState``, and ``heavy`` is the number of heavy hitters.
    """
    received, positions = (torch.cat((x[..., :heavy], x[..., slot : slot + 1]), -1) for x in (received, positions))
    is_least = received == received.amin(-1, keepdim=True)
    evicted = positions.masked_fill(~is_least, -2).argmax(-1, keepdim=True)
    return evicted.masked_fill(evicted == heavy, slot)


def _copy_slot(x: Tensor, slot: int, target: Tensor) -> Tensor:
    """Return x, ``[..., c, e]`` or ``[..., c]``, with its entry at ``slot`` copied to the slots ``target [..., 1]``."""
    if x.ndim == target.ndim:
        return x.scatter(-1, target, x[..., slot : slot + 1])
    index = target.unsqueeze(-1).expand(*target.shape, x.shape[-1])
    return x.scatter(-2, index, x[..., slot : slot + 1, :])


def _write_slot(x: Tensor, slot: int, value: Tensor | float) -> Tensor:
    x = x.clone()
    if isinstance(value, Tensor):
        x[..., slot, :] = value
    else:
        x[..., slot] = value
    return x


def cached_positions(q: Tensor, k: Tensor, p: HeavyHittersParams) -> Tensor:
    """Return the positions in the cache when each query reads it, ``int64 [..., n, c]``; -1 in an empty slot."""
    n = q.shape[-2]
    recent = min(p.recent, n)
    p = replace(p, recent=recent, heavy=min(p.heavy, n - recent))
    v = k[..., :0]  # the cache does not depend on the values
    state, history = init_state(q[..., 0, :], v[..., 0, :], p), []
    for t in range(n):
        _, state = step(state, q[..., t, :], k[..., t, :], v[..., t, :], p)
        history.append(state.positions)
    return torch.stack(history, -2)


def primitives(q: Tensor, k: Tensor, p: HeavyHittersParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the masks of pairs with the last tokens and with heavy hitters, by name, ``bool [..., n, n]``."""
    n = q.shape[-2]
    positions = cached_positions(q.detach(), k.detach(), p)
    if not causal:
        positions = positions[..., -1:, :].expand_as(positions)
    cached = torch.zeros(*q.shape[:-1], n + 1, dtype=torch.bool, device=q.device)
    cached.scatter_(-1, positions.where(positions >= 0, n), True)
    position = torch.arange(n, device=q.device)
    in_window = position > (position[:, None] if causal else n - 1) - p.recent
    return {"window": cached[..., :n] & in_window, "heavy hitter": cached[..., :n] & ~in_window}


pattern = pattern_from_primitives(primitives)


def weights(q: Tensor, k: Tensor, p: HeavyHittersParams, *, causal: bool) -> Tensor:
    """Compute softmax over the tokens in the cache, ``[..., n, n]``."""
    return masked_softmax(scores(q, k), pattern(q, k, p, causal=causal))


def definition(q: Tensor, k: Tensor, v: Tensor, p: HeavyHittersParams, *, causal: bool) -> Tensor:
    """Read the text token by token and let each query attend to the tokens in the cache, ``[..., n, d_v]``."""
    logits, caches = scores(q, k), []
    cached = torch.zeros_like(logits[..., 0, :], dtype=torch.bool)  # [..., n], the tokens in the cache
    received = torch.zeros_like(logits[..., 0, :])  # [..., n], the attention of each token so far
    for t in range(q.shape[-2]):
        cached[..., t] = True
        n_older = max(0, t + 1 - p.recent)  # number of tokens before the window
        if n_older > p.heavy:  # one of the cached tokens before the window must be evicted
            candidates = received[..., :n_older].masked_fill(~cached[..., :n_older], torch.inf)
            # The token that received the least attention is evicted; on a tie, the later one.
            evicted = n_older - 1 - candidates.flip(-1).argmin(-1, keepdim=True)
            cached.scatter_(-1, evicted, False)
        caches.append(cached.clone())
        received += masked_softmax(logits[..., t, :], cached)
    allowed = torch.stack(caches, -2)  # [..., n, n]
    return masked_softmax(logits, allowed if causal else allowed[..., -1:, :]) @ v


def attend(q: Tensor, k: Tensor, v: Tensor, p: HeavyHittersParams, *, causal: bool) -> Tensor:
    """Attend token by token to the cache of c slots: O(n c d) time, O(n d) memory."""
    if p.recent + p.heavy >= q.shape[-2]:
        return exact_attention(q, k, v, causal=causal)
    state = init_state(q[..., 0, :], v[..., 0, :], p)
    if causal:
        return run_decoder(lambda state, q, k, v: step(state, q, k, v, p), state, q, k, v)
    for t in range(q.shape[-2]):
        _, state = step(state, q[..., t, :], k[..., t, :], v[..., t, :], p)
    return exact_attention(at_least_float32(q), state.keys, state.values).to(v.dtype)


def cost(n: int, d: int, p: HeavyHittersParams, *, causal: bool) -> Cost:
    """Return the cost: products of tokens with cache slots, twice if not causal; memory for copies of the cache."""
    size = p.recent + p.heavy
    if size >= n:
        return Cost(multiply_adds=2 * d * n_pairs(n, causal=causal), peak_elements=n * (d + 1))
    adds = 2 * n * size * d
    if causal:
        return Cost(multiply_adds=adds, peak_elements=n * d + max(n * d + 9 * size * d // 2, size * (8 * d + 14)))
    return Cost(multiply_adds=2 * adds, peak_elements=max(n * (d + 1) + 9 * size * d // 4, size * (6 * d + 11)))


VARIANT = Variant(
    __name__,
    title="Heavy hitters",
    summary="Each query attends only to a cache of fixed size, which keeps the most recent tokens and the earlier "
    "tokens that have received the most attention.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in S_i} e^{q_i^\top k_l / \sqrt d}},\quad "
    r"S_i = \{l : 0 \le i - l < w\} \cup H_i,\; H_{i+1} = \text{the } s \text{ of } H_i \cup \{i + 1 - w\} "
    r"\text{ with the largest } \textstyle\sum_{t \le i} A_{tl}",
    complexity="n (w + s) d",
    params=HeavyHittersParams,
    cross_reason="the cache keeps the keys to which earlier queries gave the most weight, so queries and keys must "
    "come from one sequence.",
    approximates="softmax",
    decoder=Decoder(init_state, step, normalised=False),
    source=Paper(
        "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models",
        2023,
        "https://arxiv.org/abs/2306.14048",
    ),
    note="The attention that a token has received is the sum of the weights that queries have given to its key since "
    "it entered the cache. Early tokens have been available to more queries, so their sums tend to be larger. Without "
    "a causal mask, every query attends to the tokens that are in the cache after the whole text has been read.",
    special_cases=(SpecialCase("softmax", {"recent": TOKENS}), SpecialCase("softmax", {"heavy": TOKENS})),
)
