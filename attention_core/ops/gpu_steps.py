"""The size of the steps into which algorithms split their work: it fits the caches of a CPU, and is larger on a GPU."""

import math

import torch

GPU_NUMBERS = 2**24
"""Size of a step on a GPU, 64 MiB of float32 numbers: enough to use all its cores, and small next to its memory."""


def is_gpu(device: torch.device) -> bool:
    """Return whether to use the large steps of a GPU: true for every device except ``cpu`` and ``meta``.

    Costs are counted with meta tensors, so they count the steps of a CPU.
    """
    return device.type not in ("cpu", "meta")


def step_size(size: int, device: torch.device, *, numbers: int, per_pair: int = 0) -> int:
    """Return the size of a step: ``size`` on a CPU; on a GPU the largest that needs at most ``GPU_NUMBERS`` numbers.

    A step on a GPU is never smaller than on a CPU.

    Args:
        size: tokens, blocks or heads per step on a CPU.
        device: the device of the tensors.
        numbers: numbers in memory for each token, block or head of a step.
        per_pair: numbers in memory for each pair of tokens of a step.
    """
    if not is_gpu(device):
        return size
    largest = GPU_NUMBERS // max(1, numbers)
    if per_pair:
        largest = min(largest, math.isqrt(GPU_NUMBERS // per_pair))
    return max(size, largest)
