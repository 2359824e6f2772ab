"""Half-precision inputs are computed in float32: sums over many tokens and inverses need the digits."""

import torch
from torch import Tensor


def widened(x: Tensor) -> Tensor:
    """The tensor itself in float32 or float64; a float32 copy of a float16 or bfloat16 one."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
