"""Tests of the Generation view: the length at which the cache outgrows each state, and recorded or measured times."""

import pytest
from driver import points, spoken, table

from attention_core.benchmarking.device import stamp
from attention_core.benchmarking.records import gather
from attention_core.benchmarking.timing import TimingSpec
from attention_core.experiments.generation import MemoryRow
from attention_core.registry import recurrent
from pages.causal.generation import _smaller_from, of_all, sentence, where_timed


def test_generation_names_where_the_cache_outgrows_each_state(open_view):
    at = open_view("generation", d=32)
    held, clock = points(at, -3), points(at, -2)
    token = 2 * (32 + 32) * 4
    assert held["Softmax, key-value cache"][1024] == pytest.approx(1024 * token / 2**20)
    state = 2 * 4 * 32 * 33
    [linear] = [line for name, line in held.items() if name.startswith("Linear")]
    assert set(linear.values()) == {state / 2**20}
    assert state // token + 1 in linear
    assert table(at).loc["Linear", "smaller from"] == f"{state // token + 1} tokens"
    wide = 2 * 4 * (1 + 32 + 32 * 33 // 2) * 33
    assert f"from **{wide // token + 1}** on more than **Second-order Taylor**" in spoken(at)
    assert "Softmax, key-value cache" in clock
    assert "**Time from a recorded run, 8 heads of 64:**" in spoken(at)
    assert {"faster from, recorded 8 × 64", "ms at 4,096, recorded 8 × 64"} <= set(table(at).columns)
    assert any("this input's 2 heads of 32" in c.value for c in at.caption)


def test_the_time_of_a_token_is_measured_on_a_button_with_the_inputs_heads(open_view, monkeypatch):
    monkeypatch.setattr("pages.causal.generation.LONGEST", 128)
    at = open_view("generation")
    at.button(key="timing.button").click().run()
    assert not at.exception
    found = at.session_state["timing.run"]
    run = gather(found.request, stamp("cpu"), found.rows)
    assert (run.spec.mode, run.spec.heads, run.spec.head_size, run.spec.sizes) == ("decode", 2, 8, (64, 128))
    clock = points(at, -2)
    assert set(clock["Linear"]) == {64, 128}
    assert len(clock) == 1 + len(recurrent())  # softmax, and the variants with a state
    assert "**Time measured here, 2 heads of 8:** On this machine" in spoken(at)
    assert not [c for c in at.caption if "Press the button" in c.value]
    assert table(at).loc["Linear", "ms at 128, measured here"] > 0
    at.session_state["heads"] = 1
    assert "recorded run, 8 heads of 64" in spoken(at.run())


def test_variants_that_hold_as_much_are_one_line():
    """Check the label: separate lines would overlap, and their names would fill the chart."""
    rows = [
        MemoryRow(variant=word, state_bytes=held, token_bytes=2048, outgrown=2)
        for word, held in (("gla", 2_048), ("linear", 2_048), ("kda", 2_048), ("cosine", 4_096))
    ]
    assert of_all(rows[:3]) == "Linear and 2 more: 2.0 KiB"
    assert of_all(rows[3:]) == "Cosine: 4.0 KiB"


def test_the_sentence_names_the_smallest_and_the_largest_state():
    rows = [
        MemoryRow(variant=word, state_bytes=held, token_bytes=2048, outgrown=held // 2048 + 1)
        for word, held in (("cosine", 4_096), ("taylor2", 3 * 2**20), ("linear", 2_048))
    ]
    assert sentence(rows, 2, 32) == (
        "Every token adds 2.0 KiB to a key-value cache (2 heads of 32): from **2** tokens on it holds more than "
        "**Linear**'s constant 2.0 KiB, from **1,537** on more than **Second-order Taylor**'s 3.0 MiB."
    )


@pytest.mark.parametrize(("live", "words"), [(True, "measured here"), (False, "from a recorded run")])
def test_whose_times_are_told(live, words):
    spec = TimingSpec(variants=("softmax",), sizes=(64,), heads=3, head_size=16)
    assert where_timed(spec, live=live) == f"**Time {words}, 3 heads of 16:**"


def test_smaller_caches_are_told_by_what_a_token_adds_to_them():
    rows = [
        MemoryRow(variant="linear", state_bytes=4_096, token_bytes=2048, outgrown=3),
        MemoryRow(variant="gqa", state_bytes=0, grown_bytes=1024, token_bytes=2048, outgrown=1),
        MemoryRow(variant="mla", state_bytes=4_096, grown_bytes=256, token_bytes=2048, outgrown=3),
    ]
    told = sentence(rows, 2, 32)
    assert "more than **Linear**'s constant 4.0 KiB, from **3** on more than **Linear**'s" in told
    assert told.endswith(
        "**Latent attention · rank 32** adds 0.2 KiB for every token, 12% of that. "
        "**Grouped queries · groups 2** adds 1.0 KiB for every token, 50% of that."
    )


@pytest.mark.parametrize(("n", "words"), [(None, "never"), (1, "the first token"), (1200, "1,200 tokens")])
def test_from_where_on_less_is_held(n, words):
    assert _smaller_from(n) == words


def test_a_cache_that_saves_nothing_is_never_outgrown(open_view):
    at = open_view("generation", d=32)
    held = points(at)
    shown = table(at)
    assert shown.loc["Grouped queries · groups 2", "smaller from"] == "never"  # 2 heads in 2 groups
    assert shown.loc["Grouped queries · groups 2", "each token adds"] == "0.5 KiB"
    assert shown.loc["Grouped queries · groups 2", "state"] == "none"
    assert shown.loc["Linear", "each token adds"] == "nothing"
    assert not any(name.startswith("Latent") for name in points(at, -3)), "states and caches have a chart each"
    [latent] = [line for name, line in held.items() if name.startswith("Latent attention · rank 32: ")]
    once, each = 2 * 4 * 2 * 32 * 32, 4 * 2 * 32
    assert latent[1024] == pytest.approx((once + 1024 * each) / 2**20)
