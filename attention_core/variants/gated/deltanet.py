"""DeltaNet: linear attention that erases what a key stands for before it writes anew.

Plain linear attention adds up; a key met again then stands for the sum of all its values. The delta rule writes the
difference between the value and what the key reads so far, so that the last value counts. A state's step is
``I - β k kᵀ``, whose one eigenvalue other than 1 is ``1 - β ‖k‖²``: it neither grows nor turns over while that lies in
[0, 1], which unit keys and the exact step hold.
"""

from torch import Tensor

from attention_core.algorithms import delta_rule
from attention_core.algorithms.delta_rule import DeltaParams, empty_state, prepared
from attention_core.algorithms.masked import widened
from attention_core.variant import Decoder, Paper, Variant


def weights(q: Tensor, k: Tensor, p: DeltaParams, *, causal: bool) -> Tensor:
    """``(Q Kᵀ ⊙ M)(I + diag(β) (K Kᵀ ⊙ M⁻))⁻¹ diag(β)``, ``[..., n, n]``; without ``M`` where nothing is causal."""
    return delta_rule.matrix(*prepared(q, k, p), decay=1.0, causal=causal)


def attend(q: Tensor, k: Tensor, v: Tensor, p: DeltaParams, *, causal: bool) -> Tensor:
    """The same by chunks of tokens with a state between them: O(n d²) time, O(n d) memory."""
    return delta_rule.attention(*prepared(q, k, p), widened(v), decay=1.0, causal=causal).to(v.dtype)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: DeltaParams, *, causal: bool) -> dict[str, Tensor]:
    """What is written in each value's place, and how it is read: ``weights = read @ inverse @ diag(strength)``.

    ``queries`` and ``keys`` as they are taken, ``[..., n, d]``; ``strength`` β, ``[..., n, 1]``; ``overlaps``, β times
    what each key reads of those before, ``inverse`` of one plus these, and ``read``, ``[..., n, n]``; ``written``,
    ``[..., n, d_v]``.
    """
    return delta_rule.anatomy(*prepared(q, k, p), widened(v), decay=1.0, causal=causal)


def step(state: Tensor, q: Tensor, k: Tensor, v: Tensor, p: DeltaParams) -> tuple[Tensor, Tensor]:
    """One token, ``[..., d]`` and ``[..., d_v]``, to its output and the next state."""
    q, k, beta = prepared(q, k, p)
    out, state = delta_rule.step(state, q, k, beta, widened(v), decay=1.0)
    return out.to(v.dtype), state


VARIANT = Variant(
    key="deltanet",
    title="DeltaNet",
    family="gated",
    summary="Linear attention that corrects itself: a token writes only what its key does not read already.",
    formula=r"A = (Q K^\top \odot M)\left(I + \operatorname{diag}(\beta)\,(K K^\top \odot M^-)\right)^{-1}"
    r"\operatorname{diag}(\beta)",
    complexity="n d²",
    params=DeltaParams,
    weights=weights,
    attend=attend,
    cost=delta_rule.cost,
    rows_sum_to_one=False,
    signed=True,
    decoder=Decoder(empty_state, step, normalised=False),
    anatomy=anatomy,
    source=Paper(
        "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
        2024,
        "https://arxiv.org/abs/2406.06484",
    ),
    further=(
        Paper("Linear Transformers Are Secretly Fast Weight Programmers", 2021, "https://arxiv.org/abs/2102.11174"),
    ),
    note="Models learn how strongly each token writes, and convolve queries and keys with their neighbours first; here "
    "the strength is a constant. Without a causal mask all is written in order, then each query reads the end's state.",
)
