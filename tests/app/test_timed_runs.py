"""Tests of the sentences about measured running times, with numbers on both sides of each threshold."""

import dataclasses

import pytest

from app.figures.lines.machine_stamp import add_machine_stamp
from app.jobs.runs import Run
from app.jobs.timing_runs import progress, share_done
from app.words.i18n import paragraph
from app.words.measured_times import Series, crossing_text, faster_finding, measured_limits, missing_text, stamp_lines
from attention_core.benchmarking.device import Stamp
from attention_core.benchmarking.full_matrix_mask import attention_from_word
from attention_core.benchmarking.run_records import Sample, Skipped, group_samples
from attention_core.benchmarking.run_summary import ratios, variant_points
from attention_core.benchmarking.timing import TimingSpec
from attention_core.experiments import timing_length

STAMP = Stamp(device="A *GPU*", cpu="A CPU", cores=8, threads=2, torch="2.13.0", date="2026-01-31T12:00:00Z")
SPEC = TimingSpec(variants=("softmax", "local"), sizes=(16, 64), rounds=1, heads=2, head_size=4)


def sample(word, n, ms, index=0):
    return Sample(variant=word, n=n, round=index, ms=ms, multiply_adds=1, promised=None, peak_bytes=1)


def series(times, *, sizes=(16, 64), spec=SPEC, live=True):
    """Return the series of a run; ``times`` maps variants to milliseconds per length, for one or several rounds."""
    spec = dataclasses.replace(spec, variants=tuple(times), sizes=sizes)
    rows = [
        sample(word, n, one, index)
        for word, each in times.items()
        for n, ms in zip(sizes, each, strict=False)
        for index, one in enumerate(ms if isinstance(ms, tuple) else (ms,))
    ]
    run = group_samples(spec, STAMP, rows)
    own = {word: attention_from_word(word) for word in times}
    return [
        Series(
            run=run,
            word=word,
            name=own[word].title,
            colour=place,
            live=live,
            masked=own[word] if "." in word else None,
            points=variant_points(run, word),
            ratios=ratios(run, word),
        )
        for place, word in enumerate(times)
    ]


def sentence(lines):
    """Return the finding about the faster variants with its explanation."""
    found = faster_finding(lines)
    return paragraph(found.text, found.explanation)


SOFTMAX = (1.0, 16.0)
LINES = {"at": (2.0, 8.0), "below": (0.5, 8.0), "beyond": (2.0, 17.0), "even": (2.0, 16.0)}


NO_VARIANT = "**On {machine}, no variant shown is faster than softmax, even at 64 tokens.**"
LONGER_PLANNED = (
    "Incomplete run: so far, all variants are measured up to 16 tokens; the longest planned length is 2,048 tokens."
)
CLOSE = "**Local** shows no clear difference in time from softmax at its longest measured length."


@pytest.mark.parametrize(
    ("where", "finding", "more", "cell"),
    [
        ("at", "**On {machine}, Local is faster than softmax from about 32 tokens on.**", "", "32 tokens (16 to 64)"),
        (
            "below",
            "**On {machine}, Local is faster than softmax at every measured length** (16 to 64 tokens).",
            "",
            "below 16 tokens",
        ),
        (
            "beyond",
            NO_VARIANT,
            " **Local** is slower than softmax at its longest measured length.",
            "no measured length",
        ),
        ("even", NO_VARIANT, f" {CLOSE}", "no clear difference"),
    ],
)
@pytest.mark.parametrize("live", [True, False])
def test_the_sentence_names_where_a_variant_becomes_faster_than_softmax(where, finding, more, cell, live):
    finding = finding.format(machine="this server" if live else r"a GPU (A \*GPU\*)")
    if where == "at":
        more += " Below about 32 tokens, softmax is the fastest. Each time was measured in only one round, so the "
        more += "lengths from which variants are faster than softmax may differ in another run."
    whole = series({"softmax": SOFTMAX, "local": LINES[where]}, live=live)
    assert sentence(whole) == f"{finding}{more}"
    assert crossing_text(whole[1]) == cell
    part = series({"softmax": SOFTMAX, "local": LINES[where]}, spec=dataclasses.replace(SPEC, rounds=2), live=live)
    missing = "Incomplete run: 1 of 2 rounds are finished."
    assert sentence(part) == f"{finding}{more} {missing}"
    assert crossing_text(part[1]) == f"{cell}, so far"


def test_the_longest_length_is_the_longest_at_which_every_variant_is_measured():
    lines = series({"softmax": (1.0, 16.0, 256.0), "local": (2.0,)}, sizes=(16, 64, 256))
    assert sentence(lines).startswith("**On this server, no variant shown is faster than softmax, even at 16 tokens.**")


def test_the_faster_variants_come_first():
    times = {"softmax": SOFTMAX, "local": (0.5, 8.0), "topk": (4.0, 15.0), "linear": (2.0, 8.0)}
    others = {"sparse": (2.0, 16.0), "atrous": (2.0, 17.0), "nystrom": (2.0, 18.0), "longformer": (0.9, 1.0)}
    faster = (
        "Local at every measured length, Longformer at every measured length, Linear from about 32 tokens and Top-k "
    )
    certain = "Each time was measured in only one round, so the lengths from which variants are faster than "
    certain += "softmax may differ in another run."
    assert sentence(series(times | others)) == (
        "**On this server, 4 of 7 variants shown are faster than softmax from about 60 tokens on.** "
        f"Faster than softmax: {faster}from about 60 tokens. "
        "**Sparse** shows no clear difference in time from softmax at its longest measured length. "
        f"**Atrous** and **Nyström** are slower than softmax at their longest measured lengths. {certain}"
    )
    assert sentence(series(times)) == (
        f"**On this server, every variant shown is faster than softmax from about 60 tokens on.** {certain}"
    )
    always = {word: times[word] for word in ("softmax", "local")} | {"longformer": (0.9, 1.0)}
    assert sentence(series(always)) == (
        "**On this server, every variant shown is faster than softmax at every measured length** (16 to 64 tokens)."
    )
    one = {word: ms for word, ms in (times | others).items() if word in ("softmax", "local", "atrous")}
    assert sentence(series(one)).startswith(
        "**On this server, only Local is faster than softmax, at every measured length.** "
    )
    late = {"softmax": SOFTMAX, "linear": (2.0, 8.0), "atrous": (2.0, 17.0)}
    assert sentence(series(late)).startswith(
        "**On this server, only Linear is faster than softmax, from about 32 tokens on.** Below"
    )


def elsewhere(times, device="A GPU"):
    """Return the series of a recorded run on another device."""
    found = series(times, live=False)
    stamp = dataclasses.replace(found[0].run.stamp, device=device)
    return [dataclasses.replace(line, run=dataclasses.replace(line.run, stamp=stamp)) for line in found]


@pytest.mark.parametrize(("threads", "cores"), [(1, "one CPU core"), (2, "2 CPU cores")])
def test_the_finding_names_the_cores_of_a_processor(threads, cores):
    times = {"softmax": SOFTMAX, "local": (2.0, 8.0), "linear": (4.0, 15.0)}
    own = elsewhere(times, device="A CPU")
    stamp = dataclasses.replace(own[0].run.stamp, cpu="A CPU", threads=threads)
    own = [dataclasses.replace(line, run=dataclasses.replace(line.run, stamp=stamp)) for line in own]
    other = elsewhere({**times, "linear": (2.0, 8.0)})
    assert sentence(own).startswith(f"**On {cores} (A CPU), every variant shown is faster")
    assert sentence(other).startswith("**On a GPU (A GPU), every variant shown is faster")


def test_the_lengths_are_named_only_if_a_variant_becomes_faster_between_them():
    times = {"softmax": SOFTMAX, "local": (0.5, 8.0), "linear": (0.4, 8.0), "topk": (2.0, 17.0)}
    assert faster_finding(series(times)).text == (
        "**On this server, 2 of 3 variants shown are faster than softmax at every measured length.**"
    )
    every = "**On this server, every variant shown is faster than softmax from about 32 tokens on.**"
    for other in ((2.0, 8.0), (0.5, 8.0)):  # at the same length, and at every length
        lines = series({"softmax": SOFTMAX, "local": (2.0, 8.0), "linear": other})
        assert faster_finding(lines).text == every


@pytest.mark.parametrize(
    ("local", "early"), [(1.005, "Local already from about 16"), (2.0, "Linear already from about 16")]
)
def test_the_earliest_variant_is_named(local, early):
    times = {"softmax": SOFTMAX, "linear": (1.01, 1.0), "local": (local, 1.0), "topk": (8.0, 15.0)}
    assert early in faster_finding(series(times)).text


def test_softmax_is_the_fastest_below_the_first_crossing_if_no_variant_is_faster_at_a_shorter_length():
    times = {"softmax": (1.0, 4.0, 16.0), "local": (2.0, 6.0, 8.0), "linear": (1.5, 2.0, 8.0)}
    assert sentence(series(times, sizes=(16, 32, 64))).startswith(
        "**On this server, every variant shown is faster than softmax from about 41 tokens on, and Linear already from "
        "about 21.** Below about 21 tokens, softmax is the fastest. "
    )
    slow = times | {"topk": (2.0, 6.0, 17.0)}
    assert "tokens. Below about 21 tokens, softmax is the fastest." in sentence(series(slow, sizes=(16, 32, 64)))
    times["local"] = (0.9, 6.0, 8.0)
    times["linear"] = (1.5, 5.0, 8.0)
    assert "softmax is the fastest" not in sentence(series(times, sizes=(16, 32, 64)))


def test_a_crossover_has_the_range_in_which_the_order_is_uncertain():
    softmax, local = (
        ((1.0, 1.0, 1.0), (4.0, 4.0, 4.0), (16.0, 16.0, 16.0)),
        ((2.0, 2.0, 2.0), (3.0, 5.0, 4.5), (8.0, 8.0, 8.0)),
    )
    lines = series({"softmax": softmax, "local": local}, sizes=(16, 32, 64), spec=dataclasses.replace(SPEC, rounds=3))
    assert crossing_text(lines[1]).endswith("tokens (16 to 64)")
    early = ((1.0, 1.5, 0.8), (3.0, 3.0, 3.0), (8.0, 8.0, 8.0))
    lines = series({"softmax": softmax, "local": early}, sizes=(16, 32, 64), spec=dataclasses.replace(SPEC, rounds=3))
    assert crossing_text(lines[1]).endswith("tokens (up to 32)")


def test_large_lengths_are_written_with_commas_and_read_off_to_two_digits():
    lines = series({"softmax": (1.0, 16.0), "local": (2.0, 8.0)}, sizes=(1000, 10_000))
    assert "Local is faster than softmax from about 3,200 tokens on" in sentence(lines)
    lines = series({"softmax": (1.0, 16.0), "local": (0.5, 8.0)}, sizes=(1024, 4096))
    assert " (1,024 to 4,096 tokens)" in sentence(lines)
    assert crossing_text(lines[1]) == "below 1,024 tokens"


def test_softmax_and_masks_on_the_full_matrix_have_no_crossover():
    lines = series({"softmax~temperature~2.0": SOFTMAX, "fused.local": (0.5, 8.0)})
    assert sentence(lines) == "Add a variant to see from which length it is faster than softmax."
    assert lines[0].is_reference
    assert not lines[1].is_reference


def test_a_name_is_shown_unchanged():
    line = dataclasses.replace(series({"softmax": SOFTMAX, "local": LINES["at"]})[1], name="a*b")
    assert r"a\*b is faster than softmax from about 32 tokens on" in sentence([line])


def test_a_run_without_softmax_has_no_crossover():
    [line] = series({"local": LINES["at"]})
    assert crossing_text(line) == ""
    assert sentence([line]).startswith("Add a variant")


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, "Incomplete run: some variants are not yet measured, even at the shortest length."),
        (2, LONGER_PLANNED),
        (3, LONGER_PLANNED),
        (4, "Incomplete run: 1 of 3 rounds are finished."),
        (8, "Incomplete run: 2 of 3 rounds are finished."),
        (12, ""),
    ],
)
def test_a_sentence_names_what_is_missing_from_a_run(count, expected):
    spec = dataclasses.replace(SPEC, rounds=3, sizes=(16, 2048))
    rows = [sample(word, n, 1.0, i) for i in range(3) for n in spec.sizes for word in spec.variants]
    assert missing_text(group_samples(spec, STAMP, rows[:count])) == expected


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("mode", "name"), [("forward", "forward"), ("backward", "forward + backward"), ("decode", "decode step")]
)
def test_a_stamp_names_the_device_the_settings_and_the_date(mode, name, causal, live):
    run = group_samples(dataclasses.replace(SPEC, mode=mode, causal=causal, dtype="bfloat16"), STAMP, [])
    assert stamp_lines(run, live=live) == [
        f"{'solid lines: live' if live else 'dashed lines: recorded'} run on A *GPU*",
        "host: A CPU",
        "2 of 8 cores · torch 2.13.0",
        f"{name}{', causal' if causal else ''} · bfloat16 · batch 1, 2 heads, head size 4",
        "2026-01-31",
    ]
    assert stamp_lines(run, live=live, only_run=True)[0] == f"{'live' if live else 'recorded'} run on A *GPU*"


def test_the_host_is_named_if_it_differs_from_the_device():
    run = group_samples(SPEC, dataclasses.replace(STAMP, device="A CPU"), [])
    assert stamp_lines(run, live=True)[:2] == ["solid lines: live run on A CPU", "2 of 8 cores · torch 2.13.0"]


def test_progress_is_shown_before_the_first_sample():
    assert progress(SPEC, Run(SPEC)) == (0, "0 of 4 samples · estimating the time left")
    started_run = Run(SPEC, [sample("softmax", 16, 1.0)], seconds=3.0)
    assert progress(SPEC, started_run) == (pytest.approx(0.1), "1 of 4 samples · about 27 s left")


def test_the_share_done_grows_with_the_lengths_and_counts_the_first_samples_twice():
    spec = TimingSpec(variants=("softmax", "local"), sizes=(16, 32), heads=1, head_size=4, rounds=2)
    rows = list(timing_length.measure(spec))
    shares = [share_done(spec, rows[:i]) for i in range(len(rows) + 1)]
    assert shares == pytest.approx([i / 18 for i in (0, 2, 4, 8, 12, 13, 14, 16, 18)])
    assert share_done(spec, rows * 2) == 1
    assert share_done(spec, [Skipped(variant="local", n=16, reason="Too slow.")]) == pytest.approx(2 / 18)


@pytest.mark.parametrize(
    ("sizes", "expected"), [((16, 64), "16 to 64 tokens"), ((64,), "64 tokens"), ((16, 4096), "16 to 4,096 tokens")]
)
def test_the_sentence_names_the_lengths_of_a_run(sizes, expected):
    run = group_samples(dataclasses.replace(SPEC, sizes=sizes), STAMP, [])
    assert measured_limits(run) == expected


def test_a_long_stamp_below_a_wide_figure_has_several_lines():
    figure = {"layout": {"xaxis": {}, "margin": {}, "height": 100}}
    facts = ["a" * 70, "b" * 72, "c"]
    for narrow, lines in ((False, [f"{facts[0]} · {facts[1]}", "c"]), (True, facts)):
        stamped = add_machine_stamp(figure, [facts], narrow=narrow)["layout"]
        assert stamped["annotations"][-1]["text"] == "<br>".join(lines)
        assert stamped["height"] == 100 + 16 * len(lines)
