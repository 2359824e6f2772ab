"""Writes a benchmark's report: RESULTS.md with tables, results.json with every sample, results.svg with curves."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.plot import plot
from benchmarks.rows import MODES, Mode, Preset, Record, Row, Spread
from benchmarks.targets import COMPARED, Figure, Table, Verdict, exponent, memory_growth, time_growth, verdicts

COLUMNS = (512, 1024, 2048, 8192, 16384)
LISTED = 8
"""The number of missed figures listed per target, worst first."""
MEASURED = {"all cores": "all cores, wall time", "one thread": "one thread, CPU time"}

INTRODUCTION = """# Results

Written by `python -m benchmarks`. [results.json](results.json) has every sample. q, k and v are (1, 8, n, 64) float32,
standard normal. Only the forward pass is timed.

**Times are ratios to full attention** (`scaled_dot_product_attention`, causal if the variant is causal), which is
timed just before and after in the same round. Below 1 is faster. A cell is the median over rounds, with the
quartiles in brackets, or the extremes if there were fewer than three rounds. Memory is the largest number of bytes
of live tensors in addition to q, k and v, including the output. Memory that a kernel allocates internally is not
counted, for any variant or library.

![Time and memory over n](results.svg)
"""

TIMED = """A cell is the median over rounds, with the quartiles in brackets, or the extremes if there were fewer
than three rounds. q, k and v are standard normal. Only the forward pass is timed."""

PRESETS: dict[Preset, str] = {
    "long": f"""# Long texts

Written by `python -m benchmarks --long`. [results.json](results.json) has every sample. The input has one head of
size 64 in float32; eight heads would need half a gigabyte per tensor. Only variants that are linear in n are
measured, without peers.

**Times are ratios to linear growth** from the smallest n, which is timed just before and after in the same round.
Above 1, time grows faster than n. Memory per token is the largest number of bytes of live tensors in addition to
q, k and v, including the output, divided by n. Exponents are slopes of the logarithms through all sizes. {TIMED}

The bound adds up each number of q, k and v once. If it grows faster than n, the reason is the machine's memory:
three tensors of 8,192 tokens fit into a cache, and those of 262,144 tokens do not.
""",
    "decode": f"""# Token by token

Written by `python -m benchmarks --decode`. [results.json](results.json) has every sample. The input has one head
of size 64 in float32. Only variants with a decoder are measured. n is the number of tokens that the decoder has
read before the token that is timed.

**Times are ratios to a token at the smallest n**, which is timed just before and after in the same round. Above 1,
a token takes longer after more tokens. {TIMED}
""",
    "bfloat16": f"""# bfloat16

Written by `python -m benchmarks --bfloat16`. [results.json](results.json) has every sample. q, k and v are (1, 8,
n, 64) bfloat16. No peers are measured.

**Times are ratios to full attention in bfloat16** (`scaled_dot_product_attention`, causal if the variant is
causal), which is timed just before and after in the same round. Below 1 is faster. {TIMED}
""",
    "backward": """# Backward

Written by `python -m benchmarks --backward`. [results.json](results.json) has every sample. q, k and v are (1, 8,
n, 64) float32, standard normal. No peers are measured.

**Times are those of the backward pass alone**: the gradients at q, k and v, after a forward pass that is not
timed. They are **ratios to the backward pass of full attention** (`scaled_dot_product_attention`, causal if the
variant is causal), which is timed just before and after in the same round. Below 1 is faster. A cell is the median
over rounds, with the quartiles in brackets, or the extremes if there were fewer than three rounds. Memory is the
largest number of bytes of live tensors in addition to q, k and v during forward and backward together, because a
backward pass needs what its forward pass has stored.
""",
}

BOUND = """A bound is the bare arithmetic of a variant in torch's own calls, timed in the same rounds. The variant
cannot be faster than its bound; `benchmarks/bounds.py` defines the bounds.
"""

PROFILED = """For each case that missed a target of time: the operators with the most CPU time of their own, with
their shares of a call, on one thread. The size is the largest that missed and at which a call takes less than half
a second.

"""

HELD = """For each case that missed a target of memory: the largest live tensors at the peak of a call, by shape,
at the largest such size.

"""

NOTES = """
## How peers are run

Peers get the same q, k and v, without their projections. Masks, compilation and changes of layout are prepared
outside the timed part. Work that their code does in addition to attention (a packed copy of the output, a gate of
ones) is timed. Each peer is first compared on a small input with the expected result: our variant with equal
settings, or a formula if the peer differs by design or at random, as its adaptor in `benchmarks/peers/` states.
flex_attention is compiled and allocates its tensors where the counter cannot see them, so it has no memory figure.
"""


def write(record: Record, folder: Path) -> None:
    """Write the report of a record into a folder. Curves are drawn only for the full preset."""
    record.save(folder / "results.json")
    if record.preset == "full":
        (folder / "results.svg").write_text(plot(Table(record)), encoding="utf-8")
    others = [Record.load(file) for name in PRESETS if (file := folder / name / "results.json").exists()]
    (folder / "RESULTS.md").write_text(text(record, others), encoding="utf-8")


def text(record: Record, presets: Sequence[Record] = ()) -> str:
    """Return the text of RESULTS.md.

    Args:
        record: the record to report.
        presets: records of other presets, each in a folder of its own, whose targets are listed as well.
    """
    t = Table(record)
    if record.preset != "full":
        parts = [PRESETS[record.preset], _pairs("Machine", record.stamp), *_targets(record)]
        for mode in MODES:
            parts += [f"\n## Time, {MEASURED[mode]}\n", _preset_times(t, mode, exponents=record.preset == "long")]
        if record.preset == "long":
            parts += ["\n## Bytes per token\n", _bytes(t)]
        if record.preset == "backward":
            parts += ["\n## Memory as a ratio to full attention\n", _memory(t, t.sizes)]
        return "\n".join([*parts, _pairs("Not run", _skipped(record.rows))])
    parts = [INTRODUCTION, _pairs("Machine", record.stamp), *_targets(record)]
    for each in presets:
        title = PRESETS[each.preset].splitlines()[0].lstrip("# ")
        parts += [f"\n### [{title}]({each.preset}/RESULTS.md), {each.stamp.get('date', '')}\n", _judgements(each)]
    for mode in MODES:
        parts += [f"\n## Time as a ratio to full attention, {MEASURED[mode]}\n", _times(t, mode)]
    parts += ["\n## Memory as a ratio to full attention\n", _memory(t, COLUMNS)]
    for mode in MODES:
        parts += [
            f"\n## Time as a ratio to the bound, {MEASURED[mode]}\n",
            BOUND if mode == MODES[0] else "",
            _bounds(t, mode),
        ]
    for mode in MODES:
        parts += [f"\n## Time as a ratio to each peer, {MEASURED[mode]}\n", _duels(t, mode)]
    parts += [
        f"\n## Time of the explicit matrix as a ratio to full attention, {MEASURED['one thread']}\n",
        _explicit(t),
    ]
    parts += [NOTES, _pairs("Not run", {**record.missing, **_skipped(record.rows)}), _checks(record)]
    return "\n".join(part for part in parts if part)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]], *, align: str = "---:") -> str:
    rows = [head, ["---", *[align] * (len(head) - 1)], *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _pairs(title: str, pairs: dict[str, str], introduction: str = "") -> str:
    lines = ([name, value] for name, value in pairs.items())
    return f"\n## {title}\n\n{introduction}" + _table(("", ""), lines, align="---") if pairs else ""


def _targets(record: Record) -> Iterator[str]:
    yield "\n## Targets\n"
    yield _judgements(record)
    yield _pairs("Operators behind the missed targets of time", _profiles(record), PROFILED)
    yield _pairs("Tensors behind the missed targets of memory", _tensors(record), HELD)


def _judgements(record: Record) -> str:
    both = {mode: verdicts(record, mode) for mode in MODES}
    lines = [[a.text, _verdict(a), _verdict(b)] for a, b in zip(*(both[mode] for mode in MODES), strict=True)]
    return _table(("target", *(MEASURED[mode] for mode in MODES)), lines, align="---")


def _profiles(record: Record) -> dict[str, str]:
    return {
        case: ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        for case, shares in record.profiles.items()
    }


def _tensors(record: Record) -> dict[str, str]:
    return {
        case: ", ".join(f"{_sides(shape)} ({size / 2**20:.3g} MiB)" for size, shape in tensors)
        for case, tensors in record.held.items()
    }


def _sides(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape)) or "one number"


def _verdict(verdict: Verdict) -> str:
    if not verdict.figures:
        return "not measured"
    figures = sorted(verdict.figures, key=lambda f: f.value, reverse=True)
    missed, worst = [f for f in figures if not f.met], figures[0]
    if not missed:
        return f"**met** in all {len(figures)}; closest {worst.label}: {worst.value:.2f} of {worst.limit:g}"
    listed = "; ".join(f"{f.label}: {f.value:.2f}{_bound_note(f)}" for f in missed[:LISTED])
    rest = f"; and {len(missed) - LISTED} more" if len(missed) > LISTED else ""
    return f"**missed** in {len(missed)} of {len(figures)} (limit {worst.limit:g}): {listed}{rest}"


def _bound_note(figure: Figure) -> str:
    return "" if figure.floor is None else f" (its bound: {figure.floor:.2f})"


def _times(t: Table, mode: Mode) -> str:
    lines = []
    for label, _ in t.variants:
        slope = exponent(t, label, mode)
        names = [label, *t.peers(label)]
        for name in names:
            cells = [_ratio(t.rows.get((label, name, n, mode))) for n in COLUMNS]
            own = name == label
            lines.append([f"**{label}**" if own else f"· {name}", *cells, f"{slope:.2f}" if own and slope else ""])
    return _table(("", *(f"n = {n}" for n in COLUMNS), "exponent"), lines)


def _preset_times(t: Table, mode: Mode, *, exponents: bool) -> str:
    """Return a table of milliseconds at the smallest size, ratios at all sizes, and exponents if requested."""
    first = t.sizes[0]
    lines = []
    for label in (*t.bounds, *(label for label, _ in t.variants)):
        row, slope = t.own(label, first, mode), time_growth(t, label, mode)
        duration = "" if row is None else _short(1e3 * statistics.median(row.seconds))
        cells = [_ratio(t.rows.get((label, label, n, mode))) for n in t.sizes]
        lines.append([label, duration, *cells, *([f"{slope:.2f}" if slope else ""] if exponents else [])])
    head = ("", f"ms at n = {first}", *(f"n = {n}" for n in t.sizes), *(["exponent"] if exponents else []))
    return _table(head, lines)


def _bytes(t: Table) -> str:
    lines = []
    for label, _ in t.variants:
        rows = [(t.own(label, n, "one thread"), n) for n in t.sizes]
        cells = ["" if row is None or row.peak is None else f"{row.peak / n:,.0f}" for row, n in rows]
        slope = memory_growth(t, label, "one thread")
        lines.append([label, *cells, f"{slope:.2f}" if slope else ""])
    return _table(("", *(f"n = {n}" for n in t.sizes), "exponent"), lines)


def _ratio(row: Row | None) -> str:
    if row is None or not row.seconds:
        return row.skipped if row is not None else ""
    return _cell(row.ratio, len(row.seconds))


def _cell(ratio: Spread, samples: int) -> str:
    around = f" ({_short(ratio.low)}–{_short(ratio.high)})" if samples > 1 else ""
    return _short(ratio.median) + around


def _memory(t: Table, columns: Sequence[int]) -> str:
    lines = []
    for label, _ in t.variants:
        for name in (label, *t.peers(label)):
            cells = []
            for n in columns:
                row, full = t.get(label, name, n, "one thread"), t.full(label, n, "one thread")
                ratio = None if row is None or full is None else row.memory_ratio(full)
                size = row.peak / 2**20 if row is not None and row.peak is not None else 0.0
                cells.append("" if ratio is None else f"{ratio:.3g} ({size:.3g} MiB)")
            lines.append([f"**{label}**" if name == label else f"· {name}", *cells])
    return _table(("", *(f"n = {n}" for n in columns)), lines)


def _duels(t: Table, mode: Mode) -> str:
    lines = []
    for label, _ in t.variants:
        for name in t.peers(label):
            cells = []
            for n in COMPARED:
                own, peer = t.own(label, n, mode), t.get(label, name, n, mode)
                if own is None or peer is None:
                    cells += ["", ""]
                    continue
                ratio = own.memory_ratio(peer)
                memory = "" if ratio is None else f"{ratio:.3g}"
                cells += [_cell(own.over(peer), min(len(own.seconds), len(peer.seconds))), memory]
            lines.append([label, name, *cells])
    heads = [word for n in COMPARED for word in (f"time, n = {n}", f"memory, n = {n}")]
    return _table(("ours", "peer", *heads), lines)


def _bounds(t: Table, mode: Mode) -> str:
    lines = []
    for label, name in t.bounds.items():
        cells = []
        for n in COLUMNS:
            own, floor = t.own(label, n, mode), t.floor(label, n, mode)
            both = own is not None and floor is not None
            cells.append(_cell(own.over(floor), min(len(own.seconds), len(floor.seconds))) if both else "")
        lines.append([label, name, *cells])
    return _table(("ours", "its bound", *(f"n = {n}" for n in COLUMNS)), lines)


def _explicit(t: Table) -> str:
    sizes = (512, 1024, 2048)
    lines = [
        [label, *(_ratio(t.rows.get((label, "explicit", n, "one thread"))) for n in sizes)] for label, _ in t.variants
    ]
    return _table(("", *(f"n = {n}" for n in sizes)), lines)


def _skipped(rows: Iterable[Row]) -> dict[str, str]:
    skipped: dict[str, dict[str, int]] = {}
    for row in rows:
        if row.skipped and row.role != "explicit":
            name = row.name if row.role == "variant" else f"{row.name} ({row.label})"
            first = skipped.setdefault(name, {})
            first[row.skipped] = min(row.n, first.get(row.skipped, row.n))
    return {
        name: "; ".join(f"from n = {n}: {reason}" for reason, n in reasons.items()) for name, reasons in skipped.items()
    }


def _checks(record: Record) -> str:
    lines = [[*name.split(": ", 1), f"{error:.0e}"] for name, error in record.checks.items()]
    return "\n## Peers checked: relative error of their outputs\n\n" + _table(("case", "peer", "error"), lines)


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 1 else f"{value:.3g}"
