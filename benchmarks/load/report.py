"""Writes LOAD.md, the report of the load test: its results, next to response times before the app was optimised."""

import statistics
from collections.abc import Iterable, Sequence

from benchmarks.load.results import Profile, Record, Result, Waits
from benchmarks.load.scenarios import SCENARIOS

BEFORE = (
    ("20 visitors", "0.10 / 1.2 s", "0.37 / 2.3 s"),
    ("20 + 5 sweepers", "1.5 / 9.3 s", "2.1 / 9.9 s"),
    ("40 visitors", "3.0 / 16 s", "10 / 18 s"),
    ("100 + 5 sweepers", "none finished in 45 s", "38 / 49 s"),
)
"""Response times of one process before any optimisation: slider p50 / p95, opening a page p50 / p95."""
BEFORE_WHERE = """
There was no error and no lost session, and the server used 0.9 GB. After every run, Streamlit
spent most of the time on two things: its file watcher resolved the path of every loaded module again, and a
garbage collection visited all live objects."""
FLAT = 0.05
"""The fraction by which memory may grow over a soak test, a long run under constant load."""
WARMING = 0.25
"""The fraction of a soak test that is left out of the comparison, because caches fill first."""

LIMIT = 0.5
"""Seconds within which 95% of the moves should be answered."""
MOVE_LIMITS = {"": 0.02, "matrices": 0.015, "masks": 0.02, "inside": 0.02}
"""CPU seconds that a move should cost at most, by page; empty for the home page."""

INTRODUCTION = """# Load

Written by `python -m benchmarks.load` from [load/results.json](load/results.json).

**Visitors** use the protocol of a browser. They load the page, keep its cookies, open the websocket with
compression, and send and cache the same messages. All arrive within 12 s: half on Matrices, the others on Masks,
Inside and Home. After each answer they wait for 3 to 9 s. Then they move any slider, choice or switch of the page,
or open a form, a variant's settings or an expander. They do not change the kind of input, its model or the size of
an image. One move in ten goes to another of these pages. They do not open Picture, where a move costs several
times as much. **Sweepers** open Entropy, Error, Causal and Claims one after the other without a pause, each time
with another layer and head, and then train a small model as the input of Masks.

A wait is the time from the request to the end of the run that answers it. For the first visit, it starts with the
request for the page. An answer that is still missing at the end counts with the time waited so far. Quantiles are
waits that occurred. Visitors and server share the machine, so the table also lists the visitors' own CPU time.
Memory is PSS over all processes of the server. An error is an exception on a page, a lost connection, or no answer
within two minutes.

For each machine, the report gives the CPU time of a loop of 100,000 additions: the shortest before the run, and
the median under load. They differ if the cores are shared with each other or with other machines, which the load
average does not show.
"""

HOW = """
## How to measure

```sh
python -m benchmarks.load 20 20+5 40 40+5 100 100+5 200+10 400   # starts a server for each; --serve sets the command
python -m benchmarks.load soak chaos                              # half an hour; 50 connections dropped together
python -m benchmarks.load 200+10 --share 0.67                     # with two thirds of the cores; needs root on Linux
python -m benchmarks.load cost                                    # CPU seconds of a move, by page
python -m benchmarks.load 40 --profile                            # profile of the server; needs py-spy
python -m benchmarks.load 100 --url http://127.0.0.1:8501 --pid 4711   # a server that is already running
```

Each scenario replaces only its own numbers. Only addresses of this machine are visited.
"""


def text(record: Record) -> str:
    """Return the text of LOAD.md."""
    results = sorted(record.results.values(), key=_place)
    parts = [
        INTRODUCTION,
        *(f"{line}\n" for line in saturation(results)),
        "## Waiting\n\nBefore, in one process:\n",
        _table(("load, one process", "knob p50 / p95", "opening a page p50 / p95"), BEFORE),
        BEFORE_WHERE,
    ]
    if targets(record):
        parts.insert(len(parts) - 3, f"## Targets\n\n{_targets(record)}\n")
    if results:
        parts += ["\nNow:\n", _waiting(results), *_errors(results)]
        parts += ["\n## Memory and CPU time\n", _resources(results), "\n" + _processes(results)]
    parts += [line for result in results if result.over_time for line in _soak(result)]
    if record.costs:
        parts += ["\n## Cost of a move\n", _costs(record)]
    if record.profile:
        parts += ["\n## Profile of the runs\n", _profile(record.profile)]
    if results:
        parts += ["\n## Machine and versions\n", _stamps(results)]
    return "\n".join([*parts, HOW])


def targets(record: Record) -> list[tuple[str, float, float]]:
    """Return each measured target as its text, its limit and the measured value, in seconds."""
    waits = [
        (f"{label(r)}: {name}, p95", limit, kind.p95)
        for r in sorted(record.results.values(), key=_place)
        if (r.visitors, r.sweepers) == (200, 10) and not r.name.isalpha()
        for name, limit, kind in (("knob", LIMIT, r.knob), ("opening a page", 2 * LIMIT, r.opening))
        if kind.count
    ]
    costs = [
        (f"CPU time of a move: {c.page or 'home'}, mean", MOVE_LIMITS[c.page], c.knob)
        for c in record.costs
        if c.page in MOVE_LIMITS
    ]
    return [*waits, *costs]


def _targets(record: Record) -> str:
    lines = [
        (name, f"{limit:g} s", f"{seconds(value)} s", "met" if value <= limit else "missed")
        for name, limit, value in targets(record)
    ]
    table = _table(("", "at most", "measured", "result"), lines)
    if record.profile is None or all(result != "missed" for *_rest, result in lines):
        return table
    part, share = max(record.profile.parts.items(), key=lambda item: item[1])
    reason = f"The profile below shows no single cause of the CPU time: the largest part, {part}, is {share:.0%}."
    return f"{table}\n\n{reason}" if share < 0.5 else table


def _place(result: Result) -> tuple[float, int, int, int]:
    names = list(SCENARIOS)
    place = names.index(result.name) if result.name in names else len(names)
    return -result.share, place, result.visitors, result.sweepers


def saturation(results: Sequence[Result]) -> list[str]:
    """Return a sentence for each share of the cores: how many visitors are served within ``LIMIT`` seconds."""
    lines = []
    for share in sorted({result.share for result in results}, reverse=True):
        own = [r for r in results if r.share == share and r.knob.count and not r.sweepers and not r.name.isalpha()]
        p95 = {r.visitors: r.knob.p95 for r in own}
        beyond = min((n for n, wait in p95.items() if wait >= LIMIT), default=None)
        within = max((n for n in p95 if beyond is None or n < beyond), default=None)
        machine = "" if share == 1 else f"With {share:.0%} of the cores: "
        if within is not None:
            lines.append(f"{machine}**{within} visitors** wait at most {seconds(p95[within])} s for 95% of their moves")
            lines[-1] += "." if beyond is None else f"; with {beyond} visitors, it is {seconds(p95[beyond])} s."
        elif beyond is not None:
            lines.append(f"{machine}With {beyond} visitors, 95% of the moves take at most {seconds(p95[beyond])} s.")
    return lines


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def label(result: Result) -> str:
    """Return the name of a scenario."""
    visitors = f"{result.visitors} visitors" + (f" + {result.sweepers} sweepers" if result.sweepers else "")
    visitors += "" if result.share == 1 else f", {result.share:.0%} of the cores"
    return f"{result.name}: {visitors}" if result.name in SCENARIOS and not result.name[0].isdigit() else visitors


def seconds(value: float) -> str:
    """Return a time to two digits: 0.012, 0.12, 1.2, 12, 120."""
    if value >= 9.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 0.995 else f"{value:.2g}"


def summary(waits: Waits) -> str:
    """Return the text of a table cell: the p50, p95 and longest wait, and the number of overdue answers."""
    if not waits.count:
        return "none"
    overdue = f" ({waits.overdue} overdue)" if waits.overdue else ""
    return f"{seconds(waits.p50)} / {seconds(waits.p95)} / {seconds(waits.longest)} s{overdue}"


def _waiting(results: Sequence[Result]) -> str:
    head = ("p50 / p95 / longest", "knob", "opening a page", "first visit", "page change", "moves", "sweeps", "errors")
    lines = [
        [
            label(r),
            *(summary(kind_waits) for kind_waits in (r.knob, r.opening, r.first, r.change)),
            str(r.knob.count + r.change.count),
            f"{sum(r.finished)} ({summary(r.sweep)})" if r.sweepers else "",
            str(sum(r.errors.values())),
        ]
        for r in results
    ]
    return _table(head, lines)


def _errors(results: Sequence[Result]) -> list[str]:
    lines = []
    for result in results:
        lines += [f"- {label(result)}: {count} times {error}" for error, count in sorted(result.errors.items())]
        if result.reconnected:
            reopened = f"{result.reconnected} connections were reopened, {result.lost} of them without their session"
            lines.append(f"- {label(result)}: {reopened}.")
        if result.sweepers and not all(result.finished):
            lines.append(f"- {label(result)}: {result.finished.count(0)} sweepers finished no sweep.")
        lines += [f"- {label(result)}: {note}" for note in result.notes]
    return ["", *lines] if lines else []


def _resources(results: Sequence[Result]) -> str:
    head = ("", "memory at most", "server CPU", "visitors' CPU", "received", "health check, p50 / p95 / longest")
    lines = [
        [
            label(r),
            "not known" if r.pss is None else f"{r.pss / 2**30:.2f} GiB",
            "not known" if r.pss is None else f"{r.cpu:.0f} s ({r.cpu / r.seconds:.2f} cores)",
            f"{r.client:.0f} s ({r.client / r.seconds:.2f} cores)",
            f"{r.bytes / 2**20:.0f} MiB",
            summary(r.health),
        ]
        for r in results
    ]
    return _table(head, lines)


def _processes(results: Sequence[Result]) -> str:
    lines = [
        [label(r), "; ".join(f"{p.count} × {p.name}: {p.cpu:.0f} CPU s, {p.pss / 2**20:.0f} MiB" for p in r.processes)]
        for r in results
        if r.processes
    ]
    return _table(("", "processes"), lines) if lines else ""


def _soak(result: Result) -> list[str]:
    if result.name != "soak":
        return []
    warm = [sample for sample in result.over_time if sample[0] >= WARMING * result.seconds]
    size = max(1, len(warm) // 5)
    (before, after), (files_before, files_after) = (
        [statistics.median(sample[i] for sample in part) for part in (warm[:size], warm[-size:])] for i in (1, 2)
    )
    growth = after / before - 1
    verdict = "flat" if abs(growth) <= FLAT else "not flat"
    cores = "" if result.share == 1 else f" on {result.share:.0%} of the cores"
    return [
        f"\nOver {result.seconds / 60:.0f} minutes of half load{cores}, the first quarter left out, memory goes from "
        f"{before / 2**20:.0f} to {after / 2**20:.0f} MiB ({growth:+.1%}: {verdict}) and open file descriptors from "
        f"{files_before:.0f} to {files_after:.0f}."
    ]


def _costs(record: Record) -> str:
    head = ("page", "knob, CPU s", "median", "in workers", "repeated", "opening, CPU s", "messages", "kB", "moves")
    lines = [
        [
            cost.page or "home",
            *(f"{each:.3f}" for each in (cost.knob, cost.middle, cost.workers, cost.again, cost.opening)),
            f"{cost.messages:.0f}",
            f"{cost.bytes / 1000:.0f}",
            str(cost.moves),
        ]
        for cost in record.costs
    ]
    where = ", ".join(f"{name} {value}" for name, value in record.costs_stamp.items())
    text = (
        "A single visitor makes one move after the other, each for the first time on this server. Then another "
        "visitor, possibly on another replica, makes the same moves again. Then a new visitor opens the page."
    )
    return f"{text}\n\n" + _table(head, lines) + f"\n\n({where})"


def _profile(profile: Profile) -> str:
    busy = f"{profile.scenario}: a thread held the interpreter lock in {profile.busy:.0%} of {profile.seconds:.0f} s."
    parts = _table(("part", "share"), [(part, f"{share:.1%}") for part, share in profile.parts.items()])
    functions = _table(
        ("function itself", "share"), [(f"`{n}`", f"{share:.1%}") for n, share in profile.functions.items()]
    )
    return f"{busy}\n\n{parts}\n\n{functions}"


def _stamps(results: Sequence[Result]) -> str:
    names = list(dict.fromkeys(name for result in results for name in result.stamp))
    lines = [[label(r), *(r.stamp.get(name, "") for name in names)] for r in results]
    return _table(("", *names), lines)
