"""Settings and inputs of the delta rule, which erases what a key retrieves before it writes a value under that key."""

import torch
from torch import Tensor

from attention_core.ops.delta.fast_weights import RuleInputs
from attention_core.ops.softmax.masked import safe_divisor
from attention_core.settings import Params, Trainable, param


class DeltaParams(Params):
    """Settings of the delta rule."""

    keys: str = param(
        "unit",
        choices=("unit", "exact"),
        help='With "unit", queries and keys are scaled to length 1, and the strength β is the setting “strength”. '
        'With "exact", queries and keys are divided by d^(1/4), where d is the head size. The strength then depends '
        "on the scaled key k̂: β = (1 - e^(-η‖k̂‖²)) / ‖k̂‖², where η is the setting “strength”. This formula, known "
        "as EFLA, keeps the state stable for keys of any length.",
    )
    strength: float = param(
        1.0,
        low=0.05,
        high=2.0,
        step=0.05,
        help="How strongly each token changes the state, the matrix that stores the values. With unit keys, a strength "
        "of 1 replaces the value stored under the key by the new value. A strength of 2 moves the stored value twice "
        "as far, to 2 × new value − old value.",
    )


TRAINED_STRENGTH = Trainable(name="strength", title="write strengths", per="token")


def delta_inputs(q: Tensor, k: Tensor, p: DeltaParams, first: int, log_alpha: Tensor | None = None) -> RuleInputs:
    """Return the inputs of the delta rule, whose write and erase strengths are both β.

    Args:
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        p: the settings.
        first: the number of earlier tokens.
        log_alpha: the logarithms of the gates, from ``gates.log_gates``; None for a rule without gates.
    """
    q, k = normalise(q, p), normalise(k, p)
    beta = write_strengths(k, p, first=first)
    return RuleInputs(q, k, beta, log_alpha, beta)


def normalise(x: Tensor, p: DeltaParams) -> Tensor:
    """Return queries or keys as the rule uses them: of length one, or divided by ``d^¼``."""
    if p.keys == "unit":
        return unit_vectors(x)
    return x * x.shape[-1] ** -0.25


def unit_vectors(x: Tensor) -> Tensor:
    """Return vectors of length one, ``[..., n, d]``; zero vectors stay zero.

    The squared lengths must be normal numbers: in float32, lengths from 1e-19 to 1e19.
    """
    # ``norm`` is not used, because its gradient takes twice as long as that of the sum of squares. ``rsqrt`` is not
    # used, because its gradient computes the third power of its result. In float32, this power is infinite or zero for
    # lengths below 1e-13 or above 1e15.
    return x * safe_divisor(x.square().sum(-1, keepdim=True)).sqrt().reciprocal()


def write_strengths(k: Tensor, p: DeltaParams, *, first: int = 0) -> Tensor:
    """Return β, ``[..., n, 1]``, for normalised keys that follow ``first`` earlier tokens.

    It is computed from the setting ``strength``, or from a learned share of that setting.
    """
    return beta_from_strength(k, p.keys, update_strengths(p.strength, k, p, first=first))


def beta_from_strength(k: Tensor, scaling: str, strength: Tensor | float) -> Tensor:
    """Return β for normalised keys, ``[..., n, 1]``: η for unit keys, ``(1 - e^{-η ‖k‖²}) / ‖k‖²`` for exact keys.

    ``scaling`` is ``"unit"`` or ``"exact"``. η is ``strength``, a number or one number for each token, ``[..., n, 1]``.
    """
    squared_norm = k.square().sum(-1, keepdim=True)
    strength = torch.as_tensor(strength, dtype=k.dtype, device=k.device).expand_as(squared_norm)
    if scaling == "unit":
        return strength
    return torch.where(squared_norm == 0, strength, -torch.expm1(-strength * squared_norm) / safe_divisor(squared_norm))


def update_strengths(largest: float, k: Tensor, p: Params, *, first: int) -> Tensor:
    """Return each token's strength, ``[n, 1]`` or ``[..., n, 1]``: ``largest``, or a learned share of it.

    The share is σ(x), where a linear map of the trained model computes x from the token. ``first`` is the number of
    earlier tokens.
    """
    learned = p.learned_rows("strength", first, k.shape[-2])
    return k.new_full((k.shape[-2], 1), largest) if learned is None else largest * learned.to(k.dtype).sigmoid()
