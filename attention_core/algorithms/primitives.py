"""Patterns put together from named pieces, such as a window and a few global tokens."""

from collections.abc import Mapping
from functools import reduce

import torch
from torch import Tensor


def hide_future(parts: Mapping[str, Tensor], *, causal: bool) -> dict[str, Tensor]:
    """The pieces, ``bool [..., n, n]`` each; when causal without the pairs whose key is later than its query."""
    return {name: part.tril() if causal else part for name, part in parts.items()}


def union(parts: Mapping[str, Tensor]) -> Tensor:
    """The pairs that some piece allows, ``bool [..., n, n]``."""
    return reduce(torch.logical_or, parts.values())
