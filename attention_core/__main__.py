"""What one wants without a browser: ``python -m attention_core list`` and ``python -m attention_core bench``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from attention_core import registry
from attention_core.errors import InputError, LabError
from attention_core.experiments import timing_length
from attention_core.measure.device import DEVICES, check_device, stamp
from attention_core.measure.records import gather
from attention_core.measure.run_file import to_json
from attention_core.measure.timing import DTYPES, MODES, SIZES, TimingSpec
from attention_core.threads import use_threads


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        0, or 2 where the request does not fit, with one sentence on the error stream.
    """
    given = _parser().parse_args(arguments)
    try:
        given.command(given)
    except LabError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m attention_core", description=__doc__)
    commands = parser.add_subparsers(required=True)
    listing = commands.add_parser("list", help="the variants: key, family, time, whether they can be causal")
    listing.set_defaults(command=_list)
    bench = commands.add_parser("bench", help="time variants over lengths and save the run as JSON")
    bench.add_argument("--device", choices=DEVICES, default="cpu")
    bench.add_argument("--variants", nargs="+", metavar="WORD", help="such as softmax local~window~64; all by default")
    bench.add_argument("--sizes", nargs="+", type=int, default=SIZES, metavar="N", help="tokens")
    bench.add_argument("--dtype", choices=DTYPES, default="float32")
    bench.add_argument("--mode", choices=MODES, default="forward", help="backward: forward and backward together")
    bench.add_argument("--causal", action="store_true")
    bench.add_argument("--heads", type=int, default=8)
    bench.add_argument("--head-size", type=int, default=64)
    bench.add_argument("--rounds", type=int, default=7)
    bench.add_argument("--longest", type=float, help="seconds one call may take")
    bench.add_argument("--out", type=Path, required=True, help="the JSON file")
    bench.set_defaults(command=_bench)
    return parser


def _list(_: argparse.Namespace) -> None:
    for variant in registry.all_variants():
        causal = "not causal" if variant.causal_reason else "causal"
        print(f"{variant.key:<14} {variant.family:<9} {variant.complexity:<22} {causal}")


def _bench(given: argparse.Namespace) -> None:
    use_threads()
    spec = TimingSpec(
        variants=tuple(given.variants or (variant.key for variant in registry.all_variants())),
        sizes=tuple(sorted(set(given.sizes))),
        mode=given.mode,
        causal=given.causal,
        device=check_device(given.device),
        dtype=given.dtype,
        heads=given.heads,
        head_size=given.head_size,
        rounds=given.rounds,
    )
    if not given.out.parent.is_dir():
        raise InputError("There is no folder {folder}; make it first.", folder=given.out.parent)
    where, rows = stamp(spec.device), []
    for row in timing_length.run(spec, longest=given.longest):
        rows.append(row)
        took = row["reason"] if row["ms"] is None else f"{row['ms']:.3f} ms"
        print(f"{len(rows)}/{timing_length.total(spec)} {row['variant']} n={row['n']}: {took}", file=sys.stderr)
    given.out.write_bytes(to_json(gather(spec, where, rows)))
    print(f"{given.out}: {len(rows)} samples on {where.device}")


if __name__ == "__main__":
    sys.exit(main())
