"""The scenarios of the load test (a number of visitors for a duration), and the code that runs one against a server."""

import asyncio
import random
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import httpx2

from benchmarks.load.results import Cost, Result, waits
from benchmarks.load.server import Watch, clocks, has_idle_priority
from benchmarks.load.tab import LostError, RefusedError, Tab, loopback
from benchmarks.load.visitors import Log, Visitor, pages_of
from benchmarks.machine import pace

MOST_VISITORS, MOST_SECONDS = 500, 3600
"""Limits on the load that this client puts on a server."""
SLOW_CHECK = 30.0
"""Seconds after which a health check counts as failed."""
OPENINGS = 9
"""The number of visits to a page; the median cost is reported."""
COSTED = ("", "matrices", "masks", "inside", "entropy", "error", "timing", "causal", "claims", "picture")
"""The pages whose costs are measured."""
REST = 0.2
"""Seconds to wait until a server is idle again."""
PACES = 50
"""Repetitions of ``machine.pace``; the fastest represents the idle machine."""


@dataclass(frozen=True)
class Scenario:
    """A number of visitors for a duration.

    Attributes:
        visitors: the number of visitors who read pages and change settings.
        sweepers: the number of visitors who start long runs.
        seconds: the duration from the first arrival.
        dropped: the number of connections broken off together at half time.
        arrival: seconds within which all visitors arrive.
        thinking: the range of seconds between an answer and the next move.
    """

    visitors: int
    sweepers: int = 0
    seconds: float = 90.0
    dropped: int = 0
    arrival: float = 12.0
    thinking: tuple[float, float] = (3.0, 9.0)

    def __post_init__(self) -> None:
        if not 1 <= self.visitors + self.sweepers <= MOST_VISITORS or not 0 < self.seconds <= MOST_SECONDS:
            raise RefusedError(
                f"{self.visitors} visitors and {self.sweepers} sweepers for {self.seconds:g} s are not between one and "
                f"the {MOST_VISITORS} visitors and {MOST_SECONDS} s that this client allows."
            )


SCENARIOS = {
    "20": Scenario(20),
    "20+5": Scenario(20, 5),
    "40": Scenario(40),
    "40+5": Scenario(40, 5),
    "100": Scenario(100),
    "100+5": Scenario(100, 5),
    "200+10": Scenario(200, 10),
    "400": Scenario(400),
    "soak": Scenario(100, 5, seconds=1800.0),
    "chaos": Scenario(100, seconds=120.0, dropped=50),
}


def scenario(name: str, seconds: float | None = None) -> Scenario:
    """Return a scenario by its name, or by ``<visitors>+<sweepers>``.

    Raises:
        RefusedError: if the name is unknown, or the load exceeds the limits.
    """
    chosen = SCENARIOS.get(name)
    if chosen is None:
        visitors, _, sweepers = name.partition("+")
        try:
            chosen = Scenario(int(visitors), int(sweepers or 0))
        except ValueError as error:
            if isinstance(error, RefusedError):
                raise
            raise RefusedError(f"There is no scenario {name}: take one of {', '.join(SCENARIOS)}, or 30+2.") from None
    return chosen if seconds is None else replace(chosen, seconds=seconds)


async def run(
    name: str,
    chosen: Scenario,
    servers: Sequence[str],
    roots: Iterable[int],
    *,
    stamp: dict[str, str],
    seed: int = 0,
    assets: bool = False,
    along: Callable[[], Awaitable[None]] | None = None,
) -> Result:
    """Send visitors to a server, and return their waits and the server's use of resources.

    Args:
        name: the scenario's name.
        chosen: the scenario.
        servers: the servers' addresses, usually one; visitors are assigned to them in turn.
        roots: the server's processes, whose descendants are included; empty if unknown.
        stamp: stored with the result.
        seed: the seed of all moves.
        assets: whether a first visit loads the page's scripts and styles.
        along: an action that starts once all visitors have arrived.
    """
    servers = [loopback(server) for server in servers]
    log, watch, roots = Log(), Watch(roots), list(roots)
    tabs: list[Tab] = []
    pages = [*pages_of(chosen.visitors), *["entropy"] * chosen.sweepers]
    idle_pace, paces = min(pace() for _ in range(PACES)), [pace()]
    start, cpu_start = time.monotonic(), time.process_time()

    async def visit(i: int, page: str) -> None:
        rng = random.Random(f"{seed} {i}")
        await asyncio.sleep(rng.uniform(0, chosen.arrival))
        tab = Tab(servers[i % len(servers)], page, assets=assets)
        tabs.append(tab)
        visitor, sweeper = Visitor(tab, log, rng, chosen.thinking), i - chosen.visitors
        await (visitor.browse(page) if sweeper < 0 else visitor.sweep(sweeper))

    async def drop() -> None:
        await asyncio.sleep(chosen.seconds / 2)
        for tab in random.Random(seed).sample(tabs, min(chosen.dropped, len(tabs))):
            tab.drop()

    async def follow() -> None:
        await asyncio.sleep(chosen.arrival)
        if along:
            await along()

    checks: list[float] = []
    if roots:
        watch.measure()
    helpers = [
        _measure_repeatedly(watch, max(2.0, chosen.seconds / 200)) if roots else None,
        _check(servers[0], checks, log),
    ]
    helpers += [drop() if chosen.dropped else None, follow(), _pace(paces)]
    tasks = [asyncio.create_task(work) for work in (*helpers, *(visit(*each) for each in enumerate(pages))) if work]
    await asyncio.wait(tasks, timeout=chosen.seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    client = time.process_time() - cpu_start
    if roots:
        await asyncio.to_thread(watch.measure)
    await asyncio.gather(*(tab.close() for tab in tabs))
    for failure in ended:
        if isinstance(failure, Exception):
            raise failure

    def waits_of(*kinds: str) -> tuple[list[float], int]:
        selected = [wait for wait in log.waits if wait.kind in kinds]
        return [wait.seconds for wait in selected], sum(not wait.answered for wait in selected)

    return Result(
        name=name,
        visitors=chosen.visitors,
        sweepers=chosen.sweepers,
        seconds=round(time.monotonic() - start, 1),
        stamp={**stamp, "a loop before, under load": f"{idle_pace:.2f} ms, {statistics.median(paces):.2f} ms"},
        knob=waits(*waits_of("knob")),
        opening=waits(*waits_of("first", "change")),
        first=waits(*waits_of("first")),
        change=waits(*waits_of("change")),
        sweep=waits(*waits_of("sweep")),
        finished=[log.finished[i] for i in range(chosen.sweepers)],
        errors=dict(log.errors),
        reconnected=log.reconnected,
        lost=sum(tab.lost for tab in tabs),
        pss=max(pss for _, pss, _ in watch.over_time) if roots else None,
        over_time=watch.over_time,
        processes=watch.processes(),
        client=round(client, 2),
        health=waits(checks),
        bytes=sum(tab.wire for tab in tabs),
    )


async def _measure_repeatedly(watch: Watch, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        # The measurement runs in a thread, because it takes a while: the kernel reads the page tables of a gigabyte of
        # memory.
        await asyncio.to_thread(watch.measure)


async def _pace(paces: list[float]) -> None:
    while True:
        await asyncio.sleep(1.0)
        paces.append(pace())


async def _check(server: str, checks: list[float], log: Log) -> None:
    """Request the server's health check every second, and store the waits."""
    async with httpx2.AsyncClient(timeout=SLOW_CHECK, trust_env=False, verify=False) as client:
        while True:
            start = time.monotonic()
            try:
                (await client.get(f"{server}/_stcore/health")).raise_for_status()
            except (httpx2.HTTPError, OSError) as error:
                log.errors[f"the health check fails: {type(error).__name__}"] += 1
            finally:  # also when the run ends: a request without an answer counts with its wait so far
                checks.append(time.monotonic() - start)
            await asyncio.sleep(max(0.0, 1.0 - checks[-1]))


async def cost(server: str, roots: Sequence[int], *, moves: int = 48, seed: int = 0) -> AsyncIterator[Cost]:
    """Yield the cost of a move on each page, with a single visitor who makes one move after another.

    Args:
        server: the server's address.
        roots: the server's processes; their descendants are included.
        moves: the number of moves on each page.
        seed: the seed of the moves.

    Raises:
        LostError: if the server closes the connection, or a page shows an exception.
    """
    for page in COSTED:
        await _open_page(server, page)  # fills the server's caches, so that the costs below do not include that work
        openings = [await _cpu_seconds(roots, _open_page(server, page)) for _ in range(OPENINGS)]
        first, second = (Tab(server, page) for _ in range(2))
        new, again = [
            await _costs_of_moves(tab, random.Random(f"{seed} {page}"), moves, roots) for tab in (first, second)
        ]
        if errors := first.screen.errors + second.screen.errors:
            raise LostError("; ".join(errors))
        count = max(1, len(new))
        yield Cost(
            page,
            len(new),
            *(round(sum(each[0] for each in costs) / count, 4) for costs in (new, again)),
            round(statistics.median(each[0] for each in new), 4) if new else 0.0,
            round(sum(each[1] for each in new) / count, 4),
            round(statistics.median(each[0] for each in openings), 4),
            *(round(each / count, 1) for each in (first.bytes, first.wire, first.messages)),
        )


async def _costs_of_moves(tab: Tab, rng: random.Random, moves: int, roots: Sequence[int]) -> list[tuple[float, float]]:
    """Open a page, make moves on it, and return the CPU seconds of each. The tab counts only the moves."""
    await tab.open()
    await asyncio.sleep(REST)
    tab.bytes = tab.wire = tab.messages = 0
    costs = []
    while len(costs) < moves and tab.screen.knobs():
        costs.append(await _cpu_seconds(roots, tab.move(rng)))
    await tab.close()
    return costs


async def _cpu_seconds(roots: Sequence[int], work: Awaitable[object]) -> tuple[float, float]:
    """Return the CPU seconds of a server during a request: the total, and those of its worker processes."""
    before = clocks(roots)
    await work
    await asyncio.sleep(REST)
    after = clocks(roots)
    used = {pid: now - before.get(pid, 0.0) for pid, now in after.items()}
    return sum(used.values()), sum(used[pid] for pid in after if has_idle_priority(pid))


async def _open_page(server: str, page: str) -> None:
    tab = Tab(server, page)
    await tab.open()
    await tab.settle()
    await tab.close()
