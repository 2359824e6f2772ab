"""What a measurement leaves behind: one row per subject, size and mode, and the run's stamp, as one JSON file."""

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
    """The quartiles of a ratio."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Median, first and third quartile; of one or two values, the smallest and largest."""
    if len(values) < 3:
        return Spread(statistics.median(values), min(values), max(values))
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One subject at one size in one mode.

    Attributes:
        label: the case it belongs to; its own name for full attention.
        key: the variant's key, empty for full attention.
        name: the subject: the case's label, its bound's or a peer's name, ``explicit``, or full attention's label.
        role: what it is.
        n: tokens.
        mode: one thread by CPU time, or all cores by the clock.
        seconds: time of one call, one sample per round.
        base: time of full attention around each sample; in the presets that ask how a subject grows, its own time at
            the smallest n, over which a ratio of one is what is asked.
        peak: most bytes of tensors alive at once beyond the inputs, or None where they cannot be counted.
        skipped: why there is no sample; empty if there is.
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
        """Time over full attention's."""
        return spread([s / b for s, b in zip(self.seconds, self.base, strict=True)])

    def over(self, other: "Row") -> Spread:
        """Time over another subject's in the same rounds, each first divided by the full attention beside it."""
        pairs = zip(self.seconds, self.base, other.seconds, other.base, strict=False)
        return spread([(s / b) / (t / c) for s, b, t, c in pairs])

    def held_over(self, other: "Row") -> float | None:
        """Memory over another subject's, or None where either cannot be counted."""
        return self.peak / other.peak if self.peak and other.peak else None


@dataclass(frozen=True, kw_only=True)
class Record:
    """A whole run.

    Attributes:
        stamp: machine and versions.
        checks: relative distance of each peer from what we think it computes, by case and peer.
        missing: peers that could not run, with the reason.
        rows: everything measured.
        preset: what was asked, which decides how it is judged.
        profiles: where the time of what missed a target goes, operators with their shares, by case and size.
        held: the largest tensors alive at the peak of what missed a target of memory, as bytes and shape, likewise.
    """

    stamp: dict[str, str]
    checks: dict[str, float]
    missing: dict[str, str]
    rows: list[Row]
    preset: Preset = "full"
    profiles: dict[str, dict[str, float]] = field(default_factory=dict)
    held: dict[str, list[tuple[int, tuple[int, ...]]]] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write it as JSON, a line per row, times to four digits."""
        rows = [{k: _rounded(v) for k, v in asdict(row).items() if v not in ([], "", None)} for row in self.rows]
        checks = {name: _rounded(error) for name, error in self.checks.items()}
        head = {"stamp": self.stamp, "checks": checks, "missing": self.missing, "preset": self.preset}
        head |= {"profiles": self.profiles, "held": self.held}
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        text = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}") + f',\n "rows": [\n{lines}\n]}}\n'
        path.write_text(text, encoding="utf-8")

    def joined(self, later: "Record") -> "Record":
        """This record with what a later run has measured in the place of its own; the stamp says which and when.

        Full attention stays as it was: each row holds its own beside it.
        """
        cases = {row.label for row in later.rows if row.role != "full"}
        ran = {row.name for row in later.rows if row.role == "peer"}

        def kept(found: Mapping[str, T]) -> dict[str, T]:
            return {name: each for name, each in found.items() if name.rsplit(" at ", 1)[0] not in cases}

        when = f"{later.stamp['date']}, load {later.stamp['load at start']}"
        return Record(
            stamp={**later.stamp, **self.stamp, f"measured again, {when}": ", ".join(sorted(cases))},
            checks=self.checks | later.checks,
            missing={name: why for name, why in self.missing.items() if name not in ran} | later.missing,
            rows=[row for row in self.rows if row.label not in cases] + [r for r in later.rows if r.label in cases],
            preset=self.preset,
            profiles=kept(self.profiles) | later.profiles,
            held=kept(self.held) | later.held,
        )

    @staticmethod
    def load(path: Path) -> "Record":
        """Read what ``save`` wrote."""
        found = json.loads(path.read_text(encoding="utf-8"))
        blank = {"key": ""}
        return Record(**{**found, "rows": [Row(**{**blank, **row}) for row in found["rows"]]})


def stamp(packages: Iterable[str]) -> dict[str, str]:
    """Machine and versions, those of the given top-level modules included where installed."""
    of_module = importlib.metadata.packages_distributions()
    found = sorted({of_module[p][0] for p in packages if p in of_module})
    here = machine()
    return {
        **here,
        "CPU": f"{here['CPU']}, {torch.backends.cpu.get_cpu_capability()}",
        "torch": torch.__version__,
        **{name: importlib.metadata.version(name) for name in found},
    }


def _rounded(value: Any) -> Any:  # noqa: ANN401 - whatever a row holds
    if isinstance(value, list):
        return [_rounded(x) for x in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
