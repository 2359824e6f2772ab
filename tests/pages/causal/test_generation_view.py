"""Tests of the Generation view: the length at which the cache outgrows each state, and recorded or measured times."""

from dataclasses import replace

import pytest
from driver import charts, full_text, points, spoken
from test_timed_runs import series

from attention_core.benchmarking.device import stamp
from attention_core.benchmarking.run_records import group_samples
from attention_core.experiments.generation import MemoryRow
from pages.causal.generation import TIMED, group_by_size, group_name, group_short_name, summary
from pages.causal.generation_times import _first_crossing, time_details, time_text


def test_generation_names_where_the_cache_outgrows_each_state(open_view):
    at = open_view("generation", d=32)
    held, clock = points(at, -2), points(at, 0)
    token = 2 * (32 + 32) * 4
    assert held["Softmax, key-value cache"][1024] == pytest.approx(1024 * token / 2**10)
    state = 2 * 4 * 32 * 33
    [linear] = [line for name, line in held.items() if name.startswith("Linear")]
    assert set(linear.values()) == {state / 2**10}
    assert state // token + 1 in linear
    wide = 2 * 4 * (1 + 32 + 32 * 33 // 2) * 33
    assert f"From {wide // token + 1} tokens on, the cache is larger than every recurrent state" in spoken(at)
    assert "Softmax, key-value cache" in clock
    assert "Also faster than softmax: Cosine from about 500 tokens, " in spoken(at)
    assert LARGER.format(d=64, ratio=34) in spoken(at)
    assert {trace["line"]["dash"] for trace in charts(at)[0]["data"] if "name" in trace}.isdisjoint({"dash", "dot"})
    stamps = [
        each["text"] for each in charts(at)[0]["layout"]["annotations"] if each["text"].startswith("recorded run")
    ]
    assert len(stamps) == 1
    assert (
        "**Per new token (8 heads of size 64), Linear is faster than softmax from about 400 tokens on. Second-order "
        "Taylor is still slower at 4,096 tokens.**" in spoken(at)
    )


def test_a_variant_has_one_colour_in_all_charts(open_view):
    colours = {}
    for figure in charts(open_view("generation", d=32)):
        for trace in figure["data"]:
            if trace.get("name") and trace.get("line", {}).get("color"):
                name = trace["name"].partition(":")[0].partition(",")[0].partition(" ·")[0]
                colours.setdefault(name, set()).add(trace["line"]["color"])
    assert {"Softmax", "Linear", "Performer", "Second-order Taylor"} <= set(colours)
    assert [name for name, each in colours.items() if len(each) > 1] == []
    assert colours.pop("Centred Taylor") == colours["Second-order Taylor"], "they share a line in the chart of memory"
    assert len({frozenset(each) for each in colours.values()}) == len(colours), "each colour means one variant"


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({"linear": (2.0, 8.0)}, "Linear is faster than softmax from about 32 tokens on."),
        ({"linear": (0.5, 8.0)}, "Linear is faster than softmax at every measured length."),
        ({"linear": (2.0, 17.0)}, "no variant shown is faster than softmax at 64 tokens."),
        ({"linear": (2.0, 16.0)}, "no variant shown is faster than softmax at 64 tokens."),
        (
            {"linear": (2.0, 8.0), "taylor2": (2.0, 18.0), "cosine": (2.0, 17.0)},
            "Linear is faster than softmax from about 32 tokens on. Second-order Taylor is still slower at 64 tokens.",
        ),
        ({"linear": (2.0, 8.0), "cosine": (2.0, 4.0)}, "Cosine is faster than softmax from about 25 tokens on."),
        ({"linear": (2.0, 8.0), "cosine": (0.9, 4.0)}, "Cosine is faster than softmax at every measured length."),
    ],
    ids=["at", "below", "beyond", "even", "slower", "earliest", "below first"],
)
def test_the_headline_names_the_first_faster_and_the_slowest_variant(times, words):
    lines = series({"softmax": (1.0, 16.0)} | times)
    heads = f"{lines[0].run.spec.heads} heads of size {lines[0].run.spec.head_size}"
    assert time_text(lines) == f"**Per new token ({heads}), {words}**"
    assert time_text(series({"softmax": (1.0, 16.0)})) == ""


def test_a_line_marks_where_the_first_variant_becomes_faster():
    tokens, label = _first_crossing(series({"softmax": (1.0, 16.0), "linear": (2.0, 8.0), "cosine": (2.0, 4.0)}))
    assert (round(tokens), label) == (25, "Cosine is faster<br>from about 25 tokens on")
    assert _first_crossing(series({"softmax": (1.0, 16.0), "linear": (0.5, 8.0)})) is None
    assert _first_crossing([]) is None


def test_the_button_measures_the_time_per_token_with_the_inputs_heads(open_view, monkeypatch):
    monkeypatch.setattr("pages.causal.generation.MAX_LENGTH", 128)
    at = open_view("generation")
    at.button(key="timing.button").click().run()
    found = at.session_state["timing.run"]
    run = group_samples(found.request, stamp("cpu"), found.rows)
    assert (run.spec.mode, run.spec.heads, run.spec.head_size, run.spec.sizes) == ("decode", 2, 8, (64, 128))
    clock = points(at, 0)
    assert set(clock["Linear"]) == {64, 128}
    assert len(clock) == 1 + len(TIMED)  # softmax is the first
    assert "Per new token (2 heads of size 8)" in spoken(at)
    at.session_state["heads"] = 1
    assert "Per new token (8 heads of size 64)" in spoken(at.run()), "the recorded run, because the input has one head"


def test_variants_of_similar_size_are_one_line():
    """Check the label: separate lines would overlap, and their names would fill the chart."""
    rows = [
        MemoryRow(variant=word, state_bytes=held, token_bytes=2048, outgrown=2)
        for word, held in (("gla", 2_048), ("linear", 2_048), ("kda", 2_252), ("cosine", 2_253))
    ]
    assert group_by_size(rows) == [rows[:3], rows[3:]]  # 2,252 is less than 10% above 2,048
    assert group_short_name(rows[:2]) == "Gated linear and Linear"
    assert group_name(rows[:2]) == "Linear, 1 more: 2.0 KiB"
    assert group_name(rows[:3]) == "Linear, 2 more: 2.0 KiB to 2.2 KiB"
    assert group_name(rows[3:]) == "Cosine: 2.2 KiB"
    growing = [replace(row, grown_bytes=64, state_bytes=0) for row in rows[:2]]
    assert group_by_size(growing) == [[row] for row in growing]


def test_the_sentence_names_the_smallest_and_the_largest_state():
    rows = [
        MemoryRow(variant=word, state_bytes=held, token_bytes=2048, outgrown=held // 2048 + 1)
        for word, held in (("cosine", 4_096), ("taylor2", 3 * 2**20), ("linear", 2_048))
    ]
    assert full_text(summary(rows, 2, 32)) == (
        "**From 2 tokens on, the smallest recurrent state (Linear, 2.0 KiB) is smaller than a key-value cache.** "
        "The cache stores every key and value, so it grows by 2.0 KiB per token (2 heads of size 32). "
        "From 1,537 tokens on, the cache is larger than every recurrent state, even that of **Second-order Taylor** "
        "(3.0 MiB)."
    )
    small = [replace(row, token_bytes=16) for row in rows]
    assert "so it grows by 16 B per token (1 head of size 2)." in full_text(summary(small, 1, 2))


READS = (
    "For each new token, softmax reads the keys and values of all tokens so far. The other variants read a state of "
    "fixed size."
)
FUSED = (
    "At {n} tokens, softmax is the fastest: one fused kernel computes its step, whereas the other variants run many "
    "small operations."
)
LARGER = (
    "At head size {d}, the state of Second-order Taylor is {ratio} times as large as that of Linear, so each token "
    "takes longer."
)
LARGER_4 = LARGER.format(d=4, ratio=3.8)
EVEN = "Retention shows no clear difference in time from softmax at its longest measured length."
SLOWER = "Linear is slower than softmax at its longest measured length."
SLOWERS = "Second-order Taylor and Cosine are slower than softmax at their longest measured lengths."


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({"linear": (2.0, 8.0)}, READS),
        ({"linear": (2.0, 17.0), "taylor2": (2.0, 18.0)}, f"{READS} {LARGER_4}"),
        ({"retention": (2.0, 16.0), "linear": (2.0, 20.0)}, f"{READS} {EVEN} {SLOWER}"),
        ({"retention": (2.0, 16.0)}, f"{READS} {EVEN}"),
        (
            {"linear": (2.0, 8.0), "taylor2": (2.0, 18.0), "cosine": (4.0, 15.0)},
            f"{READS} {LARGER_4} Also faster than softmax: Cosine from about 60 tokens.",
        ),
        (
            {"linear": (2.0, 8.0), "taylor2": (2.0, 18.0), "cosine": (2.0, 17.0), "retention": (2.0, 16.0)},
            f"{READS} {LARGER_4} {EVEN} {SLOWERS}",
        ),
    ],
    ids=["one faster", "all slower", "one equal and one slower", "one equal", "one slower", "several slower"],
)
def test_the_text_below_the_times_does_not_repeat_the_headline(times, words):
    lines = series({"softmax": (1.0, 16.0)} | times)
    fused = FUSED.format(n=lines[0].points[0].n)
    assert time_details(lines) == words.replace(READS, f"{READS} {fused}")
    equal = series({"softmax": (2.0, 16.0)} | times)
    assert "fused" not in time_details(equal), "another variant is as fast at the shortest length"


def test_the_largest_state_is_named_if_several_are_outgrown_at_the_same_length():
    rows = [
        MemoryRow(variant=word, state_bytes=held, token_bytes=3072, outgrown=290)
        for word, held in (("centred_taylor", 890_160), ("taylor2", 888_624))
    ]
    text = full_text(summary(rows, 12, 32))
    assert "(Second-order Taylor, 867.8 KiB) is smaller than" in text
    assert "even that of **Centred Taylor** (869.3 KiB)." in text


def test_caches_are_not_among_the_states_of_the_sentence(open_view):
    """Check that neither a cache nor quantised keys, which need training, is named as the smallest state."""
    at = open_view("generation", d=64)
    assert "the smallest recurrent state (DeltaNet, 32.0 KiB) is smaller than a key-value cache" in spoken(at)


def test_states_and_caches_have_a_chart_each(open_view):
    at = open_view("generation", d=32)
    found = points(at, -1)
    assert not any(name.startswith("Latent") for name in points(at, -2))
    [latent] = [line for name, line in found.items() if name.startswith("Latent attention · rank 32: ")]
    once, each = 2 * 4 * 2 * 32 * 32, 4 * 2 * 32
    assert latent[1024] == pytest.approx((once + 1024 * each) / 2**10)
