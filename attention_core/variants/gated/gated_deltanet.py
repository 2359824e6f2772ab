"""Gated DeltaNet: the delta rule on a state that fades, so that what is never met again makes room as well."""

from dataclasses import dataclass

from torch import Tensor

from attention_core.articles import EXACT_FLOW, L2_NORMALISATION
from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.delta_rule import DeltaParams, corrected
from attention_core.ops.delta.fast_weights import Tokens
from attention_core.ops.linear.gates import GateParams, log_gates, one
from attention_core.variant import Paper, SpecialCase


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNetParams(GateParams, DeltaParams):
    """Settings of the delta rule with a gate."""


def tokens(q: Tensor, k: Tensor, p: GatedDeltaNetParams, first: int) -> Tokens:
    """As in DeltaNet, on a state of which the gate has left its share."""
    return corrected(q, k, p, log_gates(k, p, first=first))


VARIANT = fast_weights.variant(
    tokens,
    erases=True,
    gates=one,
    key="gated_deltanet",
    title="Gated DeltaNet",
    summary="DeltaNet, with queries and keys of length one by default, on a state that fades: a key met again is "
    "overwritten, and what is never met again makes room.",
    formula=r"A = (\hat Q \hat K^\top \odot \Gamma)\left(I + \operatorname{diag}(\beta)\,(\hat K \hat K^\top \odot "
    r"\Gamma^-)\right)^{-1} \operatorname{diag}(\beta),\quad \Gamma_{ij} = [j \le i] \prod_{l=j+1}^{i} \alpha_l,\; "
    r"\Gamma^-_{ij} = [j < i]\, \Gamma_{ij},\quad \hat q_i = \frac{q_i}{\lVert q_i \rVert},\; \hat k_j = "
    r"\frac{k_j}{\lVert k_j \rVert}",
    params=GatedDeltaNetParams,
    source=Paper("Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024, "https://arxiv.org/abs/2412.06464"),
    further=(L2_NORMALISATION, EXACT_FLOW),
    note="Models such as Qwen3-Next learn a gate and a strength for each token; here the strength β is a constant and "
    'the gate α follows the rule that is set, untrained. With keys "exact", q̂ and k̂ are q and k over d^(1/4) and '
    "β is (1 - e^(-η‖k̂‖²)) / ‖k̂‖², η being the strength. Without a causal mask all is written in order, then each "
    "query reads the end's state.",
    special_cases=(SpecialCase("deltanet", {"gate": "constant", "decay": 1.0}, shared=("keys", "strength")),),
)
