"""DeltaNet: linear attention that erases what a key stands for before it writes anew.

Plain linear attention adds up; a key met again then stands for the sum of all its values. The delta rule writes the
difference between the value and what the key reads so far, so that the last value counts. A state's step is
``I - β k kᵀ``, whose one eigenvalue other than 1 is ``1 - β ‖k‖²``: it neither grows nor turns over while that lies in
[0, 1], which unit keys and the exact step hold.
"""

from torch import Tensor

from attention_core.articles import EXACT_FLOW, L2_NORMALISATION
from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.delta_rule import DeltaParams, corrected
from attention_core.ops.delta.fast_weights import Tokens
from attention_core.variant import Paper


def tokens(q: Tensor, k: Tensor, p: DeltaParams, first: int) -> Tokens:
    """Written and erased with the same strength β; nothing fades."""
    return corrected(q, k, p)


VARIANT = fast_weights.variant(
    tokens,
    erases=True,
    gates=lambda p: "none",
    key="deltanet",
    title="DeltaNet",
    summary="Linear attention with queries and keys of length one by default. Each token writes only the part of its "
    "value that its key does not read already.",
    formula=r"A = (\hat Q \hat K^\top \odot M)\left(I + \operatorname{diag}(\beta)\,(\hat K \hat K^\top \odot "
    r"M^-)\right)^{-1}\operatorname{diag}(\beta),\quad M_{ij} = [j \le i],\; M^-_{ij} = [j < i],\quad \hat q_i = "
    r"\frac{q_i}{\lVert q_i \rVert},\; \hat k_j = \frac{k_j}{\lVert k_j \rVert}",
    params=DeltaParams,
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
    note="Models learn how strongly each token writes, and convolve queries and keys with their neighbours first; "
    'here the strength β is a constant. With keys "exact", q̂ and k̂ are q and k over d^(1/4) and β is (1 - '
    "e^(-η‖k̂‖²)) / ‖k̂‖², η being the strength. Without a causal mask all is written in order, then each query reads "
    "the end's state.",
)
