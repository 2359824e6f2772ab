"""The results of the benchmark in one JSON file: a row per subject, size and mode, and a stamp of date and machine.

A subject is a timed computation, such as a variant. A mode is one thread or all cores.
"""

import importlib.metadata
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import torch

from benchmarks.machine import machine

Mode = Literal["one thread", "all cores"]
Preset = Literal["full", "long", "decode", "bfloat16", "backward"]
Role = Literal["full", "variant", "bound", "peer", "explicit"]
T = TypeVar("T")
MODES: tuple[Mode, ...] = ("all cores", "one thread")


class Spread(NamedTuple):
    """Median and quartiles of a ratio."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Return the median and the first and third quartile; for one or two values, the smallest and largest."""
    if len(values) < 3:
        return Spread(statistics.median(values), min(values), max(values))
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One subject at one size in one mode.

    Attributes:
        label: the label of its case; for full attention, its own name.
        key: the variant's key, empty for full attention.
        name: the subject's name: that of the case, its bound, a peer or full attention, or ``explicit``.
        role: the kind of subject.
        n: the number of tokens.
        mode: one thread by CPU time, or all cores by elapsed time.
        seconds: the time of one call, one sample per round.
        base: the time of full attention around each sample. In presets about growth, the subject's expected time from
            its own time at the smallest n.
        peak: the most bytes of tensors alive at a time beyond the inputs, or None if they cannot be counted.
        skipped: the reason why there is no sample; empty if there is one.
    """

    label: str
    key: str
    name: str
    role: Role
    n: int
    mode: Mode
    seconds: list[float] = field(default_factory=list)
    base: list[float] = field(default_factory=list)
    peak: int | None = None
    skipped: str = ""

    @property
    def ratio(self) -> Spread:
        """The time divided by full attention's time."""
        return spread([s / b for s, b in zip(self.seconds, self.base, strict=True)])

    def over(self, other: "Row") -> Spread:
        """Return the ratio of this row's times to those of ``other`` in the same rounds, each divided by its base."""
        pairs = zip(self.seconds, self.base, other.seconds, other.base, strict=False)
        return spread([(s / b) / (t / c) for s, b, t, c in pairs])

    def memory_ratio(self, other: "Row") -> float | None:
        """Return the memory ratio to another subject, or None if either cannot be counted."""
        return self.peak / other.peak if self.peak and other.peak else None


@dataclass(frozen=True, kw_only=True)
class Record:
    """A whole run.

    Attributes:
        stamp: machine and versions.
        checks: the relative error of each peer's output from the expected output, by case and peer.
        missing: peers that could not run, with the reason.
        rows: all measurements.
        preset: the preset, which decides how the record is judged.
        profiles: operators with their fractions of time where a time target was missed, by case and size.
        held: the largest tensors at the peak, as bytes and shape, where a memory target was missed, by case and size.
    """

    stamp: dict[str, str]
    checks: dict[str, float]
    missing: dict[str, str]
    rows: list[Row]
    preset: Preset = "full"
    profiles: dict[str, dict[str, float]] = field(default_factory=dict)
    held: dict[str, list[tuple[int, tuple[int, ...]]]] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the record as JSON, one line per row, with times to four digits."""
        rows = [{k: _rounded(v) for k, v in asdict(row).items() if v not in ([], "", None)} for row in self.rows]
        checks = {name: _rounded(error) for name, error in self.checks.items()}
        head = {"stamp": self.stamp, "checks": checks, "missing": self.missing, "preset": self.preset}
        head |= {"profiles": self.profiles, "held": self.held}
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        text = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}") + f',\n "rows": [\n{lines}\n]}}\n'
        path.write_text(text, encoding="utf-8")

    def joined(self, later: "Record") -> "Record":
        """Return this record with cases replaced by those of a later run; the stamp lists these cases and the date.

        The rows of full attention are unchanged: every row includes its own measurement of it.
        """
        cases = {row.label for row in later.rows if row.role != "full"}
        ran = {row.name for row in later.rows if row.role == "peer"}

        def unreplaced(by_case: Mapping[str, T]) -> dict[str, T]:
            return {name: each for name, each in by_case.items() if name.rsplit(" at ", 1)[0] not in cases}

        when = f"{later.stamp['date']}, load {later.stamp['load at start']}"
        return Record(
            stamp={**later.stamp, **self.stamp, f"measured again, {when}": ", ".join(sorted(cases))},
            checks=self.checks | later.checks,
            missing={name: why for name, why in self.missing.items() if name not in ran} | later.missing,
            rows=[row for row in self.rows if row.label not in cases] + [r for r in later.rows if r.label in cases],
            preset=self.preset,
            profiles=unreplaced(self.profiles) | later.profiles,
            held=unreplaced(self.held) | later.held,
        )

    @staticmethod
    def load(path: Path) -> "Record":
        """Read a record that ``save`` wrote."""
        content = json.loads(path.read_text(encoding="utf-8"))
        blank = {"key": ""}
        return Record(**{**content, "rows": [Row(**{**blank, **row}) for row in content["rows"]]})


def stamp(packages: Iterable[str]) -> dict[str, str]:
    """Return machine and versions, including the versions of the given top-level modules if installed."""
    of_module = importlib.metadata.packages_distributions()
    installed = sorted({of_module[p][0] for p in packages if p in of_module})
    this_machine = machine()
    return {
        **this_machine,
        "CPU": f"{this_machine['CPU']}, {torch.backends.cpu.get_cpu_capability()}",
        "torch": torch.__version__,
        **{name: importlib.metadata.version(name) for name in installed},
    }


def _rounded(value: Any) -> Any:  # noqa: ANN401 - any value of a row
    if isinstance(value, list):
        return [_rounded(x) for x in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
