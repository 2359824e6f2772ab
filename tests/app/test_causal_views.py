"""The Causal page's views on leaks, state and fading without the browser: sentences, pictures, numbers and links."""

import io
import time

import numpy as np
import pytest
from driver import board, charts, chosen, numbers, open_page, spoken, visit

import attention_core as ac
from app.causal import state as state_view
from app.causal.gates import sentence as gate_sentence
from app.causal.gates import survival
from app.input_panel import UPLOAD
from attention_core.looks.gating import Gate, Gated, gated
from attention_core.looks.influence import influence
from attention_core.looks.recurrent_state import grow
from attention_core.looks.token_weight import causal_weights
from attention_core.registry import recurrent

SMALL = {"input": "synthetic", "n": 24, "d": 8, "heads": 2, "head": 1}
RECORD = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=24, d=8, heads=2))
SLIDERS = {"leak": "c_token", "state": "c_at", "fading": "c_early"}


def open_view(view, **state):
    return open_page("causal", **SMALL | {"c_view": view} | state)


@pytest.mark.parametrize("view", SLIDERS)
@pytest.mark.parametrize(
    "state",
    [
        {"input": "text"},
        {"causal": True},
        {"head": -1},
        {"n": 1},
        {"n": 2},
        {"c_token": 200, "c_at": 900, "c_early": 900},
    ],
    ids=["text", "causal", "all heads", "one token", "two tokens", "beyond the text"],
)
def test_every_view_opens_on_every_input(view, state):
    at = open_view(view, **state)
    assert not at.exception
    assert not at.error
    assert at.get("plotly_chart")
    assert any(w.key == SLIDERS[view] for w in at.select_slider) == (state.get("n") != 1)
    assert at.session_state[SLIDERS[view]] < (56 if "input" in state else state.get("n", 24))


@pytest.mark.parametrize("view", SLIDERS)
def test_uploads_and_empty_texts(view):
    out = io.BytesIO()
    np.savez(out, **{name: np.random.default_rng(0).normal(size=(1, 5, 4)).astype(np.float32) * 1e3 for name in "qkv"})
    at = open_view(view, input="upload", **{UPLOAD: ac.inputs.UploadSource.of("mine.npz", out.getvalue())})
    assert not at.exception
    assert not at.error
    at = open_view(view, input="text", text=" ")
    assert not at.exception
    assert len(at.error) == 1


@pytest.mark.parametrize("causal", [False, True])
def test_who_leaks_is_said_and_why(causal):
    keys = ("softmax", "linear", "local", "nystrom", "pooled", "pyramid")
    at = open_view("leak", variants=chosen(*keys), causal=causal, c_token=9)
    sentence = spoken(at)
    assert "which has 9 outputs before it" in sentence
    assert "**Leak:** Nyström · landmarks 32 (9 move), Pyramid pooling · levels 1 (9 move)." in sentence
    assert "**No earlier output moves:** Softmax, Linear, Local · window 16, Pooled keys · stride 4." in sentence
    reasons = " ".join(c.value for c in at.caption)
    for key in keys:
        reason = ac.variant(key).causal_reason
        assert reason is None or reason in reasons
    assert "Left out" not in " ".join(i.value for i in at.info)  # all take part whatever the switch says


def test_the_first_token_has_nothing_before_it():
    sentence = spoken(open_view("leak", variants=chosen("softmax", "nystrom"), c_token=0))
    assert "nothing before it" in sentence
    assert "earlier outputs move in **Nyström · landmarks 32 (100%)**" in sentence


def test_strips_and_maps_hold_the_cores_numbers():
    at = open_view("leak", variants=chosen("softmax", "nystrom"), c_token=9)
    found = {key: influence(RECORD, ac.get(key), head=1).moved for key in ("softmax", "nystrom")}
    still, before, after = (
        np.array(numbers(trace["z"]), float) for trace in charts(at)[0]["data"] if trace["type"] == "heatmap"
    )
    rows = {"softmax": 1, "nystrom": 3}
    for key, row in rows.items():
        moved = found[key][9]
        np.testing.assert_array_equal(np.isfinite(still[row]), moved == 0)
        np.testing.assert_allclose(10 ** before[row][np.isfinite(before[row])], moved[:9][moved[:9] > 0], rtol=1e-5)
        np.testing.assert_allclose(10 ** after[row][np.isfinite(after[row])], moved[9:][moved[9:] > 0], rtol=1e-5)
    for key, (panel, values) in board(at, "causal.leaks")[1].items():
        moved = found[key]
        np.testing.assert_array_equal(np.isnan(values), moved == 0)
        np.testing.assert_allclose(values[moved > 0], moved[moved > 0], rtol=1e-3)
        assert panel["caption"] == ("leaks in 100% of earlier pairs" if key == "nystrom" else "does not leak")


def test_a_long_input_is_cut_and_says_so():
    at = open_view("leak", variants=chosen("softmax", "linear"), n=300, d=2)
    assert any("Only the first 256 of 300 tokens" in c.value for c in at.caption)
    assert not any("Only the first" in c.value for c in open_view("leak", variants=chosen("softmax")).caption)


@pytest.mark.parametrize("variant", recurrent(), ids=lambda v: v.key)
def test_the_state_on_screen_is_the_decoders(variant):
    at = open_view("state", c_state=ac.get(variant.key), c_at=7)
    assert not at.exception
    grown = grow(RECORD, ac.get(variant.key), head=1)
    shown = board(at, "causal.state")[1]
    for key, values in (("state", grown.sums), ("added", grown.added)):
        np.testing.assert_allclose(shown[key][1], values[7], rtol=2e-3, atol=1e-6 * abs(values).max())
        assert shown[key][0]["largest"] == pytest.approx(abs(grown.sums).max())  # one scale for all tokens
    keys, sizes, _, read, full, softmax = charts(at)[0]["data"]
    np.testing.assert_allclose(numbers(keys["y"]), grown.keys[7], rtol=1e-6)
    np.testing.assert_allclose(numbers(sizes["y"])[7], np.linalg.norm(grown.sums[7]), rtol=1e-5)
    np.testing.assert_allclose(numbers(read["y"]), grown.outputs[7])
    np.testing.assert_allclose(numbers(full["y"]), grown.full[7])
    np.testing.assert_allclose(numbers(softmax["y"]), grown.softmax[7])
    assert (softmax["name"], softmax["legend"], sizes["legend"]) == ("softmax", "legend2", "legend")
    assert f"{variant.title}'s own n × n matrix" in spoken(at)
    assert f"it lies {grown.lost(7):.0%} of that one's length away" in spoken(at)
    held = grown.sums[0].size + grown.keys[0].size
    assert f"{held:,} numbers stand for 8 tokens" in spoken(at)


def test_colours_keep_their_scale_as_the_state_grows():
    tops = {board(open_view("state", c_at=i), "causal.state")[1]["state"][0]["largest"] for i in (0, 23)}
    assert len(tops) == 1


def test_the_average_of_heads_has_no_state_and_a_wide_one_is_cut():
    at = open_view("state", head=-1)
    assert any("head 0 is shown" in c.value for c in at.caption)
    at = open_view("state", n=60, d=64, c_state=ac.get("taylor2"))
    assert any("only the first 30 of 60 tokens" in c.value for c in at.caption)


def test_play_goes_on_by_itself_and_stops(monkeypatch):
    monkeypatch.setattr(state_view, "TICK", 0.02)
    at = open_view("state", c_at=4)
    at.button(key="causal.play").click().run()
    assert at.button(key="causal.play").label == "Stop"
    places = []
    for _ in range(3):
        time.sleep(0.02)
        places.append(at.run().session_state["c_at"])
    assert places == [places[0], places[0] + 1, places[0] + 2]
    at.button(key="causal.play").click().run()
    time.sleep(0.02)
    assert at.run().session_state["c_at"] == places[-1]
    assert at.button(key="causal.play").label == "Play"


def test_a_play_ends_at_the_last_token_or_when_nobody_looks(monkeypatch):
    monkeypatch.setattr(state_view, "TICK", 0.02)
    at = open_view("state", n=3, c_at=0)
    at.button(key="causal.play").click().run()
    for _ in range(3):
        time.sleep(0.02)
        at.run()
    assert at.button(key="causal.play").label == "Play"
    at = open_view("state", c_at=0)
    at.button(key="causal.play").click().run()
    assert at.button(key="causal.play").label == "Stop"
    monkeypatch.setattr(state_view, "LEFT", 0.0)
    assert at.run().button(key="causal.play").label == "Play"


def test_a_knob_of_the_state_turns_the_state_alone():
    at = open_view("state", c_state=ac.get("retention"), variants=chosen("softmax", "retention"))
    at.slider(key="causal.knob.retention.decay").set_value(0.5).run()
    assert at.session_state["c_state"] == ac.get("retention", decay=0.5)
    assert at.session_state["variants"] == chosen("softmax", "retention")
    at.pills(key="causal.variant").set_value("cosine").run()
    assert at.session_state["c_state"] == ac.get("cosine")
    assert not any("mode" in str(w.key) for w in at.segmented_control)


def test_fading_draws_the_cores_weights():
    at = open_view("fading", c_early=3, c_decays=[0.9], c_map="exp")
    curves, quarters = (
        {trace["name"]: (numbers(trace["x"]), numbers(trace["y"])) for trace in data}
        for data in (each["data"] for each in charts(at)[:2])
    )
    retention = ac.get("retention", decay=0.9, feature_map="exp")
    for name, attention in (
        ("Softmax", ac.get("softmax")),
        ("Linear", ac.get("linear", feature_map="exp")),
        ("Retention, γ = 0.9", retention),
    ):
        weights = causal_weights(RECORD, attention, head=1)
        np.testing.assert_allclose(curves[name][0], np.arange(3, 24))
        np.testing.assert_allclose(curves[name][1], 100 * weights[3:, 3])
        np.testing.assert_allclose(quarters[name][1][-1], 100 * weights[-1, :6].sum())
    np.testing.assert_allclose(curves["even share, 1 / (i + 1)"][1], 100 / np.arange(4, 25))
    table = at.dataframe[0].value.set_index("variant")
    end = causal_weights(RECORD, retention, head=1)[-1, 3]
    assert float(table.loc["Retention, γ = 0.9", "last row, %"]) == pytest.approx(100 * end, rel=5e-3)
    assert 0.8 < float(table.loc["Retention, γ = 0.9", "per token"]) < 1
    assert table.loc["Retention, γ = 0.9", "law from row"] == "10"
    assert list(table.loc["Linear", ["per token", "half-life"]]) == ["—", "—"]
    assert table.loc["Softmax", "power of i"] == table.loc["Retention, γ = 0.9", "power of i"] == "—"
    share = 100 * causal_weights(RECORD, ac.get("softmax"), head=1)[-1, :6].sum()
    assert f"**first quarter of the tokens** holds of that row: Softmax {share:.2g} %" in spoken(at)
    assert f"**Retention, γ = 0.9** {100 * end:.2g} %" in spoken(at)


def test_fading_without_a_decay_and_with_all_of_them():
    bare = open_view("fading", c_decays=[], c_gate="none")
    assert len(charts(bare)[0]["data"]) == 3
    assert len(charts(bare)) == 2
    assert "per token" not in spoken(bare)
    assert "gate" not in spoken(bare).split("**Linear** attention adds")[0]
    everything = open_view("fading", c_gate="none", c_decays=[0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995])
    assert len(charts(everything)[0]["data"]) == 11


@pytest.mark.parametrize(
    ("gate", "name"),
    [
        (Gate(kind="surprise", decay=0.7), "Gate by surprise"),
        (Gate(kind="drawn", decay=0.9, seed=3), "Gate drawn at random"),
    ],
)
def test_a_gate_is_drawn_beside_the_fixed_decay_that_forgets_as_much(gate, name):
    at = open_view(
        "fading", c_early=3, c_decays=[], c_gate=gate.kind, c_gate_decay=gate.decay, c_gate_seed=3, c_map="softmax"
    )
    found = gated(RECORD, gate, "softmax", head=1)
    even = f"fixed at its mean, γ = {found.mean:.3g}"
    curves, quarters, gates = ({t["name"]: numbers(t["y"]) for t in each["data"]} for each in charts(at))
    for title, weights in ((name, found.weights), (even, found.even)):
        np.testing.assert_allclose(curves[title], 100 * weights[3:, 3])
        np.testing.assert_allclose(quarters[title][-1], 100 * weights[-1, :6].sum())
    np.testing.assert_allclose(gates["gate γₜ"], found.gates[1:])
    np.testing.assert_allclose(gates[even], found.mean)
    table = at.dataframe[0].value.set_index("variant")
    assert float(table.loc[name, "last row, %"]) == pytest.approx(100 * found.weights[-1, 3], rel=5e-3)
    assert float(table.loc[even, "per token"]) == pytest.approx(found.mean, rel=0.05)
    least = int(found.gates[1:].argmin()) + 1
    assert f"keeps between {found.gates[1:].min():.1%} and {found.gates[1:].max():.1%} of the past" in spoken(at)
    assert f"least when token {least} " in spoken(at)
    assert "untrained" in spoken(at)
    code = next(c.value for c in at.code if "gating" in c.value)
    space = {"print": lambda *_: None}
    exec(code.replace("head=3", "head=0"), space)
    assert space["found"].weights.shape == space["weights"].shape


def test_a_gates_seed_counts_for_what_is_drawn_alone():
    curves = [
        {t["name"]: numbers(t["y"]) for t in charts(open_view("fading", c_gate=kind, c_gate_seed=seed))[2]["data"]}
        for kind in ("surprise", "drawn")
        for seed in (0, 1)
    ]
    assert curves[0] == curves[1]
    assert curves[2] != curves[3]


@pytest.mark.parametrize(
    ("gated_weight", "even", "words"),
    [
        (0.2, 0.1, "survives better under the gate: 2 times as much weight"),
        (0.01, 0.04, "survives better under the fixed decay: 4 times as much weight"),
        (0.1, 0.1049, "survives under both alike"),
        (0.1, 0.106, "survives better under the fixed decay: 1.06 times"),
        (0.0, 0.1, "weighs nothing in the last row under at least one"),
    ],
)
def test_how_a_token_fares_under_a_gate(gated_weight, even, words):
    assert words in survival(gated_weight, even, 4)


def test_a_gate_that_never_moves_is_called_a_fixed_decay():
    still = Gated(weights=np.eye(3), even=np.eye(3), gates=np.array([1, 0.5, 0.5]))
    rule = Gate(kind="surprise", decay=0.5)
    told = gate_sentence(still, rule, 2, ("a", "b", "c"))
    assert "keeps 50.0% of the past at every token here: it is a fixed decay" in told
    assert "alike" in told
    moving = Gated(weights=np.eye(3), even=np.eye(3), gates=np.array([1, 0.9, 0.4]))
    told = gate_sentence(moving, rule, 2, ("a", "b", "c_"))
    assert "between 40.0% and 90.0% of the past, least when token 2 “c\\_” comes" in told
    assert "a fixed decay of γ = 0.6." in told


@pytest.mark.parametrize("words", ["softmax", "nystrom~landmarks~4", "retention~decay~7", "x"])
def test_a_link_to_no_state_opens_the_default(words):
    refused = dict.fromkeys(("c_state", "c_gate", "c_gate_decay", "c_gate_seed"), words) | {"c_decays": "2"}
    at = visit("causal", refused)
    assert not at.exception
    assert at.session_state["c_state"] == ac.get("linear")
    assert at.session_state["c_decays"] == [0.8, 0.95]
    state = at.session_state
    assert (state["c_gate"], state["c_gate_decay"], state["c_gate_seed"]) == ("surprise", 0.8, 0)
