"""Counts multiply-adds and peak bytes of every variant at two lengths and compares them with the recorded counts.

``python -m benchmarks.counts`` lists the counts that grew; with ``--record`` it rewrites the recorded counts. No time
is measured, so counts do not depend on the machine, and a test fails if a change makes a variant more expensive.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import torch

from attention_core.benchmarking.counting import count
from attention_core.benchmarking.timing import prepare
from benchmarks.cases import HEAD_SIZE, Case, cases

SIZES = (256, 1024)
SHORTER = {"additive": (64, 256), "heavy_hitters": (64, 256)}
"""Sizes for variants with many small steps, each of which is counted: at 1024 these two took half of all time."""
HEADS = 2
MODES = ("forward", "backward")
GROWTH = 1.1
"""The ratio to the recorded count above which a case counts as more expensive."""
RECORD = Path(__file__).parent / "counts.json"

Counted = dict[str, int]
"""Counts by quantity and size, ``{"forward multiply-adds at n = 256": 67108864}``."""


def count_case(case: Case) -> Counted:
    """Return the counts of one case for the forward pass, and for forward and backward together, at all sizes."""
    counted: Counted = {}
    for n in SHORTER.get(case.key, SIZES):
        q, k, v = torch.randn(3, 1, HEADS, n, HEAD_SIZE, generator=torch.Generator().manual_seed(n))
        attention = case.attention(case.settings_at(n))
        for mode in MODES:
            call = prepare(attention, q, k, v, mode=mode, causal=case.causal)
            with torch.set_grad_enabled(mode == "backward"):
                counts = count(call, unit=torch.uint8)
            counted[f"{mode} multiply-adds at n = {n}"] = counts.multiply_adds
            counted[f"{mode} peak bytes at n = {n}"] = counts.peak_elements
    return counted


def regressions(label: str, counted: Counted, record: Mapping[str, Counted]) -> list[str]:
    """Return a sentence for each count that exceeds its record by over 10%, or one that asks for a missing record."""
    known = record.get(label)
    if known is None or known.keys() != counted.keys():
        return [f"{label} has no record; write it with: python -m benchmarks.counts --record"]
    text = "{label}: {what} grew from {before:,} to {now:,}, by {percent:.0f} %."
    return [
        text.format(label=label, what=measure, before=known[measure], now=now, percent=100 * (now / known[measure] - 1))
        for measure, now in counted.items()
        if now > GROWTH * known[measure]
    ]


def load(path: Path = RECORD) -> dict[str, Counted]:
    """Return the record by case label; empty if there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def save(record: Mapping[str, Counted], path: Path = RECORD) -> None:
    """Write the record with one case per line, so that branches that each add a variant merge without conflict."""
    line = partial(json.dumps, ensure_ascii=False)
    lines = [f"{line(label)}: {line(counted)}" for label, counted in record.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the counts with the record, or write the record.

    Returns:
        0, or 1 if a count grew or has no record.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.counts", description="Compare counted operations with the record."
    )
    parser.add_argument("--record", action="store_true", help="rewrite the record instead of comparing with it")
    parser.add_argument("--out", type=Path, default=RECORD, help="JSON file of the record")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    counted = {case.label: count_case(case) for case in cases()}
    if options.record:
        save(counted, options.out)
        print(f"Recorded {len(counted)} counts in {options.out}.")
        return 0
    record = load(options.out)
    texts = [sentence for label, counts in counted.items() for sentence in regressions(label, counts, record)]
    print("\n".join(texts or ["Nothing grew."]))
    return 1 if texts else 0


if __name__ == "__main__":
    sys.exit(main())
