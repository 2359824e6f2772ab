"""Kimi delta attention: the delta rule on a state in which each channel decays by its own gate.

The delta rule replaces what a key retrieves from the state by the key's new value.
"""

import torch
from torch import Tensor

from attention_core.articles import EXACT_FLOW, L2_NORMALISATION
from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.delta_rule import TRAINED_STRENGTH, DeltaParams, delta_inputs, normalise, write_strengths
from attention_core.ops.delta.fast_weights import RuleInputs, each_token
from attention_core.ops.delta.gates import TRAINED_GATES, GateParams, channel_gate_kind, gate_setting, log_gates
from attention_core.variant import Paper, SpecialCase


class KdaParams(GateParams, DeltaParams):
    """Settings of Kimi delta attention."""

    gate: str = gate_setting("keys")


def rule_inputs(q: Tensor, k: Tensor, p: KdaParams, first: int) -> RuleInputs:
    """Return the inputs of DeltaNet's recurrence, with the gates of gated linear attention, one for each channel.

    ``first`` is the number of earlier tokens.
    """
    return delta_inputs(q, k, p, first, log_gates(k, p, first=first, per_channel=True))


def definition(q: Tensor, k: Tensor, v: Tensor, p: KdaParams, *, causal: bool) -> Tensor:
    """Update and read a state S token by token, with gates α: ``S ← (I - β k kᵀ) diag(α) S + β k vᵀ``, ``o = qᵀ S``."""
    alpha = log_gates(k, p, per_channel=True).exp()  # [..., n, d]
    q, k = normalise(q, p), normalise(k, p)
    beta = write_strengths(k, p)  # [..., n, 1]
    S, outputs = torch.zeros_like(k.mT @ v), []  # the state, [..., d, d_v]
    for q_t, k_t, v_t, alpha_t, beta_t in each_token(q, k, v, alpha, beta):
        S = alpha_t.mT * S  # decay each channel
        S = S - beta_t * k_t.mT @ (k_t @ S)  # erase β times the value read with the key
        S = S + beta_t * k_t.mT @ v_t  # write the value
        outputs.append(q_t @ S)  # read
    return torch.cat(outputs, -2) if causal else q @ S


VARIANT = fast_weights.variant(
    __name__,
    rule_inputs,
    erases=True,
    gate_kind=channel_gate_kind,
    title="Kimi delta",
    summary="The state matrix stores values under keys. Each token multiplies each row of the matrix by a separate "
    "factor (gate), then moves the value stored under its key towards its own value, as in DeltaNet.",
    formula=r"A = (\hat Q \hat K^\top)_\Gamma \left(I + \operatorname{diag}(\beta)\,(\hat K \hat "
    r"K^\top)_{\Gamma^-}\right)^{-1}\operatorname{diag}(\beta),\quad (X Y^\top)_{\Gamma, ij} = [j \le i] \sum_c "
    r"x_{ic}\, y_{jc} \prod_{l=j+1}^{i} \alpha_{lc},\; (X Y^\top)_{\Gamma^-, ij} = [j < i]\, (X Y^\top)_{\Gamma, "
    r"ij},\quad \hat q_i = \frac{q_i}{\lVert q_i \rVert},\; \hat k_j = \frac{k_j}{\lVert k_j \rVert}",
    params=KdaParams,
    trainable=(TRAINED_GATES, TRAINED_STRENGTH),
    source=Paper(
        "Kimi Linear: An Expressive, Efficient Attention Architecture", 2025, "https://arxiv.org/abs/2510.26692"
    ),
    further=(L2_NORMALISATION, EXACT_FLOW),
    note="The state is a matrix that stores values under keys, with one row for each key component. A token first "
    "multiplies each row by a factor, the gate α of this row. The token then moves the value stored under its "
    "key towards the token's own value. The strength β sets how far. In Kimi Linear, α and β are learned, and "
    "queries and keys first pass through a short convolution. The Learn page can train these parts. On other "
    "pages, there is no convolution, and the gates follow a fixed rule. By default, α = σ(k)^(1/root), where k "
    "is the token's key, σ is the sigmoid and root is a setting. Without a causal mask, every query reads the "
    "state after the last token.",
    special_cases=(
        SpecialCase("gated_deltanet", {"gate": "constant"}, {"gate": "constant"}, ("decay", "keys", "strength")),
        SpecialCase("deltanet", {"gate": "constant", "decay": 1.0}, shared=("keys", "strength")),
    ),
)
