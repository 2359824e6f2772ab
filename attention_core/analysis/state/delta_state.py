"""The norm of the delta rule's state on one head, for several write strengths or after each token."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from attention_core.attention import Attention
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.ops.delta.delta_rule import DeltaParams, beta_from_strength, normalise
from attention_core.ops.delta.fast_weights import RuleInputs, attend_chunk, empty_state, final_state
from attention_core.ops.delta.gates import GateParams, log_gates


class GrowthByStrength(CompactRepr):
    """The state after the last token, for several write strengths.

    Attributes:
        strengths: the values of the setting ``strength``: β, or η if the setting ``keys`` is ``"exact"``.
        sizes: ``‖S_n‖``, the Frobenius norm of the state, infinite beyond float64.
        eigenvalues: lowest ``α (1 - β ‖k‖²)`` of all tokens, the factor of the state's component along a token's key.
    """

    strengths: np.ndarray
    sizes: np.ndarray
    eigenvalues: np.ndarray


def growth_by_strength(qkv: QKV, attention: Attention, head: int, strengths: Sequence[float]) -> GrowthByStrength:
    """Compute the delta rule's state after all tokens of one head, once for each write strength, in float64.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: ``deltanet`` or ``gated_deltanet`` with its settings; its own strength is ignored.
        head: index of the head.
        strengths: any positive numbers, also beyond the variant's bounds.
    """
    p = attention.params
    assert isinstance(p, DeltaParams), f"{attention.key} writes by another rule"
    k, v = qkv.k[head].double(), qkv.v[head].double()
    inputs_of = partial(_recurrence_inputs, strengths=strengths)
    state = final_state(inputs_of, k, v.expand(len(strengths), -1, -1), p)
    eigenvalues = _eigenvalues(inputs_of(k, k, p, 0)).amin((1, 2))
    sizes = torch.linalg.matrix_norm(state).nan_to_num(torch.inf, torch.inf)
    return GrowthByStrength(strengths=np.array(strengths), sizes=sizes.numpy(), eigenvalues=eigenvalues.numpy())


class GrowthByToken(CompactRepr):
    """The state after each token, for one write strength; entries beyond float64 are infinite.

    Attributes:
        state: ``S`` after the last token, ``[d, d_v]``.
        sizes: ``‖S_i‖`` after each token, ``[n]``.
        eigenvalues: ``α_i (1 - β_i ‖k_i‖²)``, ``[n]``.
    """

    state: np.ndarray
    sizes: np.ndarray
    eigenvalues: np.ndarray


def growth_by_token(qkv: QKV, attention: Attention, head: int, strength: float) -> GrowthByToken:
    """Compute the delta rule's state after each token, for a write strength; arguments as in ``growth_by_strength``."""
    p = attention.params
    assert isinstance(p, DeltaParams), f"{attention.key} writes by another rule"
    k, v = qkv.k[head].double(), qkv.v[head].double()
    inputs_of = partial(_recurrence_inputs, strengths=(strength,))
    state, sizes = empty_state(k, v[None]), []
    for key, value in zip(k.split(1), v.split(1), strict=True):
        _, state = attend_chunk(state, key, key, value[None], rule=inputs_of, p=p, with_outputs=False)
        sizes.append(torch.linalg.matrix_norm(state.sums[0]))
    results = (state.sums[0], torch.stack(sizes), _eigenvalues(inputs_of(k, k, p, 0)).flatten())
    last_state, token_sizes, eigenvalues = (x.nan_to_num(torch.inf, torch.inf, -torch.inf).numpy() for x in results)
    return GrowthByToken(state=last_state, sizes=token_sizes, eigenvalues=eigenvalues)


def _recurrence_inputs(q: Tensor, k: Tensor, p: DeltaParams, first: int, *, strengths: Sequence[float]) -> RuleInputs:
    """Return the inputs of the variant's recurrence, but with s given write strengths, ``[s, n, 1]``.

    ``first`` is the position of the first token.
    """
    gates = log_gates(k, p, first=first) if isinstance(p, GateParams) else None
    k = normalise(k, p)
    betas = torch.stack([beta_from_strength(k, p.keys, strength) for strength in strengths])
    return RuleInputs(k, k, betas, gates, betas)


def _eigenvalues(inputs: RuleInputs) -> Tensor:
    """Return ``α (1 - β ‖k‖²)`` for s strengths, ``[s, n, 1]``: the factor of the state along a token's key."""
    factor = 1 - inputs.write_strength * inputs.k.square().sum(-1, keepdim=True)
    return factor if inputs.log_gates is None else inputs.log_gates.exp() * factor
