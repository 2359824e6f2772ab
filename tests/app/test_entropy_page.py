"""The Entropy page without the browser: every view, every variant, its curves, its sentence and its table."""

import base64
import contextlib
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import attention_core as ac
from app import presets, share
from app.figures.spread import spread
from app.input_panel import UPLOAD

ROOT = Path(__file__).parents[2]
SMALL = {"input": "synthetic", "heads": 3, "h_longest": 128, "h_seeds": 1}
OTHERS = [variant.key for variant in ac.all_variants() if variant.key != "softmax"]


def open_page(**state):
    at = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60)
    at.run()
    for name, value in (SMALL | state).items():
        at.session_state[name] = value
    return at.switch_page("../pages/entropy.py").run()


def chosen(*keys):
    return tuple(ac.get(key) for key in keys)


def numbers(values):
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).tolist()
    return values


def traces(at):
    """The last chart's lines by name, bands left out: ``{x: y}``."""
    figure = json.loads(at.get("plotly_chart")[-1].proto.spec)
    return {t["name"]: dict(zip(numbers(t["x"]), numbers(t["y"]), strict=True)) for t in figure["data"] if "name" in t}


def bands(at):
    return [t for t in json.loads(at.get("plotly_chart")[-1].proto.spec)["data"] if "name" not in t]


def spoken(at):
    return " ".join(m.value for m in at.markdown)


def head_entropies(key, n, *, heads=3, seed=0, **settings):
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=heads, seed=seed))
    return ac.metrics.entropy(ac.get(key, **settings).weights(qkv.q, qkv.k)).mean(-1).numpy()


def test_it_answers_its_question_on_the_default_text():
    at = open_page(input="text", h_longest=2048)
    assert not at.exception
    assert not at.error
    assert len(traces(at)) == len(share.default_variants()) + 2  # the log n scale and uniform attention
    assert "**softmax**'s entropy rises from" in spoken(at)
    assert "with the log n scale" in spoken(at)


@pytest.mark.parametrize("view", ["entropy", "normalizer", "factor"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("source", ["text", "synthetic"])
def test_every_view_opens_on_every_source(view, causal, source):
    at = open_page(h_view=view, causal=causal, input=source, variants=chosen("softmax", "nystrom", "linear"))
    assert not at.exception
    assert not at.error
    assert traces(at)
    assert len(at.dataframe) == 1
    refused = [c.value for c in at.caption if "cannot be causal" in c.value]
    assert bool(refused) == (causal and view == "entropy")


@pytest.mark.parametrize("keys", [OTHERS[i : i + 10] for i in range(0, len(OTHERS), 10)], ids=lambda k: k[0])
@pytest.mark.parametrize("causal", [False, True])
def test_every_variant_has_its_curve_or_its_reason(keys, causal):
    at = open_page(variants=chosen("softmax", *keys), causal=causal, h_scales=[])
    assert not at.exception
    drawn, refused = traces(at), " ".join(c.value for c in at.caption)
    for variant in map(ac.variant, keys):
        left_out = causal and variant.causal_reason is not None
        assert any(name.startswith(variant.title) for name in drawn) != left_out
        assert (f"{variant.title} cannot be causal" in refused) == left_out


def test_curves_bands_and_table_hold_the_cores_numbers():
    at = open_page(variants=chosen("softmax", "topk"))
    drawn, n = traces(at), 128
    for key, name in (("softmax", "Softmax"), ("topk", "Top-k · k 8")):
        assert set(drawn[name]) == {16, 23, 32, 45, 64, 91, 128}
        assert drawn[name][n] == pytest.approx(np.median(head_entropies(key, n)), abs=1e-5)
    scaled = head_entropies("softmax_log_n", n, base_length=512)
    assert drawn["Softmax · log n, n₀ 512"][n] == pytest.approx(np.median(scaled), abs=1e-5)
    assert drawn["uniform attention"][n] == pytest.approx(math.log(n))
    edges = numbers(bands(at)[0]["y"])
    quartiles = np.quantile(head_entropies("softmax", n), (0.75, 0.25))
    assert edges[6:8] == pytest.approx(quartiles, abs=1e-5)  # the upper edge ends where the lower one turns back
    table = at.dataframe[0].value.set_index("variant")
    assert table.loc["Softmax", "H(128) nats"] == pytest.approx(drawn["Softmax"][n])
    x, y = zip(*drawn["Softmax"].items(), strict=True)
    assert table.loc["Softmax", "slope against log n"] == pytest.approx(np.polyfit(np.log(x), y, 1)[0], abs=1e-6)
    assert table.loc["Softmax", "R²"] == pytest.approx(np.corrcoef(np.log(x), y)[0, 1] ** 2, abs=1e-6)


def test_seeds_join_the_band():
    two = open_page(variants=chosen("softmax"), h_seeds=2, h_line="mean")
    both = np.concatenate([head_entropies("softmax", 128, seed=seed) for seed in (0, 1)])
    assert traces(two)["Softmax"][128] == pytest.approx(both.mean(), abs=1e-5)


def test_one_head_alone():
    at = open_page(variants=chosen("softmax"), h_heads="one", head=2)
    assert traces(at)["Softmax"][128] == pytest.approx(head_entropies("softmax", 128)[2], abs=1e-5)


def test_bits_and_shares_of_log_n():
    nats = traces(open_page(variants=chosen("softmax")))["Softmax"]
    bits = traces(open_page(variants=chosen("softmax"), h_unit="bits"))["Softmax"]
    shares = traces(open_page(variants=chosen("softmax"), h_unit="bits", h_measure="normalised"))
    for n, h in nats.items():
        assert bits[n] == pytest.approx(h / math.log(2))
        assert shares["Softmax"][n] == pytest.approx(h / math.log(n), abs=1e-5)
        assert shares["uniform attention"][n] == 1
    assert "bits" in spoken(open_page(variants=chosen("softmax"), h_unit="bits"))


def test_scales_of_softmax_come_and_go():
    at = open_page(variants=chosen("softmax"), h_scales=["temperature", "unscaled"], h_temperature=4.0)
    drawn = traces(at)
    assert set(drawn) == {"Softmax", "Softmax · temperature 4", "Softmax · no scale", "uniform attention"}
    assert drawn["Softmax · temperature 4"][128] > drawn["Softmax"][128] > drawn["Softmax · no scale"][128]
    assert "log n scale" not in spoken(at)


def test_a_scale_that_is_already_a_variant_is_drawn_once():
    at = open_page(variants=chosen("softmax", "softmax_log_n"), h_scales=["log_n"])
    assert len(traces(at)) == 3


def test_the_normaliser_shows_its_growth_and_its_fit():
    at = open_page(h_view="normalizer", h_line="mean")
    drawn = traces(at)
    found = drawn["softmax: Σ exp(x)"]
    growth = []
    for n in (16, 128):
        qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=3))
        logits = (qkv.q.double() @ qkv.k.double().mT) / math.sqrt(32)
        growth.append(logits.logsumexp(-1).mean(-1))
    assert found[16] == pytest.approx(1)
    assert found[128] == pytest.approx(float((growth[1] - growth[0]).exp().mean()), rel=1e-4)
    slope, offset = np.polyfit(np.log(list(found)), np.log(list(found.values())), 1)
    [fit] = [line for name, line in drawn.items() if name.startswith(f"fit n<sup>{slope:.2f}</sup>")]
    assert fit[64] == pytest.approx(math.exp(offset) * 64**slope)
    assert f"about as n to the power {slope:.2f}" in spoken(at)
    assert at.dataframe[0].value["exponent"][0] == pytest.approx(slope)
    assert drawn["n itself"][128] == 8


def test_the_factor_moves_softmax_and_not_relu2():
    at = open_page(h_view="factor", h_factor=8.0)
    drawn = traces(at)
    assert drawn["Softmax"][8.0] < drawn["Softmax"][1.0] - 0.5
    assert set(np.round(list(drawn["Squared ReLU / row sum"].values()), 5)) == {
        round(drawn["Squared ReLU / row sum"][1.0], 5)
    }
    table = at.dataframe[0].value.set_index("variant")["max |A(λ=8) − A(1)|"].astype(float)
    assert table["Softmax"] > 0.1
    assert table["Squared ReLU / row sum"] == 0
    still = drawn["Squared ReLU / row sum"][1.0]
    assert f"divided by its row sum stays at {still:.2f}: the largest change of any weight is 0" in spoken(at)


@pytest.mark.parametrize(
    ("state", "n"),
    [({"input": "text", "text": "a"}, 3), ({"input": "text", "text": "a", "model": "smollm2"}, 1)],
)
@pytest.mark.parametrize("view", ["entropy", "normalizer", "factor"])
def test_a_single_length_is_drawn_and_asks_for_more(state, n, view):
    at = open_page(**state, h_view=view, variants=chosen("softmax", "local"))
    assert not at.exception
    assert not at.error
    if view != "factor":
        assert "longer input" in spoken(at)
        assert f"ends at {n} tokens" in " ".join(c.value for c in at.caption)


def test_a_short_text_offers_longer_inputs():
    at = open_page(input="text", variants=chosen("softmax"))
    next(b for b in at.button if b.label == "a longer text").click().run()
    assert at.session_state["text"] == presets.texts()["long"]
    assert max(traces(at)["Softmax"]) == 128
    assert not [b for b in at.button if b.label == "a longer text"]


def test_a_causal_model_goes_beyond_what_is_drawn(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    text = " ".join([presets.texts()["long"]] * 3)
    at = open_page(
        input="text", text=text, model="smollm2", layer=0, causal=True, variants=chosen("softmax"), h_longest=1024,
        h_scales=[],
    )  # fmt: skip
    assert not at.exception
    assert 800 < max(traces(at)["Softmax"]) <= 1024


def test_an_upload_is_measured_and_none_says_what_to_do():
    source = ac.inputs.UploadSource.of("mine.npz", ac.inputs.example_npz())
    at = open_page(input="upload", **{UPLOAD: source})
    assert not at.exception
    assert max(traces(at)["Softmax"]) == source.load().n
    assert any("Upload an .npz" in i.value for i in open_page(input="upload").info)


def test_blank_text_gets_a_sentence():
    at = open_page(input="text", text="  ")
    assert not at.exception
    assert len(at.error) == 1


@pytest.mark.parametrize("view", ["entropy", "normalizer", "factor"])
def test_the_python_to_take_away_makes_the_same_numbers(view):
    at = open_page(h_view=view, variants=chosen("softmax", "local"), h_scales=[], h_line="mean", h_longest=128)
    [code] = [c.value for c in at.code if "rows = [" in c.value]
    space = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, space)
    rows = space["rows"]
    if view == "entropy":
        values = [r["entropy"] for r in rows if (r["variant"], r["n"]) == ("local", 128)]
        assert traces(at)["Local · window 16"][128] == pytest.approx(np.mean(values))
    else:
        name = "normalizer" if view == "normalizer" else "factor"
        assert {r[name] for r in rows} == ({"softmax", "relu2"} if view == "normalizer" else set(traces(at)["Softmax"]))


def test_links_carry_the_page_and_refuse_what_does_not_fit():
    at = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60)
    for name, words in {"h_scales": "nothing", "h_base": "7", "h_longest": "999999999", "h_factor": "nan"}.items():
        at.query_params[name] = words
    at.query_params["h_unit"] = "bits"
    at.switch_page("../pages/entropy.py").run()
    assert not at.exception
    state = at.session_state
    assert (state["h_unit"], state["h_base"], state["h_longest"], state["h_factor"]) == ("bits", 512, 2048, 4.0)
    assert state["h_scales"] == ["log_n"]


def test_a_spread_gathers_by_position():
    found = spread([(2, 5.0), (1, 0.0), (1, 10.0), (1, 2.0), (1, 4.0)])
    assert (found.x, found.middle, found.low, found.high) == ((1, 2), (3.0, 5.0), (1.5, 5.0), (5.5, 5.0))
    assert spread([(1, 0.0), (1, 10.0), (1, 2.0), (1, 4.0)], mean=True).middle == (4.0,)
    assert spread([(1, 3.0)]).curve("a", 0).low is None
    assert found.curve("a", 0).low == (1.5, 5.0)
