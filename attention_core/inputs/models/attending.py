"""What a layer is asked to do by transformers' attention interface, and who does it instead, without transformers.

Source of the interface: the documentation of transformers, "Attention Interface".
"""

import math
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn

from attention_core.errors import ModelError

RECORDER = "attention_lab_record"
"""The name under which ``recorder`` registers the function through which the lab's models attend."""
# Arguments by which a layer changes its logits beyond scale * q kᵀ, so that q and k alone do not tell its attention.
LOGIT_CHANGES = ("softcap", "s_aux", "position_bias")
Instead = Callable[[nn.Module, Tensor, Tensor, Tensor, Tensor | None, float | None, dict[str, Any]], Tensor | None]
"""Given what the interface gives, the output ``[B, H, n, d_v]``, or None where the layer attends as it always does."""
instead: ContextVar[Instead | None] = ContextVar("attention_lab_instead", default=None)
"""What attends in the layers' place in this context."""


def check_logits(kwargs: dict[str, Any]) -> None:
    """Refuse a layer whose logits are not ``scale * q kᵀ``.

    Raises:
        ModelError: if it changes them.
    """
    for name in LOGIT_CHANGES:
        if kwargs.get(name) is not None:
            raise ModelError(
                "This model changes its attention beyond softmax(q kᵀ) (by {name}), which cannot be shown here; "
                "choose another model.",
                name=name,
            )


def scale_of(query: Tensor, scaling: float | None) -> float:
    """A layer's own logit scale."""
    return query.shape[-1] ** -0.5 if scaling is None else float(scaling)


def usual_scale(query: Tensor, scale: float) -> Tensor:
    """Queries ``[..., n, d]`` whose logits, scaled by 1/√d, are those that the layer's own scale gives."""
    d = query.shape[-1]
    return query if math.isclose(scale, d**-0.5, rel_tol=1e-6) else query * (scale * math.sqrt(d))


def hides_future(module: nn.Module, kwargs: dict[str, Any]) -> bool:
    """Whether a layer is causal."""
    causal = kwargs.get("is_causal")
    return bool(getattr(module, "is_causal", True) if causal is None else causal)
