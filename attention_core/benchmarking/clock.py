"""How long a call takes and how much it holds, on the device that runs it."""

import time
from collections.abc import Callable
from typing import Any, Protocol

import torch

from attention_core.benchmarking.counting import Counts, count
from attention_core.benchmarking.device import check_device

Call = Callable[[], Any]
FLUSHED = 2**28
"""Bytes written to empty a cache: several times the largest there is."""


class Clock(Protocol):
    """Times calls on one kind of device."""

    def seconds(self, call: Call, repeats: int) -> float:
        """Mean seconds of a call that is run so often in a row."""
        ...

    def each(self, call: Call, repeats: int, *, flush: bool) -> list[float]:
        """Seconds of each of so many calls by itself, with the last cache emptied before each where asked."""
        ...

    def peak(self, call: Call) -> int:
        """The most bytes alive at once beyond those before a call, its result included."""
        ...

    def costs(self, call: Call) -> tuple[Counts, int]:
        """What a call counts, and the most bytes alive at once beyond those before it, its result included."""
        ...


class CpuClock:
    """The process's own clock; bytes are counted tensor by tensor, as the allocator keeps no tally."""

    def seconds(self, call: Call, repeats: int) -> float:
        """See ``Clock``."""
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - start) / repeats

    def each(self, call: Call, repeats: int, *, flush: bool) -> list[float]:
        """See ``Clock``."""
        cache = torch.empty(FLUSHED, dtype=torch.uint8) if flush else None
        found = []
        for _ in range(repeats):
            if cache is not None:
                cache.zero_()
            found.append(self.seconds(call, 1))
        return found

    def peak(self, call: Call) -> int:
        """See ``Clock``; what a kernel holds inside itself is not seen."""
        return count(call, unit=torch.uint8).peak_elements

    def costs(self, call: Call) -> tuple[Counts, int]:
        """See ``Clock``; what a kernel holds inside itself is not seen."""
        counts = count(call, unit=torch.uint8)
        return counts, counts.peak_elements


class CudaClock:
    """The device's own events, as calls return before their work is done; bytes are the caching allocator's peak."""

    def seconds(self, call: Call, repeats: int) -> float:
        """See ``Clock``."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        for _ in range(repeats):
            call()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3 / repeats

    def each(self, call: Call, repeats: int, *, flush: bool) -> list[float]:
        """See ``Clock``; the device is waited for once, after the last call."""
        cache = torch.empty(FLUSHED, dtype=torch.uint8, device="cuda") if flush else None
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
        """See ``Clock``; counted first, so that libraries have taken their workspace before the peak is read."""
        counts = count(call, unit=torch.uint8)
        return counts, self.peak(call)

    def peak(self, call: Call) -> int:
        """See ``Clock``; of a call that was made before, so that libraries have their workspace."""
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before


def clock_for(device: str) -> Clock:
    """The clock of a device.

    Raises:
        InputError: if torch does not see it.
    """
    return CudaClock() if check_device(device) == "cuda" else CpuClock()
