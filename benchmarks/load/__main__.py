"""The command ``python -m benchmarks.load``, which runs scenarios of simulated visitors and writes a report."""

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
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load", description="Measure how many visitors a server can serve."
    )
    scenarios_help = f"{', '.join(SCENARIOS)}, <visitors>+<sweepers>, or cost for the CPU seconds of a move by page"
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=scenarios_help)
    parser.add_argument(
        "--serve", default=PLAIN, metavar="COMMAND", help="command that starts the server, with {port} for --port"
    )
    parser.add_argument("--port", type=int, default=8710, help="port of that server")
    parser.add_argument("--url", nargs="+", metavar="ADDRESS", help="use these running servers of this machine instead")
    parser.add_argument(
        "--pid", type=int, nargs="*", default=[], help="process ids of these servers, to measure memory and CPU time"
    )
    parser.add_argument("--seconds", type=float, help="duration of each scenario; by default its own")
    parser.add_argument(
        "--share", type=float, default=1.0, help="limit server and visitors to this share of all cores; needs root"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the visitors' moves")
    parser.add_argument(
        "--assets", action="store_true", help="also load the page's scripts and styles on a first visit"
    )
    parser.add_argument(
        "--profile", action="store_true", help="also sample with py-spy which code takes the server's time"
    )
    parser.add_argument("--note", action="append", default=[], help="sentence for the report; may be repeated")
    parser.add_argument("--out", type=Path, default=HERE / "results.json", help="JSON file to which results are added")
    parser.add_argument("--report", type=Path, default=HERE.parent / "LOAD.md", help="Markdown file written from --out")
    options = parser.parse_args(arguments)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Each visitor opens one to three connections, so the limit on open files is raised to its maximum.
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    record = Record.load(options.out)
    try:
        for server in options.url or ():
            loopback(server)
        for name in options.scenarios:
            if name != "cost":
                scenario(name, options.seconds)
        if options.url and not options.pid and (options.profile or "cost" in options.scenarios):
            raise RefusedError(
                "The CPU time and the profile of a server at --url need its process ids: name them with --pid."
            )
        if not 0 < options.share <= 1:
            raise RefusedError(f"A share of {options.share:g} is not possible: choose one above 0, at most 1.")
        if options.share != 1 and (options.url or "cost" in options.scenarios):
            raise RefusedError("Only a server that this command starts can be limited, and costs do not depend on it.")
        for name in options.scenarios:
            with limited_cores(options.share), _server(options) as (servers, roots):
                measure(name, servers, roots, options, record)
            record.save(options.out)
    except (RefusedError, LostError) as error:
        parser.error(str(error))
    options.report.write_text(text(record), encoding="utf-8")


@contextmanager
def _server(options: argparse.Namespace) -> Iterator[tuple[list[str], list[int]]]:
    if options.url:
        yield options.url, options.pid
        return
    address = f"http://127.0.0.1:{options.port}"
    say(f"starting {options.serve.format(port=options.port)}")
    with started(options.serve, address, Path(tempfile.gettempdir()) / f"load-{options.port}.log") as pid:
        yield [address], [pid]


def measure(name: str, servers: list[str], roots: list[int], options: argparse.Namespace, record: Record) -> None:
    """Run one scenario and add its results to the record."""
    stamp = {**machine(), **versions(), "commit": commit(), "server": " ".join(options.url or [options.serve])}
    if name == "cost":
        record.costs, record.costs_stamp = asyncio.run(_costs(servers[0], roots, options.seed)), stamp
        return
    chosen = scenario(name, options.seconds)

    async def sample_stacks() -> None:
        profiles.append(await profiler.watch(roots, (chosen.seconds - chosen.arrival) / 2, name))

    profiles: list[Profile] = []
    say(f"{name}: {chosen.visitors} visitors, {chosen.sweepers} sweepers, {chosen.seconds:g} s")
    result = asyncio.run(
        run(
            name,
            chosen,
            servers,
            roots,
            stamp=stamp,
            seed=options.seed,
            assets=options.assets,
            along=sample_stacks if options.profile else None,
        )
    )
    result.notes = [*options.note, *(["A first visit loads the page's scripts and styles."] if options.assets else [])]
    result.share = options.share
    record.results[result.key] = result
    if profiles:
        record.profile = profiles[0]
    errors = sum(result.errors.values())
    say(f"{label(result)}: knob {summary(result.knob)}, opening {summary(result.opening)}, {errors} errors")


async def _costs(server: str, roots: list[int], seed: int) -> list[Cost]:
    costs = []
    async for each in cost(server, roots, seed=seed):
        say(
            f"{each.page or 'home'}: knob {each.knob:.3f} (middle {each.middle:.3f}, in workers {each.workers:.3f}), "
            f"again {each.again:.3f}, opening {each.opening:.3f} CPU s, {each.messages:.0f} messages, "
            f"{each.bytes / 1000:.0f} kB, {each.moves} moves"
        )
        costs.append(each)
    return costs


def versions() -> dict[str, str]:
    """Return the versions of the packages that the server and the simulated visitors use."""
    return {name: importlib.metadata.version(name) for name in ("streamlit", "torch", "websockets")}


def commit() -> str:
    """Return the measured commit, with a plus if files have changed since."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "unknown"


def say(message: str) -> None:
    """Print progress to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
