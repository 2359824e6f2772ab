import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_core.benchmarking.device import Stamp
from attention_core.benchmarking.run_records import Sample, group_samples
from attention_core.benchmarking.run_summary import crossing, growth, overtaking, ratios, softmax_word, variant_points
from attention_core.benchmarking.timing import TimingSpec

SIZES = (64, 128, 256, 512, 1024, 2048, 4096)
STAMP = Stamp(device="A", cpu="A", cores=1, threads=1, torch="2", date="2026-01-31T12:00:00Z")


def run(times, drift=(1.0,)):
    """Return a run with known times: per variant a function of n, in ms, times a drift per round."""
    rows = [
        Sample(variant=word, n=n, round=i, ms=time(n) * slow, multiply_adds=n, promised=n, peak_bytes=n)
        for i, slow in enumerate(drift)
        for n in SIZES
        for word, time in times.items()
    ]
    return group_samples(TimingSpec(variants=tuple(times), sizes=SIZES, rounds=len(drift)), STAMP, rows)


@given(at=st.floats(70, 4000))
def test_power_laws_cross_where_they_are_equal(at):
    # n² = c n at n = c: both are straight lines on logarithmic axes, so interpolation is exact.
    found = crossing(ratios(run({"softmax": lambda n: n**2, "linear": lambda n: at * n}), "linear"))
    if at > 0.95 * SIZES[-1]:
        assert found.where == "even", "at the longest length, the times differ by less than 5%"
    else:
        assert found.where == "at"
        assert found.tokens == pytest.approx(at, rel=1e-9)


@pytest.mark.parametrize(
    ("time", "where", "tokens"),
    [
        (lambda n: 10.0 * n, "below", 64),
        (lambda n: 9000.0 * n, "beyond", 4096),
        (lambda n: float(n * n), "even", 4096),
        (lambda n: 0.96 * n * n, "even", 4096),
        (lambda n: 0.94 * n * n, "below", 64),
        (lambda n: 1.06 * n * n, "beyond", 4096),
        # Faster, slower, then always faster: only the last crossing counts.
        (lambda n: n * n * (0.5 if n == 64 or n > 512 else 2.0), "at", 512 * math.sqrt(2)),
    ],
)
def test_ratios_without_a_single_crossing(time, where, tokens):
    found = crossing(ratios(run({"softmax": lambda n: n**2, "linear": time}), "linear"))
    assert found.where == where
    assert found.tokens == pytest.approx(tokens)


def test_a_crossing_is_between_the_last_slower_and_the_first_faster_size():
    rows = [
        Sample(variant=word, n=n, round=i, ms=ms, multiply_adds=n, promised=n, peak_bytes=n)
        for i in range(3)
        for n, softmax, local in ((64, 1, 2), (128, 2, (3, 4, 0.5)[i]), (256, 4, (3, 5, 3)[i]), (512, 8, 4))
        for word, ms in (("softmax", float(softmax)), ("local", float(local)))
    ]
    found = crossing(
        ratios(
            group_samples(TimingSpec(variants=("softmax", "local"), sizes=(64, 128, 256, 512), rounds=3), STAMP, rows),
            "local",
        )
    )
    assert (found.where, found.slower, found.faster) == ("at", 64, 512)
    assert 128 < found.tokens < 256
    never_surely_slower = run({"softmax": lambda n: n**2, "linear": lambda n: n * (n if n == 64 else 10)})
    assert crossing(ratios(never_surely_slower, "linear")).slower == 64
    assert crossing(ratios(run({"softmax": lambda n: n**2, "linear": lambda n: 10.0 * n}), "linear")).faster is None


def test_a_run_without_softmax_has_no_crossing():
    linear_only = run({"linear": lambda n: n})
    assert softmax_word(linear_only) is None
    assert crossing(ratios(linear_only, "linear")) is None


def test_a_softmax_with_another_temperature_is_still_the_reference():
    found = run({"softmax~temperature~2.0": lambda n: n**2, "linear": lambda n: n})
    assert [r.middle for r in ratios(found, "linear")] == pytest.approx([1 / n for n in SIZES])


def test_the_ratios_do_not_change_if_the_machine_slows_down():
    steady = ratios(run({"softmax": lambda n: n**2, "linear": lambda n: 300 * n}), "linear")
    drifting = ratios(run({"softmax": lambda n: n**2, "linear": lambda n: 300 * n}, (1.0, 7.0, 2.0)), "linear")
    for a, b in zip(steady, drifting, strict=True):
        assert (b.low, b.middle, b.high) == pytest.approx((a.middle,) * 3)


def test_a_ratio_whose_quartiles_enclose_one_counts_as_even():
    rows = run({"softmax": lambda n: 1.0, "linear": lambda n: 1.0}, (1.0,) * 5)
    assert crossing(ratios(rows, "linear")).where == "even"


@given(exponent=st.floats(0.1, 3), factor=st.floats(1e-3, 1e3))
def test_growth_is_the_exponent_of_the_longest_lengths(exponent, factor):
    def time(n):
        return factor * 512.0**exponent if n < 512 else factor * float(n) ** exponent  # A fixed cost below this length.

    points = variant_points(run({"softmax": time}), "softmax")
    found = growth([p.n for p in points], [p.quartiles[1] for p in points])
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert found.r2 == pytest.approx(1)


def test_growth_needs_two_lengths_and_positive_values():
    assert growth([64], [1.0]) is None
    assert growth([64, 128], [0.0, 1.0]) is None


def test_a_variant_overtakes_softmax_where_their_lines_cross():
    """Check power laws, which equal the lines between measured lengths."""
    found = run({"softmax": lambda n: n**2 / 100, "linear": float, "local": lambda n: n**2 / 200})
    at = overtaking(found, "linear")
    assert (at.tokens, at.ms) == (pytest.approx(100), pytest.approx(100))
    assert at.before == (64, 64.0, pytest.approx(40.96))
    assert at.after == (128, 128.0, pytest.approx(163.84))
    assert [overtaking(found, word) for word in ("softmax", "local", "nystrom")] == [None] * 3
