import itertools
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_core as ac
from attention_core.benchmarking.counting import Counts
from attention_core.benchmarking.device import stamp
from attention_core.benchmarking.run_file import recorded_runs
from attention_core.benchmarking.run_records import Sample, Skipped, group_samples
from attention_core.benchmarking.timing import TimingSpec
from attention_core.errors import LabError
from attention_core.experiments import timing_length
from attention_core.experiments.timing_length import (
    ENOUGH_SECONDS,
    MIN_SAMPLE_SECONDS,
    MIN_SAMPLES,
    measure,
    next_sample,
    run,
    total,
    unfinished,
)

WORDS = ("softmax", "linear", "local~window~4")


class FakeClock:
    """A clock on which every call takes the same time or runs out of memory after some calls."""

    def __init__(self, seconds=1e-3, bytes_=100, broken_after=None):
        self.each, self.bytes, self.broken_after = seconds, bytes_, broken_after
        self.repeats, self.counted = [], 0

    def seconds(self, call, repeats):
        self.repeats.append(repeats)
        return self.each

    def costs(self, call):
        self.counted += 1
        if self.broken_after is not None and self.counted > self.broken_after:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return Counts(multiply_adds=5, peak_elements=self.bytes, largest_elements=1), self.bytes


def spec(**more):
    return TimingSpec(**({"variants": WORDS, "sizes": (8, 16), "rounds": 3, "heads": 2, "head_size": 4} | more))


def samples(rows):
    return [row for row in rows if isinstance(row, Sample)]


def left_out(rows):
    return [row for row in rows if isinstance(row, Skipped)]


def test_every_round_measures_all_lengths_and_reverses_the_order_of_variants():
    rows = list(measure(spec(), clock=FakeClock()))
    there, back = list(WORDS), list(reversed(WORDS))
    seen = [(row.round, row.n, row.variant) for row in rows]
    assert seen == [
        (index, n, word) for index, order in enumerate((there, back, there)) for n in (8, 16) for word in order
    ]
    assert len(rows) == total(spec())


def test_a_short_call_is_repeated_to_the_minimum_time_and_counted_once():
    clock = FakeClock(seconds=MIN_SAMPLE_SECONDS / 8)
    rows = list(measure(spec(variants=("softmax",), sizes=(8,)), clock=clock))
    assert clock.repeats == [1, 8, 8, 8]
    assert clock.counted == 1
    assert [row.ms for row in rows] == [MIN_SAMPLE_SECONDS / 8 * 1e3] * 3


def test_a_long_call_is_not_repeated_and_has_few_samples():
    clock = FakeClock(seconds=ENOUGH_SECONDS)
    rows = list(measure(spec(variants=("softmax",), sizes=(8,), rounds=9), clock=clock, max_seconds=100))
    assert clock.repeats == [1] * MIN_SAMPLES
    assert len(rows) == MIN_SAMPLES


def test_a_variant_predicted_too_slow_is_skipped_at_all_longer_lengths():
    words = ("softmax", "linear")
    # At twice and four times the length, softmax takes 4 and 16 times as long, linear attention 2 and 4 times.
    rows = list(measure(spec(variants=words, sizes=(8, 16, 32)), clock=FakeClock(seconds=1.0), max_seconds=5.0))
    assert not left_out(rows)
    rows = list(measure(spec(variants=words, sizes=(8, 32, 64)), clock=FakeClock(seconds=1.0), max_seconds=5.0))
    assert [(row.variant, row.n) for row in left_out(rows)] == [("softmax", 32)]
    assert {row.n for row in samples(rows) if row.variant == "softmax"} == {8}
    assert {row.n for row in rows if row.variant == "linear"} == {8, 32, 64}


def test_a_delay_at_one_length_leaves_no_variant_out():
    clock = FakeClock(seconds=0.1)
    steady = clock.seconds
    clock.seconds = lambda call, repeats: 4.0 if len(clock.repeats) == 1 else steady(call, repeats)
    clock.repeats.append(0)
    rows = list(measure(spec(variants=("softmax",), sizes=(8, 16, 32), rounds=1), clock=clock, max_seconds=20.0))
    assert [row.n for row in samples(rows)] == [8, 16, 32]


def test_predicted_and_actual_lack_of_memory_are_reported_as_reasons():
    rows = list(measure(spec(variants=("softmax",)), clock=FakeClock(bytes_=1000), max_bytes=1500))
    assert [row.n for row in left_out(rows)] == [16]
    assert "MiB" in left_out(rows)[0].reason
    rows = list(measure(spec(variants=("softmax",), sizes=(8, 16, 32)), clock=FakeClock(broken_after=1)))
    assert [(row.n, row.reason) for row in left_out(rows)] == [(16, "The device ran out of memory.")]
    assert {row.n for row in samples(rows)} == {8}


@pytest.mark.parametrize("mode", ["forward", "backward"])
def test_an_explicit_mask_that_needs_too_much_memory_is_not_started(mode):
    words = ("softmax", "local", "explicit.local", "fused.local")
    # 1,024² pairs: creating the mask takes 24 bytes each, explicit scores of two heads 24, the kernel's mask 4.
    rows = list(measure(spec(variants=words, sizes=(1024,), rounds=1, mode=mode), max_bytes=30 * 2**20))
    assert {row.variant for row in samples(rows)} == {"softmax", "local", "fused.local"}
    assert "MiB" in left_out(rows)[0].reason


@pytest.mark.parametrize(("mode", "causal", "left"), [("forward", True, "funnel"), ("decode", False, "pooled")])
def test_a_variant_that_does_not_support_the_mode_is_skipped_with_its_reason(mode, causal, left):
    rows = list(measure(spec(variants=("softmax", left), mode=mode, causal=causal), clock=FakeClock()))
    assert rows[0].variant == left
    assert rows[0].reason
    assert {row.variant for row in rows[1:]} == {"softmax"}


def test_real_measurements_have_positive_times_and_expected_counts():
    rows = list(measure(spec(rounds=2)))
    assert all(row.ms > 0 for row in rows)
    softmax = next(row for row in rows if row.variant == "softmax" and row.n == 16)
    assert softmax.multiply_adds == softmax.promised == 2 * 2 * 16 * 16 * 4
    assert softmax.peak_bytes >= 4 * 2 * 16 * 4  # At least the output.
    backward = next(measure(spec(mode="backward", variants=("softmax",))))
    assert backward.promised is None
    assert backward.multiply_adds > 2 * 2 * 8 * 8 * 4


def test_the_predicted_cost_of_coupled_heads_is_that_of_all_heads():
    row = next(measure(spec(variants=("mla~rank~4",), heads=3)))
    assert row.multiply_adds == row.promised > 3 * ac.get("mla", rank=4).cost(row.n, 4).multiply_adds


def test_samples_are_measured_on_demand():
    clock = FakeClock()
    assert len(list(itertools.islice(measure(spec(), clock=clock), 2))) == 2
    assert clock.counted == 2


def test_an_unavailable_device_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(LabError, match="cuda"):
        next(measure(spec(device="cuda")))


def test_decoder_steps_are_not_skipped_for_predicted_time():
    rows = list(
        measure(spec(mode="decode", variants=("softmax",), sizes=(8, 64)), clock=FakeClock(1.0), max_seconds=2.0)
    )
    assert timing_length.total(spec(mode="decode", variants=("softmax",), sizes=(8, 64))) == len(rows)


@given(
    st.sampled_from([1e-3, 0.1, 0.9, ENOUGH_SECONDS]),
    st.sampled_from([None, 0, 1, 4]),
    st.integers(1, 5),
    st.booleans(),
)
def test_the_next_sample_depends_only_on_the_rows_so_far(seconds, broken_after, rounds, causal):
    asked = spec(variants=("softmax", "funnel", "linear"), sizes=(8, 16, 32), rounds=rounds, causal=causal)
    clock = FakeClock(seconds, broken_after=broken_after)
    rows = list(measure(asked, clock=clock, max_seconds=4.0, max_bytes=2**30))
    for cut, row in enumerate(rows):
        task = next_sample(asked, rows[:cut], max_seconds=4.0, max_bytes=2**30)
        assert (task.variant, task.n) == (row.variant, row.n)
        assert (task.reason is None) or isinstance(row, Skipped)
        assert isinstance(row, Skipped) or task.round == row.round
        seen = [r for r in rows[:cut] if (r.variant, r.n) == (task.variant, task.n)]
        assert (task.first is None) == (not seen)
    assert next_sample(asked, rows, max_seconds=4.0, max_bytes=2**30) is None


def test_running_out_of_memory_in_a_later_round_ends_that_measurement():
    asked = spec(variants=("softmax", "linear"), rounds=4)
    rows = list(measure(asked, clock=FakeClock()))[:6]  # The first round and two samples of the second.
    lost = next_sample(asked, rows)
    assert (lost.variant, lost.n, lost.round) == ("linear", 16, 1)

    def fail(call, repeats):
        raise torch.OutOfMemoryError("CUDA out of memory")

    clock = FakeClock()
    clock.seconds = fail
    rows += run(lost, clock=clock)
    assert rows[-1].reason == "The device ran out of memory."
    while (task := next_sample(asked, rows)) is not None:
        assert (task.variant, task.n) != ("linear", 16)
        rows += run(task, clock=FakeClock())
    counts = Counter((row.variant, row.n) for row in samples(rows))
    assert counts == {("softmax", 8): 4, ("softmax", 16): 4, ("linear", 8): 4, ("linear", 16): 1}


def progress(asked, count, **clock):
    """Return the state of a run after ``count`` samples (None if finished), and the number of samples of a full run."""
    rows = list(measure(asked, clock=FakeClock(**clock), max_seconds=100))
    return unfinished(group_samples(asked, stamp("cpu"), rows[:count])), len(rows)


@pytest.mark.parametrize(
    ("count", "tokens", "rounds"),
    [(0, None, 0), (2, None, 0), (3, 8, 0), (5, 8, 0), (6, 16, 1), (11, 16, 1), (12, 16, 2), (17, 16, 2)],
)
def test_an_unfinished_run_reports_its_completed_tokens_and_rounds(count, tokens, rounds):
    found, whole = progress(spec(), count)
    assert whole == 18
    assert (found.tokens, found.rounds) == (tokens, rounds)


def test_a_run_with_all_requested_samples_is_finished():
    assert progress(spec(), 18)[0] is None
    # If calls are long, a few of them are enough.
    assert progress(spec(rounds=9), None, seconds=ENOUGH_SECONDS)[0] is None
    # One of the variants has no decoder step.
    assert progress(spec(mode="decode", variants=("softmax", "linear", "nystrom")), None)[0] is None
    assert not [name for name, each in recorded_runs().items() if unfinished(each)]


def test_skipped_measurements_do_not_make_a_run_unfinished():
    rows = list(measure(spec(sizes=(8, 16, 32)), clock=FakeClock(broken_after=5)))
    found = group_samples(spec(sizes=(8, 16, 32)), stamp("cpu"), rows)
    assert {left.variant for left in found.left_out}
    assert unfinished(found) is None
