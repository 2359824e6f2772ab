"""Gates: at each token, the share of a recurrent state that is kept, given as a logarithm.

The setting ``gate`` selects the rule that computes the gates. A trained model uses learned gates instead.
"""

import math
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.softmax.masked import at_least_float32
from attention_core.settings import Params, Trainable, param


def gate_setting(default: str) -> Any:  # noqa: ANN401 - a dataclass field, like that of param
    """Return the declaration of the setting that selects how a gate is computed."""
    return param(
        default,
        choices=("constant", "harmonic", "keys"),
        help='Rule for the gates (the decay factors of the tokens) if they are not trained. With "constant", every '
        'gate is the setting “decay”. With "harmonic", token t has the gate 1 - 1/t. With "keys", the gate is '
        "σ(k)^(1/root), where k is the token's own key and σ is the sigmoid. If keys are rotated by position (RoPE), "
        "gates from keys also depend on the position.",
    )


class GateParams(Params):
    """Settings of a gate."""

    gate: str = gate_setting("constant")
    decay: float = param(
        0.9,
        low=0.1,
        high=1.0,
        step=0.005,
        help="Value of the constant gate: at each token, what earlier tokens contributed is multiplied by this "
        "factor. 1 means no decay.",
    )
    root: float = param(
        16.0,
        low=2.0,
        high=64.0,
        step=1.0,
        scale="log",
        help='The number “root” in the gate σ(k)^(1/root) of a token with key k. Used only with the gate "keys". A '
        "larger root gives a slower decay.",
    )


def _is_trainable(p: GateParams) -> bool:
    """Return whether the gate's settings are at their defaults; a gate that a user sets is not trained."""
    return {"gate", "decay"}.isdisjoint(p.changed())


TRAINED_GATE = Trainable(name="gate", title="gates", per="token", when=_is_trainable)
TRAINED_GATES = Trainable(name="gate", title="gates", per="channel", when=_is_trainable)


def log_gates(k: Tensor, p: GateParams, *, first: int = 0, per_channel: bool = False) -> Tensor:
    """Return log α, the logarithm of the share of the state kept before each token is written, at most 0.

    A learned gate is σ(x)^(1/root), where x is a linear map of the token and ``root`` a setting.

    Args:
        k: keys, ``[..., n, d]``.
        p: the settings.
        first: the number of earlier tokens.
        per_channel: whether a gate from keys has one number per channel, not the geometric mean over channels.

    Returns:
        ``[n, 1]`` if the gate does not depend on keys, otherwise ``[..., n, 1]`` or, per channel, ``[..., n, d]``.
    """
    k = at_least_float32(k)
    if (learned := p.learned_rows("gate", first, k.shape[-2])) is not None:
        return F.logsigmoid(learned.to(k.dtype)) / p.root
    if p.gate == "keys":
        log_alpha = F.logsigmoid(k) / p.root
        return log_alpha if per_channel else log_alpha.mean(-1, keepdim=True)
    steps = torch.arange(first + 1, first + k.shape[-2] + 1, dtype=k.dtype, device=k.device).unsqueeze(-1)
    if p.gate == "constant":
        return torch.full_like(steps, math.log(p.decay))
    # The first gate, 1 - 1/1 = 0, has no finite logarithm. Any value will do, since the state before it is zero.
    return torch.log1p(-1 / steps.clamp(min=2)).masked_fill(steps == 1, 0.0)


def channel_gate_kind(p: GateParams) -> Literal["token", "channel"]:
    """Return "channel" if each channel has its own gate from the keys, otherwise "token"."""
    return "channel" if p.gate == "keys" else "token"


def one_minus_gates(log_alpha: Tensor, p: GateParams, *, first: int = 0) -> Tensor:
    """Return ``1 - α``, the write strength that keeps the state a weighted mean.

    It is 1 for the first token if the setting ``gate`` is ``"harmonic"``, whose first gate is 0.

    Args:
        log_alpha: log α from ``log_gates``.
        p: the settings.
        first: the number of earlier tokens.
    """
    strengths = -torch.expm1(log_alpha)
    if p.gate != "harmonic" or p.learned or first:
        return strengths
    return torch.cat([torch.ones_like(strengths[..., :1, :]), strengths[..., 1:, :]], -2)
