"""The Causal page's three views on cost without the browser: their sentences, curves, tables, files and links."""

import json

import numpy as np
import pytest
import torch
from driver import open_page, points, spoken, visit

import attention_core as ac
from app.input_panel import UPLOAD
from app.run import Run
from attention_core.experiments import causal_gradient, causal_modes
from attention_core.experiments.causal_gradient import BytesTask
from attention_core.experiments.causal_modes import MATRIX, CostTask
from attention_core.measure.device import stamp
from attention_core.measure.records import gather

SMALL = {"input": "synthetic", "n": 48, "d": 8, "heads": 2, "c_size": 8}
RUN = "causal.run"
VIEWS = ("algorithms", "generation", "gradient")


def open_view(view, **state):
    return open_page("causal", **SMALL | {"c_view": view} | state)


def charts(at):
    """The last two charts' points."""
    return [points(at, place) for place in range(-min(2, len(at.get("plotly_chart"))), 0)]


def table(at):
    return at.dataframe[-1].value.set_index(at.dataframe[-1].value.columns[0])


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    "state",
    [
        {"input": "text"},
        {"input": "text", "model": "smollm2", "text": "a", "causal": True},
        {"n": 1, "head": -1},
        {"n": 300, "heads": 1, "causal": True},
        {"d": 2, "heads": 1},
    ],
    ids=["text", "one token of smollm2", "one token", "300 tokens", "two numbers"],
)
def test_every_view_opens_on_every_input(view, state):
    at = open_view(view, **state)
    assert not at.exception
    assert not at.error
    assert len(at.get("plotly_chart")) == 2
    assert len(at.dataframe) == 1


@pytest.mark.parametrize("view", VIEWS)
def test_an_upload_whose_values_are_wider_and_an_empty_input(view, tmp_path):
    source = torch.Generator().manual_seed(0)
    arrays = {
        name: torch.randn(2, 20, size, generator=source).numpy() for name, size in zip("qkv", (6, 6, 9), strict=True)
    }
    np.savez(tmp_path / "mine.npz", **arrays)
    upload = ac.inputs.UploadSource.of("mine.npz", (tmp_path / "mine.npz").read_bytes())
    at = open_view(view, input="upload", **{UPLOAD: upload})
    assert not at.exception
    assert len(at.get("plotly_chart")) == 2
    empty = open_view(view, input="text", text=" ")
    assert not empty.exception
    assert len(empty.error) == 1


def test_three_algorithms_one_answer_and_a_crossing_at_d_squared():
    at = open_view("algorithms")
    memory, work = charts(at)
    told = "On these 48 tokens, repeated to 160 so that chunks of 64 follow one another, every algorithm gives **one"
    assert told in spoken(at)
    assert any("×\N{NO-BREAK SPACE}10⁻" in each.value for each in at.markdown)
    [pays] = [name for name in memory if name.startswith("cumsum pays from n ≈ ")]
    [n] = memory[pays]
    assert n == pytest.approx(64, rel=0.2)
    assert f"from **{pays.rpartition('cumsum pays from ')[2]}** on, where d² = 64" in spoken(at)
    assert set(work) >= {"chunked", "recurrent", "cumsum", "explicit matrix"}
    [row] = causal_modes.run(CostTask(word="linear", way=MATRIX, n=128, d=8))
    assert memory["explicit matrix"][128] == pytest.approx(row["peak_bytes"] / 2**20)
    assert work["explicit matrix"][128] == 2 * 128 * 128 * 8
    upright = json.loads(at.get("plotly_chart")[-2].proto.spec)["layout"]["shapes"][0]
    assert upright["x0"] == 64


def test_the_table_says_who_lacks_cumsum():
    at = open_view("algorithms")
    found = table(at)
    assert set(found.index) == {"Cosine", "Linear", "Performer · features 64", "Retention", "Second-order Taylor"}
    lacking = found.index[found["chunked − cumsum"] == "—"]
    assert set(lacking) == {"Performer · features 64", "Retention", "Second-order Taylor"}
    note = next(c.value for c in at.caption if "no cumsum form" in c.value)
    assert all(f"**{name}**" in note for name in lacking)
    single, double = map(float, found.loc["Linear", "chunked − recurrent"].split(" · "))
    assert 1e-9 < single < 5e-6
    assert double < 1e-14


def test_the_head_size_moves_the_crossing_and_the_chosen_settings_count():
    at = open_view(
        "algorithms", c_size=16, c_form="cosine", variants=(ac.get("softmax"), ac.get("performer", features=8))
    )
    assert "d² = 256" in spoken(at)
    assert "**Cosine**" in spoken(at)
    assert "Performer · features 8" in table(at).index
    [pays] = [points for name, points in charts(at)[0].items() if name.startswith("cumsum pays")]
    assert next(iter(pays)) == pytest.approx(16 * 17, rel=0.2)


def test_times_are_measured_on_a_button_and_kept():
    at = open_view("algorithms", c_cost="time")
    assert len(at.get("plotly_chart")) == 1
    assert any("Press “Measure times”" in i.value for i in at.info)
    at.button(key="causal.measure").click().run()
    assert not at.exception
    _memory, clock = charts(at)
    assert set(clock) >= {"chunked", "recurrent", "cumsum", "explicit matrix"}
    assert clock["recurrent"][512] > clock["chunked"][512] > 0
    assert at.button(key="causal.measure").label == "Measure times"
    at.session_state["c_size"] = 16
    assert any("Press “Measure times”" in i.value for i in at.run().info)


def linear_tasks(d):
    source = ac.inputs.SyntheticSource(ac.inputs.SyntheticSpec(n=4))
    return causal_modes.tasks(source, (), head=None, word="linear", d=d)  # nothing but what forms cost


def test_another_question_ends_a_measurement_and_keeps_what_it_has():
    begun = Run(linear_tasks(8), [{"way": "chunked", "n": n, "round": 0, "ms": 1.0} for n in (16, 32)])
    at = open_view("algorithms", c_cost="time", c_size=16, **{RUN: begun})
    assert not at.session_state[RUN].going
    assert any("Press “Measure times”" in i.value for i in at.info)
    at.session_state["c_size"] = 8
    assert charts(at.run())[1] == {"chunked": {16: 1.0, 32: 1.0}}


def sampled(tasks, count):
    """The first so many samples of a measurement, of which each took a millisecond."""
    rows = [{"way": t.way, "n": t.n, "round": i, "ms": 1.0} for i in range(causal_modes.ROUNDS) for t in tasks]
    return rows[:count]


def test_a_stopped_measurement_says_what_is_missing_and_goes_on_where_it_was():
    tasks = linear_tasks(8)
    # Other controls end it.
    at = open_view(
        "algorithms", c_cost="time", c_size=16, **{RUN: Run(tasks, sampled(tasks, len(tasks) + 1), len(tasks) + 1)}
    )
    assert not [b for b in at.button if b.label == "Continue"]
    at.session_state["c_size"] = 8
    missing = f"The times are not complete: 1 of {causal_modes.ROUNDS} rounds are there."
    assert missing in spoken(at.run())
    next(b for b in at.button if b.label == "Continue").click().run()
    assert not at.exception
    assert "not complete" not in spoken(at)
    assert not [b for b in at.button if b.label == "Continue"]
    rows = at.session_state[RUN].rows
    assert rows[: len(tasks) + 1] == sampled(tasks, len(tasks) + 1)
    assert len(rows) == causal_modes.ROUNDS * len(tasks)


def test_a_script_that_takes_over_goes_on_with_the_measurement():
    tasks = linear_tasks(8)
    all_but_one = sampled(tasks, causal_modes.ROUNDS * len(tasks) - 1)
    at = open_view("algorithms", c_cost="time", **{RUN: Run(tasks, list(all_but_one))})
    assert not at.exception
    assert charts(at)[1]["chunked"] == {task.n: 1.0 for task in tasks if task.way == "chunked"}
    rows = at.session_state[RUN].rows
    assert rows[:-1] == all_but_one
    assert rows[-1]["ms"] != 1.0
    assert at.button(key="causal.measure").label == "Measure times"


def test_generation_names_where_the_cache_outgrows_each_state():
    at = open_view("generation", d=32)
    held, clock = charts(at)
    token = 2 * (32 + 32) * 4
    assert held["Softmax, key-value cache"][1024] == pytest.approx(1024 * token / 2**20)
    state = 2 * 4 * 32 * 33
    [linear] = [line for name, line in held.items() if name.startswith("Linear: ")]
    assert set(linear.values()) == {state / 2**20}
    assert state // token + 1 in linear
    assert table(at).loc["Linear", "smaller from"] == f"{state // token + 1} tokens"
    wide = 2 * 4 * (1 + 32 + 32 * 33 // 2) * 33
    assert f"from **{wide // token + 1}** on more than **Second-order Taylor**" in spoken(at)
    assert "Softmax, key-value cache" in clock
    assert "**Time from a recorded run, 8 heads of 64:**" in spoken(at)
    assert {"faster from, recorded 8 × 64", "ms at 4,096, recorded 8 × 64"} <= set(table(at).columns)
    assert any("this input's 2 heads of 32" in c.value for c in at.caption)


def test_the_time_of_a_token_is_measured_on_a_button_with_the_inputs_heads(monkeypatch):
    monkeypatch.setattr("app.causal.generation.LONGEST", 128)
    at = open_view("generation")
    at.button(key="timing.button").click().run()
    assert not at.exception
    found = at.session_state["timing.run"]
    run = gather(found.asked, stamp("cpu"), found.rows)
    assert (run.spec.mode, run.spec.heads, run.spec.head_size, run.spec.sizes) == ("decode", 2, 8, (64, 128))
    _held, clock = charts(at)
    assert set(clock["Linear"]) == {64, 128}
    assert len(clock) == 6
    assert "**Time measured here, 2 heads of 8:** On this machine" in spoken(at)
    assert not [c for c in at.caption if "Press the button" in c.value]
    assert table(at).loc["Linear", "ms at 128, measured here"] > 0
    at.session_state["heads"] = 1
    assert "recorded run, 8 heads of 64" in spoken(at.run())


def test_the_gradients_bytes_and_differences():
    at = open_view("gradient")
    held, ratio = charts(at)
    [row] = causal_gradient.run(BytesTask(word="linear", way="chunked", n=256, d=8, d_v=8))
    assert held["running sums"][256] == pytest.approx(row["peak_bytes"] / 2**20)
    states, matrix = "autograd through all states", "autograd through the matrix"
    for name in (states, matrix):
        assert ratio[name][1024] == pytest.approx(held[name][1024] / held["running sums"][1024])
    factor = held[states][512] / held["running sums"][512]
    assert f"{factor:.0f} times less than all states" in spoken(at)
    assert "At n = 512" in spoken(at)
    found = table(at)
    assert list(found.index) == ["q", "k", "v"]
    assert found.filter(like="float64").astype(float).to_numpy().max() < 1e-12
    assert 0 < found.filter(like="float32").astype(float).to_numpy().max() < 1e-4


def test_the_gradient_takes_linears_own_feature_map():
    held, _ratio = charts(open_view("gradient", variants=(ac.get("softmax"), ac.get("linear", feature_map="exp"))))
    found = {}
    for name in ("elu+1", "exp"):
        word = ac.get("linear", feature_map=name).word
        [row] = causal_gradient.run(BytesTask(word=word, way="cumsum", n=1024, d=8, d_v=8))
        found[name] = row["peak_bytes"] / 2**20
    assert found["exp"] != found["elu+1"]
    assert held["autograd through all states"][1024] == pytest.approx(found["exp"])


def test_links_carry_the_views_and_refuse_what_does_not_fit():
    at = visit("causal", {"c_view": "algorithms", "c_size": "7", "c_form": "softmax", "c_cost": "time"})
    assert not at.exception
    assert [at.session_state[name] for name in ("c_size", "c_form", "c_cost")] == [16, "linear", "time"]
    assert "c_size is “16”, not “7”; c_form is “linear”, not “softmax”" in at.warning[0].value


def test_a_hosted_page_offers_no_head_size_beyond_its_lengths(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    at = open_view("algorithms", c_size=32)
    assert not at.exception
    [sizes] = [g.options for g in at.button_group if g.key == "c_size"]
    assert [o.content if hasattr(o, "content") else str(o) for o in sizes] == ["8", "16", "32"]
