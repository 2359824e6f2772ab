"""A decorator for backward passes, which raises an error if the caller asks for second derivatives."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch

from attention_core.errors import LabError

Gradients = TypeVar("Gradients")


def once_differentiable(backward: Callable[..., Gradients]) -> Callable[..., Gradients]:
    """Return the ``backward`` of a ``torch.autograd.Function``, which now raises an error for second derivatives.

    torch enables gradients in a backward pass only if ``create_graph`` is true. torch's own decorator of this name
    raises no error if the gradient of the output is constant. The second derivatives then lack terms.

    Raises:
        LabError: from the backward pass, if ``create_graph`` is true.
    """

    @wraps(backward)
    def checked(*arguments: Any) -> Gradients:  # noqa: ANN401 - torch's context object and the outputs' gradients
        if torch.is_grad_enabled():
            raise LabError("These gradients cannot be differentiated again. Compute them without create_graph=True.")
        return backward(*arguments)

    return checked
