"""Seeded random tensors for tests."""

import torch
from torch import Tensor


def normal(*shape: int, seed: int = 0, size: float = 1.0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return normal numbers with a standard deviation, drawn in float64."""
    return size * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)
