"""What a run of visitors leaves behind, as one JSON file: the machine, each scenario's numbers, what a move costs."""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec


class Waits(msgspec.Struct, frozen=True):
    """How long visitors waited for one kind of answer, in seconds.

    Attributes:
        count: answers waited for, those included that had not come when time was up.
        overdue: those that had not; they count with the time waited so far.
        p50: half waited no longer.
        p95: 19 of 20 waited no longer.
        longest: the longest wait.
    """

    count: int = 0
    overdue: int = 0
    p50: float = 0.0
    p95: float = 0.0
    longest: float = 0.0


def waits(seconds: Sequence[float], overdue: int = 0) -> Waits:
    """Summarise waits; a quantile is one of them (the nearest rank), never between two."""
    if not seconds:
        return Waits()
    ordered = sorted(seconds)

    def rank(share: float) -> float:
        return round(ordered[math.ceil(share * len(ordered)) - 1], 4)

    return Waits(len(ordered), overdue, rank(0.5), rank(0.95), rank(1.0))


class Process(msgspec.Struct, frozen=True):
    """All of a server's processes of one name.

    Attributes:
        name: what they run.
        count: how many there were at once.
        cpu: CPU seconds of them all during the run.
        pss: most bytes of memory at once, each shared page divided among those who share it.
    """

    name: str
    count: int
    cpu: float
    pss: int


class Result(msgspec.Struct, kw_only=True):
    """One scenario's numbers.

    Attributes:
        name: of the scenario.
        visitors: who look at pages.
        sweepers: who start long runs.
        seconds: how long it ran.
        stamp: when, on what machine, with which versions and which server.
        knob: waits for a moved slider, choice or switch.
        opening: waits for a page, the first visit included.
        first: waits for the first page, from asking for the address.
        change: waits for another page.
        sweep: waits for an experiment's end.
        finished: sweeps finished, by sweeper.
        errors: how often each error came.
        reconnected: connections opened again after they had been lost.
        lost: those among them that no longer found their session.
        pss: most bytes of memory at once of all the server's processes; None where they are not known.
        over_time: that memory over the run, as seconds, bytes and open file descriptors.
        processes: what the server consists of.
        client: CPU seconds of the visitors themselves.
        health: answers of the health check, one asked for every second.
        bytes: of messages to the visitors, as sent.
        notes: what else is to be said, one sentence each.
    """

    name: str
    visitors: int
    sweepers: int
    seconds: float
    stamp: dict[str, str]
    knob: Waits
    opening: Waits
    first: Waits
    change: Waits
    sweep: Waits
    finished: list[int]
    errors: dict[str, int]
    reconnected: int = 0
    lost: int = 0
    pss: int | None = None
    over_time: list[tuple[float, int, int]] = []
    processes: list[Process] = []
    client: float = 0.0
    health: Waits = Waits()
    bytes: int = 0
    notes: list[str] = []

    @property
    def cpu(self) -> float:
        """CPU seconds of the server."""
        return sum(process.cpu for process in self.processes)


class Cost(msgspec.Struct, frozen=True):
    """What one visitor's moves on a page cost.

    Attributes:
        page: its path; empty for the first.
        moves: how many were made.
        knob: CPU seconds of a move, on average, where nobody has made it before.
        again: the same moves made by somebody else.
        middle: CPU seconds of the middle one of the moves.
        workers: of ``knob``, those spent in worker processes.
        opening: CPU seconds of opening the page where others have seen it, the middle one.
        bytes: of a move's messages, on average.
        wire: of them as sent.
        messages: of a move.
    """

    page: str
    moves: int
    knob: float
    again: float
    middle: float
    workers: float
    opening: float
    bytes: float
    wire: float
    messages: float


class Profile(msgspec.Struct, frozen=True):
    """Where the server's time under the interpreter lock goes.

    Attributes:
        scenario: what went on.
        seconds: how long was looked.
        busy: share of that time in which some thread held the lock.
        parts: share of the busy time by part.
        functions: by function, what it does itself; the largest.
    """

    scenario: str
    seconds: float
    busy: float
    parts: dict[str, float]
    functions: dict[str, float]


class Record(msgspec.Struct):
    """Everything measured.

    Attributes:
        results: by scenario, the latest of each.
        costs: what a move costs, by page.
        costs_stamp: of their measurement.
        profile: where the time goes; None where nobody has looked.
    """

    results: dict[str, Result] = {}
    costs: list[Cost] = []
    costs_stamp: dict[str, str] = {}
    profile: Profile | None = None

    def save(self, path: Path) -> None:
        """Write it as JSON that reads well."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    @staticmethod
    def load(path: Path) -> "Record":
        """Read what ``save`` wrote; an empty record where there is nothing."""
        return msgspec.json.decode(path.read_bytes(), type=Record) if path.exists() else Record()
