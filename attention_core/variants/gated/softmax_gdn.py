"""A gated delta rule derived from softmax: the mean of the values plus a term of the keys minus their mean.

To first order in the logits, softmax attention is ``v̄ + C q`` with the covariance C of values and keys. C can be
updated token by token in a state that decays by 1 - 1/t. The article's step also erases the value that the centred key
retrieves, which makes it a gated delta rule: ``A_t = A_{t-1}((1 - 1/t) I - c cᵀ/t) + (v_t - v̄_{t-1}) cᵀ/t``,
``c = k_t - k̄_t``. Such a step is stable only if ``‖c‖²/t`` is small. Keys of trained models are too long for this
early in a text, so the step is capped here.
"""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core import articles
from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.fast_weights import Tokens, each_token
from attention_core.ops.linear.scans import by_chunks
from attention_core.ops.softmax.masked import at_least_float32
from attention_core.settings import Params, param
from attention_core.variant import Cost, Decoder, Intermediate, Variant


class SoftmaxGdnParams(Params):
    """Settings of the gated delta rule that is derived from softmax."""

    cap: float = param(
        1.0,
        low=0.1,
        high=2.0,
        step=0.05,
        help="The cap limits how much a token may erase: at most this share of the value stored under its centred "
        "key, which is its key minus the mean key.",
    )


class Memory(NamedTuple):
    """The state after some tokens.

    Attributes:
        sums: ``Aᵀ``, ``[..., d, d_v]``.
        key: the mean of the keys, ``[..., 1, d]``.
        value: the mean of the values, ``[..., 1, d_v]``.
        taken: the number of tokens so far.
    """

    sums: Tensor
    key: Tensor
    value: Tensor
    taken: int = 0


def counts(x: Tensor, first: int = 0) -> Tensor:
    """Return positions ``t``, ``[n, 1]``, counted from 1, of tokens ``[..., n, *]`` that follow ``first`` others."""
    return torch.arange(first + 1, first + x.shape[-2] + 1, dtype=x.dtype, device=x.device).unsqueeze(-1)


def means(x: Tensor, before: Tensor | float = 0.0, first: int = 0) -> Tensor:
    """Return the running mean at each token, ``[..., n, *]``, given the mean of the ``first`` earlier tokens."""
    return (first * before + x.cumsum(-2)) / counts(x, first)


def tokens(q: Tensor, centred: Tensor, cap: float, first: int = 0) -> Tokens:
    """Return the recurrence's inputs for queries and centred keys, ``[..., n, d]``.

    Token t has the gate 1 - 1/t and the strength 1/t, or less if its key is so long that the cap would be exceeded.
    """
    scale = q.shape[-1] ** -0.25
    t = counts(centred, first)
    c = centred * scale
    square = c.square().sum(-1, keepdim=True)
    long = square > cap * t
    step = torch.where(long, cap / torch.where(long, square, 1.0), 1 / t)
    # The gate of the first token, 1 - 1/1 = 0, has no finite logarithm, so it gets the gate of the second. This has no
    # effect: the first centred key is zero, so the state is still zero after it.
    gates = torch.log1p(-1 / t.clamp(min=2))
    return Tokens(q * scale, c, step, gates, step * (-gates).exp())


def definition(q: Tensor, k: Tensor, v: Tensor, p: SoftmaxGdnParams, *, causal: bool) -> Tensor:
    """Loop over tokens with the running means and the state ``S = Aᵀ``; read ``o = qᵀ S + v̄``."""
    scale = q.shape[-1] ** -0.25
    S, outputs = torch.zeros_like(k.mT @ v), []  # the state, [..., d, d_v]
    k_mean, v_mean = torch.zeros_like(k[..., :1, :]), torch.zeros_like(v[..., :1, :])
    for t, (q_t, k_t, v_t) in enumerate(each_token(q, k, v), start=1):
        new = v_t - v_mean
        k_mean, v_mean = k_mean + (k_t - k_mean) / t, v_mean + new / t
        c = (k_t - k_mean) * scale
        beta = (p.cap / c.square().sum(-1, keepdim=True)).clamp(max=1 / t)
        S = (1 - 1 / t) * S - beta * c.mT @ (c @ S)  # decay and erase
        S = S + beta * c.mT @ new  # write
        outputs.append(q_t * scale @ S + v_mean)  # read
    return torch.cat(outputs, -2) if causal else q * scale @ S + v_mean


def weights(q: Tensor, k: Tensor, p: SoftmaxGdnParams, *, causal: bool) -> Tensor:
    """Return the outputs for the identity matrix as values, ``[..., n, n]``: outputs are linear in the values."""
    return capped(q, k, p.cap, causal=causal)


def capped(q: Tensor, k: Tensor, cap: float, *, causal: bool) -> Tensor:
    """Return ``weights`` for any cap; with an infinite cap, the state is updated as in the article."""
    q_wide, k_wide = q.double(), k.double()
    units = torch.eye(k.shape[-2], dtype=k_wide.dtype, device=k.device)
    mean = means(units)
    step = fast_weights.matrix(tokens(q_wide, k_wide - means(k_wide), cap), causal=causal)
    news = units - torch.cat([torch.zeros_like(mean[:1]), mean[:-1]])
    return (step @ news + (mean if causal else mean[-1:])).to(q.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, p: SoftmaxGdnParams, *, causal: bool) -> Tensor:
    """Compute the outputs chunk by chunk: O(n d²) time, O(n d) memory."""
    memory = init_state(q[..., 0, :], v[..., 0, :], p)
    # Without a causal mask, each query reads the final state. The pass that computes this state then needs no queries,
    # so it takes the keys in their place.
    queries = q if causal else k
    out, memory = by_chunks(partial(advance, p=p, read=causal), memory, queries, k, v, size=fast_weights.CHUNK)
    if causal:
        return out
    return (at_least_float32(q) * q.shape[-1] ** -0.25 @ memory.sums + memory.value).to(v.dtype)


def advance(
    memory: Memory, q: Tensor, k: Tensor, v: Tensor, p: SoftmaxGdnParams, *, read: bool = True
) -> tuple[Tensor | None, Memory]:
    """Return the outputs ``[..., c, d_v]`` of a chunk of c tokens, None without ``read``, and the state after it."""
    first, query, key, value = memory.taken, at_least_float32(q), at_least_float32(k), at_least_float32(v)
    key_mean, value_mean = (means(x, old, first) for x, old in ((key, memory.key), (value, memory.value)))
    new = value - torch.cat([memory.value, value_mean[..., :-1, :]], -2)
    out, sums = fast_weights.take(memory.sums, tokens(query, key - key_mean, p.cap, first), new, read=read)
    memory = Memory(sums, key_mean[..., -1:, :], value_mean[..., -1:, :], first + v.shape[-2])
    return None if out is None else (out + value_mean).to(v.dtype), memory


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: SoftmaxGdnParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the parts of the matrix ``read @ inverse @ diag(strength) @ (I - earlier means) + means``.

    ``queries`` are scaled, and ``keys`` are centred and scaled, ``[..., n, d]``. ``strength`` is the capped β, and
    ``uncapped`` is 1/t, ``[..., n, 1]``. ``overlaps``, ``inverse`` and ``read`` are ``[..., n, n]``.
    """
    q, k = at_least_float32(q), at_least_float32(k)
    taken = tokens(q, k - means(k), p.cap)
    named = {"queries": taken.q, "keys": taken.k, "strength": taken.write}
    uncapped = (1 / counts(q)).expand_as(taken.write)
    return {**named, "uncapped": uncapped, **fast_weights.anatomy(taken, causal=causal)}


def init_state(q: Tensor, v: Tensor, p: SoftmaxGdnParams) -> Memory:
    """Return the state before any token, for one token's query ``[..., d]`` and value ``[..., d_v]``."""
    q, v = at_least_float32(q), at_least_float32(v)
    return Memory(fast_weights.empty(q, v), torch.zeros_like(q).unsqueeze(-2), torch.zeros_like(v).unsqueeze(-2))


def step(memory: Memory, q: Tensor, k: Tensor, v: Tensor, p: SoftmaxGdnParams) -> tuple[Tensor, Memory]:
    """Return the output of one token, ``[..., d_v]``, and the next state."""
    out, memory = advance(memory, q.unsqueeze(-2), k.unsqueeze(-2), v.unsqueeze(-2), p)
    assert out is not None
    return out.squeeze(-2), memory


def taken(memory: Memory, q: Tensor, k: Tensor, p: SoftmaxGdnParams) -> Tokens:
    """Return the recurrence's inputs for the next token, ``[..., 1, *]``; the mean of the keys includes its own key."""
    query, key = at_least_float32(q).unsqueeze(-2), at_least_float32(k).unsqueeze(-2)
    return tokens(query, key - means(key, memory.key, memory.taken), p.cap, memory.taken)


def cost(n: int, d: int, p: SoftmaxGdnParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost of the delta rule, plus the memory of the running means and of the centred values."""
    inner = fast_weights.cost(n, d, causal=causal, erases=True, gates=2, keys=keys)
    c = min(keys or n, fast_weights.CHUNK)
    reading = 0 if causal else 2 * (n * d + d * d)
    return Cost(multiply_adds=inner.multiply_adds, peak_elements=max(inner.peak_elements + 4 * c * d, reading))


VARIANT = Variant(
    __name__,
    title="Softmax as delta rule",
    summary="The output is the mean value plus the query times a matrix that each token decays and corrects; for "
    "small logits, it is close to softmax.",
    formula=r"o_t = A_t \frac{q_t}{\sqrt[4]{d}} + \bar v_t,\quad A_t = A_{t-1}\left(\left(1 - \tfrac{1}{t}\right) I - "
    r"\beta_t c_t c_t^\top\right) + \beta_t (v_t - \bar v_{t-1})\, c_t^\top,\quad c_t = \frac{k_t - \bar "
    r"k_t}{\sqrt[4]{d}},\; \beta_t = \min\left(\frac{1}{t},\, \frac{\text{cap}}{\lVert c_t \rVert^2}\right)",
    complexity="n d²",
    params=SoftmaxGdnParams,
    approximates="softmax",
    signed=True,
    decoder=Decoder(init_state, step, normalised=False, tokens=taken),
    intermediates=(
        Intermediate(
            name="strength",
            title="Write strength",
            symbol=r"\beta",
            formula=r"\beta_t = \min\left(\tfrac{1}{t},\; \frac{b}{\lVert c_t \rVert^2}\right),\qquad c_t = k_t - \bar "
            r"k_t",
            mechanism="The state is a matrix that stores values under keys, and token t changes it with strength "
            "1/t. The centred key c is the token's key minus the mean key. If c is so long that the token would "
            "erase more than the cap allows, the strength is smaller.",
            rows="token",
        ),
        Intermediate(
            name="overlaps",
            title="Overlaps",
            symbol="E",
            formula=r"E_{ij} = \beta_i\, \Gamma_{ij}\, c_i^\top c_j,\quad j < i",
            mechanism="Before a token stores its value, it erases part of the values that earlier tokens stored "
            "under similar keys. Keys are centred: the mean key is subtracted. Each entry is the share of an earlier "
            "token's value that a token erases.",
            rows="token",
            columns="earlier token",
        ),
        Intermediate(
            name="inverse",
            title="Corrections",
            symbol="T",
            formula="T = (I + E)^{-1}",
            mechanism="The entries of E are the shares of earlier tokens' values that a token erases. A token stores "
            "its own value minus these shares of the values that earlier tokens stored, which were corrected in the "
            "same way. The inverse T applies all corrections together.",
            rows="token",
            columns="token",
        ),
    ),
    source=articles.SOFTMAX_TO_GDN,
    note="The state is a matrix that stores values under keys, after the means of both are subtracted. Token t "
    "multiplies it by 1 − 1/t, erases part of the value stored under its key, and adds its own value. The strength β "
    "of the last two steps is 1/t and is not learned. If this would erase a larger share of the stored value than "
    "the cap allows, β is smaller. The attention matrix is computed as the output for values that form the identity "
    "matrix. Without a causal mask, all tokens first change the state in order. Then every query reads the final "
    "state.",
)
