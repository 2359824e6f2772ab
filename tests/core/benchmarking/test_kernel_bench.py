"""Tests of the kernel benchmark on the CPU with a fake clock; the code is the same as on other devices."""

import dataclasses
import importlib.util
import json
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
import torch

import attention_core as ac
from attention_core.__main__ import main
from attention_core.attention import Attention
from attention_core.benchmarking.clock import CpuClock, CudaClock
from attention_core.benchmarking.counting import count
from attention_core.benchmarking.kernels import bench, stamp
from attention_core.benchmarking.kernels.baselines import FLA, Baseline, baselines, compiled, fla
from attention_core.benchmarking.kernels.bench import Plan, Shape, measure, page_shapes, shapes_16k, table
from attention_core.benchmarking.kernels.roofline import ROOFS, Roof, roof_of
from attention_core.benchmarking.timing import prepare

SHAPES = (Shape(batch=2, heads=2, n=32, d=8), Shape(batch=1, heads=2, n=64, d=8))


class FakeClock(CpuClock):
    """A clock on which each call takes one second more than the one before; it records the calls."""

    def __init__(self):
        self.asked = []

    def each_seconds(self, call, repeats, *, flush):
        self.asked.append((repeats, flush))
        call()
        return [float(i) for i in range(1, repeats + 1)]


def plan(*words, **more):
    given = {"shapes": SHAPES, "dtype": "float32", "device": "cpu", "with_baselines": False, "repeats": 11}
    return Plan(attentions=[ac.registry.from_word(word) for word in words], **(given | more))


def rows(asked, device_name="A CPU", clock=None):
    return list(measure(asked, device_name=device_name, clock=clock or FakeClock()))


def test_presets_keep_tokens_and_width():
    assert all(shape.batch * shape.n == 16384 and shape.heads * shape.d == 2048 for shape in shapes_16k())
    assert [shape.n for shape in page_shapes()] == [2**i for i in range(9, 18)]
    assert {(shape.batch, shape.heads) for shape in page_shapes()} == {(1, 8)}


@pytest.mark.parametrize("mode", ["forward", "backward", "backward-alone", "decode"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_each_subject_has_a_row_at_each_shape_with_its_median_and_spread(mode, dtype):
    found = rows(plan("softmax", "linear", "local~window~4", mode=mode, dtype=dtype))
    assert [(row.name, row.shape) for row in found] == [
        (name, shape) for shape in SHAPES for name in ("softmax", "linear", "local~window~4")
    ]
    for row in found:
        if row.name.startswith("local") and mode == "decode":
            assert row.reason == "It has no incremental decoding."
            continue
        assert row.reason == ""
        assert row.ms == pytest.approx((3000, 6000, 9000))
        assert row.error <= bench.TOLERANCE[dtype]
        assert row.peak_bytes > 0
        assert row.share is None, "the limits of this device are not known"


def test_the_share_is_the_measured_over_the_attainable_rate(monkeypatch):
    monkeypatch.setitem(ROOFS, "Toy", Roof({"float32": 1e4}, 100.0))
    row = rows(plan("softmax", shapes=SHAPES[:1]), "NVIDIA Toy")[0]
    flops = 2 * (2 * 2 * 2 * 32 * 32 * 8)
    assert row.tflops == pytest.approx(flops / 6 / 1e12)
    # 32 operations per byte of q, k, v and output times 100 bytes/s: below the arithmetic limit.
    attainable = 100 * flops / (4 * 4 * 2 * 2 * 32 * 8)
    assert attainable < 1e4
    assert row.share == pytest.approx(flops / 6 / attainable)
    assert rows(plan("softmax", shapes=SHAPES[:1], dtype="bfloat16"), "NVIDIA Toy")[0].share is None


def test_backward_without_forward_is_timed_and_counted_separately(monkeypatch):
    # The memory is so slow that the share depends only on its bandwidth.
    monkeypatch.setitem(ROOFS, "Toy", Roof({"float32": 1e9}, 1.0))
    runs = []

    class Watched(Attention):
        def attend(self, q, k, v, *, causal=False):
            runs.append("forward")
            return super().attend(q, k, v, causal=causal)

    class Clock(FakeClock):
        def each_seconds(self, call, repeats, *, flush):
            runs.append("timed")
            call()
            super().each_seconds(call, repeats, flush=flush)
            runs.append("done")
            return [1.0] * repeats

    softmax, found = ac.get("softmax"), {}
    for mode in ("forward", "backward", "backward-alone"):
        asked = plan(mode=mode, shapes=SHAPES[:1], with_baselines=True)
        asked = dataclasses.replace(asked, attentions=[Watched(softmax.variant, softmax.params)])
        found[mode] = {row.name: row for row in rows(asked, "NVIDIA Toy", Clock())}
    assert runs[-3:] == ["timed", "done", "forward"], "the forward pass that is counted runs last"
    for name in ("softmax", "SDPA math"):
        forward, both, alone = (found[mode][name] for mode in ("forward", "backward", "backward-alone"))
        assert alone.tflops == pytest.approx(both.tflops - forward.tflops)
        assert alone.tflops == pytest.approx(2.5 * forward.tflops)
        assert alone.peak_bytes == both.peak_bytes > forward.peak_bytes
        # The time is one second, so the share is the bytes to be moved at one byte per second.
        size = 4 * 2 * 2 * 32 * 8
        assert [row.share for row in (forward, both, alone)] == pytest.approx([4 * size, 8 * size, 7 * size])


@pytest.mark.parametrize("word", ["softmax", "linear", "local~window~64"])
def test_operations_at_the_longest_shape_equal_the_cost_formula(word):
    shape, attention = page_shapes()[-1], ac.registry.from_word(word)
    q, k, v = torch.empty(3, shape.batch, shape.heads, shape.n, shape.d, device="meta")
    found = count(prepare(attention, q, k, v, mode="forward", causal=False)).multiply_adds
    assert found == shape.heads * attention.cost(shape.n, shape.d, causal=False).multiply_adds


@pytest.mark.parametrize(
    ("intensity", "attainable"), [(1.0, 10.0), (9.9, 99.0), (10.0, 100.0), (1000.0, 100.0)], ids=str
)
def test_the_roof_is_the_lower_of_bandwidth_and_arithmetic(intensity, attainable):
    assert Roof({"float32": 100.0}, 10.0).attainable("float32", 7 * intensity, 7) == pytest.approx(attainable)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L40", None),
        ("Tesla T4", "T4"),
        ("NVIDIA T400", None),
        ("AMD EPYC", None),
    ],
)
def test_a_device_is_recognised_by_whole_words_of_its_name(name, part):
    assert roof_of(name) is (ROOFS[part] if part else None)


def test_each_subject_is_warmed_up_at_a_shape_before_it_is_timed_there(monkeypatch):
    log = []

    class Clock(FakeClock):
        def each_seconds(self, call, repeats, *, flush):
            log.append("timed")
            return super().each_seconds(call, repeats, flush=flush)

    real = bench._call

    def watched(subject, asked, x):
        log.append(tuple(x[0].shape[::2]))
        return real(subject, asked, x)

    monkeypatch.setattr(bench, "_call", watched)
    rows(plan("softmax"), clock=Clock())
    check, *rest = log
    assert check == (1, 32)
    assert rest == [(2, 32), (2, 32), "timed", (1, 64), (1, 64), "timed"]


@pytest.mark.parametrize("flush", [True, False])
def test_the_cache_is_flushed_on_request(flush):
    clock = FakeClock()
    rows(plan("softmax", flush=flush), clock=clock)
    assert clock.asked == [(11, flush)] * 2


def test_running_out_of_memory_is_reported_and_other_rows_are_measured(monkeypatch):
    real = bench._call

    def small(subject, asked, x):
        if x[0].shape[-2] == 64:
            raise torch.OutOfMemoryError
        return real(subject, asked, x)

    monkeypatch.setattr(bench, "_call", small)
    found = rows(plan("softmax", "linear"))
    assert [(row.shape.n, row.reason) for row in found if row.reason] == [(64, "The device ran out of memory.")] * 2
    assert all(row.ms for row in found if row.shape.n == 32)


def test_running_out_of_memory_in_the_check_is_reported():
    class Large(Attention):
        def attend(self, q, k, v, *, causal=False):
            raise torch.OutOfMemoryError

    large = ac.get("softmax")
    asked = dataclasses.replace(plan("linear"), attentions=[Large(large.variant, large.params), ac.get("linear")])
    found = rows(asked)
    assert [(row.shape.n, row.reason) for row in found if row.name == "softmax"] == [
        (n, "The device ran out of memory.") for n in (32, 64)
    ]
    assert all(row.ms for row in found if row.name != "softmax")


class OnlyCorrectInFloat64(Attention):
    """An attention that is correct in float64 and wrong in any other type."""

    def attend(self, q, k, v, *, causal=False):
        right = super().attend(q, k, v, causal=causal)
        return right if q.dtype == torch.float64 else right + v


@pytest.mark.parametrize("mode", ["forward", "backward", "backward-alone"])
def test_an_incorrect_attention_is_not_timed(mode):
    softmax = ac.get("softmax")
    asked = dataclasses.replace(plan(mode=mode), attentions=[OnlyCorrectInFloat64(softmax.variant, softmax.params)])
    for row in rows(asked):
        assert row.ms is None
        assert row.reason.startswith("It differs from float64 on the CPU by ")
        assert row.error > 0.1


def test_full_attention_baselines_are_measured_or_report_why_they_cannot_run():
    found = {row.name: row for row in rows(plan("softmax", with_baselines=True, shapes=SHAPES[:1]))}
    assert found["SDPA math"].ms
    assert found["SDPA math"].error < 1e-6
    assert found["SDPA cuDNN"].reason == "It does not run here: RuntimeError."
    assert found["SDPA math"].tflops == found["softmax"].tflops


def test_an_incorrect_baseline_is_not_timed(monkeypatch):
    def build(n, device, causal):
        return lambda q, k, v: v

    other = Baseline("other", build, ac.get("softmax"), lambda n, d, causal: 1)
    monkeypatch.setattr(bench, "baselines", lambda attentions, softmax: [other])
    assert rows(plan("linear", with_baselines=True))[0].reason.startswith("It differs from float64")


def test_compiled_masks_are_measured_for_fixed_patterns_only():
    words = [each.name for each in baselines([ac.get("local", window=4), ac.get("linear")], ac.get("softmax"))]
    assert "flex_attention local~window~4" in words
    assert not any("linear" in word for word in words if word.startswith("flex"))
    pattern = compiled(ac.get("local", window=4))
    assert pattern.multiply_adds(16, 8, True) == 2 * 8 * (5 * 16 - 10), "the pairs that the pattern allows"


def test_a_table_row_ends_with_the_share_unknown_or_a_reason():
    base = rows(plan("softmax", shapes=SHAPES[:1]))[0]
    assert table([base]).splitlines()[1].endswith("unknown")
    assert table([dataclasses.replace(base, share=0.126)]).splitlines()[1].endswith("13 %")
    assert table([dataclasses.replace(base, ms=None, reason="Why.")]).splitlines()[1].endswith("Why.")


def test_the_cuda_clock_times_each_call_separately_after_a_flush(monkeypatch):
    log = []

    class Event:
        def __init__(self, enable_timing):
            self.at = None

        def record(self):
            log.append("event")
            self.at = len([x for x in log if x == "call"])

        def elapsed_time(self, end):
            assert log[-1] == "wait", "read before the device was done"
            return 1e3 * (end.at - self.at)

    class Cache:
        def zero_(self):
            log.append("flush")

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: log.append("wait"))
    monkeypatch.setattr(torch, "empty", lambda *a, **k: Cache())
    assert CudaClock().each_seconds(lambda: log.append("call"), 2, flush=True) == [1, 1]
    assert log == ["flush", "event", "call", "event"] * 2 + ["wait"]
    log.clear()
    CudaClock().each_seconds(lambda: log.append("call"), 1, flush=False)
    assert log == ["event", "call", "event", "wait"]


def test_the_cpu_clock_times_each_call_separately():
    calls = []
    assert len(CpuClock().each_seconds(lambda: calls.append(1), 3, flush=True)) == len(calls) == 3


@pytest.mark.parametrize(
    ("printed", "code", "driver"),
    [("550.54, 1980, 2619, 71.2, 700.0, 34\n", 0, "550.54"), ("", 9, "unknown"), ("a, b\n", 0, "unknown")],
)
def test_the_stamp_has_the_state_of_the_driver_or_unknown(monkeypatch, tmp_path, printed, code, driver):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\nprintf '{printed}'\nexit {code}\n")
    tool.chmod(0o755)
    monkeypatch.setattr(stamp.shutil, "which", lambda name: str(tool))
    found = stamp.device_state()
    assert found["driver"] == driver
    assert set(found) == set(stamp.QUERY_FIELDS)
    monkeypatch.setattr(stamp.shutil, "which", lambda name: None)
    assert set(stamp.device_state().values()) == {"unknown"}


def test_the_command_runs_a_preset_on_the_cpu_and_writes_rows_and_stamp(tmp_path, capsys):
    out = tmp_path / "k.json"
    words = ["bench", "--preset", "ours", "--sizes", "16", "--head-size", "8", "--variants", "softmax", "linear"]
    assert main([*words, "--alone", "--repeats", "2", "--mode", "backward", "--out", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert [(row["name"], row["mode"], row["shape"]["n"]) for row in found["rows"]] == [
        ("softmax", "backward", 16),
        ("linear", "backward", 16),
    ]
    assert found["stamp"]["device"]
    assert "is not in the table: no shares." in capsys.readouterr().out


def test_the_backward_alone_mode_requires_a_preset(tmp_path, capsys):
    out = tmp_path / "k.json"
    words = ["bench", "--mode", "backward-alone", "--sizes", "16", "--variants", "softmax", "--out", str(out)]
    assert main(words) == 2
    assert "Invalid mode: 'backward-alone'" in capsys.readouterr().err
    assert main([*words, "--preset", "16k", "--head-size", "2048", "--alone", "--repeats", "1"]) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["rows"][0]["mode"] == "backward-alone"


def test_an_unavailable_device_is_refused_before_anything_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["bench", "--device", "cuda", "--out", str(tmp_path / "k.json")]) == 2
    assert "cuda" in capsys.readouterr().err
    assert not (tmp_path / "k.json").exists()


PROMISED = {
    "linear": ("linear_attn", {}),
    "retention": ("retention", {}),
    "scalar_decay": ("simple_gla", {"g": (1, 7, 2)}),
    "gla": ("gla", {"g": (1, 7, 2, 4)}),
    "kda": ("kda", {"g": (1, 7, 2, 4), "beta": (1, 7, 2)}),
    "deltanet": ("delta_rule", {"beta": (1, 7, 2)}),
    "gated_deltanet": ("gated_delta_rule", {"g": (1, 7, 2), "beta": (1, 7, 2)}),
}
"""By key of a variant: the kernel of flash-linear-attention, and the sizes of its arguments other than q, k and v."""


@pytest.mark.parametrize("key", FLA)
def test_external_kernels_receive_arguments_of_the_expected_sizes(key, monkeypatch):
    kind, more = PROMISED[key]
    given = {}

    def kernel(q, k, v, **others):
        given.update(others, k=k)
        assert q.shape == k.shape == v.shape == (1, 7, 2, 4)
        return v, None

    for name in ("fla", "fla.ops", f"fla.ops.{kind}"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys.modules[f"fla.ops.{kind}"], f"chunk_{kind}", kernel, raising=False)
    q, k, v = torch.randn(3, 1, 2, 7, 4)
    found = fla(ac.get(key))
    assert found.name == f"fla chunk_{kind}"
    assert torch.equal(found.build(7, torch.device("cpu"), True)(q, k, v), v)
    lengths = given.pop("k").norm(dim=-1)
    assert {name: tuple(x.shape) for name, x in given.items()} == more
    assert ("beta" in given) == torch.allclose(lengths, torch.ones(()))


def test_a_library_that_is_not_installed_gives_no_baseline():
    assert importlib.util.find_spec("fla") is None
    assert fla(ac.get("gla")) is None
