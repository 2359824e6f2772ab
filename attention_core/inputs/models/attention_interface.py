"""Helpers for the attention interface of transformers, through which a model's attention function can be replaced.

The context variable ``attention_override`` holds the replacement. This module does not import transformers. Source of
the interface: the documentation of transformers, "Attention Interface".
"""

import math
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn

from attention_core.errors import ModelError

RECORDER = "attention_lab_record"
"""Name under which ``recorder`` registers the attention function of the models loaded here."""
# Arguments with which a layer changes its logits beyond scale * q kᵀ, so that q and k do not determine its attention.
LOGIT_CHANGES = ("softcap", "s_aux", "position_bias")
AttentionOverride = Callable[
    [nn.Module, Tensor, Tensor, Tensor, Tensor | None, float | None, dict[str, Any]], Tensor | None
]
"""A function with the arguments of an attention function of transformers.

It returns the output ``[B, H, n, d_v]``, or None to leave the layer's attention unchanged.
"""
attention_override: ContextVar[AttentionOverride | None] = ContextVar("attention_lab_instead", default=None)
"""The function that replaces the attention of all layers in the current context."""


def check_logits(kwargs: dict[str, Any]) -> None:
    """Check that the logits of a layer are ``scale * q kᵀ``, given the arguments of its attention function.

    Raises:
        ModelError: if an argument changes the logits further, for example by a softcap.
    """
    for name in LOGIT_CHANGES:
        if kwargs.get(name) is not None:
            raise ModelError(
                "This model's attention is not plain softmax(q kᵀ) (it uses {name}). Choose another model.", name=name
            )


def scale_of(query: Tensor, scaling: float | None) -> float:
    """Return the factor of ``q kᵀ`` in the logits of a layer: ``scaling``, or ``1/√d`` for None."""
    return query.shape[-1] ** -0.5 if scaling is None else float(scaling)


def usual_scale(query: Tensor, scale: float) -> Tensor:
    """Return queries ``[..., n, d]`` rescaled so that the factor 1/√d gives the same logits as ``scale`` did before."""
    d = query.shape[-1]
    return query if math.isclose(scale, d**-0.5, rel_tol=1e-6) else query * (scale * math.sqrt(d))


def hides_future(module: nn.Module, kwargs: dict[str, Any]) -> bool:
    """Return whether a layer is causal, given the arguments of its attention function."""
    causal = kwargs.get("is_causal")
    return bool(getattr(module, "is_causal", True) if causal is None else causal)
