"""Timing runs as records: samples gathered by variant and length, with what was asked, where and when."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from attention_core.benchmarking.device import LARGEST, Stamp, Text, Whole
from attention_core.benchmarking.timing import TimingSpec
from attention_core.formatting import N_

Count = Annotated[int, Meta(ge=0, le=LARGEST)]
BOUNDED = (N_("One call would hold more than {most:,.0f} MiB."), N_("One call would take more than {most:g} s."))
"""Why a variant is not measured at a length, where a bound forbids it."""
Milliseconds = Annotated[float, Meta(gt=0.0, lt=float(LARGEST))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One call of one variant at one length.

    Attributes:
        variant: the variant and its settings, or its mask, as the spec names it.
        n: tokens.
        round: the sample's number.
        ms: milliseconds of one call.
        multiply_adds: as of ``Point``, and so are those below.
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
    """One variant at one length.

    Attributes:
        variant: the variant and its settings, as ``Attention.word`` writes them.
        n: tokens.
        ms: milliseconds of one call, a sample per round, in the order of the rounds.
        multiply_adds: counted, over all heads.
        promised: those the variant's cost formula says; None where it says nothing of this mode.
        peak_bytes: most bytes alive at once beyond the inputs.
    """

    variant: Text
    n: Whole
    ms: Annotated[tuple[Milliseconds, ...], Meta(min_length=1)]
    multiply_adds: Count
    promised: Count | None
    peak_bytes: Count

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median and upper quartile of the milliseconds."""
        low, middle, high = np.quantile(self.ms, (0.25, 0.5, 0.75)).tolist()
        return low, middle, high


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A variant that was not measured from a length on, with the reason.

    Attributes:
        variant: as of ``Point``.
        n: tokens.
        reason: a sentence, one of ``BOUNDED`` where it names a bound.
        most: that bound.
    """

    variant: Text
    n: Whole
    reason: Text
    most: Annotated[float, Meta(ge=0.0, lt=float(LARGEST))] | None = None

    def __post_init__(self) -> None:
        """Refuse a sentence from a file that asks to be filled in and is none of ours."""
        if self.most is not None and self.reason not in BOUNDED:
            raise ValueError("a bound without a reason that names one")

    @property
    def fields(self) -> dict[str, float]:
        """What the sentence is filled in with."""
        return {} if self.most is None else {"most": self.most}


Observed = Sample | LeftOut
"""What one task of ``experiments.timing_length`` finds."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One measurement: what was asked, where and when, and what was found."""

    spec: TimingSpec
    stamp: Stamp
    points: tuple[Point, ...]
    left_out: tuple[LeftOut, ...]


def gather(spec: TimingSpec, stamp: Stamp, rows: Iterable[Observed]) -> Run:
    """Put the rows of ``experiments.timing_length`` together by variant and length."""
    samples: dict[tuple[str, int], list[Sample]] = {}
    left_out = []
    for row in rows:
        if isinstance(row, LeftOut):
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
