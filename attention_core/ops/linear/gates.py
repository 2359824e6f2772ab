"""Gates: what is left of a state at each token, as logarithms. Models learn them; here each follows a stated rule."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_core.ops.softmax.masked import widened
from attention_core.settings import Params, param


def gate(default: str) -> Any:  # noqa: ANN401 - a dataclass field, as of param
    """The setting that says where a gate comes from."""
    return param(
        default,
        choices=("constant", "harmonic", "keys"),
        help="Where the gate comes from, untrained: the decay that is set, 1 - 1/t at the t-th token, or "
        "σ(k)^(1/root) of the token's own key. Where the input has rotary positions (RoPE), the key and so its gate "
        "also depend on the token's position.",
    )


@dataclass(frozen=True, kw_only=True)
class GateParams(Params):
    """Settings of a gate."""

    gate: str = gate("constant")
    decay: float = param(
        0.9,
        low=0.1,
        high=1.0,
        step=0.005,
        help="What a constant gate leaves at each step, before a token is written; 1 forgets nothing.",
    )
    root: float = param(
        16.0,
        low=2.0,
        high=64.0,
        step=1.0,
        scale="log",
        help="The root taken of a gate made of keys: the higher, the more slowly it forgets.",
    )


def log_gates(k: Tensor, p: GateParams, *, first: int = 0, channels: bool = False) -> Tensor:
    """The logarithm of what is left before each token is written, at most 0.

    Args:
        k: keys, ``[..., n, d]``.
        p: the settings.
        first: tokens before these.
        channels: whether a gate made of keys has one number per channel, else their mean over the channels.

    Returns:
        ``[n, 1]`` where all keys have the same, ``[..., n, 1]`` or ``[..., n, d]`` where they make it.
    """
    k = widened(k)
    if p.gate == "keys":
        made = F.logsigmoid(k) / p.root
        return made if channels else made.mean(-1, keepdim=True)
    steps = torch.arange(first + 1, first + k.shape[-2] + 1, dtype=k.dtype, device=k.device).unsqueeze(-1)
    if p.gate == "constant":
        return torch.full_like(steps, math.log(p.decay))
    return torch.log1p(-1 / steps.clamp(min=2)).masked_fill(steps == 1, 0.0)  # before the first token all is zero


def one(p: GateParams) -> Literal["one"]:
    """One gate for all channels, whatever it is made of."""
    return "one"


def each(p: GateParams) -> Literal["one", "each"]:
    """One gate for each channel where keys make it; else all of them are alike."""
    return "each" if p.gate == "keys" else "one"


def written(gates: Tensor, p: GateParams, *, first: int = 0) -> Tensor:
    """``1 - α``, what the gate has let go, which keeps a state the mean of what came; all of the first token there is.

    Args:
        gates: as ``log_gates`` gives them.
        p: the settings.
        first: tokens before these.
    """
    rest = -torch.expm1(gates)
    if p.gate != "harmonic" or first:
        return rest
    return torch.cat([torch.ones_like(rest[..., :1, :]), rest[..., 1:, :]], -2)
