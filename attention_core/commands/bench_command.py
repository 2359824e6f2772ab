"""The command ``bench``, which measures times and saves them as JSON."""

import argparse
import sys
from pathlib import Path

from attention_core import registry
from attention_core.benchmarking.device import stamp
from attention_core.benchmarking.kernels import bench as bench_of_kernels
from attention_core.benchmarking.kernels.roofline import roof_of
from attention_core.benchmarking.kernels.stamp import device_stamp, device_state
from attention_core.benchmarking.run_file import to_json
from attention_core.benchmarking.run_records import Skipped, group_samples
from attention_core.benchmarking.timing import DTYPES, SIZES, TimingSpec
from attention_core.commands.command_line import Commands, check_folder
from attention_core.experiments import timing_length
from attention_core.runtime.devices import DEVICES, check_device, use_threads


def add_to(commands: Commands) -> None:
    """Add the command and its options to the command line."""
    parser = commands.add_parser(
        "bench", help="measure the time of variants at several sequence lengths and save the results as JSON"
    )
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    parser.add_argument(
        "--variants",
        nargs="+",
        metavar="WORD",
        help="variants to time, separated by spaces, with settings after ~ (for example, softmax local~window~64 names "
        "two variants); fused.local is full attention with the mask of local attention (default: all variants)",
    )
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", help="sequence lengths, in tokens")
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument(
        "--preset",
        choices=(*bench_of_kernels.PRESETS, "page"),
        help="inputs that are timed: 16k is a batch of texts with 16k tokens in total, and heads whose sizes add up "
        "to 2048; ours (default on cuda) is one text and 8 heads; page (default on the CPU) is the input of the "
        "Timing page, where the saved run can then be opened",
    )
    parser.add_argument(
        "--keep-cache",
        action="store_true",
        help="with --preset: do not empty the processor's cache before each timed call",
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="with --preset: do not time the baselines (fused softmax, compiled and fla versions of the variants)",
    )
    parser.add_argument("--repeats", type=int, default=30, help="with --preset: number of timed calls of each variant")
    parser.add_argument(
        "--mode",
        choices=bench_of_kernels.KERNEL_MODES,
        default="forward",
        help="pass that is timed: backward is the forward and the backward pass together, and backward-alone is only "
        "the backward pass (not possible with --preset page)",
    )
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--heads", type=int, default=8, help="number of heads (a preset sets its own)")
    parser.add_argument("--head-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--longest",
        type=float,
        help="maximum time of one call, in seconds; lengths at which a call is estimated to take longer are skipped",
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file in which the run is saved")
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> None:
    use_threads()
    if (args.preset or ("ours" if args.device == "cuda" else "page")) != "page":
        _bench_kernels(args)
        return
    spec = TimingSpec(
        variants=tuple(args.variants or (variant.key for variant in registry.all_variants())),
        sizes=tuple(sorted(set(args.sizes or SIZES))),
        mode=args.mode,
        causal=args.causal,
        device=check_device(args.device),
        dtype=args.dtype,
        heads=args.heads,
        head_size=args.head_size,
        rounds=args.rounds,
    )
    check_folder(args.out)
    machine, rows = stamp(spec.device), []
    for row in timing_length.measure(spec, max_seconds=args.longest):
        rows.append(row)
        result = row.reason.format(**row.fields) if isinstance(row, Skipped) else f"{row.ms:.3f} ms"
        print(f"{len(rows)}/{timing_length.total(spec)} {row.variant} n={row.n}: {result}", file=sys.stderr)
    args.out.write_bytes(to_json(group_samples(spec, machine, rows)))
    print(f"{args.out}: {len(rows)} samples on {machine.device}")


def _bench_kernels(args: argparse.Namespace) -> None:
    check_device(args.device)
    check_folder(args.out)
    words = args.variants or [variant.key for variant in registry.all_variants()]
    # ``TimingSpec`` raises an error if the variants, sizes or rounds exceed its bounds, which hold for this benchmark
    # too.
    TimingSpec(variants=tuple(words), sizes=tuple(sorted(set(args.sizes or SIZES))), rounds=args.repeats)
    shapes = bench_of_kernels.PRESETS[args.preset or "ours"]
    plan = bench_of_kernels.Plan(
        attentions=[registry.from_word(word) for word in words],
        shapes=shapes(sorted(set(args.sizes)), args.head_size) if args.sizes else shapes(d=args.head_size),
        mode=args.mode,
        dtype=args.dtype,
        causal=args.causal,
        device=args.device,
        repeats=args.repeats,
        flush=not args.keep_cache,
        with_baselines=not args.alone,
    )
    machine, rows = device_stamp(args.device), []
    for row in bench_of_kernels.measure(plan, device_name=machine["device"]):
        rows.append(row)
        print(bench_of_kernels.table([row]).partition("\n")[2], file=sys.stderr, flush=True)
        bench_of_kernels.save(args.out, machine, rows)  # saved after each row, so that a later failure loses nothing
    if args.device == "cuda":
        machine |= {f"{name} at the end": value for name, value in device_state().items()}
        bench_of_kernels.save(args.out, machine, rows)
    if roof_of(machine["device"]) is None:
        print(f"What {machine['device']} can do at most is not in the table: no shares.")
    print(bench_of_kernels.table(rows))
