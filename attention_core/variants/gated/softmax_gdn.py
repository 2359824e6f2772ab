"""A gated delta rule derived from softmax: the output is the mean of the values plus a term linear in the query.

To first order in the logits, softmax attention is ``v̄ + C q`` with the covariance C of values and keys. C can be
updated token by token in a state A that decays by 1 - 1/t at token t. The step of the source article also erases the
value that the centred key c retrieves, which makes it a gated delta rule:
``A_t = A_{t-1}((1 - 1/t) I - c cᵀ/t) + (v_t - v̄_{t-1}) cᵀ/t``, ``c = k_t - k̄_t``. Such a step is stable only if
``‖c‖²/t`` is small. The norms of the keys of trained models are too large for this at small t, so the strength of each
step is capped here.
"""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core import articles
from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.fast_weights import RuleInputs, each_token
from attention_core.ops.linear.scans import scan_chunks, token_step
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


class State(NamedTuple):
    """The state after some tokens.

    Attributes:
        sums: the matrix ``S`` that queries read, ``[..., d, d_v]``.
        key_mean: the mean of the keys, ``[..., 1, d]``.
        value_mean: the mean of the values, ``[..., 1, d_v]``.
        token_count: the number of tokens so far.
    """

    sums: Tensor
    key_mean: Tensor
    value_mean: Tensor
    token_count: int = 0


def token_numbers(x: Tensor, first: int = 0) -> Tensor:
    """Return positions ``t``, ``[n, 1]``, counted from 1, of tokens ``[..., n, *]`` that follow ``first`` others."""
    return torch.arange(first + 1, first + x.shape[-2] + 1, dtype=x.dtype, device=x.device).unsqueeze(-1)


def running_means(x: Tensor, earlier_mean: Tensor | float = 0.0, first: int = 0) -> Tensor:
    """Return the mean of the tokens up to each token, ``[..., n, *]``, earlier ones included.

    ``earlier_mean`` is the mean of the ``first`` tokens before ``x``.
    """
    return (first * earlier_mean + x.cumsum(-2)) / token_numbers(x, first)


def rule_inputs(q: Tensor, centred_k: Tensor, cap: float, first: int = 0) -> RuleInputs:
    """Return the inputs of the recurrence for queries and centred keys, ``[..., n, d]``, after ``first`` other tokens.

    Token t has the gate 1 - 1/t and the strength 1/t. For a long centred key c, the strength is lower, so that strength
    times ``‖c‖²`` does not exceed ``cap``.
    """
    scale = q.shape[-1] ** -0.25
    t = token_numbers(centred_k, first)
    c = centred_k * scale
    squared_norm = c.square().sum(-1, keepdim=True)
    exceeds_cap = squared_norm > cap * t
    beta = torch.where(exceeds_cap, cap / torch.where(exceeds_cap, squared_norm, 1.0), 1 / t)
    # The gate of the first token, 1 - 1/1 = 0, has no finite logarithm, so it gets the gate of the second. This has no
    # effect: the first centred key is zero, so the state is still zero after it.
    log_alpha = torch.log1p(-1 / t.clamp(min=2))
    return RuleInputs(q * scale, c, beta, log_alpha, beta * (-log_alpha).exp())


def definition(q: Tensor, k: Tensor, v: Tensor, p: SoftmaxGdnParams, *, causal: bool) -> Tensor:
    """Update the running means and the state S token by token.

    Read ``o = qᵀ S + v̄``, with the mean v̄ of the values.
    """
    scale = q.shape[-1] ** -0.25
    S, outputs = torch.zeros_like(k.mT @ v), []  # the state, [..., d, d_v]
    k_mean, v_mean = torch.zeros_like(k[..., :1, :]), torch.zeros_like(v[..., :1, :])
    for t, (q_t, k_t, v_t) in enumerate(each_token(q, k, v), start=1):
        centred_v = v_t - v_mean  # relative to the mean of earlier values
        k_mean, v_mean = k_mean + (k_t - k_mean) / t, v_mean + centred_v / t
        c = (k_t - k_mean) * scale
        beta = (p.cap / c.square().sum(-1, keepdim=True)).clamp(max=1 / t)
        S = (1 - 1 / t) * S - beta * c.mT @ (c @ S)  # decay and erase
        S = S + beta * c.mT @ centred_v  # write
        outputs.append(q_t * scale @ S + v_mean)  # read
    return torch.cat(outputs, -2) if causal else q * scale @ S + v_mean


def weights(q: Tensor, k: Tensor, p: SoftmaxGdnParams, *, causal: bool) -> Tensor:
    """Return the outputs for the identity matrix as values, ``[..., n, n]``: outputs are linear in the values."""
    return capped_weights(q, k, p.cap, causal=causal)


def capped_weights(q: Tensor, k: Tensor, cap: float, *, causal: bool) -> Tensor:
    """Return ``weights`` for any cap; with an infinite cap, the state is updated as in the article."""
    q_wide, k_wide = q.double(), k.double()
    v = torch.eye(k.shape[-2], dtype=k_wide.dtype, device=k.device)
    v_means = running_means(v)
    matrix = fast_weights.matrix(rule_inputs(q_wide, k_wide - running_means(k_wide), cap), causal=causal)
    centred_v = v - torch.cat([torch.zeros_like(v_means[:1]), v_means[:-1]])
    return (matrix @ centred_v + (v_means if causal else v_means[-1:])).to(q.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, p: SoftmaxGdnParams, *, causal: bool) -> Tensor:
    """Compute the outputs chunk by chunk: O(n d²) time, O(n d) memory."""
    state = init_state(q[..., 0, :], v[..., 0, :], p)
    # Without a causal mask, each query reads the final state. The pass that computes this state then needs no queries,
    # so it takes the keys in their place.
    queries = q if causal else k
    out, state = scan_chunks(
        partial(attend_chunk, p=p, with_outputs=causal), state, queries, k, v, size=fast_weights.tokens_per_chunk(k)
    )
    if causal:
        return out
    return (at_least_float32(q) * q.shape[-1] ** -0.25 @ state.sums + state.value_mean).to(v.dtype)


def attend_chunk(
    state: State, q: Tensor, k: Tensor, v: Tensor, p: SoftmaxGdnParams, *, with_outputs: bool = True
) -> tuple[Tensor | None, State]:
    """Return the outputs of c tokens, ``[..., c, d_v]`` (None unless ``with_outputs``), and the state after them."""
    first, dtype = state.token_count, v.dtype
    q, k, v = at_least_float32(q), at_least_float32(k), at_least_float32(v)
    k_means, v_means = running_means(k, state.key_mean, first), running_means(v, state.value_mean, first)
    centred_v = v - torch.cat([state.value_mean, v_means[..., :-1, :]], -2)  # minus the mean of earlier values
    inputs = rule_inputs(q, k - k_means, p.cap, first)
    out, sums = fast_weights.update_state(state.sums, inputs, centred_v, with_outputs=with_outputs)
    state = State(sums, k_means[..., -1:, :], v_means[..., -1:, :], first + v.shape[-2])
    return None if out is None else (out + v_means).to(dtype), state


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: SoftmaxGdnParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the parts of the matrix, which is ``read @ inverse @ diag(strength) @ (I - E) + M``.

    M averages the values up to each token (all values if not causal), and E the values before it. ``queries`` are
    scaled, and ``keys`` are centred and scaled, ``[..., n, d]``. ``strength`` is the capped β, and ``uncapped`` is
    1/t, ``[..., n, 1]``. ``overlaps``, ``inverse`` and ``read`` are ``[..., n, n]``.
    """
    q, k = at_least_float32(q), at_least_float32(k)
    inputs = rule_inputs(q, k - running_means(k), p.cap)
    uncapped = (1 / token_numbers(q)).expand_as(inputs.write_strength)
    tensors = {"queries": inputs.q, "keys": inputs.k, "strength": inputs.write_strength, "uncapped": uncapped}
    return {**tensors, **fast_weights.anatomy(inputs, causal=causal)}


def init_state(q: Tensor, v: Tensor, p: SoftmaxGdnParams) -> State:
    """Return the state before any token; one token's q, ``[..., d]``, and v, ``[..., d_v]``, give shapes and type."""
    q, v = at_least_float32(q), at_least_float32(v)
    return State(fast_weights.zero_state(q, v), torch.zeros_like(q).unsqueeze(-2), torch.zeros_like(v).unsqueeze(-2))


step = token_step(attend_chunk)


def next_inputs(state: State, q: Tensor, k: Tensor, p: SoftmaxGdnParams) -> RuleInputs:
    """Return the inputs of the recurrence for the next token, ``[..., 1, *]``; the mean key includes this token."""
    query, key = at_least_float32(q).unsqueeze(-2), at_least_float32(k).unsqueeze(-2)
    return rule_inputs(query, key - running_means(key, state.key_mean, state.token_count), p.cap, state.token_count)


def cost(n: int, d: int, p: SoftmaxGdnParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost of the delta rule, plus the memory of the running means and of the centred values."""
    inner = fast_weights.cost(n, d, causal=causal, erases=True, gate_matrices=2, keys=keys)
    c = min(keys or n, fast_weights.CHUNK)
    final_read = 0 if causal else 2 * (n * d + d * d)
    return Cost(multiply_adds=inner.multiply_adds, peak_elements=max(inner.peak_elements + 4 * c * d, final_read))


VARIANT = Variant(
    __name__,
    title="Softmax as delta rule",
    summary="The output is the mean value plus the query times a matrix. At each token, this matrix decays, and part "
    "of the value stored under the token's key is erased before the token's own value is added. For small logits, the "
    "output approximates softmax's output.",
    formula=r"o_t = A_t \frac{q_t}{\sqrt[4]{d}} + \bar v_t,\quad A_t = A_{t-1}\left(\left(1 - \tfrac{1}{t}\right) I - "
    r"\beta_t c_t c_t^\top\right) + \beta_t (v_t - \bar v_{t-1})\, c_t^\top,\quad c_t = \frac{k_t - \bar "
    r"k_t}{\sqrt[4]{d}},\; \beta_t = \min\left(\frac{1}{t},\, \frac{\text{cap}}{\lVert c_t \rVert^2}\right)",
    complexity="n d²",
    params=SoftmaxGdnParams,
    approximates="softmax",
    signed=True,
    decoder=Decoder(init_state, step, normalised=False, rule_inputs=next_inputs),
    intermediates=(
        Intermediate(
            name="strength",
            title="Write strength",
            symbol=r"\beta",
            formula=r"\beta_t = \min\left(\tfrac{1}{t},\; \frac{b}{\lVert c_t \rVert^2}\right),\qquad c_t = k_t - \bar "
            r"k_t",
            mechanism="Token t changes the state, a matrix that stores values under keys, with strength 1/t. The "
            "strength is smaller if the token would otherwise erase a larger share of the stored value than the "
            "setting “cap”.",
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
            mechanism="Each entry of E is the share of an earlier token's stored value that a token erases. A token "
            "stores its own value minus these shares of the values that earlier tokens stored. Each stored value "
            "therefore depends on all earlier ones. The matrix T, the inverse of I + E, computes all stored values "
            "together.",
            rows="token",
            columns="token",
        ),
    ),
    source=articles.SOFTMAX_TO_GDN,
    note="The state is a matrix that stores values under keys, after the mean key and the mean value are subtracted. "
    "Token t multiplies the state by 1 − 1/t, erases part of the value stored under its key, and adds its own value. "
    "It erases and adds with a strength β of 1/t, which is not learned. The setting “cap” limits the share of the "
    "stored value that a token erases. If a strength of 1/t would erase more, β is smaller. The attention matrix is "
    "the output that results if the values are the rows of the identity matrix. Without a causal mask, every query "
    "reads the state after the last token.",
)
