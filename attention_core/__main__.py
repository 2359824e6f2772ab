"""Command line of the library: ``python -m attention_core`` with ``list``, ``bench``, ``claims`` and other commands."""

import argparse
import json
import math
import os
import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import Any

from attention_core import claims, registry
from attention_core.benchmarking.device import stamp
from attention_core.benchmarking.kernels import bench as bench_of_kernels
from attention_core.benchmarking.kernels.roofline import roof_of
from attention_core.benchmarking.kernels.stamp import device_stamp, device_state
from attention_core.benchmarking.run_file import to_json
from attention_core.benchmarking.run_records import Skipped, group_samples
from attention_core.benchmarking.timing import DTYPES, SIZES, TimingSpec
from attention_core.claims import survey
from attention_core.errors import InputError, LabError
from attention_core.experiments import denoising, learning, swap, timing_length
from attention_core.inputs import (
    KINDS,
    ImageSource,
    Source,
    SyntheticSource,
    SyntheticSpec,
    TextSource,
    UploadSource,
    image,
    models,
)
from attention_core.learning.model import POSITIONS
from attention_core.learning.tasks import TASKS
from attention_core.model_patching import from_word, layer_range
from attention_core.runtime.devices import DEVICES, check_device, use_threads

MAX_WIDTH = 100
"""Maximum width of a printed line, in characters; longer lines are hard to read."""
PIPE = 13
"""Number of the signal SIGPIPE; ``signal.SIGPIPE`` does not exist on Windows."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in ``arguments``, by default those of the process.

    Returns:
        The exit status. 0 is success. 2 is an invalid request, with one sentence on the error stream. 141, which
        shells report for SIGPIPE, means that the program that reads the output has ended.
    """
    try:
        try:
            args = _parser().parse_args(arguments)
            args.command(args)
        except LabError as error:
            print(error, file=sys.stderr)
            return 2
        finally:
            sys.stdout.flush()  # a flush at exit would raise BrokenPipeError too late for the ``except`` below
    except BrokenPipeError:
        # The reader of the output has closed the pipe. Python flushes both streams once more at exit, which would raise
        # this error again, so both are redirected to the null device.
        null_device = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(null_device, stream.fileno())
        return 128 + PIPE
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m attention_core", description=__doc__)
    commands = parser.add_subparsers(required=True)
    listing = commands.add_parser(
        "list",
        help="list the variants: each variant's name for the other commands, its family, how its time grows, "
        "and whether it can be causal",
    )
    listing.set_defaults(command=_list)
    bench = commands.add_parser(
        "bench", help="measure the time of variants at several sequence lengths and save the results as JSON"
    )
    bench.add_argument("--device", choices=DEVICES, default="cpu")
    bench.add_argument(
        "--variants",
        nargs="+",
        metavar="WORD",
        help="variants to time, separated by spaces, with settings after ~ (for example, softmax local~window~64 names "
        "two variants); fused.local is full attention with the mask of local attention (default: all variants)",
    )
    bench.add_argument("--sizes", nargs="+", type=int, metavar="N", help="sequence lengths, in tokens")
    bench.add_argument("--dtype", choices=DTYPES, default="float32")
    bench.add_argument(
        "--preset",
        choices=(*bench_of_kernels.PRESETS, "page"),
        help="inputs that are timed: 16k is a batch of texts with 16k tokens in total, and heads whose sizes add up "
        "to 2048; ours (default on cuda) is one text and 8 heads; page (default on the CPU) is the input of the "
        "Timing page, where the saved run can then be opened",
    )
    bench.add_argument(
        "--keep-cache",
        action="store_true",
        help="with --preset: do not empty the processor's cache before each timed call",
    )
    bench.add_argument(
        "--alone",
        action="store_true",
        help="with --preset: do not time the baselines (fused softmax, compiled and fla versions of the variants)",
    )
    bench.add_argument("--repeats", type=int, default=30, help="with --preset: number of timed calls of each variant")
    bench.add_argument(
        "--mode",
        choices=bench_of_kernels.KERNEL_MODES,
        default="forward",
        help="pass that is timed: backward is the forward and the backward pass together, and backward-alone is only "
        "the backward pass (not possible with --preset page)",
    )
    bench.add_argument("--causal", action="store_true")
    bench.add_argument("--heads", type=int, default=8, help="number of heads (a preset sets its own)")
    bench.add_argument("--head-size", type=int, default=64)
    bench.add_argument("--rounds", type=int, default=7)
    bench.add_argument(
        "--longest",
        type=float,
        help="maximum time of one call, in seconds; lengths at which a call is estimated to take longer are skipped",
    )
    bench.add_argument("--out", type=Path, required=True, help="JSON file in which the run is saved")
    bench.set_defaults(command=_bench)
    check = commands.add_parser(
        "claims", help="use a text or a synthetic input to check claims that articles make about attention"
    )
    source = check.add_mutually_exclusive_group()
    source.add_argument("--text", metavar="WORDS", help="text that the model reads")
    source.add_argument("--file", type=Path, metavar="PATH", help="file with a text, or .npz file with q, k and v")
    kinds = [kind.key for kind in KINDS]
    source.add_argument(
        "--synthetic",
        default=kinds[0],
        metavar="KIND",
        help=f"kind of synthetic input (default: {kinds[0]}): {', '.join(kinds)}",
    )
    source.add_argument(
        "--survey",
        action="store_true",
        help="check the claims on many fixed inputs and count the verdicts (takes minutes)",
    )
    check.add_argument(
        "--out", type=Path, metavar="PATH", help="Markdown file in which the counts of --survey are saved"
    )
    check.add_argument(
        "--model", default="minilm", help="minilm, smollm2, or owner/name of a model on the Hugging Face hub"
    )
    check.add_argument("--layer", type=int, default=0, help="layer of the model; the first is 0")
    check.add_argument("--head", type=int, metavar="N", help="head of the layer; the first is 0 (default: all heads)")
    check.add_argument("--tokens", type=int, metavar="N", help="maximum number of tokens to use from the input")
    check.add_argument(
        "--only", nargs="+", metavar="KEY", help="claims to check, such as memory_quadruples (default: all)"
    )
    check.set_defaults(command=_claims)
    change = commands.add_parser(
        "swap", help="measure how well a language model predicts a text if a variant replaces its softmax attention"
    )
    change.add_argument(
        "--model", default=swap.MODEL, help="a decoder: smollm2, or owner/name of a model on the Hugging Face hub"
    )
    change.add_argument(
        "--variants",
        nargs="+",
        required=True,
        metavar="WORD",
        help="variants with their settings, such as softmax local~window~64",
    )
    change.add_argument(
        "--layers",
        default="all",
        help="layers in which attention is replaced: all, one layer such as 7, or a range such as 10-20",
    )
    read = change.add_mutually_exclusive_group(required=True)
    read.add_argument("--file", type=Path, metavar="PATH", help="file with the text")
    read.add_argument("--text", metavar="WORDS", help="the text itself")
    change.add_argument("--tokens", type=int, metavar="N", help="maximum number of tokens to use from the text")
    change.add_argument("--json", action="store_true", help="print the results as JSON")
    change.set_defaults(command=_swap)
    learn = commands.add_parser("learn", help="train tiny models, one per variant, on a small task")
    learn.add_argument("--task", default="recall", metavar="KEY", help=f"task (default: recall): {', '.join(TASKS)}")
    learn.add_argument(
        "--variants", nargs="+", required=True, metavar="WORD", help="variants, such as softmax deltanet"
    )
    learn.add_argument(
        "--seed",
        type=int,
        default=0,
        help="first random seed of the models and their data; the other seeds are the next numbers",
    )
    learn.add_argument("--seeds", type=int, default=1, help="number of seeds; each trains one model per variant")
    learn.add_argument("--steps", type=int, default=400, help="number of training steps")
    learn.add_argument(
        "--every", type=int, default=learning.MEASURE_INTERVAL, help="number of training steps between two measurements"
    )
    learn.add_argument("--length", type=int, help="number of tokens in a training sequence")
    learn.add_argument("--items", type=int, help="number of pairs or symbols that the model must remember")
    learn.add_argument(
        "--test-lengths",
        nargs="+",
        type=int,
        default=[],
        metavar="N",
        help="sequence lengths on which the trained models are tested, in tokens",
    )
    learn.add_argument(
        "--test-items",
        nargs="+",
        type=int,
        default=[],
        metavar="N",
        help="how much the trained models must remember in the tests: numbers of key–value pairs or of symbols, "
        "depending on the task",
    )
    learn.add_argument("--rate", type=float, help="learning rate of all variants (default: the tuned rate of each)")
    learn.add_argument("--layers", type=int, default=2)
    learn.add_argument("--heads", type=int, default=1)
    learn.add_argument(
        "--convolution",
        type=int,
        default=3,
        help="number of tokens that the short convolution spans; 0 means no convolution",
    )
    learn.add_argument("--positions", choices=POSITIONS, help="position encoding (default: that of the task)")
    learn.add_argument(
        "--fixed", action="store_true", help="do not train the parts of variants that can be trained, such as gates"
    )
    learn.add_argument("--json", action="store_true", help="print the results as JSON")
    learn.set_defaults(command=_learn)
    picture = commands.add_parser("image", help="denoise an image with attention over its patches")
    photo = picture.add_mutually_exclusive_group()
    photo.add_argument("--file", type=Path, metavar="PATH", help="PNG or JPEG image")
    photo.add_argument("--photo", choices=image.PHOTOS, default=image.PHOTOS[0], help="one of the included photographs")
    picture.add_argument(
        "--variants",
        nargs="+",
        required=True,
        metavar="WORD",
        help="variants with their settings, such as softmax local~window~64",
    )
    picture.add_argument("--size", type=int, default=ImageSource.size, help="height and width of the pixel grid")
    picture.add_argument(
        "--patch",
        type=int,
        choices=image.PATCHES,
        default=ImageSource.patch,
        help="height and width of a patch, in pixels",
    )
    picture.add_argument(
        "--noise",
        type=float,
        default=ImageSource.noise,
        help="standard deviation of the noise, where black is 0 and white is 1",
    )
    picture.add_argument("--seed", type=int, default=ImageSource.seed, help="seed of the noise")
    picture.add_argument(
        "--strength",
        type=float,
        default=ImageSource.strength,
        help="filter strength h; the smaller it is, the more of the weight goes to the most similar patches",
    )
    picture.add_argument("--json", action="store_true", help="print the results as JSON")
    picture.set_defaults(command=_image)
    return parser


def _list(_: argparse.Namespace) -> None:
    rows = [
        (each.key, each.family, each.complexity, "not causal" if each.causal_reason else "causal")
        for each in registry.all_variants()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip())


def _bench(args: argparse.Namespace) -> None:
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
    _check_folder(args.out)
    machine, rows = stamp(spec.device), []
    for row in timing_length.measure(spec, max_seconds=args.longest):
        rows.append(row)
        result = row.reason.format(**row.fields) if isinstance(row, Skipped) else f"{row.ms:.3f} ms"
        print(f"{len(rows)}/{timing_length.total(spec)} {row.variant} n={row.n}: {result}", file=sys.stderr)
    args.out.write_bytes(to_json(group_samples(spec, machine, rows)))
    print(f"{args.out}: {len(rows)} samples on {machine.device}")


def _bench_kernels(args: argparse.Namespace) -> None:
    check_device(args.device)
    _check_folder(args.out)
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


def _claims(args: argparse.Namespace) -> None:
    use_threads()
    if args.survey:
        _survey(args)
        return
    if args.out is not None:
        raise InputError("--out names the file for the counts of a survey, so it needs --survey.")
    if args.tokens is not None and not 1 <= args.tokens <= claims.LONGEST:
        raise InputError("--tokens is {n}. Choose a number from 1 to {most}.", n=args.tokens, most=claims.LONGEST)
    source = _source(args)
    # ``longest`` is the maximum length for claims about growth with the length. A generated input can have any length,
    # so these claims may use more than --tokens, as on the Claims page.
    longest = claims.LONGEST if source.is_generated else args.tokens or claims.LONGEST
    heads = source.load().heads
    if args.head is not None and not 0 <= args.head < heads:
        raise InputError("Head {head} does not exist. Choose a head from 0 to {last}.", head=args.head, last=heads - 1)
    selected = claims.chosen(args.only)
    tasks = claims.tasks(source, head=args.head, keys=args.only, longest=longest)
    n_tokens, counted = claims.length(source, longest=longest), Counter[claims.Verdict]()
    for number, (claim, task) in enumerate(zip(selected, tasks, strict=True), start=1):
        print(f"{number}/{len(selected)} {claim.key}", file=sys.stderr)
        try:
            [outcome] = claims.run(task)
        except LabError as error:
            _print_claim(claim, "", str(error))
            continue
        counted[outcome.verdict] += 1
        _print_claim(claim, outcome.verdict, " ".join(outcome.sentences).format(**outcome.formatted_numbers))
    counts = ", ".join(f"{verdict}: {counted[verdict]}" for verdict in claims.Verdict)
    if unchecked := len(selected) - counted.total():
        counts += f", not checked: {unchecked}"
    print(_wrap(f"On {n_tokens} tokens of this input, of {len(selected)} claims: {counts}"))


def _survey(args: argparse.Namespace) -> None:
    if (args.model, args.layer, args.head, args.tokens) != ("minilm", 0, None, None):
        raise InputError("A survey uses its own inputs. Remove --model, --layer, --head and --tokens.")
    if args.out is not None:
        _check_folder(args.out)
    found = survey.run(
        survey.INPUTS,
        keys=args.only,
        on_input=lambda number, each: print(f"{number}/{len(survey.INPUTS)} {each.name}", file=sys.stderr, flush=True),
    )
    if args.out is not None:
        args.out.write_text(survey.table(found), "utf-8")
    for claim in claims.chosen(args.only):
        verdicts = found.verdicts[claim.key]
        counts = ", ".join(f"{verdict}: {verdicts.count(verdict)}" for verdict in claims.Verdict)
        print(f"{claim.number:>2}  {counts}  ({claim.key})")


def _swap(args: argparse.Namespace) -> None:
    use_threads()
    text = args.text if args.file is None else _read_text(args.file)
    layers = layer_range(args.layers, models.layer_count(args.model))
    for word in args.variants:
        from_word(word)  # raises an error for a misspelt variant early, before the model reads the text

    def measure(word: str) -> dict[str, Any]:
        task = swap.ReadingTask(text=text, word=word, layers=layers, tokens=args.tokens, model=args.model)
        read = swap.measure_reading(task)
        copies = [
            swap.measure_copying(swap.CopyTask(word=word, layers=layers, seed=seed, model=args.model))
            for seed in range(swap.SEEDS)
        ]
        return {
            "variant": word,
            "layers": args.layers,
            "tokens": read.tokens,
            "perplexity": read.perplexity,
            "copy_loss": mean(copy.copied for copy in copies),
            "seconds": read.seconds,
        }

    form = f"variant:<{max(32, *map(len, args.variants))} layers:<7 tokens:>6 perplexity:>12,.2f copy_loss:>9.3f"
    _print_rows(map(measure, args.variants), f"{form} seconds:>7.2f", as_json=args.json)


def _learn(args: argparse.Namespace) -> None:
    use_threads()
    plan = learning.plan(
        args.variants,
        task=args.task,
        length=args.length,
        items=args.items,
        steps=args.steps,
        rates=None if args.rate is None else [args.rate] * len(args.variants),
        seeds=range(args.seed, args.seed + args.seeds),
        lengths=args.test_lengths,
        more_items=args.test_items,
        every=args.every,
        layers=args.layers,
        heads=args.heads,
        convolution=args.convolution,
        fixed=args.fixed,
        **({} if args.positions is None else {"positions": args.positions}),
    )

    def train() -> Iterator[dict[str, Any]]:
        results: list[learning.LearnRow] = []
        while tasks := learning.next_tasks(plan, results):
            rows = learning.run(tasks[0])
            results += rows
            yield from (asdict(each.row) for each in rows)

    form = f"variant:<{max(8, *map(len, args.variants))} seed:>4 step:>5 length:>6 items:>5 loss:>7.3f accuracy:>8.3f"
    _print_rows(train(), f"{form} seconds:>7.2f", as_json=args.json)


def _image(args: argparse.Namespace) -> None:
    use_threads()
    settings = {name: getattr(args, name) for name in ("size", "patch", "noise", "seed", "strength")}
    if args.file is None:
        source = ImageSource(args.photo, **settings)
    else:
        source = ImageSource.of(args.file.name, _read_bytes(args.file), **settings)
    tasks = denoising.tasks(source, args.variants)
    for notice in () if args.json else source.whole().notices:
        print(_wrap(str(notice)))
    names = ("variant", "psnr", "ssim", "psnr_noisy", "psnr_mean", "seconds")
    rows = ({name: getattr(row, name) for name in names} for task in tasks for row in denoising.run(task))
    form = f"variant:<{max(8, *(len(task.word) for task in tasks))} psnr:>7.2f ssim:>6.3f psnr_noisy:>10.2f"
    _print_rows(rows, f"{form} psnr_mean:>9.2f seconds:>7.3f", as_json=args.json)


def _print_rows(rows: Iterable[dict[str, Any]], form: str, *, as_json: bool) -> None:
    """Print each row of a table when it is measured, or all rows as JSON after the last one.

    Args:
        rows: the values of each row by column.
        form: the table's columns and the format of each, such as ``"tokens:>6 loss:>7.3f"``.
        as_json: whether to print JSON, which has all values. A number that is not finite becomes null.
    """
    if as_json:
        records = [
            {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in r.items()} for r in rows
        ]
        print(json.dumps(records, indent=2, allow_nan=False))
        return
    columns = dict(column.split(":") for column in form.split())
    for number, row in enumerate(rows):
        if number == 0:
            print(" ".join(f"{name:{re.split('[,.]', each)[0]}}" for name, each in columns.items()))
        print(" ".join(f"{row[name]:{each}}" for name, each in columns.items()), flush=True)


def _check_folder(out: Path) -> None:
    if not out.parent.is_dir():
        raise InputError("The folder {folder} does not exist. Create it first.", folder=out.parent)


def _source(args: argparse.Namespace) -> Source:
    if args.text is not None:
        return TextSource(args.text, args.model, args.layer)
    if args.file is None:
        spec = SyntheticSpec(kind=args.synthetic)
        return SyntheticSource(spec if args.tokens is None else replace(spec, n=args.tokens))
    if args.file.suffix == ".npz":
        return UploadSource.of(args.file.name, _read_bytes(args.file))
    return TextSource(_read_text(args.file), args.model, args.layer)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError("{path} cannot be read: {why}.", path=path, why=error.strerror) from error


def _read_text(path: Path) -> str:
    try:
        return _read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError("{path} is not a UTF-8 text file. Save it as UTF-8.", path=path) from error


def _print_claim(claim: claims.Claim, verdict: str, measured: str) -> None:
    """Print one claim: its number and verdict, its statement, and what was measured."""
    print(f"{claim.number:>2}  {verdict or 'not checked'}  ({claim.key})")
    for words in (claim.statement, measured):
        print(_wrap(words, "    "))
    print(flush=True)


def _wrap(words: str, indent: str = "") -> str:
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    return textwrap.fill(words, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
