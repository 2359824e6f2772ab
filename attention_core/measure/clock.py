"""How long a call takes and how much it holds, on the device that runs it."""

import time
from collections.abc import Callable
from typing import Any, Protocol

import torch

from attention_core.measure.counting import Counts, count
from attention_core.measure.device import check_device

Call = Callable[[], Any]


class Clock(Protocol):
    """Times calls on one kind of device."""

    def seconds(self, call: Call, repeats: int) -> float:
        """Mean seconds of a call that is run so often in a row."""
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

    def costs(self, call: Call) -> tuple[Counts, int]:
        """See ``Clock``; counted first, so that libraries have taken their workspace before the peak is read."""
        counts = count(call, unit=torch.uint8)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        return counts, torch.cuda.max_memory_allocated() - before


def clock_for(device: str) -> Clock:
    """The clock of a device.

    Raises:
        InputError: if torch does not see it.
    """
    return CudaClock() if check_device(device) == "cuda" else CpuClock()
