"""Clocks that measure the duration and peak memory of calls on the CPU and on CUDA devices."""

import time
from collections.abc import Callable
from typing import Any

import torch

from attention_core.benchmarking.counting import Counts, count
from attention_core.runtime.devices import check_device

Call = Callable[[], Any]
FLUSH_BYTES = 2**28
"""Bytes written to flush a cache: several times the size of the largest cache."""


class CpuClock:
    """A clock for the CPU; memory is counted tensor by tensor because the allocator keeps no statistics."""

    def seconds(self, call: Call, repeats: int) -> float:
        """Return the mean duration of a call in seconds, from ``repeats`` calls in a row."""
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - start) / repeats

    def each_seconds(self, call: Call, repeats: int, *, flush: bool) -> list[float]:
        """Return the seconds of each of ``repeats`` calls; ``flush`` empties the last-level cache before each."""
        cache = torch.empty(FLUSH_BYTES, dtype=torch.uint8) if flush else None
        result = []
        for _ in range(repeats):
            if cache is not None:
                cache.zero_()
            result.append(self.seconds(call, 1))
        return result

    def peak_bytes(self, call: Call) -> int:
        """Return the peak memory of a call in bytes, beyond what was allocated before, its result included.

        Memory that a kernel uses internally is not counted.
        """
        return count(call, unit=torch.uint8).peak_elements

    def costs(self, call: Call) -> tuple[Counts, int]:
        """Return the counted operations of a call, and its peak memory in bytes as ``peak_bytes`` does."""
        counts = count(call, unit=torch.uint8)
        return counts, counts.peak_elements


class CudaClock:
    """A clock for CUDA devices. It uses CUDA events, because calls return before the device has finished.

    Memory is the peak of torch's caching allocator.
    """

    def seconds(self, call: Call, repeats: int) -> float:
        """See ``CpuClock``."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        for _ in range(repeats):
            call()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3 / repeats

    def each_seconds(self, call: Call, repeats: int, *, flush: bool) -> list[float]:
        """See ``CpuClock``; synchronises with the device once, after the last call."""
        cache = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda") if flush else None
        pairs = [tuple(torch.cuda.Event(enable_timing=True) for _ in range(2)) for _ in range(repeats)]
        for start, end in pairs:
            if cache is not None:
                cache.zero_()
            start.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in pairs]

    def costs(self, call: Call) -> tuple[Counts, int]:
        """See ``CpuClock``; counts first, so that libraries have allocated their workspace before the peak is read."""
        counts = count(call, unit=torch.uint8)
        return counts, self.peak_bytes(call)

    def peak_bytes(self, call: Call) -> int:
        """See ``CpuClock``; call it after a warm-up call, so that libraries have allocated their workspace."""
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before


Clock = CpuClock | CudaClock
"""A clock for one kind of device."""


def clock_for(device: str) -> Clock:
    """Return the clock for a device.

    Raises:
        InputError: if torch does not see the device.
    """
    return CudaClock() if check_device(device) == "cuda" else CpuClock()
