"""The targets for the variants' speed and memory, and whether measured results meet them and by how much."""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from attention_core.registry import variant
from attention_core.variant import Variant
from benchmarks.cases import HEAD_SIZE, HEADS, MAIN, MORE, linear
from benchmarks.growth import READING
from benchmarks.rows import Mode, Preset, Record, Row

COMPARED = (2048, 8192)
"""Sizes at which variants and peers are compared."""
FITTED = (2048, 4096, 8192, 16384)
"""Sizes at which exponents are fitted."""
LONG = (8192, 65536)
"""Bounds for a long-text fit: it must start at the first size or below, and reach at least the second."""


@dataclass(frozen=True)
class Figure:
    """One case's value for one target; the value must not exceed the limit.

    Attributes:
        label: the description of what is judged.
        case: the case's label.
        n: the number of tokens; the largest if several sizes are judged.
        value: the measured value.
        limit: the target's limit.
        floor: the same value for the case's lower bound; None without one.
        timed: whether it is about time instead of memory.
    """

    label: str
    case: str
    n: int
    value: float
    limit: float
    floor: float | None = None
    timed: bool = True

    @property
    def met(self) -> bool:
        """True if the target is met."""
        return self.value <= self.limit


@dataclass(frozen=True)
class Verdict:
    """A target as a sentence, and every measured value that it judges, with the limit for that value."""

    text: str
    figures: tuple[Figure, ...]


class Table:
    """Access to a record's rows by case, subject, size and mode."""

    def __init__(self, record: Record) -> None:
        self.rows = {(r.label, r.name, r.n, r.mode): r for r in record.rows}
        self.variants = list(dict.fromkeys((r.label, r.key) for r in record.rows if r.role == "variant"))
        self.bounds = {r.label: r.name for r in record.rows if r.role == "bound"}
        self.sizes = sorted({r.n for r in record.rows})
        self.causal = {case.label for case in (*MAIN, *MORE) if case.causal}
        self.others = {case.label for case in MORE}

    def get(self, label: str, name: str, n: int, mode: Mode) -> Row | None:
        """Return a row with samples, or None."""
        row = self.rows.get((label, name, n, mode))
        return row if row is not None and row.seconds else None

    def own(self, label: str, n: int, mode: Mode) -> Row | None:
        """Return the row of the variant itself."""
        return self.get(label, label, n, mode)

    def floor(self, label: str, n: int, mode: Mode) -> Row | None:
        """Return the row of a case's lower bound."""
        name = self.bounds.get(label)
        return None if name is None else self.get(label, name, n, mode)

    def peers(self, label: str) -> list[str]:
        """Return the names of a case's peers, in order."""
        return list(dict.fromkeys(r.name for r in self.rows.values() if r.label == label and r.role == "peer"))

    def full(self, label: str, n: int, mode: Mode) -> Row | None:
        """Return the row of the full attention that a case is compared with."""
        name = "full attention, causal" if label in self.causal else "full attention"
        return self.get(name, name, n, mode)

    def main(self, condition: Callable[[Variant], bool]) -> list[str]:
        """Return the labels of the cases outside ``MORE`` whose variants satisfy a condition."""
        return [label for label, key in self.variants if label not in self.others and condition(variant(key))]


def verdicts(record: Record, mode: Mode) -> list[Verdict]:
    """Return all targets of the record's preset in one mode; targets for memory do not depend on the mode."""
    targets = TARGETS[record.preset](Table(record), mode)
    return [Verdict(text, tuple(figures)) for text, figures in targets.items()]


def _full(t: Table, mode: Mode) -> dict[str, Iterator[Figure]]:
    pattern = t.main(lambda v: v.mask is not None)
    cheap = t.main(lambda v: v.family in ("kernel", "low_rank"))
    quadratic = t.main(lambda v: v.key != "softmax" and v.complexity.startswith("n²") and "/" not in v.complexity)
    everything = [label for label, _ in t.variants]
    kernel = [label for label, key in t.variants if variant(key).family == "kernel"]
    from_512 = [n for n in t.sizes if n >= 512]
    return {
        "Fixed patterns: faster than full attention at n = 1024": _time(t, pattern, mode, [1024], 1.0),
        "Fixed patterns: at most half its time at n = 2048": _time(t, pattern, mode, [2048], 0.5),
        "Fixed patterns: at most a fifth of its time at n = 8192": _time(t, pattern, mode, [8192], 0.2),
        "Fixed patterns: less memory than the explicit matrix from n = 512": _memory_figures(t, pattern, True, 1.0),
        "Fixed patterns: at most 1.25 times the fused kernel's memory from n = 512": _memory_figures(
            t, pattern, False, 1.25
        ),
        "Kernel and low-rank: faster than full attention from n = 512": _time(t, cheap, mode, from_512, 1.0),
        "Each: as fast as every peer at n = 2048 and 8192": _against(t, everything, mode, _faster),
        "Each: at most 0.9 of every peer's time at n = 2048 and 8192": _against(t, everything, mode, _faster, 0.9),
        "topk: at most 2.5 times full attention at n = 2048": _time(t, ["topk 32"], mode, [2048], 2.5),
        "topk: at most 1.8 times full attention at n = 8192": _time(t, ["topk 32"], mode, [8192], 1.8),
        "performer 256: at most 0.7 of full attention at n = 1024": _time(t, ["performer 256"], mode, [1024], 0.7),
        "taylor2: at most 0.75 of full attention at n = 4096": _time(t, ["taylor2"], mode, [4096], 0.75),
        "Each: no more memory than every peer at n = 2048 and 8192": _against(t, everything, mode, Row.memory_ratio),
        "Kernel: at most twice their output's memory at n = 2048": _over_output(t, kernel, 2048, 2.0),
        "additive: at most 1.3 times its bound": _over_bound(t, ["additive"], mode, from_512, 1.3),
        "taylor2: at most half its peers' time": _against(t, ["taylor2"], mode, _faster, 0.5),
        "taylor2: at most a tenth of its peers' memory": _against(t, ["taylor2"], mode, Row.memory_ratio, 0.1),
        "Quadratic variants: at most twice the fused kernel's memory": _memory_figures(t, quadratic, False, 2.0),
        "Linear variants: time exponent from n = 2048 to 16384": _exponents(t, t.main(linear), mode, 1.15),
        "sparse at r = √n: time exponent from n = 2048 to 16384": _exponents(t, ["sparse √n/√n"], mode, 1.6),
    }


def _long(t: Table, mode: Mode) -> dict[str, Iterator[Figure]]:
    return {
        "Linear variants: time exponent from n = 8192 on": _growth_figures(t, time_growth, mode, 1.05),
        "Linear variants: memory exponent from n = 8192 on": _growth_figures(t, memory_growth, mode, 1.05),
    }


def _decode(t: Table, mode: Mode) -> dict[str, Iterator[Figure]]:
    labels = [label for label, _ in t.variants]
    return {"Decoders: time of a token after 100,000 over one after 1,000": _time(t, labels, mode, [100_000], 1.1)}


def _bfloat16(t: Table, mode: Mode) -> dict[str, Iterator[Figure]]:
    pattern = t.main(lambda v: v.mask is not None)
    cheap = t.main(lambda v: v.family in ("kernel", "low_rank"))
    return {
        "Fixed patterns in bfloat16: at most half the time of full attention at n = 2048": _time(
            t, pattern, mode, [2048], 0.5
        ),
        "Kernel and low-rank in bfloat16: faster than full attention at n = 2048": _time(t, cheap, mode, [2048], 1.0),
    }


def _backward(t: Table, mode: Mode) -> dict[str, Iterator[Figure]]:
    pattern = t.main(lambda v: v.mask is not None)
    cheap = t.main(lambda v: v.family in ("kernel", "low_rank"))
    everything = [label for label, _ in t.variants]
    return {
        "Fixed patterns, backward: at most half the time of full attention's at n = 2048": _time(
            t, pattern, mode, [2048], 0.5
        ),
        "Kernel and low-rank, backward: faster than full attention's at n = 2048": _time(t, cheap, mode, [2048], 1.0),
        "Each, forward and backward: at most 3 times full attention's memory": _memory_figures(
            t, everything, False, 3.0
        ),
    }


TARGETS: dict[Preset, Callable[[Table, Mode], dict[str, Iterator[Figure]]]] = {
    "full": _full,
    "long": _long,
    "decode": _decode,
    "bfloat16": _bfloat16,
    "backward": _backward,
}


def time_growth(t: Table, label: str, mode: Mode) -> float | None:
    """Return the exponent of time over n at long lengths; None with too few sizes.

    A row's ``ratio`` is its time divided by the time of linear growth, so ``n * ratio`` is proportional to the time.
    """
    return _slope({n: n * row.ratio.median for n, row in _long_rows(t, label, mode).items()})


def memory_growth(t: Table, label: str, mode: Mode) -> float | None:
    """Return the exponent of memory over n at long lengths; None with too few sizes."""
    return _slope({n: row.peak for n, row in _long_rows(t, label, mode).items() if row.peak is not None})


def _long_rows(t: Table, label: str, mode: Mode) -> dict[int, Row]:
    rows = {n: t.own(label, n, mode) for n in t.sizes if n >= LONG[0]}
    return {n: row for n, row in rows.items() if row is not None}


def _slope(values: Mapping[int, float]) -> float | None:
    if not values or min(values) > LONG[0] or max(values) < LONG[1]:
        return None
    return statistics.linear_regression([math.log(n) for n in values], [math.log(x) for x in values.values()]).slope


def _growth_figures(
    t: Table, growth: Callable[[Table, str, Mode], float | None], mode: Mode, limit: float
) -> Iterator[Figure]:
    timed = growth is time_growth
    floor = time_growth(t, READING, mode) if timed else None
    for label, _ in t.variants:
        value = growth(t, label, mode)
        if value is not None:
            longest = max(_long_rows(t, label, mode))
            yield Figure(f"{label} to {longest:,}", label, longest, value, limit, floor, timed)


def exponent(t: Table, label: str, mode: Mode, *, floor: bool = False) -> float | None:
    """Return the slope of a case's (or its bound's) log time over log n, or None if a size is missing."""
    rows = [(t.floor if floor else t.own)(label, n, mode) for n in FITTED]
    if any(row is None for row in rows):
        return None
    times = [math.log(statistics.median(row.seconds)) for row in rows if row is not None]
    return statistics.linear_regression([math.log(n) for n in FITTED], times).slope


def _time(t: Table, labels: Iterable[str], mode: Mode, sizes: Iterable[int], limit: float) -> Iterator[Figure]:
    for n in sizes:
        for label in labels:
            row, floor = t.own(label, n, mode), t.floor(label, n, mode)
            if row is not None:
                least = None if floor is None else floor.ratio.median
                yield Figure(f"{label} at {n}", label, n, row.ratio.median, limit, least)


def _over_bound(t: Table, labels: Iterable[str], mode: Mode, sizes: Iterable[int], limit: float) -> Iterator[Figure]:
    for n in sizes:
        for label in labels:
            row, floor = t.own(label, n, mode), t.floor(label, n, mode)
            if row is not None and floor is not None:
                yield Figure(f"{label} at {n}", label, n, row.over(floor).median, limit)


def _memory_figures(t: Table, labels: Iterable[str], explicit: bool, limit: float) -> Iterator[Figure]:
    for n in (n for n in t.sizes if n >= 512):
        for label in labels:
            own = t.own(label, n, "one thread")
            other = t.get(label, "explicit", n, "one thread") if explicit else t.full(label, n, "one thread")
            value = None if own is None or other is None else own.memory_ratio(other)
            if value is not None:
                yield Figure(f"{label} at {n}", label, n, value, limit, timed=False)


def _over_output(t: Table, labels: Iterable[str], n: int, limit: float) -> Iterator[Figure]:
    output = 4 * HEADS * n * HEAD_SIZE
    for label in labels:
        row = t.own(label, n, "one thread")
        if row is not None and row.peak is not None:
            yield Figure(f"{label} at {n}", label, n, row.peak / output, limit, timed=False)


def _faster(own: Row, peer: Row) -> float:
    return own.over(peer).median


def _against(
    t: Table, labels: Iterable[str], mode: Mode, compare: Callable[[Row, Row], float | None], limit: float = 1.0
) -> Iterator[Figure]:
    for label in labels:
        for name in t.peers(label):
            for n in COMPARED:
                own, peer = t.own(label, n, mode), t.get(label, name, n, mode)
                value = None if own is None or peer is None else compare(own, peer)
                if value is None or peer is None:
                    continue
                floor = t.floor(label, n, mode) if compare is _faster else None
                least = None if floor is None else _faster(floor, peer)
                words = f"{label} over {name} at {n}"
                yield Figure(words, label, n, value, limit, least, timed=compare is _faster)


def _exponents(t: Table, labels: Iterable[str], mode: Mode, limit: float) -> Iterator[Figure]:
    for label in labels:
        value = exponent(t, label, mode)
        if value is not None:
            yield Figure(label, label, max(FITTED), value, limit, exponent(t, label, mode, floor=True))
