"""Heavy hitters: a cache of fixed size holds the last tokens and those that received most attention so far.

The cache holds a window of the last tokens, and the heavy hitters: earlier tokens that received the most attention.
When a token leaves the window, it is compared with the heavy hitters by the attention that each has received since it
entered the cache. The token that received the least is evicted permanently; on a tie, the later one. Without a causal
mask, the text is read once in order, then every query attends to the final cache.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.causal_scan import by_token
from attention_core.ops.pattern.primitives import union_of
from attention_core.ops.softmax.blockwise import pairs
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


class Held(NamedTuple):
    """The cache: first the slots of the heavy hitters, then those of the last tokens, a ring buffer.

    Attributes:
        keys: ``[..., c, d]``.
        values: ``[..., c, d_v]``.
        received: attention so far, ``float64 [..., c]``; -1 in an empty slot.
        position: the token's position, ``int64 [..., c]``; -1 in an empty slot.
        tokens: how many tokens were read.
        heavy: how many slots belong to the heavy hitters.
    """

    keys: Tensor
    values: Tensor
    received: Tensor
    position: Tensor
    tokens: int
    heavy: int


def empty(q: Tensor, v: Tensor, recent: int, heavy: int) -> Held:
    """Return an empty cache of ``recent + heavy`` slots, given one token's ``[..., d]`` and ``[..., d_v]``."""
    lead, size = q.shape[:-1], recent + heavy
    keys, values = (at_least_float32(x).new_zeros(*lead, size, x.shape[-1]) for x in (q, v))
    received = torch.full_like(keys[..., 0], -1.0, dtype=torch.float64)
    return Held(keys, values, received, torch.full_like(received, -1, dtype=torch.int64), 0, heavy)


def init_state(q: Tensor, v: Tensor, p: HeavyHittersParams) -> Held:
    """Return the cache before any token, given one token's ``[..., d]`` and ``[..., d_v]``."""
    return empty(q, v, p.recent, p.heavy)


def step(state: Held, q: Tensor, k: Tensor, v: Tensor, p: HeavyHittersParams) -> tuple[Tensor, Held]:
    """Return the output of one token, ``[..., d_v]``, and the next cache."""
    heavy, size = state.heavy, state.keys.shape[-2]
    place = heavy + state.tokens % (size - heavy)
    keys, values, received, position = state.keys, state.values, state.received, state.position
    if heavy and state.tokens >= size - heavy:
        into = dropped(received, position, place, heavy)
        keys, values, received, position = (_copy_slot(x, place, into) for x in (keys, values, received, position))
    keys, values = _written(keys, place, at_least_float32(k)), _written(values, place, at_least_float32(v))
    received, position = _written(received, place, 0.0), _written(position, place, state.tokens)
    weight = weigh(q.double(), keys.double(), position)
    out = (weight.to(values).unsqueeze(-2) @ values).squeeze(-2)
    return out.to(v.dtype), Held(keys, values, received + weight.detach(), position, state.tokens + 1, heavy)


def weigh(q: Tensor, keys: Tensor, position: Tensor) -> Tensor:
    """Compute the weights of one query over the slots, ``float64 [..., c]``.

    Small weights decide which token is evicted; in float32 many would tie.

    Args:
        q: ``float64 [..., d]``.
        keys: ``float64 [..., c, d]``.
        position: as in ``Held``; an empty slot gets weight 0.
    """
    logits = (keys @ q.unsqueeze(-1)).squeeze(-1) * q.shape[-1] ** -0.5
    return logits.masked_fill(position < 0, -torch.inf).softmax(-1)


def dropped(received: Tensor, position: Tensor, place: int, heavy: int) -> Tensor:
    """Return the slot of the token to evict when the token in slot ``place`` leaves the window, ``int64 [..., 1]``."""
    received, position = (torch.cat((x[..., :heavy], x[..., place : place + 1]), -1) for x in (received, position))
    least = received == received.amin(-1, keepdim=True)
    worst = position.masked_fill(~least, -2).argmax(-1, keepdim=True)
    return worst.masked_fill(worst == heavy, place)


def _copy_slot(x: Tensor, place: int, into: Tensor) -> Tensor:
    """Copy the entry of slot ``place`` to the slots ``into``, ``[..., c, e]`` or ``[..., c]``."""
    if x.ndim == into.ndim:
        return x.scatter(-1, into, x[..., place : place + 1])
    index = into.unsqueeze(-1).expand(*into.shape, x.shape[-1])
    return x.scatter(-2, index, x[..., place : place + 1, :])


def _written(x: Tensor, place: int, new: Tensor | float) -> Tensor:
    x = x.clone()
    if isinstance(new, Tensor):
        x[..., place, :] = new
    else:
        x[..., place] = new
    return x


def read(q: Tensor, k: Tensor, p: HeavyHittersParams) -> Tensor:
    """Return the positions in the cache when each query reads it, ``int64 [..., n, c]``; -1 in an empty slot.

    This follows ``step``, but gathers the keys from the text, where ``step`` copies its cache.
    """
    n, size = q.shape[-2], k.shape[-1]
    recent = min(p.recent, n)
    heavy = min(p.heavy, n - recent)
    q, k = q.double(), k.double()
    position = torch.full((*q.shape[:-2], heavy + recent), -1, device=q.device)
    received = torch.full_like(position, -1, dtype=torch.float64)
    found = position.new_empty(*q.shape[:-1], heavy + recent)
    for t in range(n):
        place = heavy + t % recent
        if heavy and t >= recent:
            into = dropped(received, position, place, heavy)
            for held in (received, position):
                held.scatter_(-1, into, held[..., place : place + 1].clone())
        received[..., place], position[..., place] = 0.0, t
        keys = k.gather(-2, position.clamp_min(0).unsqueeze(-1).expand(*position.shape, size))
        received += weigh(q[..., t, :], keys, position)
        found[..., t, :] = position
    return found


def primitives(q: Tensor, k: Tensor, p: HeavyHittersParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the pairs with the last tokens and with heavy hitters, ``bool [..., n, n]``."""
    n = q.shape[-2]
    positions = read(q.detach(), k.detach(), p)
    if not causal:
        positions = positions[..., -1:, :].expand_as(positions)
    seen = torch.zeros(*q.shape[:-1], n + 1, dtype=torch.bool, device=q.device)
    seen.scatter_(-1, positions.where(positions >= 0, n), True)
    place = torch.arange(n, device=q.device)
    last = place > (place[:, None] if causal else n - 1) - p.recent
    return {"window": seen[..., :n] & last, "heavy hitter": seen[..., :n] & ~last}


pattern = union_of(primitives)


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
        older = max(0, t + 1 - p.recent)  # tokens before the window
        if older > p.heavy:  # one more token than there are heavy hitters
            rivals = received[..., :older].masked_fill(~cached[..., :older], torch.inf)
            evicted = older - 1 - rivals.flip(-1).argmin(-1, keepdim=True)  # the least; on a tie, the later one
            cached.scatter_(-1, evicted, False)
        caches.append(cached.clone())
        received += masked_softmax(logits[..., t, :], cached)
    allowed = torch.stack(caches, -2)  # [..., n, n]
    return masked_softmax(logits, allowed if causal else allowed[..., -1:, :]) @ v


def attend(q: Tensor, k: Tensor, v: Tensor, p: HeavyHittersParams, *, causal: bool) -> Tensor:
    """Attend token by token to the cache: O(n (w + s) d) time, O(n d) memory."""
    if p.recent + p.heavy >= q.shape[-2]:
        return exact_attention(q, k, v, causal=causal)
    state = init_state(q[..., 0, :], v[..., 0, :], p)
    if causal:
        return by_token(lambda state, q, k, v: step(state, q, k, v, p), state, q, k, v)
    for t in range(q.shape[-2]):
        _, state = step(state, q[..., t, :], k[..., t, :], v[..., t, :], p)
    return exact_attention(at_least_float32(q), state.keys, state.values).to(v.dtype)


def cost(n: int, d: int, p: HeavyHittersParams, *, causal: bool) -> Cost:
    """Return the cost: two products over tokens and slots, twice if not causal, and memory for copies of the cache."""
    size = p.recent + p.heavy
    if size >= n:
        return Cost(multiply_adds=2 * d * pairs(n, causal=causal), peak_elements=n * (d + 1))
    work = 2 * n * size * d
    if causal:
        return Cost(multiply_adds=work, peak_elements=n * d + max(n * d + 9 * size * d // 2, size * (8 * d + 14)))
    return Cost(multiply_adds=2 * work, peak_elements=max(n * (d + 1) + 9 * size * d // 4, size * (6 * d + 11)))


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
    "it entered the cache. Early tokens have been available to more queries, so their sums tend to be larger. "
    "Without a causal mask, every query attends to the tokens in the cache at the end of the text.",
    special_cases=(SpecialCase("softmax", {"recent": TOKENS}), SpecialCase("softmax", {"heavy": TOKENS})),
)
