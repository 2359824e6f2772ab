"""The benchmark's command line: ``python -m benchmarks``."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from attention_core.errors import LabError
from benchmarks.cases import SIZES, Case, cases
from benchmarks.measure import Plan, measure
from benchmarks.peers import PEERS
from benchmarks.peers.adaptor import quietly
from benchmarks.report import write
from benchmarks.rows import Record, stamp
from benchmarks.subjects import subjects

TOLERANCE = 1e-4
"""Relative distance in float32 up to which a peer computes what we think it does."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or write the report anew from a record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory of every variant.")
    parser.add_argument("--quick", action="store_true", help="one round at two small sizes: whether it runs at all")
    parser.add_argument("--only", action="append", default=[], metavar="KEY", help="this variant only; may be repeated")
    parser.add_argument("--sizes", type=int, nargs="+", help=f"tokens; the default is {SIZES}")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder for RESULTS.md and its parts")
    parser.add_argument("--report", action="store_true", help="measure nothing; write the report from results.json")
    given = parser.parse_args(arguments)
    if given.report:
        write(Record.load(given.out / "results.json"), given.out)
        return
    try:
        chosen = cases(given.only)
    except LabError as error:
        parser.error(str(error))
    sizes = sorted(given.sizes or ((256, 512) if given.quick else SIZES))
    plan = Plan(sizes=sizes, rounds=1, shortest=0.0) if given.quick else Plan(sizes=sizes)
    given.out.mkdir(parents=True, exist_ok=True)
    write(record(chosen, plan), given.out)


def record(chosen: Sequence[Case], plan: Plan) -> Record:
    """Check the peers, leave out those that are absent or compute something else, and measure the rest."""
    machine = stamp(peer.needs for peer in PEERS.values())
    absent, checks = check(chosen)
    rows = list(measure(subjects(chosen, absent), plan, say))
    machine["load at end"] = f"{os.getloadavg()[0]:.1f}"
    return Record(stamp=machine, checks=checks, missing=absent, rows=rows)


def check(chosen: Sequence[Case]) -> tuple[dict[str, str], dict[str, float]]:
    """Which peers cannot be measured, with the reason, and how far each other is from what we think it computes."""
    torch.set_num_threads(os.cpu_count() or 1)
    absent, checks = {}, {}
    for case in chosen:
        for name in case.peers:
            if PEERS[name].missing:
                absent[name] = PEERS[name].missing
                continue
            say(f"checking {name}")
            try:
                with torch.no_grad(), quietly():
                    error = checks[f"{case.label}: {name}"] = PEERS[name].error(case)
            except Exception as failure:  # other people's code may not run here
                absent[name] = f"fails: {type(failure).__name__}"
                continue
            if not error < TOLERANCE:
                absent[name] = f"differs from what it should compute by {error:.0e}"
    return absent, checks


def say(what: str) -> None:
    """Report progress on the error stream."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
