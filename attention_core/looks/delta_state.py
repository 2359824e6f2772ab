"""How large does the delta rule's state grow, the more strongly it writes? On one head's own keys and values."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from attention_core.algorithms.delta_rule import DeltaParams, as_taken, write_strength
from attention_core.algorithms.fast_weights import Tokens, last_state
from attention_core.algorithms.gates import GateParams, log_gates
from attention_core.brief import Brief
from attention_core.inputs.record import QKV
from attention_core.variant import Attention


class Growth(Brief):
    """The state after the last token, for several write strengths.

    Attributes:
        strengths: β, or the rate η of the exact step.
        sizes: ``‖S_n‖``, infinite beyond float64.
        eigenvalues: the lowest of ``α (1 - β ‖k‖²)`` over all tokens, which a step multiplies part of the state by.
    """

    strengths: np.ndarray
    sizes: np.ndarray
    eigenvalues: np.ndarray


def growth(qkv: QKV, attention: Attention, head: int, strengths: Sequence[float]) -> Growth:
    """Write one head's values by the rule of a variant, once for each strength, in float64.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: ``deltanet`` or ``gated_deltanet`` with its settings; its strength is not looked at.
        head: the head.
        strengths: any numbers above zero, beyond what the variant allows too.
    """
    p = attention.params
    assert isinstance(p, DeltaParams), f"{attention.key} writes by another rule"
    k, v = qkv.k[head].double(), qkv.v[head].double()

    def rule(q: Tensor, k: Tensor, p: DeltaParams, first: int) -> Tokens:
        gates = log_gates(k, p, first=first) if isinstance(p, GateParams) else None
        k = as_taken(k, p)
        betas = torch.stack([write_strength(k, p.keys, strength) for strength in strengths])  # [s, n, 1]
        return Tokens(k, k, betas, gates, betas)

    state = last_state(rule, k, v.expand(len(strengths), -1, -1), p)
    taken = rule(k, k, p, 0)
    left = 1 - taken.write * taken.k.square().sum(-1, keepdim=True)
    eigenvalues = (left if taken.gates is None else taken.gates.exp() * left).amin((1, 2))
    sizes = torch.linalg.matrix_norm(state).nan_to_num(torch.inf, torch.inf)
    return Growth(strengths=np.array(strengths), sizes=sizes.numpy(), eigenvalues=eigenvalues.numpy())
