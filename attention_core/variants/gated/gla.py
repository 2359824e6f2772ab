"""Gated linear attention: linear attention whose state decays at each token, each channel by its own factor (gate)."""

import math

import torch
from torch import Tensor

from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.fast_weights import RuleInputs, each_token
from attention_core.ops.delta.gates import TRAINED_GATES, GateParams, channel_gate_kind, gate_setting, log_gates
from attention_core.variant import Intermediate, Paper, SpecialCase


class GlaParams(GateParams):
    """Settings of gated linear attention."""

    gate: str = gate_setting("keys")


def rule_inputs(q: Tensor, k: Tensor, p: GlaParams, first: int) -> RuleInputs:
    """Return the inputs of the recurrence: queries divided by √d, and gates.

    ``first`` is the number of earlier tokens. Gates that are computed from keys differ between channels.
    """
    log_alpha = log_gates(k, p, first=first, per_channel=True)
    return RuleInputs(q * q.shape[-1] ** -0.5, k, torch.ones_like(log_alpha[..., :1]), log_alpha)


def definition(q: Tensor, k: Tensor, v: Tensor, p: GlaParams, *, causal: bool) -> Tensor:
    """Update and read a state S token by token, with gates α: ``S ← diag(α) S + k vᵀ``, ``o = qᵀ S / √d``."""
    alpha = log_gates(k, p, per_channel=True).exp()  # [..., n, d]
    q = q / math.sqrt(q.shape[-1])
    S, outputs = torch.zeros_like(k.mT @ v), []  # the state, [..., d, d_v]
    for q_t, k_t, v_t, alpha_t in each_token(q, k, v, alpha):
        S = alpha_t.mT * S + k_t.mT @ v_t  # decay each channel, then write
        outputs.append(q_t @ S)  # read
    return torch.cat(outputs, -2) if causal else q @ S


VARIANT = fast_weights.variant(
    __name__,
    rule_inputs,
    erases=False,
    gate_kind=channel_gate_kind,
    title="Gated linear",
    summary="Linear attention whose state, a matrix that sums key–value products, decays. The state has one row per "
    "key component, and each token multiplies every row by a separate factor (gate).",
    formula=r"A_{ij} = \frac{1}{\sqrt{d}} \sum_c q_{ic}\, k_{jc} \prod_{l=j+1}^{i} \alpha_{lc}",
    params=GlaParams,
    trainable=(TRAINED_GATES,),
    intermediates=(
        Intermediate(
            name="read",
            title="Decayed products",
            symbol="R",
            formula=r"R_{ij} = \sum_c \frac{q_{ic}}{\sqrt d}\, \Gamma_{ijc}\, k_{jc},\qquad \Gamma_{ijc} = \prod_l "
            r"\alpha_{lc}",
            mechanism="R contains the dot product of every query with every key that it can attend to, divided by "
            "√d. Each component of the key is first multiplied by all gates of this component since the key was "
            "stored.",
        ),
        Intermediate(
            name="kept",
            title="Gates",
            symbol=r"\alpha",
            formula=r"S_i = \operatorname{diag}(\alpha_i)\, S_{i-1} + k_i v_i^\top",
            mechanism="Before a token is added to the state, each row of the state is multiplied by its own gate. A "
            "gate below 1 reduces what earlier tokens contribute.",
            rows="token",
            columns="channel",
        ),
    ),
    source=Paper(
        "Gated Linear Attention Transformers with Hardware-Efficient Training", 2023, "https://arxiv.org/abs/2312.06635"
    ),
    note="The state is one matrix, a decayed sum of the key–value products of past tokens, with one row for each key "
    "component. Before a token adds its own product, it multiplies each row by a factor, the gate α. In GLA, a "
    "learned projection computes the gates. The Learn page can train this projection; on other pages, the gates "
    'follow a fixed rule. With the rule "keys", α = σ(k)^(1/root), where k is the token\'s key, σ is the sigmoid and '
    'root is a setting. With the rules "constant" and "harmonic", all rows have the same gate, as in scalar decay. '
    "Without a causal mask, every query reads the state after the last token.",
    special_cases=(SpecialCase("scalar_decay", {"gate": "constant"}, {"gate": "constant"}, ("decay",)),),
)
