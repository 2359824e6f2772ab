import pytest
import torch

import attention_core as ac
from attention_core.benchmarking.clock import CpuClock, CudaClock, clock_for
from attention_core.benchmarking.counting import count
from attention_core.benchmarking.device import cpu_model, stamp
from attention_core.benchmarking.timing import TimingSpec, inputs, prepare, unsupported_reason
from attention_core.runtime.devices import check_device, devices

MODES = ("forward", "backward", "decode")


def drawn(n=24, dtype=torch.float32):
    return (x.to(dtype) for x in torch.randn(3, 1, 2, n, 8, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_every_variant_runs_in_every_mode_or_gives_a_reason(variant, dtype):
    attention = ac.get(variant.key)
    q, k, v = drawn(dtype=dtype)
    for mode in MODES:
        for causal in (False, True):
            why = unsupported_reason(attention, mode=mode, causal=causal)
            if why is not None:
                assert why.endswith(".")
                assert variant.causal_reason == why or mode == "decode"
                continue
            result = prepare(attention, q, k, v, mode=mode, causal=causal)()
            if mode == "forward":
                assert torch.equal(result, attention.attend(q, k, v, causal=causal))
            if mode == "backward":
                assert any(g is not None for g in result)
                assert all(g is None or g.shape == q.shape for g in result)


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("causal", [False, True])
def test_every_variant_stays_on_the_device_of_its_inputs(variant, mode, causal):
    # No device has meta tensors, so mixing them with a CPU tensor raises an error, as it would on CUDA.
    attention = ac.get(variant.key)
    if unsupported_reason(attention, mode=mode, causal=causal):
        return
    q, k, v = (torch.empty(1, 2, 300, 16, device="meta") for _ in range(3))
    if variant.key in ("efficient", "performer") and (causal or mode == "decode"):
        return  # Their running sums read a value, and meta tensors have no values.
    result = prepare(attention, q, k, v, mode=mode, causal=causal)()
    first = result if isinstance(result, torch.Tensor) else next(x for x in result if x is not None)
    assert first.device.type == "meta"


def test_backward_gives_the_gradients_of_the_sum_of_the_output():
    q, k, v = drawn()
    own = prepare(ac.get("linear"), q, k, v, mode="backward", causal=True)()
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    ac.get("linear").attend(*leaves, causal=True).sum().backward()
    for a, b in zip(own, leaves, strict=True):
        assert torch.allclose(a, b.grad, atol=1e-6)


def test_a_decode_step_of_softmax_is_the_last_row_of_causal_attention():
    q, k, v = drawn()
    last = prepare(ac.get("softmax"), q, k, v, mode="decode", causal=False)()
    assert torch.allclose(last[..., 0, :], ac.get("softmax").attend(q, k, v, causal=True)[..., -1, :], atol=1e-6)


def test_decode_cost_grows_with_length_for_softmax_and_is_constant_for_linear():
    def adds(key, n):
        return count(prepare(ac.get(key), *drawn(n), mode="decode", causal=False)).multiply_adds

    assert adds("softmax", 64) == 2 * 2 * 64 * 8
    assert adds("softmax", 128) == 2 * adds("softmax", 64)
    assert adds("linear", 64) == adds("linear", 128) > 0
    assert unsupported_reason(ac.get("nystrom"), mode="decode", causal=False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "sideways"},
        {"dtype": "float16"},
        {"device": "tpu"},
        {"sizes": ()},
        {"sizes": (8, 8)},
        {"sizes": (16, 8)},
        {"sizes": (0,)},
        {"sizes": (2**30,)},
        {"heads": 0},
        {"head_size": 10**6},
        {"rounds": 0},
        {"variants": ()},
        {"variants": ("softmax", "softmax")},
        {"variants": ("sofmax",)},
        {"variants": ("local~window~0",)},
    ],
    ids=str,
)
def test_an_invalid_spec_is_refused(wrong):
    with pytest.raises(ac.LabError):
        TimingSpec(**({"variants": ("softmax",)} | wrong))


def test_inputs_are_reproducible_and_have_the_dtype():
    spec = TimingSpec(variants=("softmax",), heads=3, head_size=5, dtype="bfloat16")
    q, k, v = inputs(spec, 7)
    assert q.shape == k.shape == v.shape == (1, 3, 7, 5)
    assert q.dtype == torch.bfloat16
    assert torch.equal(q, inputs(spec, 7)[0])
    assert not torch.equal(q, k)


def test_the_cpu_clock_takes_the_mean_and_counts_bytes():
    calls = []
    seconds = CpuClock().seconds(lambda: calls.append(torch.ones(10)), 4)
    assert len(calls) == 4
    assert 0 < seconds < 1
    a = torch.ones(6, 5)
    counts, peak = CpuClock().costs(lambda: a @ a.T)
    assert (counts.multiply_adds, peak) == (6 * 5 * 6, 4 * 36)


class FakeCuda:
    """A substitute for torch.cuda that records calls; the time of an event is the number of calls made before it."""

    def __init__(self, monkeypatch, call_ms=2.0):
        self.log, self.work, self.peak_bytes = [], 0, 0
        fake = self

        class Event:
            def __init__(self, enable_timing=False):
                assert enable_timing

            def record(self):
                fake.log.append("record")
                self.at = fake.work

            def elapsed_time(self, end):
                assert fake.log[-1] == "synchronize", "read before the device was done"
                return (end.at - self.at) * call_ms

        for name in ("synchronize", "reset_peak_memory_stats"):
            monkeypatch.setattr(torch.cuda, name, lambda name=name: self.log.append(name))
        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: self.log.append("before") or 1000)
        monkeypatch.setattr(
            torch.cuda, "max_memory_allocated", lambda: self.log.append("peak") or 1000 + self.peak_bytes
        )

    def call(self):
        self.log.append("call")
        self.work += 1
        self.peak_bytes = 123


def test_the_cuda_clock_records_events_around_the_calls_and_synchronises_before_reading(monkeypatch):
    fake = FakeCuda(monkeypatch)
    assert CudaClock().seconds(fake.call, 3) == pytest.approx(2e-3)
    assert fake.log == ["synchronize", "record", "call", "call", "call", "record", "synchronize"]


def test_the_cuda_clock_reads_the_peak_memory_of_the_second_call(monkeypatch):
    fake = FakeCuda(monkeypatch)
    _counts, peak = CudaClock().costs(fake.call)
    assert peak == 123
    assert fake.log == ["call", "synchronize", "reset_peak_memory_stats", "before", "call", "synchronize", "peak"]


def test_the_clock_and_the_stamp_depend_on_the_device(monkeypatch):
    assert isinstance(clock_for("cpu"), CpuClock)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A fast one")
    assert devices() == ("cpu", "cuda")
    assert isinstance(clock_for("cuda"), CudaClock)
    assert (stamp("cuda").device, stamp("cuda").cpu) == ("A fast one", cpu_model())


def test_an_unavailable_device_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ac.LabError, match="cuda"):
        check_device("cuda")


def test_a_stamp_describes_this_machine():
    here = stamp("cpu")
    assert here.device == here.cpu == cpu_model() != ""
    assert (here.threads, here.torch) == (torch.get_num_threads(), torch.__version__)
    assert here.cores >= 1
    assert here.date.startswith("20")
    assert here.date.endswith("Z")


@pytest.mark.parametrize(
    ("reported", "name"),
    [
        ("Intel(R) Xeon(R) Processor", "Intel Xeon"),
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", "Intel Xeon"),
        ("AMD EPYC 7B13 64-Core Processor", "AMD EPYC 7B13 64-Core"),
        ("Processor", "unknown"),
    ],
)
def test_a_processor_is_named_without_trademarks_and_frequency(monkeypatch, reported, name):
    lines = f"processor\t: 0\nmodel name\t: {reported}\n"
    monkeypatch.setattr("attention_core.benchmarking.device.Path.exists", lambda path: True)
    monkeypatch.setattr("attention_core.benchmarking.device.Path.read_text", lambda path, errors: lines)
    assert cpu_model() == name
