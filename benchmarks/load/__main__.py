"""The command line of the load test: ``python -m benchmarks.load``."""

import argparse
import asyncio
import importlib.metadata
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.load import profiler
from benchmarks.load.report import label, summary, text
from benchmarks.load.results import Cost, Profile, Record
from benchmarks.load.scenarios import SCENARIOS, cost, run, scenario
from benchmarks.load.server import limited_cores, started
from benchmarks.load.tab import LostError, RefusedError, loopback
from benchmarks.machine import machine

HERE = Path(__file__).parent
PLAIN = "streamlit run app --server.address 127.0.0.1 --server.port {port} --server.headless true"
"""The command of the README, which starts a single process."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the requested scenarios, or write the report from an existing record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description="How many visitors a server serves.")
    named = f"{', '.join(SCENARIOS)}, or <visitors>+<sweepers>; cost for what a move costs"
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=named)
    parser.add_argument("--serve", default=PLAIN, metavar="COMMAND", help="starts the server; {port} in it is replaced")
    parser.add_argument("--port", type=int, default=8710, help="where that server listens")
    parser.add_argument("--url", nargs="+", metavar="ADDRESS", help="visit these instead, in turn; of this machine")
    parser.add_argument("--pid", type=int, nargs="*", default=[], help="their processes, to count memory and time")
    parser.add_argument("--seconds", type=float, help="how long each scenario runs")
    parser.add_argument(
        "--share", type=float, default=1.0, help="limit server and visitors to this share of all cores; needs root"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed makes the same moves")
    parser.add_argument("--assets", action="store_true", help="a first visit loads the page's scripts and styles too")
    parser.add_argument("--profile", action="store_true", help="look with py-spy where the server's time goes")
    parser.add_argument("--note", action="append", default=[], help="a sentence that stands with the numbers")
    parser.add_argument("--out", type=Path, default=HERE / "results.json", help="the record, beside others' numbers")
    parser.add_argument("--report", type=Path, default=HERE.parent / "LOAD.md", help="what is written from it")
    given = parser.parse_args(arguments)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Each visitor has one to three connections, so the limit on open files is raised to its maximum.
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    record = Record.load(given.out)
    try:
        for server in given.url or ():
            loopback(server)
        for name in given.scenarios:
            if name != "cost":
                scenario(name, given.seconds)
        if given.url and not given.pid and (given.profile or "cost" in given.scenarios):
            raise RefusedError("What a server spends is not known without its processes: name them with --pid.")
        if not 0 < given.share <= 1:
            raise RefusedError(f"A share of {given.share:g} is not possible: choose one above 0, at most 1.")
        if given.share != 1 and (given.url or "cost" in given.scenarios):
            raise RefusedError("Only a server that this command starts can be limited, and costs do not depend on it.")
        for name in given.scenarios:
            with limited_cores(given.share), _server(given) as (servers, roots):
                measure(name, servers, roots, given, record)
            record.save(given.out)
    except (RefusedError, LostError) as error:
        parser.error(str(error))
    given.report.write_text(text(record), encoding="utf-8")


@contextmanager
def _server(given: argparse.Namespace) -> Iterator[tuple[list[str], list[int]]]:
    if given.url:
        yield given.url, given.pid
        return
    address = f"http://127.0.0.1:{given.port}"
    say(f"starting {given.serve.format(port=given.port)}")
    with started(given.serve, address, Path(tempfile.gettempdir()) / f"load-{given.port}.log") as pid:
        yield [address], [pid]


def measure(name: str, servers: list[str], roots: list[int], given: argparse.Namespace, record: Record) -> None:
    """Run one scenario and add its results to the record."""
    stamp = {**machine(), **versions(), "commit": commit(), "server": " ".join(given.url or [given.serve])}
    if name == "cost":
        record.costs, record.costs_stamp = asyncio.run(_costs(servers[0], roots, given.seed)), stamp
        return
    chosen = scenario(name, given.seconds)

    async def look() -> None:
        seen.append(await profiler.watch(roots, (chosen.seconds - chosen.arrival) / 2, name))

    seen: list[Profile] = []
    say(f"{name}: {chosen.visitors} visitors, {chosen.sweepers} sweepers, {chosen.seconds:g} s")
    result = asyncio.run(
        run(
            name,
            chosen,
            servers,
            roots,
            stamp=stamp,
            seed=given.seed,
            assets=given.assets,
            along=look if given.profile else None,
        )
    )
    result.notes = [*given.note, *(["A first visit loads the page's scripts and styles."] if given.assets else [])]
    result.share = given.share
    record.results[result.key] = result
    if seen:
        record.profile = seen[0]
    errors = sum(result.errors.values())
    say(f"{label(result)}: knob {summary(result.knob)}, opening {summary(result.opening)}, {errors} errors")


async def _costs(server: str, roots: list[int], seed: int) -> list[Cost]:
    found = []
    async for each in cost(server, roots, seed=seed):
        say(
            f"{each.page or 'home'}: knob {each.knob:.3f} (middle {each.middle:.3f}, in workers {each.workers:.3f}), "
            f"again {each.again:.3f}, opening {each.opening:.3f} CPU s, {each.messages:.0f} messages, "
            f"{each.bytes / 1000:.0f} kB, {each.moves} moves"
        )
        found.append(each)
    return found


def versions() -> dict[str, str]:
    """Return the versions of the packages on both sides."""
    return {name: importlib.metadata.version(name) for name in ("streamlit", "torch", "websockets")}


def commit() -> str:
    """Return the measured commit, with a plus if files have changed since."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"


def say(what: str) -> None:
    """Print progress to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
