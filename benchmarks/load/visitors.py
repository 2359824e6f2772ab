"""The simulated visitors of the load test: those who read pages and change settings, and those who start long runs."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from benchmarks.load.tab import LostError, Tab

PAGES = {"matrices": 3, "masks": 1, "inside": 1, "": 1}
"""The pages to which visitors go, with their weights. Picture is not included: moves there cost more."""
SWEPT = ("entropy", "error", "causal", "claims")
"""The sweepers' pages, in order."""
TRAINED = "input=trained&trained=recall&trained=softmax&trained=steps~200&trained=seed~{seed}"
"""The query of an input that the server must train first, after all pages in ``SWEPT``."""
LAYERS, HEADS = 6, 12
"""The layers and heads of the model that all visitors use."""
WANDERING = 0.1
"""The fraction of moves that change the page."""
PATIENCE = {"sweep": 600.0}
"""Seconds after which a visitor gives up, by the kind of answer; ``IMPATIENT`` for all other kinds."""
IMPATIENT = 120.0
AGAIN = 0.5
"""Seconds until a browser reconnects."""


class Wait(NamedTuple):
    """One wait for an answer: its kind, its duration, and whether there was an answer."""

    kind: str
    seconds: float
    answered: bool


class Log:
    """The observations of all visitors of a run.

    Attributes:
        waits: all waits for answers.
        errors: the number of occurrences of each error.
        finished: the number of finished experiments, by visitor who starts long runs (sweeper).
        reconnected: the number of connections that were opened again.
    """

    def __init__(self) -> None:
        self.waits: list[Wait] = []
        self.errors: Counter[str] = Counter()
        self.finished: defaultdict[int, int] = defaultdict(int)
        self.reconnected = 0


class Visitor:
    """One visitor with one tab; equal seeds lead to equal moves.

    Attributes:
        tab: the visitor's tab.
    """

    def __init__(self, tab: Tab, log: Log, rng: random.Random, thinking: tuple[float, float]) -> None:
        self.tab, self._log, self._rng, self._thinking = tab, log, rng, thinking

    async def ask(self, kind: str, ask: Callable[[], Awaitable[object]]) -> bool:
        """Make a request and wait for its answer; if the connection is lost, wait until it is restored.

        Returns:
            Whether the answer came.
        """
        start, answered = time.monotonic(), False
        try:
            async with asyncio.timeout(PATIENCE.get(kind, IMPATIENT)):
                try:
                    await ask()
                except LostError as lost:
                    await self._restore(lost)
            answered = True
        except TimeoutError:
            self._log.errors[f"no answer within {PATIENCE.get(kind, IMPATIENT):.0f} s ({kind})"] += 1
        finally:  # also when the run ends and cancels the visitor's task, so that the wait so far is recorded
            self._log.waits.append(Wait(kind, time.monotonic() - start, answered))
            self._log.errors.update(self.tab.screen.errors)
            self.tab.screen.errors.clear()
        return answered

    async def _restore(self, lost: LostError) -> None:
        known = bool(self.tab.screen.session)
        while True:
            if not self.tab.dropped:
                self._log.errors[str(lost)] += 1
            try:
                await asyncio.sleep(AGAIN)
                await (self.tab.reconnect() if known else self.tab.open())
            except LostError as error:
                lost = error
            else:
                self._log.reconnected += 1
                return

    async def think(self) -> None:
        """Wait as a visitor who reads. If the connection is lost meanwhile, open it again immediately."""
        seconds = self._rng.uniform(*self._thinking)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.tab.gone.wait(), seconds)
            await self.ask("reconnection", self._report_loss)

    async def _report_loss(self) -> None:
        raise LostError("the connection was lost before anything was asked")

    async def browse(self, page: str) -> None:
        """Open a page, then change settings on it or go to other pages, without end."""
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
        """Go to another page, and return whether the server sent it."""

        async def go() -> None:
            await self.tab.ask(self.tab.screen.change_page(page, query))
            await self.tab.settle()

        return await self.ask(kind, go)

    async def sweep(self, index: int) -> None:
        """Start one long run after another, each for another layer and head, and train a model, without end."""
        places = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
        self._rng.shuffle(places)
        await self.ask("arrival", self.tab.open)
        turn = 0
        while True:
            cycle, step = divmod(turn, len(SWEPT) + 1)
            if step < len(SWEPT):
                layer, head = places[cycle % len(places)]
                page, query = SWEPT[step], f"layer={layer}&head={head}"
            else:
                page, query = "masks", TRAINED.format(seed=self._rng.randrange(10**6))
            answered = await self.change(page, query, kind="sweep")
            self._log.finished[index] += answered
            turn += 1
            await asyncio.sleep(0.1 if answered else 1.0)


def pages_of(count: int) -> list[str]:
    """Return the first page of each of ``count`` visitors, in a fixed order: half Matrices, the rest evenly."""
    cycle = ("matrices", "masks", "matrices", "inside", "matrices", "")
    return [cycle[i % len(cycle)] for i in range(count)]
