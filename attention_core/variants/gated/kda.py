"""Kimi delta attention: the delta rule on a state whose channels fade each by a gate of its own."""

from dataclasses import dataclass

from torch import Tensor

from attention_core.articles import EXACT_FLOW, L2_NORMALISATION
from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.delta_rule import DeltaParams, corrected
from attention_core.ops.delta.fast_weights import Tokens
from attention_core.ops.linear.gates import GateParams, each, gate, log_gates
from attention_core.variant import Paper, SpecialCase


@dataclass(frozen=True, kw_only=True)
class KdaParams(GateParams, DeltaParams):
    """Settings of Kimi delta attention."""

    gate: str = gate("keys")


def tokens(q: Tensor, k: Tensor, p: KdaParams, first: int) -> Tokens:
    """As in DeltaNet, with gated linear attention's gates before each token."""
    return corrected(q, k, p, log_gates(k, p, first=first, channels=True))


VARIANT = fast_weights.variant(
    tokens,
    erases=True,
    gates=each,
    key="kda",
    title="Kimi delta",
    summary="The delta rule, with queries and keys of length one by default, and a gate for each channel: a key met "
    "again is overwritten, the rest fades channel by channel.",
    formula=r"A = (\hat Q \hat K^\top)_\Gamma \left(I + \operatorname{diag}(\beta)\,(\hat K \hat "
    r"K^\top)_{\Gamma^-}\right)^{-1}\operatorname{diag}(\beta),\quad (X Y^\top)_{\Gamma, ij} = [j \le i] \sum_c "
    r"x_{ic}\, y_{jc} \prod_{l=j+1}^{i} \alpha_{lc},\; (X Y^\top)_{\Gamma^-, ij} = [j < i]\, (X Y^\top)_{\Gamma, "
    r"ij},\quad \hat q_i = \frac{q_i}{\lVert q_i \rVert},\; \hat k_j = \frac{k_j}{\lVert k_j \rVert}",
    params=KdaParams,
    source=Paper(
        "Kimi Linear: An Expressive, Efficient Attention Architecture", 2025, "https://arxiv.org/abs/2510.26692"
    ),
    further=(L2_NORMALISATION, EXACT_FLOW),
    note="Kimi Linear learns gates and strengths and convolves queries and keys with their neighbours first; here the "
    "strength β is a constant and the gate α follows the rule that is set, untrained: by default α = σ(k)^(1/root). "
    'With keys "exact", q̂ and k̂ are q and k over d^(1/4) and β is (1 - e^(-η‖k̂‖²)) / ‖k̂‖², η being the '
    "strength. Without a causal mask all is written in order, then each query reads the end's state.",
    special_cases=(
        SpecialCase("gated_deltanet", {"gate": "constant"}, {"gate": "constant"}, ("decay", "keys", "strength")),
        SpecialCase("deltanet", {"gate": "constant", "decay": 1.0}, shared=("keys", "strength")),
    ),
)
