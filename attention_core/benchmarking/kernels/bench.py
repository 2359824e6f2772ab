"""The bench: every subject checked, then warmed at all shapes, then timed call by call.

A subject is checked before any timing, on few tokens, against float64 on the CPU; one that is wrong is not timed. What
runs out of memory, or what a baseline does not take, is a row with its reason.
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
from attention_core.benchmarking.clock import Call, Clock, clock_for
from attention_core.benchmarking.counting import count
from attention_core.benchmarking.kernels.baselines import Baseline, baselines
from attention_core.benchmarking.kernels.roofline import roof_of
from attention_core.benchmarking.timing import DTYPES, MODES, Backward, prepare, why_not
from attention_core.variant import SOFTMAX, Attention

CHECKED_TOKENS = 256
TOLERANCE = {"float32": 1e-4, "bfloat16": 3e-2}
"""Relative distance from float64 up to which a result is right; bfloat16 keeps 8 bits, and sums of such lose some."""
ALONE = "backward-alone"
APART = (*MODES, ALONE)
"""What is timed: as on the Timing page, and the backward of a forward that was run before."""
OVER_FORWARD = {"backward": 3.5, ALONE: 2.5}
"""Multiply-adds over the forward's, where a formula stands for counting: seven and five products to two."""
MOVED = {"forward": 4, "backward": 8, ALONE: 7}
"""Tensors as large as q that a call must move: q, k, v and the output; besides, the output's gradient and those of q, k
and v, of which a backward alone does without the output."""
OUT_OF_MEMORY = "The device's memory gave out."


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of queries, keys and values."""

    batch: int
    heads: int
    n: int
    d: int


def sixteen_k(sizes: Sequence[int] = (512, 1024, 2048, 4096, 8192, 16384), d: int = 64) -> list[Shape]:
    """B · n = 16k tokens and H · d = 2048, as FlashAttention's own benchmark has them."""
    return [Shape(batch=max(1, 16384 // n), heads=2048 // d, n=n, d=d) for n in sizes]


def ours(sizes: Sequence[int] = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072), d: int = 64) -> list[Shape]:
    """One text, eight heads, as on the Timing page, to 131,072 tokens."""
    return [Shape(batch=1, heads=8, n=n, d=d) for n in sizes]


PRESETS: dict[str, Callable[..., list[Shape]]] = {"16k": sixteen_k, "ours": ours}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One subject at one shape.

    Attributes:
        name: the variant with its settings, or the baseline.
        shape: sizes.
        mode: one of ``APART``.
        dtype: one of ``timing.DTYPES``.
        causal: whether the future is hidden.
        error: relative distance from float64 on the CPU at few tokens; None where nothing of ours computes the same.
        ms: 20 %, median and 80 % of the calls; None where it was not timed.
        tflops: counted operations over the median, in 10¹² a second.
        share: of what arithmetic and bandwidth of the device allow; None where its roof is not known.
        peak_bytes: most bytes alive at once beyond the inputs.
        reason: why it was not timed; empty where it was.
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
    """What to measure.

    Attributes:
        attentions: the variants.
        shapes: sizes.
        mode: one of ``APART``.
        dtype: one of ``timing.DTYPES``.
        causal: whether the future is hidden.
        device: ``"cpu"`` or ``"cuda"``.
        repeats: calls of each.
        flush: whether the last cache is emptied before each call.
        beside: whether baselines are timed, too.
    """

    attentions: Sequence[Attention]
    shapes: Sequence[Shape]
    mode: str = "forward"
    dtype: str = "bfloat16"
    causal: bool = False
    device: str = "cuda"
    repeats: int = 30
    flush: bool = True
    beside: bool = True


Subject = Attention | Baseline


def measure(plan: Plan, *, device_name: str, clock: Clock | None = None) -> Iterator[Row]:
    """A row for each subject and shape, shapes rising.

    Args:
        plan: what to measure.
        device_name: the device's name, which its roof is found by.
        clock: measures calls; the device's own when None.

    Raises:
        InputError: if torch does not see the device.
    """
    clock = clock or clock_for(plan.device)
    subjects: list[Subject] = [*plan.attentions]
    if plan.beside and plan.mode != "decode":
        subjects = [*baselines(list(plan.attentions), registry.get(SOFTMAX)), *subjects]
    errors, wrong = {}, {}
    for subject in subjects:
        name = _name(subject)
        errors[name], wrong[name] = _checked(subject, plan)
    for warming in (True, False):
        for shape in plan.shapes:
            for subject in subjects:
                error, reason = errors[_name(subject)], wrong[_name(subject)]
                if reason:
                    row = None if warming else _row(subject, plan, shape, error=error, reason=reason)
                else:
                    row = _tried(subject, plan, shape, clock, device_name, error, warming)
                if row is not None:
                    yield row


def _tried(
    subject: Subject, plan: Plan, shape: Shape, clock: Clock, device_name: str, error: float | None, warming: bool
) -> Row | None:
    """A subject at a shape, called once without a row or timed; a failure is a row, of the second time alone."""
    try:
        call, moved = _call(subject, plan, _inputs(plan, shape))
        if warming:
            call()
            return None
        return _timed(subject, plan, shape, call, moved, clock, device_name, error)
    except torch.OutOfMemoryError:
        reason = OUT_OF_MEMORY
    except Exception as failure:
        # Other people's kernels refuse types, shapes and devices; ours may not.
        if isinstance(subject, Attention):
            raise
        reason = f"It does not run here: {type(failure).__name__}."
    return None if warming else _row(subject, plan, shape, error=error, reason=reason)


def _timed(
    subject: Subject,
    plan: Plan,
    shape: Shape,
    call: Call,
    moved: int,
    clock: Clock,
    device_name: str,
    error: float | None,
) -> Row:
    # What is held is that of forward and backward together: a backward has what its forward has kept.
    timed = call.alone() if plan.mode == ALONE and isinstance(call, Backward) else call
    seconds = clock.each(timed, plan.repeats, flush=plan.flush)
    low, middle, high = (float(x) for x in np.quantile(seconds, (0.2, 0.5, 0.8)))
    # Compiled code makes its tensors out of a counter's sight; a device's allocator sees them all.
    peak = clock.peak(call) if plan.device == "cuda" or isinstance(subject, Attention) or subject.counted else None
    if isinstance(subject, Attention):
        adds = count(timed).multiply_adds
    else:
        forward = subject.multiply_adds(shape.n, shape.d, plan.causal) * shape.batch * shape.heads
        adds = int(forward * OVER_FORWARD.get(plan.mode, 1))
    flops, roof = 2 * adds, roof_of(device_name)
    attainable = None if roof is None else roof.attainable(plan.dtype, flops, moved)
    return _row(
        subject,
        plan,
        shape,
        error=error,
        ms=(1e3 * low, 1e3 * middle, 1e3 * high),
        tflops=flops / middle / 1e12,
        share=None if not attainable else flops / middle / attainable,
        peak_bytes=peak,
    )


def _row(subject: Subject, plan: Plan, shape: Shape, **found: Any) -> Row:  # noqa: ANN401 - the row's own fields
    return Row(name=_name(subject), shape=shape, mode=plan.mode, dtype=plan.dtype, causal=plan.causal, **found)


def _name(subject: Subject) -> str:
    return subject.word if isinstance(subject, Attention) else subject.name


def _inputs(plan: Plan, shape: Shape) -> tuple[Tensor, Tensor, Tensor]:
    """Seeded Gaussian q, k and v, the same numbers on every device."""
    sizes = (3, shape.batch, shape.heads, shape.n, shape.d)
    q, k, v = torch.randn(sizes, generator=torch.Generator().manual_seed(shape.n)).to(plan.device, DTYPES[plan.dtype])
    return q, k, v


def _call(subject: Subject, plan: Plan, x: tuple[Tensor, Tensor, Tensor]) -> tuple[Call, int]:
    """The call, and the bytes it must move: what it is given and gives, each once."""
    size = x[0].numel() * x[0].element_size()
    if isinstance(subject, Attention):
        call = prepare(subject, *x, mode=plan.mode, causal=plan.causal)
    else:
        attend = subject.build(x[0].shape[-2], x[0].device, plan.causal)
        call = Backward(attend, *x) if plan.mode in OVER_FORWARD else lambda: attend(*x)
    if plan.mode == "decode":
        found = call()
        # A state is read and written; a cache of keys and values is read.
        state = [] if isinstance(found, Tensor) else tree_leaves(found[1])
        return call, 2 * sum(y.numel() * y.element_size() for y in state if isinstance(y, Tensor)) or 2 * size
    return call, MOVED[plan.mode] * size


def _checked(subject: Subject, plan: Plan) -> tuple[float | None, str]:
    """Relative distance from float64 on the CPU at few tokens, and why the subject is not timed, or nothing."""
    if isinstance(subject, Attention):
        why = why_not(subject, mode=plan.mode, causal=plan.causal)
        if why is not None:
            return None, why
    wanted = subject if isinstance(subject, Attention) else subject.wanted
    if wanted is None:
        return None, ""
    shape = plan.shapes[0]
    few = Shape(batch=1, heads=min(2, shape.heads), n=min(CHECKED_TOKENS, shape.n), d=shape.d)
    x = _inputs(plan, few)
    try:
        found = _flat(_call(subject, plan, x)[0]())
    except torch.OutOfMemoryError:
        return None, OUT_OF_MEMORY
    except Exception as failure:
        if isinstance(subject, Attention):
            raise
        return None, f"It does not run here: {type(failure).__name__}."
    exact = tuple(y.detach().cpu().double() for y in x)
    known = _flat(prepare(wanted, *exact, mode=plan.mode, causal=plan.causal)())
    error = max(_distance(a, b) for a, b in zip(found, known, strict=True))
    if error <= TOLERANCE[plan.dtype]:
        return error, ""
    return error, f"It differs from float64 on the CPU by {error:.0e}."


def _flat(found: Any) -> list[Tensor]:  # noqa: ANN401 - an output, gradients, or an output and a state
    if isinstance(found, Tensor):
        return [found]
    if isinstance(found[0], Tensor) and not isinstance(found[-1], Tensor | None):
        return [found[0]]  # a decode step's output
    return [x for x in found if isinstance(x, Tensor)]


def _distance(found: Tensor, wanted: Tensor) -> float:
    off = (found.detach().cpu().double() - wanted).norm() / wanted.norm().clamp(min=1e-30)
    return math.inf if off.isnan() else float(off)


def table(rows: Sequence[Row]) -> str:
    """The rows as text, a line each."""
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
    """Write stamp and rows as JSON, a row a line."""
    lines = ",\n".join(json.dumps(asdict(row)) for row in rows)
    path.write_text(f'{{"stamp": {json.dumps(stamp)},\n"rows": [\n{lines}\n]}}\n', encoding="utf-8")
