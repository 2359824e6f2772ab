"""The command ``python -m benchmarks``, which measures the variants' time and memory and writes a report."""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from attention_core.errors import LabError
from benchmarks import growth
from benchmarks.cases import HEADS, SIZES, Case, cases
from benchmarks.measure import Plan, inputs, measure
from benchmarks.peers import PEERS
from benchmarks.peers.adaptor import quietly
from benchmarks.reasons import explain
from benchmarks.report import write
from benchmarks.rows import Preset, Record, Row, stamp
from benchmarks.subjects import Call, subjects, variant_of

TOLERANCE = 1e-4
"""Relative float32 error up to which a peer counts as computing the expected output."""

PLANS: dict[Preset, Plan] = {
    "full": Plan(sizes=SIZES),
    "long": Plan(sizes=growth.LENGTHS, longest=2.0, rounds=3),
    "decode": Plan(sizes=growth.POSITIONS, rounds=9, shortest=0.05),
    "bfloat16": Plan(sizes=(2048,), dtype=torch.bfloat16, minutes=5.0),
    "backward": Plan(sizes=(512, 2048), backward=True, longest=2.0, minutes=5.0),
}
HELP = {
    "long": "variants linear in n, up to 262,144 tokens, relative to 8,192 tokens",
    "decode": "variants with a decoder: a token after 100,000 relative to one after 1,000",
    "bfloat16": "every variant in bfloat16, relative to full attention in bfloat16, at 2,048 tokens",
    "backward": "the backward pass of every variant, relative to that of full attention, at 512 and 2,048 tokens",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, or write the report from an existing record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory of every variant.")
    parser.add_argument(
        "--quick", action="store_true", help="one round at two small sizes, to check that everything runs"
    )
    preset = parser.add_mutually_exclusive_group()
    for name, text in HELP.items():
        preset.add_argument(f"--{name}", dest="preset", action="store_const", const=name, default="full", help=text)
    parser.add_argument(
        "--only", action="append", default=[], metavar="KEY", help="measure only this variant; may be repeated"
    )
    parser.add_argument("--sizes", type=int, nargs="+", help=f"tokens; the default is {SIZES}, or the preset's sizes")
    parser.add_argument(
        "--out", type=Path, help="folder for RESULTS.md and its parts; the default is the preset's own folder"
    )
    parser.add_argument("--join", action="store_true", help="keep the other cases' rows of the existing record")
    parser.add_argument("--report", action="store_true", help="measure nothing; write the report from results.json")
    options = parser.parse_args(arguments)
    folder = Path(__file__).parent
    out = options.out or (folder if options.preset == "full" else folder / options.preset)
    if options.report:
        write(Record.load(out / "results.json"), out)
        return
    try:
        chosen = cases(options.only)
    except LabError as error:
        parser.error(str(error))
    plan = PLANS[options.preset]
    if options.quick:
        plan = replace(plan, sizes=(256, 512), rounds=1, shortest=0.0)
    plan = replace(plan, sizes=sorted(options.sizes or plan.sizes))
    out.mkdir(parents=True, exist_ok=True)
    result = record(options.preset, chosen, plan)
    write(Record.load(out / "results.json").joined(result) if options.join else result, out)


def record(preset: Preset, chosen: Sequence[Case], plan: Plan) -> Record:
    """Measure the chosen cases and, in the full preset, their peers: the implementations of other projects.

    A peer that is not installed, or whose output differs from the expected output, is left out.
    """
    full = preset == "full"
    machine = stamp(peer.needs for peer in PEERS.values() if full)
    absent, checks = check(chosen) if full else ({}, {})
    rows = list(_rows(preset, chosen, plan, absent))
    machine["load at end"] = f"{os.getloadavg()[0]:.1f}"
    result = Record(stamp=machine, checks=checks, missing=absent, rows=rows, preset=preset)
    if preset != "decode":  # explaining repeats a call; a decoder would read 100,000 tokens first
        explain(result, partial(_build_case, preset, {case.label: case for case in chosen}, plan), say)
    return result


def _build_case(preset: Preset, cases: Mapping[str, Case], plan: Plan, label: str, n: int) -> Call:
    """Build the timed call of a case again, to explain why it missed a target."""
    q, k, v = inputs(growth.HEADS if preset == "long" else HEADS, n).to(plan.dtype)
    return variant_of(cases[label], backward=plan.backward).build(q, k, v, n)


def _rows(preset: Preset, chosen: Sequence[Case], plan: Plan, absent: Mapping[str, str]) -> Iterator[Row]:
    match preset:
        case "long":
            return growth.lengths(chosen, plan, say)
        case "decode":
            return growth.decode(chosen, plan, say)
        case "bfloat16" | "backward":
            return measure([variant_of(case, backward=plan.backward) for case in chosen], plan, say)
        case "full":
            return measure(subjects(chosen, absent), plan, say)


def check(chosen: Sequence[Case]) -> tuple[dict[str, str], dict[str, float]]:
    """Return the peers that cannot be measured, with the reason, and the relative error of every other peer."""
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
            except Exception as failure:  # a peer is the code of another project, which may fail in any way
                absent[name] = f"fails: {type(failure).__name__}"
                continue
            if not error < TOLERANCE:
                absent[name] = f"differs from what it should compute by {error:.0e}"
    return absent, checks


def say(message: str) -> None:
    """Print progress to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
