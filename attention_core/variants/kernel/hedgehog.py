"""Hedgehog: two softmaxes over a token's entries, of themselves and of their negatives, are its features.

Peaks in queries and keys stay peaks in the features, which ``elu + 1`` and its kin flatten; entries far below zero
count like those far above. It replaces softmax rather than approximating it: that takes training.
"""

from dataclasses import dataclass

from torch import Tensor

from attention_core.ops.linear.causal_scan import State, empty_state
from attention_core.ops.linear.features import LogFeatures, both_softmaxes, paired
from attention_core.ops.linear.kernel import kernel_attention, kernel_cost, kernel_step, similarities
from attention_core.ops.softmax.masked import rows_over_sum, widened
from attention_core.variant import Cost, Decoder, Paper, Params, Variant


@dataclass(frozen=True, kw_only=True)
class HedgehogParams(Params):
    """Hedgehog has no settings."""


def phi(x: Tensor) -> LogFeatures:
    """``[S(x), S(-x)]``, ``[..., n, 2d]``."""
    return LogFeatures(both_softmaxes(widened(x)))


def weights(q: Tensor, k: Tensor, p: HedgehogParams, *, causal: bool) -> Tensor:
    """``φ(q) φ(k)ᵀ``, each row divided by its sum, ``[..., n, n]``."""
    return rows_over_sum(similarities(paired(phi, q, k, causal=causal), causal=causal))


def attend(q: Tensor, k: Tensor, v: Tensor, p: HedgehogParams, *, causal: bool) -> Tensor:
    """``φ(q) (φ(k)ᵀ v)``, divided by the same with ones for ``v``."""
    return kernel_attention(phi, q, k, v, causal=causal)


def init_state(q: Tensor, v: Tensor, p: HedgehogParams) -> State:
    """The state before any token, for one token's query ``[..., d]`` and value ``[..., d_v]``."""
    return empty_state(2 * q.shape[-1], widened(v), normalise=True, referenced=False)


def step(state: State, q: Tensor, k: Tensor, v: Tensor, p: HedgehogParams) -> tuple[Tensor, State]:
    """One token, ``[..., d]`` and ``[..., d_v]``, to its output and the next state."""
    return kernel_step(state, paired(phi, q.unsqueeze(-2), k.unsqueeze(-2), causal=True), v)


def cost(n: int, d: int, p: HedgehogParams, *, causal: bool) -> Cost:
    """Keys times values once, queries times that sum; the causal form adds what happens inside a chunk."""
    return Cost(*kernel_cost(n, 2 * d, d, causal=causal))


VARIANT = Variant(
    key="hedgehog",
    title="Hedgehog",
    family="kernel",
    summary="A softmax over each token's own entries, and one over their negatives, make features that keep its peaks.",
    formula=r"A_{ij} = \frac{\varphi(q_i)^\top \varphi(k_j)}{\sum_l \varphi(q_i)^\top \varphi(k_l)},\quad "
    r"\varphi(x) = [\operatorname{softmax}(x), \operatorname{softmax}(-x)]",
    complexity="n d²",
    params=HedgehogParams,
    weights=weights,
    attend=attend,
    cost=cost,
    zero_rows=True,
    decoder=Decoder(init_state, step),
    note="Models train a linear map of each head's queries and keys before the softmaxes, so that the weights copy "
    "softmax's; here there is none. A row is zero where all products of features are below the smallest number that "
    "float32 holds.",
    source=Paper(
        "The Hedgehog & the Porcupine: Expressive Linear Attentions with Softmax Mimicry",
        2024,
        "https://arxiv.org/abs/2402.04347",
    ),
)
