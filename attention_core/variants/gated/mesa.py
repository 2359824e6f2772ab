"""Mesa: the output is ``Wᵀ q``, where ridge regression fits the matrix W that maps all keys so far to their values.

At each token, the delta rule takes only one step towards this W. Mesa minimises ``Σ_l Γ_il ‖v_l - Wᵀ k_l‖² + λ ‖W‖²``
after every token i, where Γ_il is the product of the gates of the tokens after l up to i: ``W_i = (H_i + λ I)⁻¹ S_i``
with ``H_i = Σ_l Γ_il k_l k_lᵀ`` and ``S_i = Σ_l Γ_il k_l v_lᵀ``. The state of constant size consists of H and S.
"""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.delta_rule import unit_vectors
from attention_core.ops.delta.fast_weights import RuleInputs, decayed_products, each_token, update_state
from attention_core.ops.delta.gates import TRAINED_GATE, GateParams, log_gates
from attention_core.ops.linear.scans import scan_chunks, token_step
from attention_core.ops.softmax.masked import at_least_float32
from attention_core.settings import param
from attention_core.variant import Cost, Decoder, Intermediate, Paper, Variant

CHUNK, GATED_CHUNK = 64, 16
"""Tokens per chunk; fewer with gates, where each token of a chunk has its own system in memory."""


class MesaParams(GateParams):
    """Settings of mesa."""

    ridge: float = param(
        1.0,
        low=0.1,
        high=100.0,
        scale="log",
        help="λ, the penalty on large entries of the matrix that maps keys to values (ridge). The smaller λ is, the "
        "more exactly each key retrieves its own value. With large λ, the result approaches linear attention divided "
        "by λ.",
    )
    decay: float = param(
        1.0,
        low=0.1,
        high=1.0,
        step=0.005,
        help="Value of the constant gate. Mesa fits a matrix that maps each key to its value, by least squares. At "
        "each token, the squared errors of all earlier tokens are multiplied by this factor. The smaller it is, "
        "the less earlier tokens count. At 1, all tokens count equally.",
    )


class State(NamedTuple):
    """The two states after some tokens.

    Attributes:
        keys: ``H``, the decayed sum of ``k kᵀ``, ``[..., d, d]``.
        sums: ``S``, the decayed sum of ``k vᵀ``, ``[..., d, d_v]``.
        token_count: the number of tokens so far.
    """

    keys: Tensor
    sums: Tensor
    token_count: int = 0


def definition(q: Tensor, k: Tensor, v: Tensor, p: MesaParams, *, causal: bool) -> Tensor:
    """Update ``H ← α H + k kᵀ`` and ``S ← α S + k vᵀ`` token by token, with gates α; read ``o = qᵀ (H + λ I)⁻¹ S``."""
    alpha = log_gates(k, p).exp()  # [..., n, 1]
    q, k = unit_vectors(q), unit_vectors(k)
    ridge = p.ridge * torch.eye(k.shape[-1]).to(k)
    H, S, outputs = torch.zeros_like(k.mT @ k), torch.zeros_like(k.mT @ v), []  # [..., d, d] and [..., d, d_v]
    for q_t, k_t, v_t, alpha_t in each_token(q, k, v, alpha):
        H = alpha_t * H + k_t.mT @ k_t
        S = alpha_t * S + k_t.mT @ v_t
        outputs.append(q_t @ torch.linalg.solve(H + ridge, S))
    return torch.cat(outputs, -2) if causal else q @ torch.linalg.solve(H + ridge, S)


def rule_inputs(q: Tensor, k: Tensor, p: MesaParams, first: int = 0) -> RuleInputs:
    """Return the inputs of the recurrence: unit queries and keys, and gates unless every gate is 1.

    ``first`` is the number of earlier tokens.
    """
    log_alpha = log_gates(k, p, first=first) if has_decay(p) else None
    return RuleInputs(unit_vectors(q), unit_vectors(k), torch.ones_like(k[..., :1]), log_alpha)


def has_decay(p: MesaParams) -> bool:
    """Return whether some gate may be below 1, so that earlier tokens count less in the least-squares fit."""
    return p.gate != "constant" or p.decay < 1 or "gate" in p.learned


def solve_queries(state: Tensor, inputs: RuleInputs, ridge: float) -> Tensor:
    """Return ``(H_i + λ I)⁻¹ q_i`` of c tokens, ``[..., c, d]``; ``state`` is H before them, and ``ridge`` is λ.

    Without gates, each system is the previous one plus one product ``k kᵀ``. K has the chunk's keys as rows. With
    the Cholesky factors ``L Lᵀ = H + λ I`` and ``R Rᵀ = I + G Gᵀ`` for ``G = K L⁻ᵀ``, the inverse after i tokens is
    ``L⁻ᵀ (I - B_iᵀ B_i) L⁻¹``. ``B_i`` is the first i rows of ``R⁻¹ G``.
    """
    identity = torch.eye(state.shape[-1], dtype=state.dtype, device=state.device)
    if inputs.log_gates is not None:
        log_decay = inputs.log_gates.cumsum(-2)
        decay = (log_decay - log_decay.mT).clamp(max=0).exp().tril()  # [..., c, c]
        key_products = (inputs.k.unsqueeze(-1) * inputs.k.unsqueeze(-2)).flatten(-2)  # [..., c, d²]
        states = (decay @ key_products).unflatten(-1, identity.shape)  # [..., c, d, d], H of this chunk alone
        states = states + log_decay.exp().unsqueeze(-1) * state.unsqueeze(-3)
        factor = torch.linalg.cholesky(states + ridge * identity)
        return torch.cholesky_solve(inputs.q.unsqueeze(-1), factor).squeeze(-1)
    factor = torch.linalg.cholesky(state + ridge * identity)
    q, k = (torch.linalg.solve_triangular(factor, x.mT, upper=False).mT for x in (inputs.q, inputs.k))
    root = torch.linalg.cholesky(k @ k.mT + torch.eye(k.shape[-2], dtype=k.dtype, device=k.device))
    basis = torch.linalg.solve_triangular(root, k, upper=False)
    solutions = q - (q @ basis.mT).tril() @ basis
    return torch.linalg.solve_triangular(factor, solutions, upper=False, left=False)


def attend_chunk(
    state: State, q: Tensor, k: Tensor, v: Tensor, p: MesaParams, *, with_outputs: bool = True
) -> tuple[Tensor | None, State]:
    """Return the outputs of c tokens, ``[..., c, d_v]`` (None unless ``with_outputs``), and the states after them."""
    inputs = rule_inputs(at_least_float32(q), at_least_float32(k), p, state.token_count)
    if with_outputs:
        inputs = inputs._replace(q=solve_queries(state.keys, inputs, p.ridge))
    out, sums = update_state(state.sums, inputs, at_least_float32(v), with_outputs=with_outputs)
    _, keys = update_state(state.keys, inputs, inputs.k, with_outputs=False)
    return None if out is None else out.to(v.dtype), State(keys, sums, state.token_count + v.shape[-2])


def chunk_size(p: MesaParams, *, causal: bool) -> int:
    """Return the number of tokens per chunk."""
    return GATED_CHUNK if causal and has_decay(p) else CHUNK


def attend(q: Tensor, k: Tensor, v: Tensor, p: MesaParams, *, causal: bool) -> Tensor:
    """Compute the outputs chunk by chunk: O(n d²) time (causal with gates: O(n d³)), O(n d) memory."""
    state = init_state(q[..., 0, :], v[..., 0, :], p)
    # Without a causal mask, each query reads the final states. The pass over the tokens then needs no queries, so the
    # keys serve as a placeholder.
    queries = q if causal else k
    step = partial(attend_chunk, p=p, with_outputs=causal)
    out, state = scan_chunks(step, state, queries, k, v, size=chunk_size(p, causal=causal))
    if causal:
        return out
    return (solve_with_final_state(state.keys, unit_vectors(at_least_float32(q)), p.ridge) @ state.sums).to(v.dtype)


def solve_with_final_state(state: Tensor, q: Tensor, ridge: float) -> Tensor:
    """Return ``(H + λ I)⁻¹ q_i``, ``[..., n, d]``, where ``H``, the argument ``state``, is the same for all queries."""
    identity = torch.eye(q.shape[-1], dtype=q.dtype, device=q.device)
    return torch.cholesky_solve(q.mT, torch.linalg.cholesky(state + ridge * identity)).mT


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: MesaParams, *, causal: bool) -> dict[str, Tensor]:
    """Return the factors of the attention matrix, and the matrix itself as ``read``.

    ``queries`` and ``keys`` are unit vectors, and ``solved`` is ``(H_i + λ I)⁻¹ q_i``, ``[..., n, d]`` each.
    ``read`` is the product of ``solved`` with the decayed keys, ``[..., n, n]``. ``linear`` is the product of
    ``queries`` with the decayed keys, ``[..., n, n]``.
    """
    q, k = at_least_float32(q), at_least_float32(k)
    inputs = rule_inputs(q, k, p)
    state = init_state(q[..., 0, :], k[..., 0, :], p)

    def solve_chunk(state: State, q: Tensor, k: Tensor) -> tuple[Tensor, State]:
        solved = solve_queries(state.keys, rule_inputs(q, k, p, state.token_count), p.ridge) if causal else q
        return solved, attend_chunk(state, q, k, k, p, with_outputs=False)[1]

    solved, state = scan_chunks(solve_chunk, state, q if causal else k, k, size=chunk_size(p, causal=causal))
    queries = solved if causal else solve_with_final_state(state.keys, inputs.q, p.ridge)
    tensors = {"queries": inputs.q, "keys": inputs.k, "solved": queries}
    if causal:
        linear, read = (decayed_products(x, inputs.k, inputs.log_gates)[0] for x in (inputs.q, queries))
        return {**tensors, "linear": linear, "read": read}
    keys_to_end = decayed_products(inputs.k, inputs.k, inputs.log_gates)[2]
    return {**tensors, "linear": inputs.q @ keys_to_end.mT, "read": queries @ keys_to_end.mT}


def weights(q: Tensor, k: Tensor, p: MesaParams, *, causal: bool) -> Tensor:
    """Return ``q_iᵀ (H_i + λ I)⁻¹ k_j Γ_ij``, ``[..., n, n]``, in the type of q.

    It is computed in float64, because a system may be nearly singular. Γ_ij is the product of the gates after j, up to
    i if causal.
    """
    return anatomy(q.double(), k.double(), k, p, causal=causal)["read"].to(q.dtype)


def init_state(q: Tensor, v: Tensor, p: MesaParams) -> State:
    """Return the states before any token; one token's q, ``[..., d]``, and v, ``[..., d_v]``, give shapes and type."""
    q, v = at_least_float32(q), at_least_float32(v)
    return State(fast_weights.zero_state(q, q), fast_weights.zero_state(q, v))


step = token_step(attend_chunk)


def cost(n: int, d: int, p: MesaParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: products within chunks and with the states; the factorisations, d³ / 3 each, are not counted."""
    size = chunk_size(p, causal=causal)
    c, chunk_pairs = min(keys or n, size), n // size * size**2 + (n % size) ** 2
    adds_per_pair = 0 if not causal else 2 * d + d * d if size == GATED_CHUNK else 5 * d
    chunk_elements = 4 * c * d * d if size == GATED_CHUNK else 3 * c * c + 5 * c * d
    return Cost(
        multiply_adds=chunk_pairs * adds_per_pair + (2 * (keys or n) + n) * d * d,
        peak_elements=max(causal * (n * d + chunk_elements), 2 * n * d, (4 + has_decay(p)) * c * d) + 4 * d * d,
    )


VARIANT = Variant(
    __name__,
    title="Mesa",
    summary="The output is the query times a matrix that maps all keys so far to their values as closely as "
    "possible: least squares with a penalty on large entries.",
    formula=r"A_{ij} = \hat q_i^\top (H_i + \lambda I)^{-1} \hat k_j\, \Gamma_{ij},\quad "
    r"H_i = \sum_{l \le i} \Gamma_{il}\, \hat k_l \hat k_l^\top,\quad "
    r"\Gamma_{ij} = [j \le i] \prod_{l=j+1}^{i} \alpha_l,"
    r"\quad \hat q_i = \frac{q_i}{\lVert q_i \rVert},\; \hat k_j = \frac{k_j}{\lVert k_j \rVert}",
    complexity="n d²",
    params=MesaParams,
    trainable=(TRAINED_GATE,),
    rows_sum_to_one=False,
    signed=True,
    decoder=Decoder(init_state, step, normalised=False),
    intermediates=(
        Intermediate(
            name="solved",
            title="Solved queries",
            symbol=r"\hat q",
            formula=r"\hat q_i = (H + \lambda I)^{-1} q_i,\qquad H = \sum_l \Gamma_l\, k_l k_l^\top",
            mechanism="Mesa does not compute the matrix that maps keys to values. It solves one linear system for "
            "each query. The solution is called the solved query and replaces the query.",
            rows="query",
            columns="entry",
        ),
        Intermediate(
            name="linear",
            title="Without solving",
            symbol="G",
            formula=r"G_{ij} = \Gamma_{ij}\, q_i^\top k_j",
            mechanism="This matrix uses the original queries, as in linear attention. Each entry is the dot product "
            "of a query and a key, times the gates of all tokens after the key (with a causal mask, only up to the "
            "query). In Mesa, the solution of a linear system replaces the query.",
        ),
    ),
    source=Paper(
        "MesaNet: Sequence Modeling by Locally Optimal Test-Time Training", 2025, "https://arxiv.org/abs/2506.05233"
    ),
    further=(
        Paper("Uncovering mesa-optimization algorithms in Transformers", 2023, "https://arxiv.org/abs/2309.05858"),
    ),
    note="The state is a matrix that should map each past key to its value. A token's error is the difference between "
    "its value and the result of this mapping. DeltaNet improves the state by one gradient step per token. Mesa uses "
    "the best state: it minimises the sum of squared errors plus λ times the sum of the state's squared entries. "
    "Queries and keys are scaled to length 1. Published models compute the best state approximately. They learn λ for "
    "each component, a weight for each token's error, and a gate that makes older errors count less. Here, λ is one "
    "number, and the result is exact. The Learn page can train the gate; on other pages, it follows a fixed rule. If "
    "older errors count less and there is a causal mask, the time grows as n d³, for n tokens and head size d. Without "
    "a causal mask, every query reads the state after the last token.",
)
