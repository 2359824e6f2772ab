"""Who visits: those who look at pages and move what is on them, and those who start long runs."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from benchmarks.load.tab import LostError, Tab

PAGES = {"matrices": 3, "masks": 1, "inside": 1, "": 1}
"""The visitors' pages, and how many of six are on each."""
SWEPT = ("entropy", "error", "causal", "claims")
"""The sweepers' pages, in their order."""
LAYERS, HEADS = 6, 12
"""Of the model that everybody looks at."""
WANDERING = 0.1
"""The share of moves that change the page."""
PATIENCE = {"sweep": 600.0}
"""Seconds after which a visitor gives up, by what is waited for."""
IMPATIENT = 120.0
AGAIN = 0.5
"""Seconds until a browser connects again."""


class Wait(NamedTuple):
    """One answer waited for: what kind, for how long, and whether it came."""

    kind: str
    seconds: float
    came: bool


class Log:
    """What all visitors of a run together have seen.

    Attributes:
        waits: every answer waited for.
        errors: how often each was shown or met.
        finished: sweeps finished, by sweeper.
        reconnected: connections opened again.
    """

    def __init__(self) -> None:
        self.waits: list[Wait] = []
        self.errors: Counter[str] = Counter()
        self.finished: defaultdict[int, int] = defaultdict(int)
        self.reconnected = 0


class Visitor:
    """One visitor with one tab; the same seed makes the same moves.

    Attributes:
        tab: where he looks.
    """

    def __init__(self, tab: Tab, log: Log, rng: random.Random, thinking: tuple[float, float]) -> None:
        self.tab, self._log, self._rng, self._thinking = tab, log, rng, thinking

    async def ask(self, kind: str, ask: Callable[[], Awaitable[object]]) -> bool:
        """Ask for something and wait; if the connection is lost, until it is there again.

        Returns:
            Whether the answer came.
        """
        began, came = time.monotonic(), False
        try:
            async with asyncio.timeout(PATIENCE.get(kind, IMPATIENT)):
                try:
                    await ask()
                except LostError as lost:
                    await self._return(lost)
            came = True
        except TimeoutError:
            self._log.errors[f"no answer within {PATIENCE.get(kind, IMPATIENT):.0f} s ({kind})"] += 1
        finally:  # who is sent home while he waits has waited so long
            self._log.waits.append(Wait(kind, time.monotonic() - began, came))
            self._log.errors.update(self.tab.screen.errors)
            self.tab.screen.errors.clear()
        return came

    async def _return(self, lost: LostError) -> None:
        known = bool(self.tab.screen.session)
        while True:
            if not self.tab.dropped:
                self._log.errors[str(lost)] += 1
            try:
                await asyncio.sleep(AGAIN)
                await (self.tab.reconnect() if known else self.tab.open())
            except LostError as again:
                lost = again
            else:
                self._log.reconnected += 1
                return

    async def think(self) -> None:
        """Look at the page for a while; a connection that is lost meanwhile is opened again at once."""
        seconds = self._rng.uniform(*self._thinking)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.tab.gone.wait(), seconds)
            await self.ask("reconnection", self._find_out)

    async def _find_out(self) -> None:
        raise LostError("the connection was lost before anything was asked")

    async def look(self, page: str) -> None:
        """Open a page, then move what is on it and change to others, for ever."""
        await self.ask("first", self.tab.open)
        while True:
            await self.think()
            if self._rng.random() < WANDERING or not self.tab.screen.knobs():
                others = {each: weight for each, weight in PAGES.items() if each != page}
                [page] = self._rng.choices(list(others), list(others.values()))
                await self.change(page)
            else:
                await self.ask("knob", lambda: self.tab.move(self._rng))

    async def change(self, page: str, query: str = "", *, kind: str = "change") -> bool:
        """Go to another page; returns whether it came."""

        async def go() -> None:
            await self.tab.ask(self.tab.screen.change_page(page, query))
            await self.tab.settle()

        return await self.ask(kind, go)

    async def sweep(self, me: int) -> None:
        """Start one long run after the other, each on another layer and head, for ever."""
        places = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
        self._rng.shuffle(places)
        await self.ask("arrival", self.tab.open)
        turn = 0
        while True:
            layer, head = places[turn // len(SWEPT) % len(places)]
            page = SWEPT[turn % len(SWEPT)]
            came = await self.change(page, f"layer={layer}&head={head}", kind="sweep")
            self._log.finished[me] += came
            turn += 1
            await asyncio.sleep(0.1 if came else 1.0)


def pages_of(count: int) -> list[str]:
    """The first page of each of so many visitors, in a fixed order: half on the first, the rest spread evenly."""
    cycle = ("matrices", "masks", "matrices", "inside", "matrices", "")
    return [cycle[i % len(cycle)] for i in range(count)]
