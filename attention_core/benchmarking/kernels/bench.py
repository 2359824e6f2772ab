"""The benchmark of attention kernels. A subject is a variant or a baseline; each is checked, warmed up and then timed.

Before any timing, each subject's result on few tokens is compared with a float64 result on the CPU; a subject
with a wrong result is not timed. If a subject runs out of memory, or a baseline does not support a shape, its row
contains the reason.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from attention_core import registry
from attention_core.attention import Attention
from attention_core.benchmarking.clock import Call, Clock, clock_for
from attention_core.benchmarking.counting import count
from attention_core.benchmarking.kernels.baselines import Baseline, baselines
from attention_core.benchmarking.kernels.roofline import roof_of
from attention_core.benchmarking.timing import DTYPES, MODES, Backward, prepare, unsupported_reason
from attention_core.variant import SOFTMAX

CHECKED_TOKENS = 256
TOLERANCE = {"float32": 1e-4, "bfloat16": 3e-2}
"""Maximum relative distance from float64; bfloat16 has 8 significant bits, and sums of bfloat16 lose some of them."""
BACKWARD_ONLY = "backward-alone"
KERNEL_MODES = (*MODES, BACKWARD_ONLY)
"""Modes: those of the Timing page, and the backward pass alone, after a forward pass that is not timed."""
BACKWARD_COST_RATIO = {"backward": 3.5, BACKWARD_ONLY: 2.5}
"""Multiply-adds of a mode divided by those of the forward pass, for baselines with a formula. The forward pass has
2 matrix products, forward and backward together have 7, and the backward pass alone has 5.
"""
TENSORS_MOVED = {"forward": 4, "backward": 8, BACKWARD_ONLY: 7}
"""Number of tensors as large as q that a call must move. Forward: q, k, v and the output. Backward: also the output's
gradient and those of q, k and v. The backward alone does not need the output."""
OUT_OF_MEMORY = "The device ran out of memory."


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The sizes of queries, keys and values, ``[batch, heads, n, d]``."""

    batch: int
    heads: int
    n: int
    d: int


def shapes_16k(sizes: Sequence[int] = (512, 1024, 2048, 4096, 8192, 16384), d: int = 64) -> list[Shape]:
    """Return shapes with B · n = 16k tokens and H · d = 2048, as in FlashAttention's own benchmark."""
    return [Shape(batch=max(1, 16384 // n), heads=2048 // d, n=n, d=d) for n in sizes]


def page_shapes(
    sizes: Sequence[int] = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072), d: int = 64
) -> list[Shape]:
    """Return shapes with one text and eight heads, as on the Timing page, up to 131,072 tokens."""
    return [Shape(batch=1, heads=8, n=n, d=d) for n in sizes]


PRESETS: dict[str, Callable[..., list[Shape]]] = {"16k": shapes_16k, "ours": page_shapes}


@dataclass(frozen=True, kw_only=True)
class Row:
    """The result of one subject (a variant or a baseline) at one shape.

    Attributes:
        name: the variant with its settings, or the baseline.
        shape: sizes of the inputs.
        mode: one of ``KERNEL_MODES``.
        dtype: one of ``timing.DTYPES``.
        causal: whether future keys are hidden.
        error: relative distance from float64 on the CPU on few tokens; None if there is nothing to compare with.
        ms: 20 % quantile, median and 80 % quantile of the calls in milliseconds; None if not timed.
        tflops: counted operations divided by the median, in 10¹² per second.
        share: fraction of the speed allowed by the device's arithmetic and bandwidth; None if these are unknown.
        peak_bytes: most bytes in memory at the same time, not counting the inputs.
        reason: why it was not timed; empty if it was.
    """

    name: str
    shape: Shape
    mode: str
    dtype: str
    causal: bool
    error: float | None = None
    ms: tuple[float, float, float] | None = None
    tflops: float | None = None
    share: float | None = None
    peak_bytes: int | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings of a kernel benchmark.

    Attributes:
        attentions: variants to time.
        shapes: sizes of the inputs.
        mode: one of ``KERNEL_MODES``.
        dtype: one of ``timing.DTYPES``.
        causal: whether future keys are hidden.
        device: ``"cpu"`` or ``"cuda"``.
        repeats: number of timed calls per subject and shape.
        flush: whether the processor's last-level cache is flushed before each call.
        with_baselines: whether baselines are timed too.
    """

    attentions: Sequence[Attention]
    shapes: Sequence[Shape]
    mode: str = "forward"
    dtype: str = "bfloat16"
    causal: bool = False
    device: str = "cuda"
    repeats: int = 30
    flush: bool = True
    with_baselines: bool = True


Subject = Attention | Baseline


def measure(plan: Plan, *, device_name: str, clock: Clock | None = None) -> Iterator[Row]:
    """Yield one row for each subject and shape, by ascending shape.

    Args:
        plan: settings of the benchmark.
        device_name: name of the device, used to look up its limits.
        clock: clock for the calls; the clock of the device if None.

    Raises:
        InputError: if torch does not see the device.
    """
    clock = clock or clock_for(plan.device)
    subjects: list[Subject] = [*plan.attentions]
    if plan.with_baselines and plan.mode != "decode":
        subjects = [*baselines(list(plan.attentions), registry.get(SOFTMAX)), *subjects]
    errors, failures = {}, {}
    for subject in subjects:
        name = _name(subject)
        errors[name], failures[name] = _check_result(subject, plan)
    for shape in plan.shapes:
        for is_warm_up in (True, False):
            for subject in subjects:
                error, reason = errors[_name(subject)], failures[_name(subject)]
                if reason:
                    row = None if is_warm_up else _row(subject, plan, shape, error=error, reason=reason)
                else:
                    row = _time_or_warm_up(subject, plan, shape, clock, device_name, error, is_warm_up)
                if row is not None:
                    yield row


def _time_or_warm_up(
    subject: Subject, plan: Plan, shape: Shape, clock: Clock, device_name: str, error: float | None, is_warm_up: bool
) -> Row | None:
    """Warm up a subject at a shape and return None, or time it and return its row, also if timing it fails."""
    try:
        call, bytes_moved = _call(subject, plan, _inputs(plan, shape))
        if is_warm_up:
            call()
            return None
        return _timed(subject, plan, shape, call, bytes_moved, clock, device_name, error)
    except torch.OutOfMemoryError:
        reason = OUT_OF_MEMORY
    except Exception as failure:
        # An error of a baseline is a result: a third-party kernel may not support a type, shape or device. An error of
        # one of our variants is a bug.
        if isinstance(subject, Attention):
            raise
        reason = f"It does not run here: {type(failure).__name__}."
    return None if is_warm_up else _row(subject, plan, shape, error=error, reason=reason)


def _timed(
    subject: Subject,
    plan: Plan,
    shape: Shape,
    call: Call,
    bytes_moved: int,
    clock: Clock,
    device_name: str,
    error: float | None,
) -> Row:
    timed = call.backward_only() if plan.mode == BACKWARD_ONLY and isinstance(call, Backward) else call
    seconds = clock.each_seconds(timed, plan.repeats, flush=plan.flush)
    low, median, high = (float(x) for x in np.quantile(seconds, (0.2, 0.5, 0.8)))
    # The peak is measured on ``call``, which runs forward and backward, because the backward pass needs the tensors
    # that the forward pass saved. On a CPU, memory is counted tensor by tensor. This misses tensors inside compiled
    # code, so compiled baselines have ``counted=False`` and get no peak. On a CUDA device, the allocator counts all.
    is_counted = plan.device == "cuda" or isinstance(subject, Attention) or subject.counted
    peak = clock.peak_bytes(call) if is_counted else None
    if isinstance(subject, Attention):
        multiply_adds = count(timed).multiply_adds
    else:
        forward = subject.multiply_adds(shape.n, shape.d, plan.causal) * shape.batch * shape.heads
        multiply_adds = int(forward * BACKWARD_COST_RATIO.get(plan.mode, 1))
    flops, roof = 2 * multiply_adds, roof_of(device_name)
    attainable = None if roof is None else roof.attainable(plan.dtype, flops, bytes_moved)
    return _row(
        subject,
        plan,
        shape,
        error=error,
        ms=(1e3 * low, 1e3 * median, 1e3 * high),
        tflops=flops / median / 1e12,
        share=None if not attainable else flops / median / attainable,
        peak_bytes=peak,
    )


def _row(subject: Subject, plan: Plan, shape: Shape, **fields: Any) -> Row:  # noqa: ANN401 - the fields of Row
    return Row(name=_name(subject), shape=shape, mode=plan.mode, dtype=plan.dtype, causal=plan.causal, **fields)


def _name(subject: Subject) -> str:
    return subject.word if isinstance(subject, Attention) else subject.name


def _inputs(plan: Plan, shape: Shape) -> tuple[Tensor, Tensor, Tensor]:
    """Return seeded Gaussian q, k and v, the same numbers on every device."""
    sizes = (3, shape.batch, shape.heads, shape.n, shape.d)
    q, k, v = torch.randn(sizes, generator=torch.Generator().manual_seed(shape.n)).to(plan.device, DTYPES[plan.dtype])
    return q, k, v


def _call(subject: Subject, plan: Plan, x: tuple[Tensor, Tensor, Tensor]) -> tuple[Call, int]:
    """Return the call to time for a subject, and the bytes it must move: each input and output once."""
    size = x[0].numel() * x[0].element_size()
    if isinstance(subject, Attention):
        call = prepare(subject, *x, mode=plan.mode, causal=plan.causal)
    else:
        attend = subject.build(x[0].shape[-2], x[0].device, plan.causal)
        call = Backward(attend, *x) if plan.mode in BACKWARD_COST_RATIO else lambda: attend(*x)
    if plan.mode == "decode":
        result = call()
        # The bytes of a decoding step: a recurrent state is read and written, so it counts twice. Softmax reads a cache
        # of keys and one of values, each of the size of x[0].
        state = [] if isinstance(result, Tensor) else tree_leaves(result[1])
        return call, 2 * sum(y.numel() * y.element_size() for y in state if isinstance(y, Tensor)) or 2 * size
    return call, TENSORS_MOVED[plan.mode] * size


def _check_result(subject: Subject, plan: Plan) -> tuple[float | None, str]:
    """Return a result's error and the reason not to time the subject, which is empty if it can be timed.

    The error is the relative distance from float64 on the CPU, on few tokens; None if it cannot be computed.
    """
    if isinstance(subject, Attention):
        reason = unsupported_reason(subject, mode=plan.mode, causal=plan.causal)
        if reason is not None:
            return None, reason
    reference = subject if isinstance(subject, Attention) else subject.equivalent
    if reference is None:
        return None, ""
    shape = plan.shapes[0]
    small = Shape(batch=1, heads=min(2, shape.heads), n=min(CHECKED_TOKENS, shape.n), d=shape.d)
    x = _inputs(plan, small)
    try:
        outputs = _outputs(_call(subject, plan, x)[0]())
    except torch.OutOfMemoryError:
        return None, OUT_OF_MEMORY
    except Exception as failure:
        if isinstance(subject, Attention):
            raise
        return None, f"It does not run here: {type(failure).__name__}."
    exact = tuple(y.detach().cpu().double() for y in x)
    expected = _outputs(prepare(reference, *exact, mode=plan.mode, causal=plan.causal)())
    error = max(_relative_error(a, b) for a, b in zip(outputs, expected, strict=True))
    if error <= TOLERANCE[plan.dtype]:
        return error, ""
    return error, f"It differs from float64 on the CPU by {error:.0e}."


def _outputs(result: Any) -> list[Tensor]:  # noqa: ANN401 - an output, gradients, or an output and a state
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result[0], Tensor) and not isinstance(result[-1], Tensor | None):
        return [result[0]]  # a decode step returns its output and the next state
    return [x for x in result if isinstance(x, Tensor)]


def _relative_error(output: Tensor, expected: Tensor) -> float:
    error = (output.detach().cpu().double() - expected).norm() / expected.norm().clamp(min=1e-30)
    return math.inf if error.isnan() else float(error)


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a text table, one line per row."""
    width = max([32, *(len(row.name) for row in rows)])
    lines = [
        f"{'subject':<{width}} {'B':>4} {'H':>3} {'n':>7} {'ms':>9} {'20 %':>9} {'80 %':>9} {'TFLOP/s':>8} {'share':>6}"
    ]
    for row in rows:
        size = f"{row.name:<{width}} {row.shape.batch:>4} {row.shape.heads:>3} {row.shape.n:>7} "
        if row.ms is None or row.tflops is None:
            lines.append(size + row.reason)
            continue
        low, middle, high = row.ms
        share = "unknown" if row.share is None else f"{100 * row.share:.0f} %"
        lines.append(size + f"{middle:>9.3f} {low:>9.3f} {high:>9.3f} {row.tflops:>8.2f} {share:>6}")
    return "\n".join(lines)


def save(path: Path, stamp: dict[str, str], rows: Sequence[Row]) -> None:
    """Write the stamp and the rows as JSON, one row per line."""
    lines = ",\n".join(json.dumps(asdict(row)) for row in rows)
    path.write_text(f'{{"stamp": {json.dumps(stamp)},\n"rows": [\n{lines}\n]}}\n', encoding="utf-8")
