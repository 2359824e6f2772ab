"""Fast weights: a state matrix that decays, is partly erased and is written to at each token.

The module also computes the attention matrix that gives the same outputs.

A ``Rule`` returns the gates α, the write strengths β and the erase strengths ε of a variant's tokens. The state is
``S_i = S' + k_i u_iᵀ`` with ``S' = diag(α_i) S_{i-1}``, and the output is ``o_i = S_iᵀ q_i``. Without erasing,
``u_i = β_i v_i``. The delta rule first erases the value that the key retrieves: ``u_i = β_i v_i - ε_i S'ᵀ k_i``.

Let ``Γ_ij`` be the product of the gates from j + 1 to i for ``j <= i``, and ``Γ⁻`` the part of Γ below the diagonal.
If each channel c has its own gate and thus its own Γ, ``(Q Kᵀ ⊙ Γ)_ij`` means ``Σ_c q_ic k_jc Γ_ijc``. All u of a
chunk (consecutive tokens that are computed together) then solve one triangular system,
``U = (I + diag(ε) (K Kᵀ ⊙ Γ⁻))⁻¹ diag(β) V``, and the outputs are ``(Q Kᵀ ⊙ Γ) U``. If the rule erases along
directions W other than the keys, ``S_i = S' + k_i β_i v_iᵀ - ε_i w_i w_iᵀ S'``, and the matrix is
``A = (Q Kᵀ ⊙ Γ - (Q Wᵀ ⊙ Γ)(I + diag(ε) (W Wᵀ ⊙ Γ⁻))⁻¹ diag(ε) (W Kᵀ ⊙ Γ⁻)) diag(β)``.

Sources: Yang and others, arXiv 2312.06635 (gates per channel), 2406.06484 (the delta rule by chunks), 2412.06464
(with a gate), 2505.16381 (other directions); Dao and Gu, 2405.21060; Schlag and others, 2102.11174.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from attention_core.ops.linear.causal_scan import chunk_size
from attention_core.ops.linear.features import Features, causal_similarities, token_decay
from attention_core.ops.linear.scans import needs_gradient, scan_chunks, token_step
from attention_core.ops.softmax.masked import at_least_float32
from attention_core.settings import Params
from attention_core.variant import Cost, Decoder, Variant

CHUNK = 64
"""Tokens per chunk: the products within a chunk then cost about as much as those with the state."""
MAX_CHUNK = 512
"""Largest number of tokens per chunk on a GPU: over more tokens, sums of logarithms would be rounded too coarsely."""


class RuleInputs(NamedTuple):
    """The inputs of the recurrence for some tokens.

    Attributes:
        q: queries, ``[..., n, d]``.
        k: keys, ``[..., n, d]``.
        write_strength: β, the strength of writing, ``[..., n, 1]`` or ``[n, 1]``.
        log_gates: log α, the logarithm of the share of the state kept before each token, ``[..., n, 1]``, ``[n, 1]`` or
            ``[..., n, d]``; None if all of it is kept.
        erase_strength: ε, the strength of erasing, ``[..., n, 1]``; None if nothing is erased.
        directions: W, the directions to erase along, ``[..., n, d]``; None if they are the keys.
    """

    q: Tensor
    k: Tensor
    write_strength: Tensor
    log_gates: Tensor | None = None
    erase_strength: Tensor | None = None
    directions: Tensor | None = None


Rule = Callable[[Tensor, Tensor, Any, int], RuleInputs]
"""``(q, k, p, first) -> RuleInputs`` for the queries and keys of some tokens that follow ``first`` earlier tokens."""


class State(NamedTuple):
    """The state after some tokens.

    Attributes:
        sums: ``S``, ``[..., d, d_v]``.
        token_count: the number of tokens so far.
    """

    sums: Tensor
    token_count: int = 0


def tokens_per_chunk(k: Tensor) -> int:
    """Return the tokens per chunk for keys ``[..., n, d]``: ``CHUNK`` on a CPU, more on a GPU."""
    return min(MAX_CHUNK, chunk_size(k))


def each_token(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield the rows of tensors ``[..., n, *]`` token by token, ``[..., 1, *]`` each."""
    yield from zip(*(x.split(1, -2) for x in tensors), strict=True)


def forward_substitution(matrix: Tensor, right_side: Tensor) -> Tensor:
    """Return ``(I + L)⁻¹ right_side``, ``[..., n, *]``, where L is the part of ``matrix`` below the diagonal."""
    return torch.linalg.solve_triangular(matrix, right_side, upper=False, unitriangular=True)


def zero_state(k: Tensor, v: Tensor) -> Tensor:
    """Return the empty state, ``[..., d, d_v]``, for one token's key ``[..., d]`` and value ``[..., d_v]``."""
    return v.new_zeros(*v.shape[:-1], k.shape[-1], v.shape[-1])


def decayed_products(q: Tensor, k: Tensor, log_gates: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``Q Kᵀ ⊙ Γ``, ``[..., c, c]``, queries decayed since the chunk's start, and keys decayed to its end.

    ``Γ_ij`` is the product of the gates from token j + 1 to i, and 0 for j > i. The logarithms of the gates are
    summed from the start of each chunk, because a sum over a long text would be rounded too coarsely.
    """
    if log_gates is None:
        return causal_similarities(Features(q, k))
    reference = -log_gates.cumsum(-2)
    return causal_similarities(Features(q, k, reference), torch.zeros_like(reference[..., :1, :]))


def single_chunk_outputs(inputs: RuleInputs, v: Tensor) -> Tensor:
    """Return the outputs of the tokens of a short text, ``[..., n, d_v]``, as one chunk that needs no state."""
    q, k, written, products = inputs.q, inputs.k, inputs.write_strength * v, chunk_products(inputs.log_gates)
    if inputs.erase_strength is None:
        return products(q, k) @ written
    if inputs.directions is None:
        return products(q, k) @ forward_substitution(inputs.erase_strength * products(k, k), written)
    w, epsilon = inputs.directions, inputs.erase_strength
    erased = forward_substitution(epsilon * products(w, w), epsilon * (products(w, k).tril(-1) @ written))
    return products(q, k) @ written - products(q, w) @ erased


def chunk_products(log_gates: Tensor | None) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the function ``(Q, K) -> Q Kᵀ ⊙ Γ``, ``[..., c, c]``; with one gate per token, its calls share one Γ."""
    if log_gates is None or log_gates.shape[-1] > 1:
        return lambda q, k: decayed_products(q, k, log_gates)[0]
    decay = token_decay(-log_gates.cumsum(-2))
    return lambda q, k: (q @ k.mT).mul_(decay)


def update_state(
    state: Tensor, inputs: RuleInputs, v: Tensor, *, with_outputs: bool = True
) -> tuple[Tensor | None, Tensor]:
    """Update the state by a chunk of tokens.

    Args:
        state: ``S``, ``[..., d, d_v]``.
        inputs: the chunk, ``[..., c, *]``.
        v: values, ``[..., c, d_v]``.
        with_outputs: whether to compute outputs.

    Returns:
        The outputs ``[..., c, d_v]``, each read right after its token was written, or None; and the new state.
    """
    q, k, beta, log_gates, epsilon, w = inputs
    written, keys_to_end, outputs, erased = beta * v, k, None, None
    if epsilon is not None and w is None:
        products, from_start, keys_to_end = decayed_products(k, k, log_gates)
        written = forward_substitution(epsilon * products, written - epsilon * (from_start @ state))
    elif epsilon is not None and w is not None:
        key_products, _, keys_to_end = decayed_products(w, k, log_gates)
        products, from_start, w_to_end = decayed_products(w, w, log_gates)
        erased = forward_substitution(
            epsilon * products, epsilon * (from_start @ state + key_products.tril(-1) @ written)
        )
    if with_outputs:
        products, from_start, keys_to_end = decayed_products(q, k, log_gates)
        outputs = products @ written + from_start @ state
        if erased is not None and w is not None:
            outputs = outputs - decayed_products(q, w, log_gates)[0] @ erased
    elif epsilon is None and log_gates is not None:
        log_decay = log_gates.cumsum(-2)
        keys_to_end = k * (log_decay[..., -1:, :] - log_decay).exp()
    if log_gates is not None:
        state = log_gates.sum(-2, keepdim=True).exp().mT * state
    state = state + keys_to_end.mT @ written
    return outputs, state if erased is None else state - w_to_end.mT @ erased


def attend_chunk(
    state: State, q: Tensor, k: Tensor, v: Tensor, *, rule: Rule, p: Params, with_outputs: bool = True
) -> tuple[Tensor | None, State]:
    """Return the outputs ``[..., c, d_v]`` of a chunk of c tokens and the state after it; see ``update_state``."""
    inputs = rule(at_least_float32(q), at_least_float32(k), p, state.token_count)
    out, sums = update_state(state.sums, inputs, at_least_float32(v), with_outputs=with_outputs)
    return None if out is None else out.to(v.dtype), State(sums, state.token_count + v.shape[-2])


def fast_weight_attention(rule: Rule, q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return ``matrix(...) @ v``, ``[..., n, d_v]``, computed by chunks: O(n d²) time, O(n d) memory."""
    if causal and v.shape[-2] <= CHUNK and needs_gradient(q, k, v):
        # The queries of a single chunk read an empty state, so the product with the state can be skipped. Without
        # gradients, it is computed nevertheless, so that the counted multiply-adds equal ``cost`` at every length.
        out = single_chunk_outputs(rule(at_least_float32(q), at_least_float32(k), p, 0), at_least_float32(v))
    elif causal:
        size = tokens_per_chunk(k)
        out, _ = scan_chunks(partial(attend_chunk, rule=rule, p=p), empty_state(k, v), q, k, v, size=size)
    else:
        state = State(final_state(rule, k, v, p))
        out, _ = scan_chunks(partial(_read_final_state, rule=rule, p=p), state, q, size=tokens_per_chunk(k))
    return out.to(v.dtype)


def _read_final_state(state: State, q: Tensor, *, rule: Rule, p: Params) -> tuple[Tensor, State]:
    """Return the outputs of a chunk of queries, read from the final state, and the unchanged state.

    Of the rule's inputs, only the queries are used. The rule also needs keys, so it is given the queries as keys.
    """
    q = at_least_float32(q)
    return rule(q, q, p, 0).q @ state.sums, state


def empty_state(k: Tensor, v: Tensor) -> State:
    """Return the state before any token, for keys ``[..., n, d]`` and values ``[..., n, d_v]``."""
    return State(zero_state(k[..., 0, :], at_least_float32(v)[..., 0, :]))


def final_state(rule: Rule, k: Tensor, v: Tensor, p: Params) -> Tensor:
    """Return ``S`` after all tokens, ``[..., d, d_v]``, for keys ``[..., n, d]`` and values ``[..., n, d_v]``."""
    step = partial(attend_chunk, rule=rule, p=p, with_outputs=False)
    _, state = scan_chunks(step, empty_state(k, v), k, k, v, size=tokens_per_chunk(k))
    return state.sums


def anatomy(inputs: RuleInputs, *, causal: bool) -> dict[str, Tensor]:
    """Return the factors of the matrix: ``read @ diag(β)``, or ``read @ inverse @ diag(β)`` if the rule erases.

    Without a causal mask, all tokens are written in the order of the text, and then every query reads the final
    state.

    Returns:
        All factors are ``[..., n, n]``. ``Γ⁻`` is Γ below the diagonal. If causal, ``read`` is ``(Q Kᵀ ⊙ Γ)``. For
        the delta rule, ``overlaps`` is ``diag(ε) (K Kᵀ ⊙ Γ⁻)``, and ``inverse`` is ``(I + overlaps)⁻¹``. With
        directions W, ``overlaps`` is ``diag(ε) (W Wᵀ ⊙ Γ⁻)``, and the matrix is
        ``(read - turned @ inverse @ met) @ diag(β)``. Then ``met`` is ``diag(ε) (W Kᵀ ⊙ Γ⁻)`` and, if causal,
        ``turned`` is ``(Q Wᵀ ⊙ Γ)``.
    """

    def query_products(keys: Tensor) -> Tensor:
        if causal:
            return decayed_products(inputs.q, keys, inputs.log_gates)[0]
        return inputs.q @ decayed_products(keys, keys, inputs.log_gates)[2].mT

    read = query_products(inputs.k)
    if inputs.erase_strength is None:
        return {"read": read}
    epsilon, w = inputs.erase_strength, inputs.k if inputs.directions is None else inputs.directions
    overlaps = epsilon * decayed_products(w, w, inputs.log_gates)[0].tril(-1)
    identity = torch.eye(read.shape[-1], dtype=read.dtype, device=read.device).expand_as(overlaps)
    parts = {"read": read, "overlaps": overlaps, "inverse": forward_substitution(overlaps, identity)}
    if inputs.directions is None:
        return parts
    met = epsilon * decayed_products(w, inputs.k, inputs.log_gates)[0].tril(-1)
    return {**parts, "turned": query_products(w), "met": met}


def matrix(inputs: RuleInputs, *, causal: bool) -> Tensor:
    """Return the matrix ``[..., n, n]``, as the product of the factors that ``anatomy`` returns."""
    parts = anatomy(inputs, causal=causal)
    if inputs.directions is not None:
        return (parts["read"] - parts["turned"] @ parts["inverse"] @ parts["met"]) * inputs.write_strength.mT
    if inputs.erase_strength is None:
        return parts["read"] * inputs.write_strength.mT
    return parts["read"] @ (parts["inverse"] * inputs.write_strength.mT)


def cost(
    n: int,
    d: int,
    *,
    causal: bool,
    erases: bool,
    gate_matrices: int,
    has_directions: bool = False,
    has_channel_gates: bool = False,
    keys: int | None = None,
) -> Cost:
    """Return the cost: products within chunks, into and out of the state; forward substitution is not counted.

    The peak is reached within a chunk, in addition to the outputs. The count does not hold for gates of channels that
    fall by e⁴⁰ or more within a chunk, because their products need another algorithm.

    Args:
        n: tokens.
        d: size of queries, keys and values.
        causal: whether query i reads before token i + 1 is written.
        erases: whether the rule erases.
        gate_matrices: matrices ``[c, c]`` per chunk that the gates need, in addition to the products.
        has_directions: whether the rule erases along directions other than the keys.
        has_channel_gates: whether each channel has its own gate.
        keys: number of keys; n for None.
    """
    m = keys or n
    c = min(m, CHUNK)
    chunk_pairs = m // CHUNK * CHUNK**2 + (m % CHUNK) ** 2
    matrices = causal + erases + gate_matrices  # number of c x c matrices in memory at the same time
    matrices = 4 if has_directions else min(matrices + 1, 3) if erases and not causal else matrices
    if causal or erases:
        chunk_elements = matrices * c * c + (5 + 4 * erases + 3 * has_directions) * c * d // 2 + d * d
    else:  # largest tensors: the keys of a chunk, their gates, and the values
        chunk_elements = 6 * c * d + d * d if has_channel_gates else 0
    return Cost(
        multiply_adds=(2 * causal * (1 + has_directions) + erases + 2 * has_directions) * chunk_pairs * d
        + ((1 + erases + has_directions) * m + n) * d * d,
        peak_elements=max(causal * n * d + chunk_elements, n * d + 2 * c * d + d * d),
    )


def variant(
    module: str,
    rule: Rule,
    *,
    erases: bool,
    gate_kind: Callable[[Any], Literal["none", "token", "channel"]],
    has_directions: bool = False,
    **declared: Any,  # noqa: ANN401 - any field of Variant
) -> Variant:
    """Return the variant that a rule defines.

    Args:
        module: the ``__name__`` of the variant's module.
        rule: returns the inputs of the recurrence; see ``Rule``.
        erases: whether the rule erases.
        gate_kind: for settings p, whether a token has no gate, one gate for all channels, or one for each channel.
        has_directions: whether the rule erases along directions other than the keys.
        declared: the other fields of ``Variant``.
    """
    gate_matrices = {"none": 0, "channel": 1, "token": 1 + erases}

    def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
        # The matrix is computed in float64, because rounding errors accumulate in products of many gates.
        return matrix(rule(q.double(), k.double(), p, 0), causal=causal).to(q.dtype)

    def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
        return fast_weight_attention(rule, q, k, v, p, causal=causal)

    def init_state(q: Tensor, v: Tensor, p: Params) -> State:
        return State(zero_state(q, at_least_float32(v)))

    step = token_step(lambda state, q, k, v, p: attend_chunk(state, q, k, v, rule=rule, p=p))

    def rule_inputs(state: State, q: Tensor, k: Tensor, p: Params) -> RuleInputs:
        return rule(at_least_float32(q).unsqueeze(-2), at_least_float32(k).unsqueeze(-2), p, state.token_count)

    def intermediates(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> dict[str, Tensor]:
        inputs = rule(at_least_float32(q), at_least_float32(k), p, 0)
        beta, parts = inputs.write_strength, anatomy(inputs, causal=causal)
        tensors = {"queries": inputs.q, "keys": inputs.k, "strength": beta.expand_as(inputs.k[..., :1])}
        if inputs.directions is not None and inputs.erase_strength is not None:
            return {**tensors, "strength": inputs.erase_strength, "directions": inputs.directions, **parts}
        if inputs.erase_strength is not None:
            return {**tensors, "written": parts["inverse"] @ (beta * at_least_float32(v)), **parts}
        assert inputs.log_gates is not None
        return {**tensors, "kept": inputs.log_gates.exp().expand_as(inputs.k), **parts}

    return Variant(
        module,
        complexity="n d²",
        weights=weights,
        attend=attend,
        cost=lambda n, d, p, *, causal, keys=None: cost(
            n,
            d,
            causal=causal,
            erases=erases,
            gate_matrices=gate_matrices[gate_kind(p)],
            has_directions=has_directions,
            has_channel_gates=gate_kind(p) == "channel",
            keys=keys,
        ),
        rows_sum_to_one=False,
        signed=True,
        decoder=Decoder(init_state, step, normalised=False, rule_inputs=rule_inputs),
        anatomy=intermediates,
        **declared,
    )
