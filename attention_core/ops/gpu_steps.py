"""The size of the steps into which algorithms split their work: a step fits a CPU's caches; GPU steps are larger."""

import math

import torch

GPU_NUMBERS = 2**24
"""Size of a step on a GPU: 64 MiB of float32, enough to use all its cores, and small next to its memory."""


def is_gpu(device: torch.device) -> bool:
    """Return whether the device computes large operations much faster than many small ones."""
    return device.type not in ("cpu", "meta")


def step_size(size: int, device: torch.device, *, numbers: int, per_pair: int = 0) -> int:
    """Return the size of a step: ``size`` on a CPU; on a GPU at least that, with up to ``GPU_NUMBERS`` numbers.

    Args:
        size: tokens, blocks or heads per step on a CPU.
        device: the device of the tensors.
        numbers: numbers in memory for each token, block or head of a step.
        per_pair: numbers in memory for each pair of tokens of a step.
    """
    if not is_gpu(device):
        return size
    per_token = max(1, numbers, per_pair and math.isqrt(GPU_NUMBERS * per_pair))
    return max(size, GPU_NUMBERS // per_token)
