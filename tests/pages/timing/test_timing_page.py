"""Tests of the Timing page: recorded results, measurements on request, stopped runs, saved and loaded files."""

import re
from datetime import UTC, datetime
from functools import partial
from itertools import islice

import pytest
from driver import charts, numbers, open_page

import attention_core as ac
from app.jobs.runs import Run
from app.lessons.shipped import all_lessons
from attention_core.benchmarking.device import Stamp, stamp
from attention_core.benchmarking.run_file import recorded_runs
from attention_core.benchmarking.run_records import Sample, group_samples
from attention_core.benchmarking.run_summary import ratios, variant_points
from attention_core.benchmarking.timing import MODES, TimingSpec
from attention_core.experiments import timing_length
from attention_core.formatting import formatted
from pages.timing.options import opening

TINY = {"t_from": 16, "t_to": 32, "t_heads": 1, "t_d": 4, "t_rounds": 3}
PAIR = (ac.get("softmax"), ac.get("local"))
MASKED = "Local · window 16, as a mask"
open_timing = partial(open_page, "timing")


def lines(chart, dash=None):
    named = [
        trace
        for trace in chart["data"]
        if trace.get("name") and not trace["name"].endswith("becomes faster than softmax")
    ]
    return {t["name"]: t for t in named if dash is None or t["line"]["dash"] == dash}


def live_lines(at):
    """Return the lines of the run on this machine; a recorded line has open circles."""
    return [t for t in lines(charts(at)[0], "solid").values() if not t["marker"]["symbol"].endswith("-open")]


def gathered(at):
    """Return the results of a visitor's run so far."""
    run = at.session_state["timing.run"]
    return group_samples(run.request, stamp("cpu", run.started_at), run.rows)


def sentence(at):
    """Return the finding about the faster variants."""
    return next(md.value for md in at.markdown if md.value.startswith("**On "))


def details(at):
    """Return the lists below the chart and in the expander below it."""
    return "\n".join(md.value for md in at.markdown if md.value.startswith("- ")) + "\n"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("side", ["ratio", "memory", "work"])
def test_the_first_visit_shows_a_recorded_run(mode, side):
    at = open_timing(t_mode=mode, t_side=side)
    assert not at.error
    time_chart, side_chart = charts(at)
    run = next(run for run in recorded_runs().values() if run.spec.mode == mode and not run.spec.causal)
    drawn = lines(time_chart, "solid")["Softmax"]
    assert list(numbers(drawn["y"])) == pytest.approx([p.quartiles[1] for p in variant_points(run, "softmax")])
    assert ("Softmax" in lines(side_chart)) == (side != "ratio")
    texts = [each["text"] for each in time_chart["layout"]["annotations"]]
    [message] = [text for text in texts if run.stamp.device in text]
    assert run.stamp.date[:10] in message
    assert "float32" in message
    assert run.stamp.device in sentence(at)
    below = side_chart["layout"].get("annotations", ())
    assert not [each for each in below if run.stamp.device in each["text"]], "one stamp is enough"


def test_the_result_of_a_gpu_names_another_device_and_the_waiting_time_is_below():
    at = open_timing(t_beside="cuda_forward", variants=PAIR)
    below = details(at)
    assert re.search(r"^- Faster than softmax \*\*on one.*\*\*: Local from about \d+ tokens\.\n", below)
    assert re.search(r"but only [\d.]+ times as much time in the median round\.\n", below)
    assert "With short texts, the GPU mostly waits for the next of many small operations to start.\n" in below


def test_reasons_and_memory_are_below_the_result():
    at = open_timing(t_mode="forward", variants=(*PAIR, ac.get("linear"), ac.get("nystrom", landmarks=32)))
    reasons = next(m.value for m in at.markdown if "has the lowest peak memory" in m.value)
    assert "because torch's fused kernel stores hardly more than the output (8.0 MiB)." in reasons
    assert (
        "At 64 tokens, **Nyström** is the slowest, partly because it spends most of its multiply-adds on steps"
        in reasons
    )
    assert "lowest peak memory" not in sentence(at)


def test_the_button_measures_next_to_the_recorded_run():
    at = open_timing(variants=PAIR, t_side="ratio", **TINY)
    at.button(key="timing.button").click().run()
    live = gathered(at)
    assert {(p.variant, p.n): len(p.ms) for p in live.points} == {
        (w, n): 3 for w in ("softmax", "local", "fused.local") for n in (16, 32)
    }
    solid, dashed, dotted = (lines(charts(at)[0], dash) for dash in ("solid", "dash", "dot"))
    assert list(solid) == ["Softmax", "Local · window 16"] == list(dashed)
    assert list(dotted) == [MASKED]
    assert dotted[MASKED]["line"]["color"] == solid["Local · window 16"]["line"]["color"]
    assert [trace["showlegend"] for trace in dashed.values()] == [False, False]
    assert list(numbers(solid["Softmax"]["y"])) == pytest.approx(
        [p.quartiles[1] for p in variant_points(live, "softmax")]
    )
    ratio = lines(charts(at)[1], "solid")["Local · window 16"]
    assert list(numbers(ratio["y"])) == pytest.approx([r.middle for r in ratios(live, "local")])
    assert sentence(at).startswith("**On this server, ")
    table = at.dataframe[0].value
    assert list(table["run"]) == ["live", "live", "live", "recorded", "recorded"]
    own, masked = (ratios(live, word)[-1] for word in ("local", "fused.local"))
    text = next(m.value for m in at.markdown if "with the mask of" in m.value)
    own_ratio, masked_ratio = (formatted(each.middle, ".2g") for each in (own, masked))
    kernel = "At 32 tokens, full attention with the mask of Local with window 16 (torch's fused kernel)"
    assert f"{kernel} takes {masked_ratio} times softmax's time." in text
    assert f"which skips hidden pairs, takes {own_ratio} times softmax's time." in text
    assert "mask" not in sentence(at)
    assert at.button(key="timing.button").label == "Measure on this server"
    assert not at.session_state["timing.run"].is_running


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ({}, "fused.local"),
        ({"t_form": "explicit"}, "explicit.local"),
        ({"t_masked": "atrous"}, "fused.atrous"),
        ({"t_masked": "bigbird"}, "fused.local"),  # BigBird is not among the selected variants.
        ({"t_masked": "none"}, None),
        ({"t_mode": "decode"}, None),
        ({"variants": (ac.get("softmax"), ac.get("reformer"))}, None),
    ],
)
def test_the_mask_of_one_variant_is_applied_to_the_full_matrix(state, word):
    chosen = (*PAIR, ac.get("atrous"))
    at = open_timing(**{"variants": chosen} | TINY | {"t_rounds": 1} | state)
    at.button(key="timing.button").click().run()
    timed = {p.variant for p in gathered(at).points}
    assert {w for w in timed if "." in w} == ({word} if word else set())
    shown = [s.label for s in at.selectbox if s.label.startswith("Full attention with the mask of")]
    assert bool(shown) == (word is not None or state.get("t_masked") == "none")


def test_another_mask_is_chosen_by_name():
    at = open_timing(variants=(*PAIR, ac.get("atrous")))
    at.selectbox(key="timing.masked").set_value("atrous").run()
    assert at.session_state["t_masked"] == "atrous"
    assert "atrous" in at.query_params["t_masked"]


def test_a_mask_too_large_is_named_with_its_reason(monkeypatch):
    monkeypatch.setattr("attention_core.benchmarking.full_matrix_mask.MASK_BYTES", 10**9)
    at = open_timing(variants=PAIR, **TINY)
    at.button(key="timing.button").click().run()
    assert any("Local with window 16, as a mask" in c.value.replace("\\", "") and "MiB" in c.value for c in at.caption)
    assert not any("with the mask of" in m.value for m in at.markdown)


def test_results_survive_reruns_and_are_dropped_for_other_settings():
    at = open_timing(variants=PAIR, **TINY)
    at.button(key="timing.button").click().run()
    at.session_state["t_side"] = "memory"
    assert live_lines(at.run())
    at.session_state["t_mode"] = "backward"
    at.run()
    assert not live_lines(at)


def test_other_settings_end_a_run_and_keep_its_results():
    spec = TimingSpec(variants=("softmax", "local"), sizes=(16, 32), heads=1, head_size=4, rounds=2)
    started_run = Run(spec)
    started_run.rows += islice(timing_length.measure(spec), 2)
    at = open_timing(variants=PAIR, **TINY, **{"timing.run": started_run})
    assert not at.session_state["timing.run"].is_running
    assert sum(len(p.ms) for p in gathered(at).points) == 2


def test_a_rerun_continues_the_run():
    spec = TimingSpec(variants=("softmax", "local"), sizes=(16, 32), heads=1, head_size=4, rounds=3)
    started_run = Run(spec)
    [first] = islice(timing_length.measure(spec), 1)
    started_run.rows.append(first)
    at = open_timing(variants=PAIR, t_masked="none", **TINY, **{"timing.run": started_run})
    live = gathered(at)
    assert [len(p.ms) for p in live.points] == [3] * 4
    assert live.points[0].ms[0] == first.ms


def test_a_stopped_run_names_missing_results_and_continues():
    spec = TimingSpec(variants=("softmax", "local"), sizes=(16, 32), heads=1, head_size=4, rounds=2)
    started_run = Run(spec)
    started_run.rows += islice(timing_length.measure(spec), 3)
    # Changing another control ends it.
    at = open_timing(
        variants=PAIR, t_beside="none", t_masked="none", **TINY | {"t_rounds": 3}, **{"timing.run": started_run}
    )
    missing = (
        "Incomplete run: so far, all variants are measured up to 16 tokens; the longest planned length is 32 tokens."
    )
    assert missing in details(at)
    assert sentence(at).startswith("**On this server, ")
    assert list(at.dataframe[0].value["faster than softmax from"])[1].endswith(", so far")
    assert not [b for b in at.button if b.label == "Continue"]  # The stopped run has other settings.
    at.session_state["t_rounds"] = 2
    at.run()
    assert missing in details(at)
    next(b for b in at.button if b.label == "Continue").click().run()
    live = gathered(at)
    assert [len(p.ms) for p in live.points] == [2] * 4
    assert live.points[0].ms[0] == started_run.rows[0].ms
    assert "Incomplete run" not in details(at)
    assert "so far" not in details(at) + "".join(at.dataframe[0].value["faster than softmax from"])
    assert not [b for b in at.button if b.label == "Continue"]


def test_a_run_has_the_time_of_its_start():
    spec = TimingSpec(variants=("softmax", "local"), sizes=(16, 32), heads=1, head_size=4, rounds=2)
    started_run = Run(
        spec, list(timing_length.measure(spec)), started_at=datetime(2026, 1, 31, 12, tzinfo=UTC), is_running=False
    )
    at = open_timing(variants=PAIR, t_masked="none", t_beside="none", **TINY, **{"timing.run": started_run})
    assert "2026-01-31" in charts(at)[0]["layout"]["annotations"][-1]["text"]


def test_the_axis_of_a_decode_step_counts_the_cached_tokens():
    titles = [chart["layout"]["xaxis"]["title"]["text"] for chart in charts(open_timing(t_mode="decode"))]
    assert titles == ["tokens in the cache (log scale)"] * 2


def test_the_last_length_has_a_tick_on_a_phone(monkeypatch):
    monkeypatch.setattr("app.ui.chart.is_narrow", lambda: True)
    at = open_timing(t_beside="cuda_forward", variants=PAIR)
    assert charts(at)[0]["layout"]["xaxis"]["ticktext"] == ["64", "256", "1,024", "4,096", "16,384"]


def test_the_side_of_the_second_chart_with_more_room_has_the_direction():
    def anchors(**options):
        at = open_timing(variants=(*PAIR, ac.get("nystrom")), t_side="ratio", **options)
        texts = charts(at)[1]["layout"]["annotations"]
        return [each["xanchor"] for each in texts if each["text"] == "↓ faster than softmax"]

    assert anchors(t_beside="cpu_forward") == ["right"]
    assert anchors(t_mode="backward", t_beside="cuda_backward") == ["left"]


def test_variants_without_a_decode_step_are_left_out_with_a_reason():
    at = open_timing(variants=(ac.get("softmax"), ac.get("linear"), ac.get("nystrom")), t_mode="decode", **TINY)
    at.button(key="timing.button").click().run()
    assert list(lines(charts(at)[0], "solid")) == ["Softmax", "Linear"]
    assert any("Nyström" in c.value and "has no token-by-token form of it" in c.value for c in at.caption)


def test_a_run_from_a_file_is_drawn_in_place_of_the_recorded_one():
    spec = TimingSpec(variants=("softmax", "local"), sizes=(8,), mode="backward", dtype="bfloat16")
    rows = [
        Sample(variant=word, n=8, round=0, ms=ms, multiply_adds=1, promised=None, peak_bytes=1)
        for word, ms in (("softmax", 2.5), ("local", 1.25))
    ]
    hostile = Stamp(device="<b>*[x](http://y)*", cpu="c", cores=1, threads=1, torch="2", date="2026")
    run = group_samples(spec, hostile, rows)
    at = open_timing(t_mode="backward", t_beside="loaded", **{"timing.loaded": run})
    time_chart = charts(at)[0]
    assert list(numbers(lines(time_chart)["Local · window 16"]["y"])) == [1.25]
    assert "&lt;b&gt;" in time_chart["layout"]["annotations"][-1]["text"]
    assert "\\<b\\>\\*\\[x\\]" in sentence(at)


def test_each_recorded_run_is_one_click_away():
    at = open_timing(variants=PAIR)
    runs = {key: run for key, run in recorded_runs().items() if (run.spec.mode, run.spec.causal) == ("forward", False)}
    choice = at.segmented_control(key="timing.beside")
    assert choice.options == [run.stamp.device for run in runs.values()]
    choice.set_value("cuda_forward").run()
    assert at.query_params["t_beside"] == "cuda_forward"
    assert f"({runs['cuda_forward'].stamp.device}), " in sentence(at)


@pytest.mark.parametrize("side", ["ratio", "work"])
def test_the_second_chart_of_two_runs_says_which_lines_are_dashed(side):
    at = open_timing(variants=PAIR, **TINY, t_side=side)
    at.button(key="timing.button").click().run()
    below = [each["text"] for each in charts(at)[1]["layout"].get("annotations", ())]
    assert any("dashed" in text for text in below)


def test_the_machine_stays_when_the_mode_or_the_mask_changes():
    at = open_timing(t_beside="cuda_forward")
    at.toggle(key="causal").set_value(True).run()
    assert at.query_params["t_beside"] == "cuda_forward_causal"
    at.toggle(key="causal").set_value(False).run()
    at.segmented_control(key="t_mode").set_value("decode").run()
    assert at.query_params["t_beside"] == "cuda_decode"
    at.toggle(key="causal").set_value(True).run()
    at.segmented_control(key="t_mode").set_value("backward").run()
    assert "t_beside" not in at.query_params, "no recorded run has this mode and this mask"


def test_no_recorded_run_can_be_chosen():
    at = open_timing(variants=PAIR)
    assert "none" not in at.segmented_control(key="timing.beside").options
    at.selectbox(key="timing.compared").set_value("none").run()
    assert any("Measure on this server" in i.value for i in at.info)
    assert at.segmented_control(key="timing.beside").value == "none"
    at.segmented_control(key="timing.beside").set_value("cuda_forward").run()
    assert at.query_params["t_beside"] == "cuda_forward"


@pytest.mark.parametrize(("shown", "noted"), [("cpu_forward", True), ("none", False)])
def test_the_setup_says_that_it_does_not_change_a_recorded_run(shown, noted):
    at = open_timing(t_beside=shown)
    assert any("The run on screen keeps" in each.value for each in at.caption) == noted


def test_a_page_without_runs_shows_instructions():
    at = open_timing(t_beside="none")
    assert any("Measure on this server" in i.value for i in at.info)


def test_a_missing_device_is_replaced_with_a_notice(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    at = open_timing({"t_device": "cuda"})
    assert at.session_state["t_device"] == "cpu"
    assert "For `t_device`, the page uses “cpu” instead of “cuda”" in at.warning[0].value


def test_lengths_are_measured_whichever_end_is_named_first():
    at = open_timing(
        variants=PAIR, t_masked="none", t_beside="none", **TINY | {"t_from": 32, "t_to": 16, "t_rounds": 1}
    )
    at.button(key="timing.button").click().run()
    assert at.session_state["timing.run"].request.sizes == (16, 32)
    assert {row.n for row in at.session_state["timing.run"].rows} == {16, 32}


def test_the_table_is_at_the_longest_common_length_unless_another_is_chosen():
    at = open_timing(variants=PAIR)
    assert "time at n = 4,096 (ms)" in at.dataframe[0].value.columns
    run = next(run for run in recorded_runs().values() if run.spec.mode == "forward" and not run.spec.causal)
    at.selectbox(key="timing.at").set_value(256).run()
    expected = [next(p for p in variant_points(run, word) if p.n == 256).quartiles[1] for word in ("softmax", "local")]
    assert list(at.dataframe[0].value["time at n = 256 (ms)"]) == pytest.approx(expected)
    assert at.query_params["t_at"] == "256"


@pytest.mark.parametrize("in_lesson", [False, True])
def test_the_finding_links_the_run_on_another_machine_except_in_a_lesson(in_lesson):
    lesson = {"lesson": all_lessons()["flat"]} if in_lesson else {}
    at = open_timing(**opening(), t_beside="cpu_forward", **lesson)
    [finding] = [m.value for m in at.markdown if "**On a GPU (" in m.value]
    assert ("[NVIDIA H200](#?t_beside=" in finding) == (not in_lesson)
