"""The results of a load test in one JSON file: the machine, each scenario's numbers, and the cost of a move.

A move is one change of a widget by a visitor.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec


class Waits(msgspec.Struct, frozen=True):
    """Statistics of the seconds that visitors waited for one kind of answer.

    Attributes:
        count: the number of waits, including those without an answer at the end of the run.
        overdue: the waits without an answer; they count with the time waited so far.
        p50: the wait that half of the waits do not exceed.
        p95: the wait that 19 of 20 waits do not exceed.
        longest: the longest wait.
    """

    count: int = 0
    overdue: int = 0
    p50: float = 0.0
    p95: float = 0.0
    longest: float = 0.0


def waits(seconds: Sequence[float], overdue: int = 0) -> Waits:
    """Return the summary of waits. Quantiles are observed waits (nearest rank), without interpolation."""
    if not seconds:
        return Waits()
    ordered = sorted(seconds)

    def rank(share: float) -> float:
        return round(ordered[math.ceil(share * len(ordered)) - 1], 4)

    return Waits(len(ordered), overdue, rank(0.5), rank(0.95), rank(1.0))


class Process(msgspec.Struct, frozen=True):
    """All processes of a server with the same name.

    Attributes:
        name: the command they run.
        count: the largest number at a time.
        cpu: their total CPU seconds during the run.
        pss: their most bytes of memory at a time; shared pages are divided among the processes that share them.
    """

    name: str
    count: int
    cpu: float
    pss: int


class Result(msgspec.Struct, kw_only=True):
    """The numbers of one scenario.

    Attributes:
        name: the scenario's name.
        visitors: the number of visitors who read pages and change settings.
        sweepers: the number of visitors who start long runs.
        seconds: the duration.
        stamp: date, machine, versions and server.
        knob: waits after a moved slider, choice or switch.
        opening: waits for a page, including the first visit.
        first: waits for the first page, from the request for its address.
        change: waits for another page.
        sweep: waits for the end of an experiment.
        finished: the number of finished experiments, by sweeper.
        errors: the number of occurrences of each error.
        reconnected: connections that were opened again after a loss.
        lost: reconnections that did not find their session.
        pss: the most bytes of memory of all server processes at a time; None if unknown.
        over_time: this memory over the run, as seconds, bytes and open file descriptors.
        processes: the server's processes.
        client: CPU seconds of the simulated visitors.
        health: waits for the health check, which is requested every second.
        bytes: bytes of messages to the visitors, as sent.
        notes: further remarks, one sentence each.
        share: the share of all cores that server and visitors may use.
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
    share: float = 1.0

    @property
    def key(self) -> str:
        """The key of this result in the record."""
        return self.name if self.share == 1 else f"{self.name} at {self.share:.0%}"

    @property
    def cpu(self) -> float:
        """CPU seconds of the server."""
        return sum(process.cpu for process in self.processes)


class Cost(msgspec.Struct, frozen=True):
    """The cost of one visitor's moves on a page. A move is one change of a widget.

    Attributes:
        page: the page's path; empty for the home page.
        moves: the number of moves.
        knob: mean CPU seconds of a move that no visitor has made before.
        again: mean CPU seconds of the same moves by another visitor.
        middle: median CPU seconds of the moves.
        workers: the part of ``knob`` that is spent in worker processes.
        opening: median CPU seconds of opening the page after others have opened it.
        bytes: mean bytes of the messages of a move.
        wire: mean bytes of these messages as sent.
        messages: mean number of messages of a move.
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
    """The distribution of a server's time with the interpreter lock held.

    Attributes:
        scenario: the name of the running scenario.
        seconds: the duration of sampling.
        busy: the fraction of that time in which a thread held the lock.
        parts: fractions of the busy time by part.
        functions: fractions by function, without called functions; the largest only.
    """

    scenario: str
    seconds: float
    busy: float
    parts: dict[str, float]
    functions: dict[str, float]


class Record(msgspec.Struct):
    """All results.

    Attributes:
        results: the latest result of each scenario and share of the cores.
        costs: the cost of a move on each page.
        costs_stamp: the stamp of the measurement of costs.
        profile: the latest profile; None if there is no profile yet.
    """

    results: dict[str, Result] = {}
    costs: list[Cost] = []
    costs_stamp: dict[str, str] = {}
    profile: Profile | None = None

    def save(self, path: Path) -> None:
        """Write the record as formatted JSON."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    @staticmethod
    def load(path: Path) -> "Record":
        """Read a record that ``save`` wrote; return an empty record if the file does not exist."""
        return msgspec.json.decode(path.read_bytes(), type=Record) if path.exists() else Record()
