"""DeltaNet: each token writes the difference between its value and what its key already retrieves.

In plain linear attention, a repeated key retrieves the sum of all its values. The delta rule writes the difference
between the new value and the value that the key retrieves, so a repeated key retrieves its last value. Each token
multiplies the state by ``I - β k kᵀ``, whose only eigenvalue other than 1 is ``1 - β ‖k‖²``. If this eigenvalue lies in
[0, 1], old parts of the state neither grow nor change sign. Unit keys guarantee this for β ≤ 1. The exact step, which
replaces β by ``(1 - exp(-β ‖k‖²)) / ‖k‖²``, guarantees it for every key.
"""

import torch
from torch import Tensor

from attention_core.articles import EXACT_FLOW, L2_NORMALISATION
from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.delta_rule import TRAINED_STRENGTH, DeltaParams, delta_inputs, normalise, write_strengths
from attention_core.ops.delta.fast_weights import each_token
from attention_core.variant import Paper


def definition(q: Tensor, k: Tensor, v: Tensor, p: DeltaParams, *, causal: bool) -> Tensor:
    """Update and read a state S token by token: ``S ← (I - β k kᵀ) S + β k vᵀ``, ``o = qᵀ S``."""
    q, k = normalise(q, p), normalise(k, p)
    beta = write_strengths(k, p)  # [..., n, 1]
    S, outputs = torch.zeros_like(k.mT @ v), []  # the state, [..., d, d_v]
    for q_t, k_t, v_t, beta_t in each_token(q, k, v, beta):
        S = S - beta_t * k_t.mT @ (k_t @ S)  # erase β times the value read with the key
        S = S + beta_t * k_t.mT @ v_t  # write the value
        outputs.append(q_t @ S)  # read
    return torch.cat(outputs, -2) if causal else q @ S


VARIANT = fast_weights.variant(
    __name__,
    delta_inputs,
    erases=True,
    gate_kind=lambda p: "none",
    title="DeltaNet",
    summary="A matrix, the state, stores values under keys. Each token moves the value stored under its key towards "
    "its own value, and each query reads the matrix.",
    formula=r"A = (\hat Q \hat K^\top \odot M)\left(I + \operatorname{diag}(\beta)\,(\hat K \hat K^\top \odot "
    r"M^-)\right)^{-1}\operatorname{diag}(\beta),\quad M_{ij} = [j \le i],\; M^-_{ij} = [j < i],\quad \hat q_i = "
    r"\frac{q_i}{\lVert q_i \rVert},\; \hat k_j = \frac{k_j}{\lVert k_j \rVert}",
    params=DeltaParams,
    trainable=(TRAINED_STRENGTH,),
    source=Paper(
        "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
        2024,
        "https://arxiv.org/abs/2406.06484",
    ),
    further=(
        Paper("Linear Transformers Are Secretly Fast Weight Programmers", 2021, "https://arxiv.org/abs/2102.11174"),
        L2_NORMALISATION,
        EXACT_FLOW,
    ),
    note="The state is a matrix that stores values under keys. The strength β sets how far a token moves the value "
    "stored under its key towards the token's own value. In published models, β is learned, and queries and keys "
    "first pass through a short convolution. The Learn page can train β and the convolution. On other pages, β "
    "follows the settings, and there is no convolution. Without a causal mask, all tokens first change the state "
    "in order. Then every query reads the final state.",
)
