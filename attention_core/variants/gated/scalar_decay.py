"""Scalar decay: linear attention without a normaliser, whose state decays at each token by one factor, the gate.

Mamba-2 calls this form state space duality. Lightning attention uses constant gates, and simple GLA computes a gate
from each token. With a gate of 1, this is linear attention without feature map and normaliser. If token t has the gate
1 - 1/t and its value is multiplied by 1/t, the state is the mean of ``k vᵀ`` over all tokens so far.
"""

import math

import torch
from torch import Tensor

from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.fast_weights import RuleInputs, each_token
from attention_core.ops.delta.gates import TRAINED_GATE, GateParams, log_gates, one_minus_gates
from attention_core.settings import param
from attention_core.variant import Intermediate, Paper


class ScalarDecayParams(GateParams):
    """Settings of scalar decay."""

    write: str = param(
        "whole",
        choices=("whole", "rest"),
        help="Factor by which a value is multiplied when it is added to the state, the sum of past key–value "
        'products. With "whole", it is 1. With "rest", it is 1 minus the gate (the state\'s decay factor), so '
        "that the entries of the state do not grow with the number of tokens.",
    )


def rule_inputs(q: Tensor, k: Tensor, p: ScalarDecayParams, first: int) -> RuleInputs:
    """Return the inputs of the recurrence: queries divided by √d, and one gate per token for the whole state.

    ``first`` is the number of earlier tokens.
    """
    log_alpha = log_gates(k, p, first=first)
    write_strength = one_minus_gates(log_alpha, p, first=first) if p.write == "rest" else torch.ones_like(log_alpha)
    return RuleInputs(q * q.shape[-1] ** -0.5, k, write_strength, log_alpha)


def definition(q: Tensor, k: Tensor, v: Tensor, p: ScalarDecayParams, *, causal: bool) -> Tensor:
    """Update and read a state S token by token, with gates α: ``S ← α S + β k vᵀ``, ``o = qᵀ S / √d``.

    β is 1, or ``1 - α`` if the setting ``write`` is "rest".
    """
    log_alpha = log_gates(k, p)
    alpha = log_alpha.exp()  # [..., n, 1]
    beta = one_minus_gates(log_alpha, p) if p.write == "rest" else torch.ones_like(alpha)
    q = q / math.sqrt(q.shape[-1])
    S, outputs = torch.zeros_like(k.mT @ v), []  # the state, [..., d, d_v]
    for q_t, k_t, v_t, alpha_t, beta_t in each_token(q, k, v, alpha, beta):
        S = alpha_t * S + beta_t * k_t.mT @ v_t  # decay, then write
        outputs.append(q_t @ S)  # read
    return torch.cat(outputs, -2) if causal else q @ S


VARIANT = fast_weights.variant(
    __name__,
    rule_inputs,
    erases=False,
    gate_kind=lambda p: "token",
    title="Scalar decay",
    summary="Linear attention whose state, a matrix that sums past key–value products, is multiplied by one factor "
    "at each token, as in Mamba-2 and Lightning attention.",
    formula=r"A = \left(\frac{Q K^\top}{\sqrt{d}} \odot \Gamma\right)\operatorname{diag}(\beta),\quad "
    r"\Gamma_{ij} = \prod_{l=j+1}^{i} \alpha_l,\quad \beta_j = 1 \text{ or } 1 - \alpha_j",
    params=ScalarDecayParams,
    trainable=(TRAINED_GATE,),
    intermediates=(
        Intermediate(
            name="read",
            title="Decayed products",
            symbol="R",
            formula=r"R_{ij} = \frac{q_i^\top k_j}{\sqrt d}\, \Gamma_{ij},\qquad \Gamma_{ij} = \prod_l \alpha_l",
            mechanism="Each entry of R is the dot product of a query and a key, divided by √d, times all factors "
            "(gates) since that key was stored.",
        ),
        Intermediate(
            name="kept",
            title="Gates",
            symbol=r"\alpha",
            formula=r"S_i = \alpha_i\, S_{i-1} + \beta_i k_i v_i^\top",
            mechanism="Before a token is added to the state, its factor (gate) multiplies the whole state. A gate "
            "below 1 reduces what earlier tokens contribute.",
            rows="token",
            columns="channel",
        ),
    ),
    source=Paper(
        "Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space Duality",
        2024,
        "https://arxiv.org/abs/2405.21060",
    ),
    further=(
        Paper(
            "Lightning Attention-2: A Free Lunch for Handling Unlimited Sequence Lengths in Large Language Models",
            2024,
            "https://arxiv.org/abs/2401.04658",
        ),
        Paper(
            "Gated Linear Attention Transformers with Hardware-Efficient Training",
            2023,
            "https://arxiv.org/abs/2312.06635",
        ),
    ),
    note="The state is one matrix, a decayed sum of the key–value products of past tokens. A gate is the factor that "
    "multiplies the state at each token. Mamba-2 learns the gates, and its inputs first pass through a short "
    "convolution. Lightning attention gives each head a constant gate of its own. Here, the gates of all heads follow "
    "the same fixed rule, unless the Learn page trains them. Without a causal mask, every query reads the state after "
    "the last token.",
)
