"""Gated DeltaNet: at each token, a state decays, and the token's value replaces the value stored for its key.

The delta rule replaces the value. At each token, the whole state is multiplied by one factor.
"""

import torch
from torch import Tensor

from attention_core.articles import EXACT_FLOW, L2_NORMALISATION
from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.delta_rule import TRAINED_STRENGTH, DeltaParams, delta_inputs, normalise, write_strengths
from attention_core.ops.delta.fast_weights import RuleInputs, each_token
from attention_core.ops.delta.gates import TRAINED_GATE, GateParams, log_gates
from attention_core.variant import Paper, SpecialCase


class GatedDeltaNetParams(GateParams, DeltaParams):
    """Settings of the delta rule with a gate."""


def rule_inputs(q: Tensor, k: Tensor, p: GatedDeltaNetParams, first: int) -> RuleInputs:
    """Return the inputs of DeltaNet's recurrence, with one gate per token for the whole state.

    ``first`` is the number of earlier tokens.
    """
    return delta_inputs(q, k, p, first, log_gates(k, p, first=first))


def definition(q: Tensor, k: Tensor, v: Tensor, p: GatedDeltaNetParams, *, causal: bool) -> Tensor:
    """Update and read a state S token by token, with gates α: ``S ← (I - β k kᵀ) α S + β k vᵀ``, ``o = qᵀ S``."""
    alpha = log_gates(k, p).exp()  # [..., n, 1]
    q, k = normalise(q, p), normalise(k, p)
    beta = write_strengths(k, p)  # [..., n, 1]
    S, outputs = torch.zeros_like(k.mT @ v), []  # the state, [..., d, d_v]
    for q_t, k_t, v_t, alpha_t, beta_t in each_token(q, k, v, alpha, beta):
        S = alpha_t * S  # decay the state
        S = S - beta_t * k_t.mT @ (k_t @ S)  # erase β times the value read with the key
        S = S + beta_t * k_t.mT @ v_t  # write the value
        outputs.append(q_t @ S)  # read
    return torch.cat(outputs, -2) if causal else q @ S


VARIANT = fast_weights.variant(
    __name__,
    rule_inputs,
    erases=True,
    gate_kind=lambda p: "token",
    title="Gated DeltaNet",
    summary="A matrix, the state, stores values under keys. Each token multiplies the matrix by one factor, the "
    "gate. Then it moves the value stored under its key towards its own value.",
    formula=r"A = (\hat Q \hat K^\top \odot \Gamma)\left(I + \operatorname{diag}(\beta)\,(\hat K \hat K^\top \odot "
    r"\Gamma^-)\right)^{-1} \operatorname{diag}(\beta),\quad \Gamma_{ij} = [j \le i] \prod_{l=j+1}^{i} \alpha_l,\; "
    r"\Gamma^-_{ij} = [j < i]\, \Gamma_{ij},\quad \hat q_i = \frac{q_i}{\lVert q_i \rVert},\; \hat k_j = "
    r"\frac{k_j}{\lVert k_j \rVert}",
    params=GatedDeltaNetParams,
    trainable=(TRAINED_GATE, TRAINED_STRENGTH),
    source=Paper("Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024, "https://arxiv.org/abs/2412.06464"),
    further=(L2_NORMALISATION, EXACT_FLOW),
    note="The state is a matrix that stores values under keys. The gate α is the factor by which a token multiplies "
    "the state. The strength β sets how far the token then moves the value stored under its key towards its own "
    "value. In models such as Qwen3-Next, α and β are learned. The Learn page can train both. On other pages, "
    "they follow the settings. Without a causal mask, all tokens first change the state in order. Then every "
    "query reads the final state.",
    special_cases=(SpecialCase("deltanet", {"gate": "constant", "decay": 1.0}, shared=("keys", "strength")),),
)
