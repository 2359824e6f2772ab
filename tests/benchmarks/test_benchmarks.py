"""Tests of the benchmark command: it measures all requested cases and judges the targets by the measurements."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from benchmarks import report
from benchmarks.__main__ import main
from benchmarks.cases import MORE
from benchmarks.growth import READING
from benchmarks.peers import PEERS
from benchmarks.peers.adaptor import file_module
from benchmarks.reasons import explain
from benchmarks.rows import Record, Row
from benchmarks.subjects import Subject

ROOT = Path(__file__).parent.parent.parent
SIZES = (64, 128)
CASES = ("linear elu+1", "linear elu+1 causal", "nystrom 64")
FULL = ("full attention", "full attention, causal")
MODES = ("one thread", "all cores")


def run(*arguments):
    """Run the command in a process of its own, because it sets the number of torch threads."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder that a quick run of two variants writes."""
    out = tmp_path_factory.mktemp("out")
    done = run("--quick", "--sizes", *SIZES, "--only", "linear", "--only", "nystrom", "--out", out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def record(folder):
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def rows(record, name, n, mode):
    return [r for r in record["rows"] if (r["name"], r["n"], r["mode"]) == (name, n, mode)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", CASES + FULL)
def test_every_subject_has_its_row_at_every_size_in_both_modes(record, name, n, mode):
    (row,) = rows(record, name, n, mode)
    assert row["seconds"]
    assert len(row["seconds"]) == len(row["base"])
    assert all(value > 0 for value in row["seconds"] + row["base"])
    assert row["peak"] > 0
    assert "skipped" not in row


def test_every_peer_is_measured_or_named_with_the_reason(record):
    for label, peer in (("linear elu+1", "performer-pytorch linear"), ("nystrom 64", "transformers Nystromformer")):
        measured = [r for r in record["rows"] if (r["label"], r["name"]) == (label, peer)]
        assert record["missing"].get(peer) or {(r["n"], r["mode"]) for r in measured} == {
            (n, mode) for n in SIZES for mode in MODES
        }
    # transformers is always installed, and its module computes the same as the variant.
    assert record["checks"]["nystrom 64: transformers Nystromformer"] < 1e-5


def test_a_source_folder_of_a_peer_replaces_its_package(tmp_path, monkeypatch):
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "naive.py").write_text("FOUND = 7", encoding="utf-8")
    monkeypatch.setenv("FLA_SOURCE", str(tmp_path))
    assert PEERS["fla chunked kda"].missing == ""
    assert file_module("fla", "ops/naive.py").FOUND == 7


@pytest.mark.parametrize("name", ["transformers Mamba-2", "transformers Qwen3-Next", "transformers Kimi Linear"])
def test_gated_peers_of_transformers_equal_the_variants(name):
    [case] = [case for case in MORE if name in case.peers]
    assert PEERS[name].missing == ""
    assert PEERS[name].error(case) < 1e-5


@pytest.mark.parametrize("n", SIZES)
def test_memory_is_the_output_and_a_normaliser_per_row_for_full_attention(record, n):
    (row,) = rows(record, "full attention", n, "one thread")
    assert row["peak"] == 8 * n * (64 + 1) * 4


def test_memory_of_an_explicit_variant_includes_the_matrix(record):
    found = [rows(record, "explicit", n, "one thread") for n in SIZES]
    assert all(len(at) == len(CASES) for at in found)
    assert all(row["peak"] >= 8 * row["n"] ** 2 * 4 for at in found for row in at)


@pytest.mark.parametrize(("role", "seconds", "expected"), [("explicit", 0.4, "over 1 s"), ("variant", 0.4, "")])
def test_an_explicit_matrix_is_left_out_sooner_than_a_variant(role, seconds, expected):
    subject = Subject("kda", "kda", "kda", role, False, lambda q, k, v, n: lambda: None)
    subject.seconds = {512: seconds / 4, 1024: seconds}
    assert subject.reason_to_skip(2048, longest=4.0, memory=1) == expected


def test_the_report_and_the_plot_name_every_case(folder):
    text = (folder / "RESULTS.md").read_text(encoding="utf-8")
    assert all(f"**{case}**" in text for case in CASES)
    picture = ElementTree.parse(folder / "results.svg").getroot()
    words = {element.text for element in picture.iter() if element.tag.endswith("text")}
    assert {"linear elu+1", "nystrom 64"} <= words


def test_an_unknown_variant_is_refused_with_the_nearest_one(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--quick", "--only", "nystrm"])
    assert end.value.code == 2
    assert "nystrom" in capsys.readouterr().err


def row(label, n, seconds, base, *, role="variant", key="local", name=None, peak=100):
    return [
        {"label": label, "key": key, "name": name or label, "role": role, "n": n, "mode": mode}
        | {"seconds": seconds, "base": base, "peak": peak}
        for mode in MODES
    ]


@pytest.fixture
def judge(tmp_path):
    """Return a function that writes the report of a made-up record, and returns its table lines by their first cell."""

    def write(row_groups, preset="full"):
        rows = [r for group in row_groups for r in group]
        record = {"stamp": {}, "checks": {}, "missing": {}, "preset": preset, "rows": rows}
        (tmp_path / "results.json").write_text(json.dumps(record), encoding="utf-8")
        main(["--report", "--out", str(tmp_path)])
        lines = (tmp_path / "RESULTS.md").read_text(encoding="utf-8").splitlines()
        # Several tables may have a line of this name; the first is the time on all cores.
        return {line.split("|")[1].strip(): line for line in reversed(lines) if line.startswith("| ")}

    return write


def test_targets_are_judged_by_the_ratio_to_full_attention_in_the_same_round(judge):
    # The machine becomes four times slower within each run; the ratios must not change.
    found = judge(
        [
            row("local ±64", 1024, [0.4, 1.0, 1.6], [1.0, 2.0, 4.0]),
            row("local ±64", 2048, [0.6, 1.2, 2.4], [1.0, 2.0, 4.0]),
            row("local ±64", 8192, [0.3], [2.0]),
        ]
    )
    assert found["Fixed patterns: faster than full attention at n = 1024"].count("**met** in all 1") == 2
    assert found["Fixed patterns: at most half its time at n = 2048"].count("local ±64 at 2048: 0.60") == 2
    assert found["Fixed patterns: at most a fifth of its time at n = 8192"].count("**met**") == 2
    assert "0.4 (0.4–0.45)" in found["**local ±64**"]
    assert "not measured" in found["Linear variants: time exponent from n = 2048 to 16384"]


def test_a_peer_is_compared_round_by_round_and_in_memory(judge):
    peer = {"role": "peer", "name": "local-attention"}
    found = judge(
        [
            row("local ±64", 2048, [1.0, 2.0, 4.0], [1.0, 2.0, 4.0], peak=300),
            row("local ±64", 2048, [2.0, 4.0, 8.0], [1.0, 2.0, 4.0], peak=200, **peer),
            row("local ±64", 8192, [1.2], [1.0], peak=100),
            row("local ±64", 8192, [2.0], [2.0], peak=200, **peer),
        ]
    )
    time, memory = (
        found[f"Each: {what} every peer at n = 2048 and 8192"] for what in ("as fast as", "no more memory than")
    )
    assert time.count("**missed** in 1 of 2 (limit 1): local ±64 over local-attention at 8192: 1.20") == 2
    assert memory.count("**missed** in 1 of 2 (limit 1): local ±64 over local-attention at 2048: 1.50") == 2


def test_a_missed_target_is_reported_with_its_bound(judge):
    bound = {"role": "bound", "name": "two products", "key": "taylor2"}
    found = judge(
        [
            row("taylor2", 4096, [1.6, 1.8], [2.0, 2.0], key="taylor2"),
            row("taylor2", 4096, [1.2, 1.4], [2.0, 2.0], **bound),
            row("topk 32", 2048, [3.0], [1.0], key="topk"),
        ]
    )
    line = found["taylor2: at most 0.75 of full attention at n = 4096"]
    assert line.count("taylor2 at 4096: 0.85 (its bound: 0.65)") == 2
    assert found["topk: at most 2.5 times full attention at n = 2048"].count("topk 32 at 2048: 3.00 |") == 2
    assert "two products" in found["taylor2"]


@pytest.mark.parametrize(("seconds", "verdict"), [(1.29, "met"), (1.31, "missed")])
def test_additive_is_compared_with_its_bound_round_by_round(judge, seconds, verdict):
    bound = {"role": "bound", "name": "pairs", "key": "additive"}
    base = [4.0, 2.0]  # The machine becomes slower in between.
    found = judge(
        [
            row("additive", 1024, [2 * seconds, seconds], base, key="additive"),
            row("additive", 1024, [2.0, 1.0], base, **bound),
        ]
    )
    assert found["additive: at most 1.3 times its bound"].count(f"**{verdict}**") == 2


def test_memory_of_kernel_variants_is_compared_with_their_output(judge):
    output = 4 * 8 * 2048 * 64
    found = judge(
        [
            row("linear elu+1", 2048, [1.0], [1.0], key="linear", peak=2 * output),
            row("cosine", 2048, [1.0], [1.0], key="cosine", peak=3 * output),
            row("local ±64", 2048, [1.0], [1.0], peak=9 * output),
        ]
    )
    line = found["Kernel: at most twice their output's memory at n = 2048"]
    assert line.count("**missed** in 1 of 2 (limit 2): cosine at 2048: 3.00") == 2


@pytest.mark.parametrize(("power", "verdict"), [(1.0, "met"), (1.5, "missed")])
def test_the_exponent_is_the_slope_of_time_over_length(judge, power, verdict):
    sizes = (2048, 4096, 8192, 16384)
    found = judge([row("local ±64", n, [1e-6 * n**power] * 3, [1.0] * 3) for n in sizes])
    line = found["Linear variants: time exponent from n = 2048 to 16384"]
    assert line.count(f"**{verdict}**") == 2
    assert f"local ±64: {power:.2f}" in line


def rows_of_growth(sizes, time, memory=1.0, *, label="linear elu+1", key="linear"):
    """Return rows whose time and memory grow with these powers of n; the baseline grows linearly."""
    return [row(label, n, [n ** (time - 1)], [1.0], key=key, peak=n**memory) for n in sizes]


@pytest.mark.parametrize(("power", "verdict"), [(1.04, "met"), (1.06, "missed")])
def test_long_lengths_are_judged_by_exponents_of_time_and_of_memory(judge, power, verdict):
    sizes = (8192, 16384, 65536, 262144)
    time = "Linear variants: time exponent from n = 8192 on"
    memory = "Linear variants: memory exponent from n = 8192 on"
    found = judge(rows_of_growth(sizes, power), "long")
    assert found[time].count(f"**{verdict}**") == 2
    assert f"linear elu+1 to 262,144: {power}" in found[time]
    assert found[memory].count("**met**") == 2
    found = judge(rows_of_growth(sizes, 1.0, power), "long")
    assert found[time].count("**met**") == 2
    assert found[memory].count(f"**{verdict}**") == 2


def test_the_full_report_includes_the_targets_of_presets(judge, tmp_path):
    assert "### " not in (judge([row("local ±64", 1024, [1.0], [1.0])]), (tmp_path / "RESULTS.md").read_text())[1]
    judge(rows_of_growth((8192, 65536), 1.2), "long")
    (tmp_path / "long").mkdir()
    (tmp_path / "results.json").rename(tmp_path / "long" / "results.json")
    found = judge([row("local ±64", 1024, [1.0], [1.0])])
    assert "to 65,536: 1.20" in found["Linear variants: time exponent from n = 8192 on"]
    assert "### [Long texts](long/RESULTS.md)" in (tmp_path / "RESULTS.md").read_text(encoding="utf-8")


def test_the_bound_of_reading_memory_is_shown_with_time_exponents(judge):
    sizes, what = (8192, 16384, 65536, 262144), "Linear variants: time exponent from n = 8192 on"
    bound = [row(READING, n, [n**0.12], [1.0], role="bound", key="", peak=None) for n in sizes]
    assert (
        "linear elu+1 to 262,144: 1.10 (its bound: 1.12)" in judge([*rows_of_growth(sizes, 1.1), *bound], "long")[what]
    )
    assert "bound" not in judge(rows_of_growth(sizes, 1.1), "long")[what]


@pytest.mark.parametrize(("sizes", "judgement"), [((8192, 65536), "to 65,536: 1.20"), ((8192, 16384), "not measured")])
def test_exponents_are_judged_up_to_the_longest_measured_length(judge, sizes, judgement):
    found = judge(rows_of_growth(sizes, 1.2), "long")
    assert found["Linear variants: time exponent from n = 8192 on"].count(judgement) == 2


@pytest.mark.parametrize(("ratio", "verdict"), [(1.09, "met"), (1.11, "missed")])
def test_a_late_token_may_take_a_tenth_longer_than_an_early_one(judge, ratio, verdict):
    rows_by_length = [row("linear elu+1", n, [2 * r], [2.0], key="linear") for n, r in ((1000, 1.0), (100_000, ratio))]
    found = judge(rows_by_length, "decode")
    line = found["Decoders: time of a token after 100,000 over one after 1,000"]
    assert line.count(f"**{verdict}**") == 2
    assert f"linear elu+1 at 100000: {ratio}" in line


@pytest.mark.parametrize(
    ("ratio", "pattern", "kernel"), [(0.49, "met", "met"), (0.51, "missed", "met"), (1.01, "missed", "missed")]
)
@pytest.mark.parametrize(
    ("preset", "what", "full"), [("bfloat16", " in bfloat16", ""), ("backward", ", backward", "'s")]
)
def test_a_preset_is_compared_with_full_attention_in_the_same_preset(judge, preset, what, full, ratio, pattern, kernel):
    measured_rows = [row("local ±64", 2048, [ratio], [1.0]), row("linear elu+1", 2048, [ratio], [1.0], key="linear")]
    found = judge(measured_rows, preset)
    fixed = found[f"Fixed patterns{what}: at most half the time of full attention{full} at n = 2048"]
    cheap = found[f"Kernel and low-rank{what}: faster than full attention{full} at n = 2048"]
    assert fixed.count(f"**{pattern}**") == 2
    assert cheap.count(f"**{kernel}**") == 2


@pytest.mark.parametrize(("peak", "verdict"), [(300, "met"), (301, "missed")])
def test_a_backward_pass_may_use_three_times_the_memory_of_full_attention(judge, peak, verdict):
    full = row("full attention", 512, [1.0], [1.0], role="full", key="")
    found = judge([full, row("fox", 512, [1.0], [1.0], key="fox", peak=peak)], "backward")
    assert found["Each, forward and backward: at most 3 times full attention's memory"].count(f"**{verdict}**") == 2


@pytest.fixture
def preset(tmp_path):
    """Return a function that runs a preset at small sizes in this process, and returns the rows of its record."""
    threads = torch.get_num_threads()

    def measured(name, *keys):
        main([f"--{name}", "--quick", "--sizes", "64", "128", "--out", str(tmp_path), *(f"--only={k}" for k in keys)])
        assert not (tmp_path / "results.svg").exists()
        record = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
        assert record["preset"] == name
        return {(r["label"], r["n"]): r for r in record["rows"] if r["mode"] == "one thread"}

    yield measured
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", report.PRESETS)
def test_a_preset_is_written_to_its_own_folder(name, monkeypatch):
    """Check that a preset does not overwrite the published results of the full run."""
    read, written = [], []
    monkeypatch.setattr(Record, "load", staticmethod(read.append))
    monkeypatch.setattr("benchmarks.__main__.write", lambda record, out: written.append(out))
    main(["--report"])
    main(["--report", f"--{name}"])
    code = Path(report.__file__).parent
    assert written == [code, code / name]
    assert read == [code / "results.json", code / name / "results.json"]


def test_long_lengths_of_linear_variants_are_compared_with_linear_growth(preset):
    found = preset("long", "linear", "softmax")
    assert found.keys() == {(label, n) for label in (READING, *CASES[:2]) for n in SIZES}
    assert "peak" not in found[READING, SIZES[0]]
    near, far = (found["linear elu+1", n] for n in SIZES)
    assert near["seconds"] == near["base"]
    assert far["base"] == [pytest.approx(2 * near["seconds"][0], rel=1e-3)]
    assert far["peak"] > 64 * 128 * 4


def test_the_baseline_of_a_decoder_is_its_own_earlier_token(preset):
    found = preset("decode", "linear", "softmax")
    assert found.keys() == {("linear elu+1", n) for n in SIZES}
    near, far = (found["linear elu+1", n] for n in SIZES)
    assert far["base"] == near["seconds"] == near["base"]


def test_bfloat16_halves_the_memory_and_includes_full_attention(preset):
    found = preset("bfloat16", "local")
    assert {label for label, _ in found} == {"full attention", "local ±64", "local ±128"}
    # The kernel's output takes two bytes per number; its normaliser, one number per row, takes four.
    assert found["full attention", 128]["peak"] == 8 * 128 * (64 * 2 + 4)


def test_the_memory_of_a_backward_pass_includes_the_forward_pass(preset):
    found = preset("backward", "linear")
    assert {label for label, _ in found} == {*FULL, *CASES[:2]}
    n, d = 128, 64
    # The output, its row sums and the three gradients.
    assert found["full attention", n]["peak"] >= 8 * n * (4 * d + 1) * 4


def test_missed_targets_are_profiled_by_operators_or_tensors(tmp_path):
    """Check that the longer of two sizes is profiled, unless its call takes too long; met targets are not profiled."""
    n, rows = 8192, []
    for label, key, seconds in (
        ("taylor2", "taylor2", 1.0),
        ("linear elu+1", "linear", 1.0),
        ("cosine", "cosine", 0.1),
    ):
        for size, duration in ((512, 0.1), (n, seconds if label == "taylor2" else 0.1)):
            base = [duration / (0.5 if label == "cosine" else 2.0)]
            more = {"label": label, "name": label, "key": key, "role": "variant", "n": size, "mode": "one thread"}
            rows.append(Row(**more, seconds=[duration], base=base, peak=3 * 4 * 8 * 2048 * 64))
    rows.append(Row(**{**vars(rows[-1]), "n": 2048}))
    record = Record(stamp={}, checks={}, missing={}, rows=rows)
    threads, built = torch.get_num_threads(), []

    def build(case, size):
        built.append((case, size))
        x = torch.ones(64, 64)
        return lambda: (x @ x).exp_()

    explain(record, build, lambda what: None)
    torch.set_num_threads(threads)
    assert built == [("taylor2", 512), ("linear elu+1", n), ("cosine", 2048)]
    assert {"mm", "exp_"} <= record.profiles["taylor2 at 512"].keys()
    assert sum(record.profiles["taylor2 at 512"].values()) <= 1
    assert record.held == {"cosine at 2048": [(64 * 64 * 4, (64, 64))]}
    record.save(tmp_path / "results.json")
    text = report.text(Record.load(tmp_path / "results.json"))
    assert "| taylor2 at 512 | " in text
    assert "| cosine at 2048 | 64 × 64 (0.0156 MiB) |" in text


def test_one_slow_round_does_not_count_as_a_long_call():
    """Check that another process that delays one round does not count as a long call."""
    more = {"label": "linear elu+1", "name": "linear elu+1", "key": "linear", "role": "variant", "mode": "one thread"}
    missed = [
        Row(**more, n=512, seconds=[0.1, 0.1], base=[0.05, 0.05]),
        Row(**more, n=8192, seconds=[0.4, 9.0], base=[0.1, 0.1]),
    ]
    record = Record(stamp={}, checks={}, missing={}, rows=missed)
    threads = torch.get_num_threads()
    explain(record, lambda case, size: lambda: torch.ones(4).exp_(), lambda what: None)
    torch.set_num_threads(threads)
    assert record.profiles.keys() == {"linear elu+1 at 8192"}


def test_a_full_run_has_several_rounds(tmp_path):
    done = run("--sizes", 64, "--only", "pyramid", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    (found,) = rows(record, "pyramid", 64, "one thread")
    assert len(found["seconds"]) >= 5
    assert len(set(found["base"])) > 1


def test_a_later_run_of_some_cases_replaces_only_their_rows(tmp_path):
    def row(label, name, role, seconds):
        return Row(label=label, key="", name=name, role=role, n=512, mode="one thread", seconds=[seconds], base=[1.0])

    def run(date, *rows, **text):
        return Record(stamp={"date": date, "load at start": "0.1"}, checks={}, rows=[*rows], **text)

    earlier = run(
        "monday",
        row("full attention", "full attention", "full", 1.0),
        row("local", "local", "variant", 0.5),
        row("topk", "topk", "variant", 4.0),
        missing={"absent": "is not installed", "other": "is not installed"},
        profiles={"topk at 512": {"mm": 0.5}, "local at 512": {"bmm": 0.9}},
    )
    later = run(
        "tuesday",
        row("full attention", "full attention", "full", 9.0),
        row("topk", "topk", "variant", 2.0),
        row("topk", "absent", "peer", 3.0),
        missing={},
    )
    joined = earlier.joined(later)
    assert {(r.label, r.name): r.seconds for r in joined.rows} == {
        ("full attention", "full attention"): [1.0],
        ("local", "local"): [0.5],
        ("topk", "topk"): [2.0],
        ("topk", "absent"): [3.0],
    }
    assert joined.missing == {"other": "is not installed"}
    assert joined.profiles == {"local at 512": {"bmm": 0.9}}
    assert joined.stamp["date"] == "monday"
    assert joined.stamp["measured again, tuesday, load 0.1"] == "topk"
