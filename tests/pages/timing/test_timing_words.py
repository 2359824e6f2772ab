"""Tests of sentences of the Timing page alone: masks on the full matrix, skipped lengths, and its file."""

import csv
import io
import math
import re
from dataclasses import replace

import pytest

import attention_core as ac
from app.figures.lines import line_names
from app.figures.lines.curves import RING
from app.figures.theme import PAGE, SERIES, style
from app.words.labels import sentence_name
from app.words.measured_times import Series
from attention_core.benchmarking.device import Stamp
from attention_core.benchmarking.full_matrix_mask import attention_from_word
from attention_core.benchmarking.run_records import LIMIT_REASONS, Point, Run, Skipped
from attention_core.benchmarking.run_summary import Ratio, ratios, variant_points
from attention_core.benchmarking.timing import TimingSpec
from attention_core.experiments.timing_length import ENOUGH_SECONDS
from pages.timing import charts, missing, table, words
from pages.timing.memory import call_bytes, memory_sentence
from pages.timing.options import TimingOptions
from pages.timing.words import (
    mask_effect,
    mask_effects,
    other_device_note,
    slow_start_cause,
    speedup_sentence,
    start_overhead,
)

STAMP = Stamp(device="A GPU", cpu="A CPU", cores=8, threads=2, torch="2.13.0", date="2026-01-31T12:00:00Z")
RUN = Run(
    spec=TimingSpec(variants=("softmax", "local", "fused.local", "explicit.local"), sizes=(16, 64), rounds=3),
    stamp=STAMP,
    points=tuple(
        Point(
            variant=word, n=n, ms=(ms * n, 2 * ms * n, 3 * ms * n), multiply_adds=n, promised=None, peak_bytes=2**20 * n
        )
        for word, ms in {"softmax": 2.0, "local": 1.0, "fused.local": 3.0, "explicit.local": 5.0}.items()
        for n in (16, 64)
    ),
    left_out=(
        Skipped(variant="local", n=2048, reason="Too *slow*."),
        Skipped(variant="linear", n=16, reason="No step."),
    ),
)
MEBIBYTES = (2**20, "peak memory (MiB)")


def line(word, **more):
    own = attention_from_word(word)
    return Series(
        **{"run": RUN, "word": word, "name": words.name(own), "colour": 0, "live": True}
        | {"points": variant_points(RUN, word), "ratios": ratios(RUN, word), "masked": own if "." in word else None}
        | more
    )


@pytest.mark.parametrize(
    ("low", "high", "effect"),
    [
        (1.1, 1.3, "**A mask alone saves no time.**"),
        (1.0, 1.3, "**A mask alone saves no time.**"),
        (0.99, 1.3, "**A mask alone has no clear effect on the time.**"),
        (0.9, 1.0, "**A mask alone has no clear effect on the time.**"),
        (0.8, 0.9, "**A mask alone has no clear effect on the time.**"),
        (0.8, 0.89, "**A mask alone saves time.**"),
    ],
)
def test_a_mask_saves_time_only_if_the_quartiles_agree(low, high, effect):
    masked = Ratio(n=4096, low=low, middle=(low + high) / 2, high=high)
    assert mask_effect("Local*", "kernel", masked, Ratio(n=4096, low=0.1, middle=0.125, high=0.2)) == (
        rf"{effect} At 4,096 tokens, full attention with the mask of Local\* (kernel) takes {masked.middle:.2g} "
        "times softmax's time. The variant's own algorithm, which skips hidden pairs, takes 0.12 times softmax's time."
    )


def line_with_memory(word, *peaks, mode="forward"):
    run = replace(RUN, spec=replace(RUN.spec, mode=mode))
    own = [
        Point(variant=word, n=n, ms=(1.0,), multiply_adds=1, promised=None, peak_bytes=peak)
        for n, peak in zip((16, 64), peaks, strict=False)
    ]
    return line(word, run=run, points=own)


@pytest.mark.parametrize(
    ("points", "leader"),
    [
        ([], (24, 8)),
        ([(160, 30)], (72, 8)),
        ([(160, 60)], (24, 8)),
        ([(160, 30), (190, 30)], (120, 8)),
        ([(x, y) for x in range(0, 400, 20) for y in range(0, 100, 5)], (24, 8)),
    ],
)
def test_the_label_of_a_crossing_covers_no_measured_point_if_there_is_room(points, leader):
    text = f'<span style="color:{SERIES[0]}">●</span> Local: faster from ≈ 96'
    assert charts._leader(text, (93.0, 43.0), [[point] for point in points], 1, (960, 300)) == leader


@pytest.mark.parametrize(("width", "leader"), [(960, (72, 8)), (250, (24, 24))])
def test_the_label_of_a_crossing_stays_in_the_chart(width, leader):
    assert charts._leader("faster from ≈ 96", (75.0, 93.0), [[(140, 80)]], 1, (width, 300)) == leader


def test_the_label_of_a_crossing_covers_no_line_if_there_is_room():
    line_below = [(0.0, 70.0), (400.0, 70.0)]
    assert charts._leader("faster from ≈ 96", (93.0, 83.0), [line_below], 1, (960, 300)) == (24, 24)
    assert charts._leader("faster from ≈ 96", (393.0, 53.0), [line_below], -1, (960, 300)) == (24, 24)


@pytest.mark.parametrize(
    ("tokens", "is_first", "is_below"), [(32, False, True), (256, False, False), (200, True, True), (1024, True, False)]
)
def test_the_label_of_a_crossing_is_not_cut_off(tokens, is_first, is_below):
    """Check labels without and with room at the left, and the first label in both halves of the chart."""
    text = '<span style="color:#000000">●</span> Linear: faster from 96<br>Local: faster from ≈ 99'
    assert charts._is_below(text, tokens, [16, 4096], is_first=is_first) == is_below


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((1, 1), ["1 round"]),
        ((7, 7), ["medians of 7 rounds"]),
        ((6, 7), ["medians of at least 6 rounds"]),
        ((5, 7), ["medians of at least 5 rounds"]),
        ((), []),
    ],
)
def test_the_stamp_counts_the_rounds(counts, expected):
    rows = [replace(points("softmax", 16, 1.0), ms=(1.0,) * count) for count in counts]
    softmax = line("softmax", points=rows)
    assert charts._rounds([softmax], live=softmax.live) == expected
    assert charts._rounds([softmax], live=not softmax.live) == []


def test_close_crossings_share_a_label():
    labels = charts.crossing_labels
    assert labels([(96.0, "Local", 1), (99.0, "Linear", 2), (180.0, "Nyström", 3)]) == [
        "",
        f'<span style="color:{SERIES[1]}">●</span> Local: faster from ≈ 96<br>'
        f'<span style="color:{SERIES[2]}">●</span> Linear: faster from ≈ 99',
        f'<span style="color:{SERIES[3]}">●</span> Nyström: faster from ≈ 180',
    ]
    twice = labels([(96.0, "Local", 1), (96.2, "Local", 1)])
    assert twice == ["", f'<span style="color:{SERIES[1]}">●</span> Local: faster from ≈ 96']
    assert labels([]) == []
    *_, later = labels([(96.0, "Local", 1), (99.0, "Later", len(SERIES) + 1)])
    assert later.endswith(f'<span style="color:{style(len(SERIES) + 1).colour}">●</span> Later: faster from ≈ 99')


def counted(word, *work, ms=1.0, sizes=(64, 128)):
    points = [
        Point(variant=word, n=n, ms=(ms,), multiply_adds=each, promised=None, peak_bytes=1)
        for n, each in zip(sizes, work, strict=True)
    ]
    return line(word, points=points)


@pytest.mark.parametrize(
    ("slow", "work", "end"),
    [
        ("nystrom", (100, 149), ", such as inverting a matrix."),
        ("nystrom~inverse~exact", (100, 120), "."),
        ("nystrom", (100, 100), ", such as inverting a matrix."),
        ("nystrom", (100, 150), ""),
        ("nystrom", (40, 50), ""),
        ("softmax", (100, 120), ""),
    ],
)
def test_a_variant_that_starts_slowly_because_of_fixed_work_is_explained(slow, work, end):
    """Check the smallest share of constant work that explains it, an exact inverse, and cases without explanation."""
    other = [counted("linear", 50, 100, ms=0.5), counted("softmax", 50, 100, ms=0.5)]
    text = "At 64 tokens, **Nyström** is the slowest, partly because it spends most of its multiply-adds on steps that "
    expected = f"{text}do not shrink with the text{end}" if end else ""
    assert slow_start_cause([*other[: 2 - (slow == "softmax")], counted(slow, *work, ms=2.0)]) == expected


@pytest.mark.parametrize(
    ("work", "ms", "expected"),
    [
        (100, 2.0, "is the slowest, partly because"),
        (100, 2.1, "takes 4.2 times as long as softmax, with 2 times as many multiply-adds."),
        (55, 1.75, "takes 3.5 times as long as softmax, with 1.1 times as many multiply-adds."),
        (54, 1.75, "takes 3.5 times as long as softmax, with about as many multiply-adds."),
    ],
)
def test_a_variant_is_slow_because_of_its_work_only_if_the_work_explains_most_of_the_time(work, ms, expected):
    """Check a time that is the square of the work, a longer time, and hardly more work than softmax."""
    text = slow_start_cause([counted("softmax", 50, 100, ms=0.5), counted("linear", work, work, ms=ms)])
    assert text.startswith(f"At 64 tokens, **Linear** {expected}")


@pytest.mark.parametrize(("mode", "has_reason"), [("decode", True), ("forward", False)])
def test_a_slow_decode_step_with_little_work_has_its_reason(mode, has_reason):
    run = replace(RUN, spec=replace(RUN.spec, mode=mode))
    lines = [counted("softmax", 50, 100, ms=0.5), counted("linear", 54, 54, ms=1.75)]
    text = slow_start_cause([replace(each, run=run) for each in lines])
    assert text.endswith("Linear as several operations that each take time to start.") == has_reason


def test_a_slow_start_needs_work_at_two_lengths_and_softmax():
    other, one = counted("softmax", 50, 100, ms=0.5), counted("nystrom", 100, 110, ms=2.0)
    assert slow_start_cause([other, one])
    assert not slow_start_cause([other])
    assert not slow_start_cause([counted("linear", 50, 100, ms=0.5), one])
    on_gpu = replace(RUN, spec=replace(RUN.spec, device="cuda"))
    assert not slow_start_cause([replace(other, run=on_gpu), replace(one, run=on_gpu)])
    assert not slow_start_cause([other, counted("nystrom", 100, 110, ms=2.0, sizes=(64, 256))])
    assert not slow_start_cause([other, counted("nystrom", 100, 110, ms=2.0, sizes=(128, 256))])
    assert not slow_start_cause([other, counted("nystrom", 100, 110, ms=0.1)])


def test_the_constant_work_of_nystrom_is_explained_by_its_landmarks():
    """Check the products of landmarks with landmarks, which include the inverse, against the cost at two lengths."""
    attention = ac.get("nystrom")
    work = [attention.cost(n, 64).multiply_adds for n in (64, 128)]
    m, p = attention.params.landmarks, attention.params
    assert 2 * work[0] - work[1] == 2 * m * m * 64 + 4 * p.iterations * m**3


@pytest.mark.parametrize(
    ("device", "work", "last", "expected"),
    [
        ("cuda", 1000, 3.0, "only 2 times as much time."),
        ("cuda", 800, 3.0, "only 2 times as much time."),
        ("cuda", 800, 1.8, "only 1.2 times as much time."),
        ("cuda", 800, 1.58, "only 1.1 times as much time."),
        ("cuda", 800, 1.57, "not clearly more time."),
        ("cuda", 800, 1.5, "not clearly more time."),
        ("cuda", 800, 1.2, "not clearly more time."),
        ("cuda", 799, 3.0, ""),
        ("cpu", 1000, 3.0, ""),
        ("cuda", 0, 3.0, ""),
    ],
)
def test_a_time_that_hardly_grows_on_a_gpu_is_explained(device, work, last, expected):
    """Check work that grows four times as fast as the time, work that grows less, a CPU, and unknown work."""
    run = replace(RUN, spec=replace(RUN.spec, device=device))
    steep, flat = (
        replace(
            counted(word, 100 * bool(work), work),
            run=run,
            points=[replace(p, ms=(ms,)) for p, ms in zip(each.points, times, strict=True)],
        )
        for word, times in (("linear", (1.0, 9.0)), ("local", (1.5, last)))
        for each in [counted(word, 100 * bool(work), work)]
    )
    text = start_overhead([line("softmax", run=run), steep, flat])
    assert bool(text) == bool(expected)
    if expected:
        assert text.startswith(
            f"At 128 tokens, **Local with window 16** needs {work / 100:.3g} times as many multiply-adds as at 64 "
            f"tokens, but {expected}"
        )


def test_another_device_is_named_if_it_was_measured_with_the_same_settings():
    other = [replace(each, live=False) for each in (line("softmax"), line("local"))]
    text = other_device_note([line("softmax"), line("local")], other)
    assert text == "Faster than softmax **on a GPU (A GPU)**: Local at every measured length."
    linked = other_device_note([line("softmax"), line("local")], other, "#?run=x")
    assert linked == text.replace("(A GPU)", "([A GPU](#?run=x))")
    assert other_device_note([line("softmax"), line("local~window~4")], other) == ""
    twice = [*other, replace(line("local"), live=False, name="Local · window 4")]
    assert "Local with window 16 at every measured length and Local with window 4 at" in other_device_note(twice, twice)
    assert other_device_note([line("softmax"), line("local")], []) == ""
    unknown = [line("softmax"), replace(line("local"), ratios=[])]
    assert other_device_note([line("softmax"), line("local")], unknown) == ""


OPERATIONS = "Its fused kernel stores no n × n matrix, and variants store the results of several operations"


@pytest.mark.parametrize(
    ("peak", "expected"),
    [
        (3 * 2**20, "At 64 tokens, softmax has the lowest peak memory (2.0 MiB). The others need 3.0 to 9.0 MiB."),
        (
            2 * 2**20,
            "At 64 tokens, softmax has the lowest peak memory (2.0 MiB). " + OPERATIONS + ". The others need 2.0 to "
            "9.0 MiB.",
        ),
        (
            2**20,
            "At 64 tokens, Local with window 16 has the lowest peak memory: 1.0 MiB, compared with 2.0 "
            "MiB for softmax.",
        ),
    ],
)
def test_the_variant_with_the_least_memory_is_read_from_the_rows(peak, expected):
    softmax = line_with_memory("softmax", 2**19, 2 * 2**20)
    text = memory_sentence(
        [softmax, line_with_memory("linear", 9 * 2**20, 9 * 2**20), line_with_memory("local", 2**10, peak)]
    )
    assert text == expected


def test_memory_is_compared_at_the_longest_length_of_all():
    softmax = line_with_memory("softmax", 2**19, 2 * 2**20)
    assert memory_sentence([softmax, line_with_memory("local", 2**20)]).startswith(
        "At 16 tokens, softmax has the lowest peak memory (512.0 KiB). The other variant needs 1.0 MiB."
    )
    equal = [line_with_memory(word, 2**20) for word in ("local", "linear")]
    assert memory_sentence([softmax, *equal]).endswith("The others need 1.0 MiB.")
    kib = [line_with_memory("local", 1000 * 2**10), line_with_memory("linear", 2**21)]
    assert memory_sentence([softmax, *kib]).endswith("The others need 1,000.0 KiB to 2.0 MiB.")
    assert memory_sentence([softmax]) == ""
    assert memory_sentence([line_with_memory("local", 1), line_with_memory("linear", 1)]) == ""
    assert memory_sentence([softmax, line_with_memory("fused.local", 2**20, 1)]) == ""


@pytest.mark.parametrize(
    ("mode", "factor", "cause"),
    [
        ("forward", 1.0, "stores hardly more than the output (128.0 KiB)"),
        ("forward", 1.09, ", because torch's fused kernel stores hardly more than the output (128.0 KiB)"),
        ("forward", 1.11, OPERATIONS),
        ("backward", 1.0, OPERATIONS),
    ],
)
def test_little_memory_has_the_output_as_its_reason_if_hardly_more_is_stored(mode, factor, cause):
    output = 8 * 64 * 64 * 4  # heads × tokens × head size × bytes of a float32 number
    softmax, other = (
        line_with_memory(word, 1, round(times * output), mode=mode)
        for word, times in (("softmax", factor), ("local", 1.2))
    )
    text = memory_sentence([softmax, other])
    assert f"{cause}. The other variant needs 153.6 KiB." in text


def test_a_decode_step_is_described_by_what_is_stored_between_steps():
    cache = 2 * 8 * 64 * 64 * 4  # keys and values: heads × tokens × head size × bytes of a number
    state = 8 * (64 * 64 + 64) * 4  # heads × (sum of products of keys and values + sum of keys) × bytes of a number
    assert (cache, state) == (256 * 2**10, 130 * 2**10)
    softmax, linear = (line_with_memory(word, 1, 2**11, mode="decode") for word in ("softmax", "linear"))
    assert memory_sentence([softmax, linear]) == (
        "After 64 tokens, softmax keeps a cache of 256.0 KiB. Linear keeps a state of 130.0 KiB, however long the text "
        "is. One more step allocates 2.0 KiB with softmax, and 2.0 KiB with Linear, including its new state."
    )
    retention = line_with_memory("retention", 1, 2**12, mode="decode")
    assert memory_sentence([softmax, linear, retention]).endswith(
        "The other variants keep states of 130.0 KiB, however long the text is. One more step allocates 2.0 KiB with "
        "softmax, and 2.0 to 4.0 KiB with the others, including their new states."
    )
    half = [
        replace(each, run=replace(each.run, spec=replace(each.run.spec, dtype="bfloat16")))
        for each in (softmax, linear)
    ]
    assert "softmax keeps a cache of 128.0 KiB." in memory_sentence(half)


@pytest.mark.parametrize(
    ("word", "form"), [("fused.local", "torch's fused kernel"), ("explicit.local", "explicit n × n scores")]
)
def test_a_mask_is_compared_with_its_variants_algorithm_at_the_longest_common_length(word, form):
    text = mask_effects([line("softmax"), line("local"), line(word)])
    assert f"({form})" in text
    assert text.startswith("**A mask alone saves no time.** At 64 tokens, full attention with the mask of Local")
    assert text.endswith("skips hidden pairs, takes 0.5 times softmax's time.")
    shorter = line("local", ratios=ratios(RUN, "local")[:1])
    assert "At 16 tokens" in mask_effects([shorter, line(word)])
    two = [replace(point, ms=point.ms[:2]) for point in line(word).points]
    assert mask_effects([line("local"), line(word, points=two)]) == "", "two rounds differ by chance"


def test_no_mask_effect_without_a_mask_and_its_variant():
    assert mask_effects([line("softmax"), line("local")]) == ""
    assert mask_effects([line("softmax"), line("fused.local")]) == ""
    assert mask_effects([line("local", ratios=[]), line("fused.local")]) == ""


@pytest.mark.parametrize(
    ("reason", "most", "expected"),
    [
        (LIMIT_REASONS[0], 2048.0, "more than 2,048 MiB."),
        (LIMIT_REASONS[1], 0.5, "than 0.5 s."),
        ("Too {slow}.", None, "{slow}"),
    ],
)
def test_limits_are_filled_only_into_messages_that_name_them(reason, most, expected):
    run = replace(RUN, left_out=(Skipped(variant="local", n=2048, reason=reason, most=most),))
    [text] = missing.left_out(run, {"local": "Local"}, live=True)
    assert expected in text


@pytest.mark.parametrize(("live", "run"), [(True, "live"), (False, "recorded")])
def test_only_chosen_variants_are_reported_as_left_out(live, run):
    text = missing.left_out(RUN, {"softmax": "Softmax", "local": "Local*"}, live=live)
    assert text == [rf"There is no {run} measurement of Local\* at 2,048 tokens or more. Reason: Too \*slow\*."]
    assert missing.left_out(RUN, {"softmax": "Softmax"}, live=live) == []
    both = replace(RUN, left_out=(RUN.left_out[0], replace(RUN.left_out[0], variant="linear"), RUN.left_out[1]))
    text = missing.left_out(both, {"local": "Local", "linear": "Linear"}, live=live)
    assert text == [
        rf"There are no {run} measurements of Local and Linear at 2,048 tokens or more. Reason for each variant: "
        r"Too \*slow\*.",
        f"Linear is left out of the {run} run. Reason: No step.",
    ]


def test_variants_without_a_decode_step_have_this_app_as_the_reason():
    skipped = tuple(Skipped(variant=word, n=16, reason="It cannot.") for word in ("local", "nystrom"))
    run = replace(RUN, spec=replace(RUN.spec, mode="decode"), left_out=skipped)
    assert missing.left_out(run, {"local": "Local", "nystrom": "Nyström"}, live=False) == [
        "Local and Nyström are left out of the recorded run, because this app has no token-by-token form of them."
    ]


@pytest.mark.parametrize(("device", "says_so"), [("cpu", False), ("cuda", True)])
def test_the_fused_kernel_of_softmax_is_named_on_a_gpu(device, says_so):
    run = replace(RUN, spec=replace(RUN.spec, device=device))
    assert words.fused_kernel([replace(line("softmax"), run=run)]).startswith("**Softmax runs as one") == says_so


@pytest.mark.parametrize("several_runs", [False, True])
def test_the_first_columns_name_the_run_if_there_are_several(several_runs):
    columns = table.first_columns(64, MEBIBYTES, several_runs=several_runs)
    assert ("run" in columns) == several_runs
    assert columns[-1] == "faster than softmax from", "on a phone, only the first columns are visible: the numbers"


def test_masks_and_algorithms_have_different_names():
    assert words.name(ac.get("local")) == "Local · window 16"
    assert words.name(attention_from_word("fused.local")) == "Local · window 16, as a mask"


def test_the_csv_has_every_sample_with_machine_and_settings():
    lines = [line("softmax"), line("local", live=False)]
    read = list(csv.DictReader(io.StringIO(table.csv(lines).decode("utf-8-sig"))))
    assert [(row["variant"], row["run"], row["tokens"], row["sample"], row["ms"]) for row in read] == [
        (word, run, str(n), str(i), str(ms * n))
        for word, run, each in (("softmax", "live", (2.0, 4.0, 6.0)), ("local", "recorded", (1.0, 2.0, 3.0)))
        for n in (16, 64)
        for i, ms in enumerate(each)
    ]
    assert {row["device"] for row in read} == {"A GPU"}
    assert read[0] | {"multiply-adds by formula": "", "causal": "False", "peak bytes": str(2**24)} == read[0]


@pytest.mark.parametrize(("values", "expected"), [((351.2, 8.53, None), 1), ((1.0, 0.0248), 3), ((120.0,), 0)])
def test_all_numbers_of_a_column_have_the_same_decimals(values, expected):
    assert table.decimals(values) == expected


def test_every_row_of_the_table_is_at_the_same_length():
    assert table.row(line("local"), 64, MEBIBYTES) == {
        **{
            "variant": "Local · window 16",
            "run": "live",
            "faster than softmax from": "below 16 tokens",
            "time at n = 64 (ms)": 128.0,
        },
        **{
            "exponent a of time ∝ nᵃ": pytest.approx(1),
            "R² of the fit of time ∝ nᵃ": pytest.approx(1),
            "exponent a of multiply-adds ∝ nᵃ": pytest.approx(1),
            "time ÷ softmax's time (median)": 0.5,
        },
        **{
            "quartiles of the time (ms)": "96 … 160",
            "peak memory (MiB)": 64.0,
            "multiply-adds": 64,
            "multiply-adds by formula": None,
        },
        "multiply-adds per second": 500.0,
    }
    assert table.row(line("local"), 16, MEBIBYTES)["time at n = 16 (ms)"] == 32.0
    softmax = table.row(line("softmax", live=False), 64, MEBIBYTES)
    assert (softmax["run"], softmax["faster than softmax from"], softmax["time ÷ softmax's time (median)"]) == (
        "recorded",
        "—",
        1.0,
    )
    assert (
        table.row(line("local", ratios=ratios(RUN, "local")[:1]), 64, MEBIBYTES)["time ÷ softmax's time (median)"]
        is None
    )
    unmeasured = table.row(line("local"), 32, MEBIBYTES)
    assert [
        unmeasured[name]
        for name in (
            "time at n = 32 (ms)",
            "time ÷ softmax's time (median)",
            "peak memory (MiB)",
            "quartiles of the time (ms)",
        )
    ] == [None] * 4


@pytest.mark.parametrize(
    ("side", "names", "heights"),
    [
        ("ratio", ["Local · window 16"], [0.5, 0.5]),
        ("memory", ["Softmax", "Local · window 16"], [16, 64]),
        ("work", ["Softmax", "Local · window 16"], [16, 64]),
    ],
)
def test_the_second_chart_shows_ratios_memory_or_work(side, names, heights):
    drawn = charts.side_lines(side, [line("softmax"), line("local")])
    assert [each.name for each in drawn] == names
    assert (drawn[-1].x, drawn[-1].y, drawn[-1].low) == ((16, 64), heights, None)


def test_the_second_chart_has_one_unit_of_memory():
    for peak, title, heights in (
        (2**20 - 1024, "peak memory (KiB)", [1023.0, 512.0]),
        (2**20, "peak memory (MiB)", [1.0, 0.5]),
    ):
        lines = [line_with_memory("softmax", 2**19), line_with_memory("local", peak, 2**19)]
        assert charts.side_title("memory", lines) == title
        assert charts.side_lines("memory", lines)[-1].y == heights
    assert charts.side_title("ratio", lines) == "time ÷ softmax's time (median)"
    assert charts.side_title("work", lines) == "multiply-adds of one call"


def test_the_memory_of_a_decode_step_includes_the_cache_or_state_that_it_reads():
    softmax, linear = (line_with_memory(word, 2**10, 2**11, mode="decode") for word in ("softmax", "linear"))
    cache, state = 2 * 8 * 64 * 4, 130 * 2**10  # the cache of one token, and the state of linear attention
    assert call_bytes(softmax) == {16: 2**10 + 16 * cache, 64: 2**11 + 64 * cache}
    assert call_bytes(linear) == {16: 2**10 + state, 64: 2**11 + state}
    assert charts.side_title("memory", [softmax, linear]) == "memory with cache or state (KiB)"
    large = line_with_memory("softmax", 2**20, 2**20, mode="decode")
    assert charts.side_title("memory", [large]) == "memory with cache or state (MiB)"
    assert call_bytes(line_with_memory("softmax", 2**10, 2**11)) == {16: 2**10, 64: 2**11}


def test_recorded_live_and_masked_lines_have_different_styles():
    live, recorded = line("local"), line("local", live=False)
    drawn = {}
    for name, one, among in (
        ("live", live, [live, recorded]),
        ("recorded", recorded, [live, recorded]),
        ("alone", recorded, [recorded]),
        ("mask", line("fused.local"), [live]),
        ("recorded mask", line("fused.local", live=False), [live]),
    ):
        drawn[name] = charts.curve(one, [(p.n, *p.quartiles) for p in one.points], among)
    assert {name: each.dash for name, each in drawn.items()} == {
        **{"live": "solid", "recorded": "dash", "alone": "solid", "mask": "dot", "recorded mask": "dashdot"}
    }
    assert [name for name, each in drawn.items() if each.low is None] == ["recorded", "recorded mask"]
    assert [name for name, each in drawn.items() if not each.name_at_end] == ["recorded"]
    assert [name for name, each in drawn.items() if each.hollow] == ["recorded", "alone", "recorded mask"]


def points(word, n, ms):
    return Point(variant=word, n=n, ms=(ms,), multiply_adds=n, promised=None, peak_bytes=n)


OVERTAKEN = replace(
    RUN,
    spec=TimingSpec(variants=("softmax", "local"), sizes=(16, 64, 256), rounds=1),
    points=(
        *(points("softmax", n, ms) for n, ms in ((16, 1.0), (64, 4.0), (256, 64.0))),
        *(points("local", n, ms) for n, ms in ((16, 4.0), (64, 8.0), (256, 32.0))),
    ),
)


def on_other_device(*times, shown=None, **short):
    """Return the sentence about a run of softmax (64 ms at 256 tokens) and variants with these times there.

    ``short`` has the times of variants with short texts, if they are not 8 ms, by the variants' words.
    """
    word_of = dict(zip(("local", "linear", "topk"), times, strict=False))
    run = replace(
        OVERTAKEN,
        points=(
            *OVERTAKEN.points[:3],
            *(
                points(word, n, ms * n / 256 if n == 256 else short.get(word, 8.0))
                for word, ms in word_of.items()
                for n in (16, 64, 256)
            ),
        ),
    )
    lines = [
        line(word, run=run, points=variant_points(run, word), ratios=ratios(run, word), live=False)
        for word in ("softmax", *word_of)
    ]
    return other_device_note(shown or lines, lines)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((32.0,), "Faster than softmax **on a GPU (A GPU)**: Local from about 130 tokens."),
        ((32.0, 32.0), "**On a GPU (A GPU)**, every variant shown is faster than softmax from about 130 tokens on."),
        ((32.0, 50.0), "**On a GPU (A GPU)**, every variant shown is faster than softmax from about 180 tokens on."),
        (
            (32.0, 99.0),
            "Faster than softmax **on a GPU (A GPU)**: Local from about 130 tokens. Linear is not faster there at its "
            "longest measured length.",
        ),
        (
            (32.0, 99.0, 32.0),
            "**On a GPU (A GPU)**, every variant shown except Linear is faster than softmax from about 130 tokens on.",
        ),
        (
            (99.0, 64.0),
            "**On a GPU (A GPU)**, Local and Linear are not faster than softmax at their longest measured lengths.",
        ),
    ],
)
def test_the_variants_that_are_faster_on_another_device_are_named(times, expected):
    assert on_other_device(*times) == expected


def test_variants_that_are_faster_at_every_length_on_another_device_are_counted_or_named():
    every = "**On a GPU (A GPU)**, every variant shown is faster than softmax from about 130 tokens on."
    assert on_other_device(32.0, 32.0, linear=0.5) == every
    assert on_other_device(32.0, 99.0, local=0.5) == (
        "Faster than softmax **on a GPU (A GPU)**: Local at every measured length. Linear is not faster there at its "
        "longest measured length."
    )


def test_not_every_variant_shown_is_faster_on_a_device_that_did_not_measure_one_of_them():
    assert on_other_device(32.0, 32.0, shown=[line("softmax"), line("local"), line("linear"), line("topk")]) == (
        "Faster than softmax **on a GPU (A GPU)**: Linear from about 130 tokens and Local from about 130 tokens."
    )


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((99.0,), "**On a GPU (A GPU)**, Local is not faster than softmax at its longest measured length."),
        (
            (99.0, 64.0),
            "**On a GPU (A GPU)**, Local and Linear are not faster than softmax at their longest measured lengths.",
        ),
        (
            (99.0, 32.0),
            "Faster than softmax **on a GPU (A GPU)**: Linear from about 130 tokens. Local is not faster there at its "
            "longest measured length.",
        ),
    ],
)
def test_only_the_variants_that_another_device_measured_are_called_slower_there(times, expected):
    assert on_other_device(*times, shown=[line(word) for word in ("softmax", "local", "linear", "topk")]) == expected


def overtaken(**more):
    run = more.pop("run", OVERTAKEN)
    return line("local", run=run, points=variant_points(run, "local"), ratios=ratios(run, "local"), **more)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ((32.0, 1.0), "At 256 tokens, the variants shown are 2 to 64 times as fast as softmax in the median round."),
        ((32.0, 32.0), "At 256 tokens, the variants shown are 2 times as fast as softmax in the median round."),
        ((32.0,), "At 256 tokens, Local with window 16 is 2 times as fast as softmax in the median round."),
        ((32.0, 64.0), ""),
        ((), ""),
    ],
)
def test_the_speedup_is_reported_if_every_variant_is_faster(last, expected):
    run = replace(
        OVERTAKEN,
        spec=replace(OVERTAKEN.spec, variants=("softmax", "local", "linear")[: 1 + len(last)]),
        points=(
            *OVERTAKEN.points[:3],
            *(points(word, 256, ms) for word, ms in zip(("local", "linear"), last, strict=False)),
        ),
    )
    lines = [
        line(word, run=run, points=variant_points(run, word), ratios=ratios(run, word)) for word in run.spec.variants
    ]
    assert speedup_sentence(lines) == expected
    figure = {"layout": {}}
    charts.mark_speedup(figure, lines)
    labels = [each["text"] for each in figure["layout"].get("annotations", ())]
    times = re.findall(r"(?:\d+ to )?\d+ times as fast as softmax", expected)
    name = "Local · window 16" if len(last) == 1 else "variants"
    assert labels == [f"{name}: {each}" for each in times]
    if times:
        [shape], [mark] = figure["layout"]["shapes"], figure["layout"]["annotations"]
        heights = [float(each) for each in re.findall(r"[ML][\d.]+ ([\d.]+)", shape["path"])]
        assert heights == [64.0, 64.0, min(last), min(last), max(last), max(last)]
        assert (mark["y"], mark["yanchor"]) == (math.log10(64), "bottom")
        assert 10 ** mark["x"] < 256


def test_the_speedup_is_compared_with_the_multiply_adds_if_they_differ():
    work = {"softmax": 640, "local": 10, "linear": 20}
    times = {"softmax": 64.0, "local": 4.0, "linear": 8.0}
    run = replace(
        OVERTAKEN,
        spec=replace(OVERTAKEN.spec, variants=tuple(times)),
        points=tuple(replace(points(word, 256, ms), multiply_adds=work[word]) for word, ms in times.items()),
    )
    lines = [line(word, run=run, points=variant_points(run, word), ratios=ratios(run, word)) for word in times]
    assert speedup_sentence(lines) == (
        "At 256 tokens, softmax needs 32 to 64 times as many multiply-adds as the variants shown, but only 8 to 16 "
        "times as much time in the median round."
    )
    further = replace(lines[0], points=[*lines[0].points, replace(points("softmax", 1024, 99.0), multiply_adds=9999)])
    assert speedup_sentence([further, *lines[1:]]) == speedup_sentence(lines), "softmax is also measured further"
    assert speedup_sentence(lines[:2]) == (
        "At 256 tokens, softmax needs 64 times as many multiply-adds as Local with window 16, but only 16 times as "
        "much time in the median round."
    )


def test_a_crossover_lies_on_softmaxs_line_and_has_both_times():
    softmax = line("softmax", run=OVERTAKEN, points=variant_points(OVERTAKEN, "softmax"))
    [mark] = charts.crossovers([softmax, overtaken(colour=3)])
    # The ratios are 2 at 64 and 1/2 at 256 tokens: 1 halfway between them, where softmax takes 16 ms.
    assert (mark.x, mark.y) == ([pytest.approx(128)], [pytest.approx(16)])
    assert (mark.colour, mark.group, mark.name_at_end) == (3, "Local · window 16", False)
    assert mark.notes == [
        "Local · window 16 becomes faster than softmax at about 130 tokens"
        "<br>64 tokens: 8 ms, softmax 4 ms<br>256 tokens: 32 ms, softmax 64 ms"
    ]


def test_each_crossover_has_a_label_joined_to_its_ring():
    def labels(series, *, narrow=False):
        figure = {"layout": {}}
        charts.label_crossings(figure, series, narrow=narrow)
        return figure["layout"].get("annotations", [])

    dot = f'<span style="color:{SERIES[0]}">●</span> '
    [mark] = labels([overtaken()])
    assert mark["text"] == f"{dot}Local: faster from ≈ 130"
    assert (mark["x"], mark["y"]) == (pytest.approx(math.log10(128)), pytest.approx(math.log10(16)))
    assert (mark["showarrow"], mark["bgcolor"], mark["standoff"]) == (True, PAGE, RING / 2)
    sooner = replace(OVERTAKEN, points=(*OVERTAKEN.points[:-1], points("local", 256, 1.0)))
    both = labels([overtaken(), overtaken(run=sooner)])
    assert [each["text"] for each in both] == [f"{dot}Local: faster from ≈ {n}" for n in (78, 130)]
    longer = replace(sooner, points=(*sooner.points, points("softmax", 10**5, 1e9), points("local", 10**5, 1e8)))
    places = [
        (each["ax"] > 0, each["ay"] > 0, each["xanchor"], each["yanchor"]) for each in labels([overtaken(run=longer)])
    ]
    assert places == [(True, True, "left", "top")], "the first label is in the left half"
    assert (mark["ax"] < 0, mark["ay"] < 0, mark["xanchor"], mark["yanchor"]) == (True, True, "right", "bottom")
    assert labels([line("local")]) == labels([line("local")], narrow=True) == []
    for count, text in (
        (charts.MAX_LABELLED, mark["text"]),
        (charts.MAX_LABELLED + 1, "○ faster than softmax from here on"),
    ):
        assert [each["text"] for each in labels([overtaken()] * count)] == [text]


def test_a_phone_lists_all_crossovers_in_a_corner_without_lines():
    def corner(series):
        figure = {"layout": {}}
        charts.label_crossings(figure, series, narrow=True)
        [mark] = figure["layout"]["annotations"]
        return mark["text"], (mark["x"], mark["y"], mark["xanchor"], mark["yanchor"])

    softmax = line("softmax", run=OVERTAKEN, points=variant_points(OVERTAKEN, "softmax"))
    text = f'○ faster than softmax from<br><span style="color:{SERIES[0]}">●</span> Local ≈ 130'
    assert corner([softmax, overtaken()]) == (text, (0, 1, "left", "top")), "the lines rise, so this corner is free"
    falling = line("softmax", points=[points("softmax", 16, 1e6), points("softmax", 256, 1.0)])
    assert corner([falling, overtaken()]) == (text, (1, 1, "right", "top"))
    level = [line("softmax", points=[points("softmax", n, ms) for n in (16, 256)]) for ms in (2.0, 5e5)]
    assert corner([falling, *level, overtaken()]) == (text, (0, 1, "left", "top")), "no corner is free"


@pytest.mark.parametrize("last", [64.0, 100.0, 1.0])
def test_only_variants_that_overtake_softmax_have_a_crossover(last):
    """Check three cases without crossover: equal at 64 ms, slower at 100 ms, and a mask, which is not an algorithm."""
    run = replace(OVERTAKEN, points=(*OVERTAKEN.points[:-1], points("local", 256, last)))
    assert bool(charts.crossovers([overtaken(run=run)])) == (last == 1.0)
    assert charts.crossovers([line("local")]) == [], "faster from the shortest length on"
    assert charts.crossovers([overtaken(run=run, masked=attention_from_word("fused.local"))]) == []


def test_the_label_at_the_end_marks_incomplete_runs():
    space = line_names.NO_BREAK
    assert charts.end_name(overtaken()) == "Local · window 16".replace(" ", space)
    assert charts.end_name(line("softmax")) == "Softmax (fused kernel)".replace(" ", space)
    assert line_names.wrap_name(charts.end_name(line("softmax"))) == ["Softmax (fused kernel)"]
    assert line_names.wrap_name(charts.end_name(line("local", name="Nyström · landmarks 32"))) == [
        "Nyström · landmarks 32"
    ]
    assert len(line_names.wrap_name(charts.end_name(line("local", name="Nyström · landmarks 320")))) == 2
    cut = replace(OVERTAKEN, points=OVERTAKEN.points[:-1])
    assert charts.end_name(overtaken(run=cut)) == f"{'Local · window 16'.replace(' ', space)}, so far"
    assert charts.end_name(line("fused.local", run=OVERTAKEN)) == "Local · window 16, as a mask"


def test_the_help_on_rounds_states_when_timing_stops():
    assert f"once its times add up to {ENOUGH_SECONDS:g} seconds" in TimingOptions.rounds.help


def test_empty_cells_are_explained():
    decoded, softmax, first = (
        table.row(line("local"), 64, MEBIBYTES),
        table.row(line("softmax"), 64, MEBIBYTES),
        table.first_columns(64, MEBIBYTES, several_runs=False),
    )
    assert table.empty_cells([decoded], first, 64) == ""
    assert table.empty_cells([softmax], first, 64) == ""
    assert table.empty_cells([decoded], list(decoded), 64) == (
        "Some cells are empty: multiply-adds by formula (multiply-adds have a formula only for a forward pass)."
    )
    alone = table.row(line("local", points=variant_points(RUN, "local")[:1], ratios=[]), 16, MEBIBYTES)
    assert table.empty_cells([alone], list(alone), 16) == (
        "Some cells are empty: faster than softmax from (softmax was not measured); time ÷ softmax's time (median) "
        "(softmax was not measured at this length); exponent a of time ∝ nᵃ, R² of the fit of time ∝ nᵃ and exponent a "
        "of multiply-adds ∝ nᵃ (at least two lengths are needed); multiply-adds by formula (multiply-adds have a "
        "formula only for a forward pass)."
    )
    unmeasured = table.row(line("local"), 32, MEBIBYTES)
    assert table.empty_cells([unmeasured], table.first_columns(32, MEBIBYTES, several_runs=True), 32) == (
        "Some cells are empty: time at n = 32 (ms) (not measured at this length); time ÷ softmax's time (median) "
        "(softmax was not measured at this length)."
    )


def test_variants_that_a_run_lacks_or_has_with_other_settings_are_named(monkeypatch):
    chosen = (ac.get("softmax"), ac.get("local", window=4), ac.get("nystrom"), ac.get("linear"))
    monkeypatch.setattr(missing, "timed_variants", lambda: chosen)
    assert missing.not_measured(RUN, live=False) == [
        "The recorded run did not measure Nyström with 32 landmarks and Linear."
    ]
    press = "To measure your settings, press “Measure on this server”."
    assert missing.other_settings(RUN, live=False) == [
        f":material/info: The recorded run measured **Local with window 16** instead of Local with window 4. {press}"
    ]
    assert missing.other_settings(RUN, live=True) == [
        f":material/info: The live run measured **Local with window 16** instead of Local with window 4. {press}"
    ]
    monkeypatch.setattr(missing, "timed_variants", lambda: (ac.get("softmax"), ac.get("local")))
    assert missing.not_measured(RUN, live=True) == missing.other_settings(RUN, live=True) == []


@pytest.mark.parametrize(
    ("settings", "own", "chosen"),
    [
        ({"feature_map": "relu"}, "Linear with feature map elu+1", "Linear with feature map relu"),
        (
            {"feature_map": "relu", "mode": "recurrent"},
            "Linear with feature map elu+1 and mode chunked",
            "Linear with feature map relu and mode recurrent",
        ),
    ],
)
def test_the_changed_setting_is_named_if_a_run_has_other_settings_than_the_main_one(monkeypatch, settings, own, chosen):
    monkeypatch.setattr(missing, "timed_variants", lambda: (ac.get("softmax"), ac.get("linear", **settings)))
    run = replace(RUN, spec=replace(RUN.spec, variants=("softmax", "linear")))
    [text] = missing.other_settings(run, live=False)
    assert text.startswith(f":material/info: The recorded run measured **{own}** instead of {chosen}. ")


def test_the_changed_setting_of_a_mask_is_named(monkeypatch):
    monkeypatch.setattr(missing, "timed_variants", lambda: (attention_from_word("fused.sink~sinks~2"),))
    run = replace(RUN, spec=replace(RUN.spec, variants=("fused.sink",)))
    [text] = missing.other_settings(run, live=True)
    assert "**Attention sinks with window 16 and 4 sinks, as a mask** instead of Attention sinks with" in text
    assert "window 16 and 2 sinks, as a mask. " in text


@pytest.mark.parametrize(
    ("chosen", "expected"), [(None, []), ("sink", ["The live run did not measure Sink, as a mask."])]
)
def test_a_mask_that_a_run_lacks_is_named_only_if_it_was_chosen(monkeypatch, chosen, expected):
    mask = attention_from_word("fused.sink")
    monkeypatch.setattr(missing, "timed_variants", lambda: (ac.get("softmax"), mask))
    monkeypatch.setattr(TimingOptions.masked.__class__, "value", chosen)
    assert missing.not_measured(RUN, live=True) == [text.replace("Sink", sentence_name(mask)) for text in expected]


def test_the_table_begins_with_the_columns_that_a_reader_needs():
    first = table.first_columns(64, MEBIBYTES, several_runs=True)
    assert len(first) == 6
    assert "time at n = 64 (ms)" in first
    assert set(first) < set(table.row(line("local"), 64, MEBIBYTES))
