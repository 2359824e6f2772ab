"""The records of a timing run, which times several variants at several sequence lengths, and their grouping."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from attention_core.benchmarking.device import MAX_NUMBER, PositiveInt, ShortText, Stamp
from attention_core.benchmarking.timing import TimingSpec
from attention_core.formatting import N_

Count = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
LIMIT_REASONS = (N_("One call would hold more than {most:,.0f} MiB."), N_("One call would take more than {most:g} s."))
"""Reasons, with a placeholder for the limit, if a call would exceed a limit on memory or time."""
Milliseconds = Annotated[float, Meta(gt=0.0, lt=float(MAX_NUMBER))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One timed call of one variant at one sequence length.

    Attributes:
        variant: the variant and its settings, or its mask on full attention, as written in ``TimingSpec.variants``.
        n: number of tokens.
        round: number of the round.
        ms: duration of the call in milliseconds.
        multiply_adds: see ``Point``, also for ``promised`` and ``peak_bytes``.
    """

    variant: str
    n: int
    round: int
    ms: float
    multiply_adds: int
    promised: int | None
    peak_bytes: int


@dataclass(frozen=True, kw_only=True)
class Point:
    """The measurements of one variant at one sequence length.

    Attributes:
        variant: the variant and its settings, as written by ``Attention.word``.
        n: number of tokens.
        ms: duration of one call in milliseconds, one sample per round, in the order of the rounds.
        multiply_adds: counted multiply-adds of all heads.
        promised: multiply-adds by the variant's cost formula; None if it has no formula for the mode of
            the run.
        peak_bytes: most bytes in memory at the same time, not counting the inputs.
    """

    variant: ShortText
    n: PositiveInt
    ms: Annotated[tuple[Milliseconds, ...], Meta(min_length=1)]
    multiply_adds: Count
    promised: Count | None
    peak_bytes: Count

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """The lower quartile, median and upper quartile of the duration in milliseconds."""
        low, middle, high = np.quantile(self.ms, (0.25, 0.5, 0.75)).tolist()
        return low, middle, high


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A variant that was not measured from some sequence length on, with the reason.

    Attributes:
        variant: see ``Point``.
        n: number of tokens of that length.
        reason: a sentence; one of ``LIMIT_REASONS`` if a limit on memory or time is the reason.
        most: value of that limit; None without a limit.
    """

    variant: ShortText
    n: PositiveInt
    reason: ShortText
    most: Annotated[float, Meta(ge=0.0, lt=float(MAX_NUMBER))] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if ``most`` is set and ``reason`` is not in ``LIMIT_REASONS``.

        An uploaded file may have such a combination.
        """
        if self.most is not None and self.reason not in LIMIT_REASONS:
            raise ValueError(
                "the field “most” is a limit on memory or time, so the field “reason” must be one of the lab's two "
                "sentences about these limits"
            )

    @property
    def fields(self) -> dict[str, float]:
        """The values for the placeholders of the reason."""
        return {} if self.most is None else {"most": self.most}


TimingRow = Sample | Skipped
"""The result of one task of ``experiments.timing_length``."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One timing run: its settings, machine and date, the measurements, and the variants left out."""

    spec: TimingSpec
    stamp: Stamp
    points: tuple[Point, ...]
    left_out: tuple[Skipped, ...]


def group_samples(spec: TimingSpec, stamp: Stamp, rows: Iterable[TimingRow]) -> Run:
    """Group the rows of ``experiments.timing_length`` by variant and sequence length, and return them as a run."""
    samples: dict[tuple[str, int], list[Sample]] = {}
    left_out = []
    for row in rows:
        if isinstance(row, Skipped):
            left_out.append(row)
        else:
            samples.setdefault((row.variant, row.n), []).append(row)
    points = tuple(
        Point(
            variant=variant,
            n=n,
            ms=tuple(each.ms for each in group),
            multiply_adds=group[0].multiply_adds,
            promised=group[0].promised,
            peak_bytes=group[0].peak_bytes,
        )
        for (variant, n), group in sorted(samples.items(), key=lambda e: (spec.variants.index(e[0][0]), e[0][1]))
    )
    return Run(spec=spec, stamp=stamp, points=points, left_out=tuple(left_out))


def sample_table(run: Run, word: str, *, origin: str) -> Iterator[dict[str, object]]:
    """Yield every sample of one variant with its device, settings and length, for a table.

    Args:
        run: the run.
        word: the variant, as written in ``TimingSpec.variants``.
        origin: text for the column ``run``.
    """
    spec, stamp = run.spec, run.stamp
    for point in sorted((point for point in run.points if point.variant == word), key=lambda point: point.n):
        for i, ms in enumerate(point.ms):
            yield {
                "variant": word,
                "run": origin,
                "device": stamp.device,
                "threads": stamp.threads,
                "torch": stamp.torch,
                "date": stamp.date,
                "mode": spec.mode,
                "causal": spec.causal,
                "dtype": spec.dtype,
                "heads": spec.heads,
                "head size": spec.head_size,
                "tokens": point.n,
                "sample": i,
                "ms": ms,
                "multiply-adds": point.multiply_adds,
                "multiply-adds by formula": point.promised,
                "peak bytes": point.peak_bytes,
            }
