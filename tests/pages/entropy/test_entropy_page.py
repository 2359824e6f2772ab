"""Tests of the Entropy page without a browser: every view and variant, its curves, sentence and table."""

import contextlib
import io
import math
import re
from functools import partial

import numpy as np
import pytest
from driver import bands, charts, chosen, numbers, open_page, points, spoken, visit

import attention_core as ac
from app.state import presets
from app.state.session import default_variants
from app.ui.input_forms import UPLOAD
from app.ui.variant_picker import refusal_text
from attention_core.experiments.homogeneity import FACTORS
from attention_core.formatting import number
from attention_core.inputs.positions import rotary
from attention_core.limits import current
from pages.entropy.growth import MAX_SHARE
from pages.entropy.growth_words import keys_and_share, range_texts
from pages.entropy.normalizer import power

SMALL = {"input": "synthetic", "heads": 3, "h_longest": 128, "h_seeds": 1, "h_base": 512, "h_measure": "entropy"}
open_entropy = partial(open_page, "entropy", **SMALL)
OTHERS = [variant.key for variant in ac.all_variants() if variant.key != "softmax"]


def head_entropies(key, n, *, heads=3, seed=0, **settings):
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=heads, seed=seed))
    return ac.metrics.entropy(ac.get(key, **settings).weights(qkv.q, qkv.k)).mean(-1).numpy()


def test_the_default_text_has_a_headline():
    at = open_entropy(input="text", h_longest=2048)
    assert not at.error
    assert len(points(at)) == len(default_variants()) + 2  # the log n scale and uniform attention
    assert "**In this text, attention spreads over " in spoken(at)
    assert " tokens, a smaller share of all keys.**" in spoken(at)
    assert "This flattens the weights at fewer than 512 tokens." in spoken(at)


def test_the_share_of_all_keys_is_the_number_of_effective_keys_over_the_length():
    [keys, share] = (points(open_entropy(h_measure=measure, h_scales=[])) for measure in ("keys", "share"))
    for n in (16, 128):
        assert share["Softmax"][n] == pytest.approx(keys["Softmax"][n] / n)
        assert share["equal weights on all keys"][n] == 1


@pytest.mark.parametrize(("causal", "keys"), [(False, "all keys"), (True, "all keys up to the query")])
def test_the_axis_of_shares_names_the_keys_that_count(causal, keys):
    axis = charts(open_entropy(h_measure="share", h_scales=[], causal=causal))[0]["layout"]["yaxis"]
    scale = "" if causal else " (log scale)"  # The longer title has no room for it.
    assert axis["title"]["text"] == f"effective keys ÷ {keys}{scale}"


@pytest.mark.parametrize(("unit", "title"), [("nats", "exp(entropy) = effective keys"), ("bits", "effective keys")])
def test_the_axis_of_effective_keys_defines_them_by_the_entropy_in_nats(unit, title):
    axis = charts(open_entropy(h_measure="keys", h_scales=[], h_unit=unit))[0]["layout"]["yaxis"]
    assert axis["title"]["text"] == f"{title} (log scale)"


@pytest.mark.parametrize("view", ["entropy", "normalizer", "distance", "factor"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("source", ["text", "synthetic"])
def test_every_view_opens_on_every_source(view, causal, source):
    at = open_entropy(h_view=view, causal=causal, input=source, variants=chosen("softmax", "nystrom", "linear"))
    assert not at.error
    assert points(at)
    [table] = at.dataframe
    assert list(table.proto.column_order) == list(table.value)[: 4 if view == "entropy" else None]
    averages = "With a causal mask, each value is an average over queries with 1 to n keys."
    assert (averages in spoken(at, "caption")) == (causal and view in ("entropy", "normalizer"))
    refused = [c.value for c in at.caption if "cannot be causal" in c.value]
    assert bool(refused) == (causal and view == "entropy")


@pytest.mark.parametrize("keys", [OTHERS[i : i + 10] for i in range(0, len(OTHERS), 10)], ids=lambda k: k[0])
@pytest.mark.parametrize("causal", [False, True])
def test_every_variant_has_its_curve_or_its_reason(keys, causal):
    at = open_entropy(variants=chosen("softmax", *keys), causal=causal, h_scales=[])
    drawn, refused = points(at), " ".join(c.value for c in at.caption)
    for variant in map(ac.variant, keys):
        left_out = causal and variant.causal_reason is not None
        assert any(name.startswith(variant.title) for name in drawn) != left_out
        assert (f"{variant.title} cannot be causal" in refused) == left_out


@pytest.mark.parametrize(("positions", "slopes"), [("rope", None), ("alibi", (2**-4, 2**-8))])
def test_entropy_uses_the_chosen_positions(positions, slopes):
    at = open_entropy(heads=2, h_longest=64, causal=True, positions=positions, variants=chosen("softmax"), h_scales=[])
    q, k, _v = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=64, heads=2)).tensors
    if slopes is None:
        weights = list(ac.get("softmax").weights(rotary(q), rotary(k), causal=True))
    else:
        weights = [ac.get("alibi", slope=m).weights(q[h], k[h], causal=True) for h, m in enumerate(slopes)]
    expected = np.median([float(ac.metrics.entropy(each).mean()) for each in weights])
    assert points(at)["Softmax"][64] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("view", ["entropy", "normalizer", "distance", "factor"])
def test_variants_can_be_chosen_in_views_of_variants(view):
    at = open_entropy(h_view=view, variants=chosen("softmax"))
    labels = [block.proto.popover.label for block in at.main.get("popover")]
    assert ("Add or remove" in labels) == (view == "entropy")


def test_all_columns_of_the_table_are_shown_on_request():
    [table] = open_entropy(h_columns=1).dataframe
    assert list(table.proto.column_order) == list(table.value)


def test_the_reason_for_measuring_only_a_part_of_the_tokens_is_given():
    reason = "Only the first 256 tokens are measured, to save computing time."
    assert reason in spoken(open_entropy(h_view="factor", n=257), "caption")
    assert reason not in spoken(open_entropy(h_view="factor", n=256), "caption")


def test_curves_bands_and_table_equal_the_library():
    at = open_entropy(variants=chosen("softmax", "topk"))
    drawn, n = points(at), 128
    for key, name in (("softmax", "Softmax"), ("topk", "Top-k · k 8")):
        assert set(drawn[name]) == {16, 23, 32, 45, 64, 91, 128}
        assert drawn[name][n] == pytest.approx(np.median(head_entropies(key, n)), abs=1e-5)
    scaled = head_entropies("softmax_log_n", n, base_length=512)
    assert drawn["Softmax, log n scaling"][n] == pytest.approx(np.median(scaled), abs=1e-5)
    assert drawn["equal weights on all keys"][n] == pytest.approx(math.log(n))
    edges = numbers(bands(at)[0]["y"])
    quartiles = np.quantile(head_entropies("softmax", n), (0.75, 0.25))
    assert edges[6:8] == pytest.approx(quartiles, abs=1e-5)  # the upper edge ends where the lower edge starts backwards
    table = at.dataframe[0].value.set_index("variant")
    assert table.loc["Softmax", "entropy H, n = 128 (nats)"] == pytest.approx(drawn["Softmax"][n])
    x, y = zip(*drawn["Softmax"].items(), strict=True)
    assert table.loc["Softmax", "slope of entropy against log n"] == pytest.approx(
        np.polyfit(np.log(x), y, 1)[0], abs=1e-6
    )
    assert table.loc["Softmax", "R² of the slope"] == pytest.approx(np.corrcoef(np.log(x), y)[0, 1] ** 2, abs=1e-6)


@pytest.mark.parametrize(("measure", "found"), [("normalised", True), ("sparsity", True), ("entropy", False)])
def test_a_measure_of_at_most_one_has_an_axis_up_to_one(measure, found):
    [figure] = charts(open_entropy(variants=chosen("softmax"), h_measure=measure, sharpness=0.0))
    assert (figure["layout"]["yaxis"]["range"][1] == MAX_SHARE) == found


def test_row_sums_and_sparsity_are_offered():
    at = open_entropy(variants=chosen("softmax", "sigmoid"), h_measure="sparsity")
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=128, heads=3, seed=0))
    A = ac.get("softmax").weights(qkv.q, qkv.k)
    sparse = ac.metrics.sparsity(A).mean(-1).median()
    assert points(at)["Softmax"][128] == pytest.approx(float(sparse), abs=1e-5)
    assert set(points(at)["equal weights on all keys"].values()) == {1.0}
    table = at.dataframe[0].value.set_index("variant")
    assert table.loc["Softmax", "evenness S, n = 128"] == pytest.approx(float(sparse), abs=1e-5)
    assert table.loc["Softmax", "row sums"] == "1"
    low, high = (float(each) for each in table.loc["Sigmoid", "row sums"].split(" … "))
    assert 0 < low < high


def test_bands_include_seeds():
    two = open_entropy(variants=chosen("softmax"), h_seeds=2, h_line="mean")
    both = np.concatenate([head_entropies("softmax", 128, seed=seed) for seed in (0, 1)])
    assert points(two)["Softmax"][128] == pytest.approx(both.mean(), abs=1e-5)


def test_only_the_selected_head_is_drawn():
    at = open_entropy(variants=chosen("softmax"), h_heads="one", head=2)
    assert points(at)["Softmax"][128] == pytest.approx(head_entropies("softmax", 128)[2], abs=1e-5)


def test_entropies_are_shown_in_bits_or_as_shares_of_log_n():
    nats = points(open_entropy(variants=chosen("softmax")))["Softmax"]
    bits = points(open_entropy(variants=chosen("softmax"), h_unit="bits"))["Softmax"]
    shares = points(open_entropy(variants=chosen("softmax"), h_unit="bits", h_measure="normalised"))
    for n, h in nats.items():
        assert bits[n] == pytest.approx(h / math.log(2))
        assert shares["Softmax"][n] == pytest.approx(h / math.log(n), abs=1e-5)
        assert shares["equal weights on all keys"][n] == 1
    assert "entropy H, n = 128 (bits)" in open_entropy(variants=chosen("softmax"), h_unit="bits").dataframe[0].value


def test_scalings_of_softmax_can_be_added_and_removed():
    at = open_entropy(variants=chosen("softmax"), h_scales=["temperature", "unscaled"], h_temperature=4.0)
    drawn = points(at)
    assert set(drawn) == {"Softmax", "Softmax · temperature 4", "Softmax · without 1/√d", "equal weights on all keys"}
    assert drawn["Softmax · temperature 4"][128] > drawn["Softmax"][128] > drawn["Softmax · without 1/√d"][128]
    assert "log n scaling" not in spoken(at)


def test_a_scale_that_is_already_a_variant_is_drawn_once():
    at = open_entropy(variants=chosen("softmax", "softmax_log_n"), h_scales=["log_n"])
    assert len(points(at)) == 3


def test_the_normaliser_shows_its_growth_and_its_fit():
    at = open_entropy(h_view="normalizer", h_line="mean")
    drawn = points(at)
    found = drawn["Softmax: Σ exp(x)"]
    growth = []
    for n in (16, 128):
        qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=3))
        logits = (qkv.q.double() @ qkv.k.double().mT) / math.sqrt(32)
        growth.append(logits.logsumexp(-1).mean(-1))
    assert found[16] == pytest.approx(1)
    assert found[128] == pytest.approx(float((growth[1] - growth[0]).exp().mean()), rel=1e-4)
    slope, _offset = np.polyfit(np.log(list(found)), np.log(list(found.values())), 1)
    relu2 = drawn["Squared ReLU: Σ relu(x)²"]
    relu2_slope, offset = np.polyfit(np.log(list(relu2)), np.log(list(relu2.values())), 1)
    [(name, fit)] = [each for each in drawn.items() if each[0].startswith("best fit: ")]
    assert name.startswith(f"best fit: {power(relu2_slope)}, R²")
    assert fit[64] == pytest.approx(math.exp(offset) * 64**relu2_slope)
    assert "Dashed: the power of n that fits the totals of squared ReLU best." in spoken(at, "caption")
    assert at.dataframe[0].value["exponent a of Z ∝ nᵃ"][0] == pytest.approx(slope)
    assert drawn["proportional to n"][128] == 8


def test_the_factor_changes_softmax_but_not_relu2():
    at = open_entropy(h_view="factor", h_factor=8.0)
    drawn = points(at, 0)
    assert drawn["Softmax"][8.0] < drawn["Softmax"][1.0] - 0.5
    assert set(np.round(list(drawn["Squared ReLU ÷ row sum"].values()), 5)) == {
        round(drawn["Squared ReLU ÷ row sum"][1.0], 5)
    }
    table = at.dataframe[0].value.set_index("variant")["largest change of a weight, λ = 8"].astype(float)
    assert table["Softmax"] > 0.1
    assert table["Squared ReLU ÷ row sum"] == 0
    sums = at.dataframe[0].value.set_index("variant")["row sums, λ = 8"]
    assert sums["Softmax"] == sums["Squared ReLU ÷ row sum"] == "1"
    low, high = map(float, sums["Squared ReLU ÷ n"].split(" … "))
    assert low < high
    still = drawn["Squared ReLU ÷ row sum"][1.0]
    assert (
        f"The entropy of squared ReLU stays at {still:.2f} nats, because a factor λ on all logits multiplies each term "
        "of a row by λ². If the terms are divided by the row sum, λ² cancels, and no weight changes."
    ) in spoken(at)


@pytest.mark.parametrize(
    ("state", "n"), [({"input": "text", "text": "a"}, 3), ({"input": "text", "text": "a", "model": "smollm2"}, 1)]
)
@pytest.mark.parametrize("view", ["entropy", "normalizer", "factor"])
def test_a_single_length_is_drawn_with_instructions(state, n, view):
    at = open_entropy(**state, h_view=view, variants=chosen("softmax", "local"))
    assert not at.error
    if view != "factor":
        assert "longer input" in spoken(at)
        ends = "1 token" if n == 1 else f"{n} tokens"
        ends = f"has only {ends}. A longer input shows the effect of the length more clearly:"
        assert ends in " ".join(c.value for c in at.caption)


def test_a_short_text_offers_longer_inputs():
    at = open_entropy(input="text", variants=chosen("softmax"))
    next(b for b in at.button if b.label == "A longer text").click().run()
    assert at.session_state["text"] == presets.texts()["long"]
    assert max(points(at)["Softmax"]) == 128
    assert not [b for b in at.button if b.label == "A longer text"]


def test_a_causal_model_is_measured_beyond_the_drawn_tokens(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    text = " ".join([presets.texts()["long"]] * 3)
    at = open_entropy(
        input="text",
        text=text,
        model="smollm2",
        layer=0,
        causal=True,
        variants=chosen("softmax"),
        h_longest=1024,
        h_scales=[],
    )
    assert 800 < max(points(at)["Softmax"]) <= 1024


def test_an_upload_is_measured_and_its_absence_explained():
    source = ac.inputs.UploadSource.of("mine.npz", ac.inputs.example_npz())
    at = open_entropy(input="upload", **{UPLOAD: source})
    assert max(points(at)["Softmax"]) == source.load().n
    assert any("Upload an .npz" in i.value for i in open_entropy(input="upload").info)


def test_blank_text_is_reported():
    at = open_entropy(input="text", text="  ")
    assert len(at.error) == 1


@pytest.mark.parametrize("view", ["entropy", "normalizer", "factor"])
def test_the_python_to_take_away_makes_the_same_numbers(view):
    at = open_entropy(h_view=view, variants=chosen("softmax", "local"), h_scales=[], h_line="mean", h_longest=128)
    [code] = [c.value for c in at.code if "rows = [" in c.value]
    space = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, space)
    rows = space["rows"]
    if view == "entropy":
        values = [r.entropy for r in rows if (r.variant, r.n) == ("local", 128)]
        assert points(at)["Local · window 16"][128] == pytest.approx(np.mean(values))
    else:
        expected = {"normalizer": ("normalizer", {"softmax", "relu2"}), "factor": ("factor", set(FACTORS))}
        name, values = expected[view]
        assert {getattr(row, name) for row in rows} == values


def test_each_length_up_to_the_limit_is_offered_once():
    """Check that a synthetic sequence can be as long as the largest length of all."""
    at = open_entropy(variants=chosen("softmax"), h_scales=[])
    offered = next(box.options for box in at.selectbox if box.label == "Longest length n")
    most = current().sweep_tokens
    assert offered == [*(str(2**i) for i in range(7, most.bit_length() - 1)), f"{most} (all)"]


def test_links_carry_the_options_and_invalid_values_are_rejected():
    refused = {"h_view": "drift", "h_scales": "nothing", "h_base": "7", "h_longest": "999999999", "h_factor": "nan"}
    at = visit("entropy", refused | {"h_unit": "bits"})
    state = at.session_state
    assert (state["h_unit"], state["h_base"], state["h_longest"], state["h_factor"]) == ("bits", 512, 2048, 4.0)
    assert (state["h_view"], state["h_scales"]) == ("entropy", ["log_n"])
    assert "For `h_view`, the page uses “entropy” instead of “drift”" in at.warning[0].value


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_causal_uniform_attention_averages_visible_keys(unit):
    at = open_entropy(variants=chosen("softmax"), causal=True, h_unit=unit, h_scales=[])
    log = math.log if unit == "nats" else math.log2
    for n, height in points(at)["equal weights on all keys up to the query"].items():
        assert height == pytest.approx(sum(log(i + 1) for i in range(int(n))) / n)
    y = list(points(at)["Softmax"].values())
    few, many = (number(math.e ** y[i] if unit == "nats" else 2 ** y[i]) for i in (0, -1))
    assert re.search(f"attention spreads over {few} effective keys at \\d+ tokens and {many} at ", spoken(at))


def test_variants_without_causal_form_are_explained_and_long_texts_have_no_buttons():
    at = open_entropy(variants=chosen("softmax", "linformer"), causal=True)
    reason = ac.variant("linformer").causal_reason
    assert any(
        c.value == refusal_text(f"{ac.variant('linformer').title} cannot be causal: {reason}") for c in at.caption
    )
    assert not [b for b in at.button if b.label == "A longer text"]


@pytest.mark.parametrize(
    ("scales", "label"),
    [
        ([], "Other softmax scalings"),
        (["log_n"], "Log n scaling"),
        (["log_n", "unscaled"], "Log n scaling and Without 1/√d"),
    ],
)
def test_a_chip_names_the_scalings(scales, label):
    at = open_entropy(variants=chosen("softmax"), h_scales=scales)
    [chip] = [each for each in at.main.get("popover") if each.proto.popover.label == label]
    assert chip.proto.popover.icon == ":material/tune:"


@pytest.mark.parametrize("line", ["median", "mean"])
def test_effective_keys_are_exponentials_of_the_entropies_of_the_lines_and_bands(line):
    state = {"variants": chosen("softmax"), "h_base": 64, "h_line": line, "h_unit": "bits"}
    entropies, keys = (open_entropy(h_measure=measure, **state) for measure in ("entropy", "keys"))
    for name, drawn in points(entropies).items():
        assert list(points(keys)[name].values()) == pytest.approx([2**bits for bits in drawn.values()])
    for before, after in zip(bands(entropies), bands(keys), strict=True):
        assert numbers(after["y"]) == pytest.approx([2**bits for bits in numbers(before["y"])])
    assert points(keys)["equal weights on all keys"][128] == pytest.approx(128)
    assert charts(keys)[0]["layout"]["yaxis"]["type"] == "log"
    scaled = points(keys)["Softmax, log n scaling"].values()
    low, high = range_texts(min(scaled), max(scaled))
    assert f"With log n scaling, the number of effective keys grows only from {low} to {high}." in spoken(keys)
    count, share = keys_and_share(points(keys)["Softmax, log n scaling"][128], 128, causal=False)
    table = keys.dataframe[0].value
    assert table["effective keys as a share of all keys, n = 128"].iloc[-1] == share
    assert table["effective keys, n = 128"].iloc[-1] == count


def test_the_sentence_uses_the_chosen_factor():
    at = open_entropy(h_view="factor", h_factor=2.0, h_unit="bits")
    drawn = points(at, 0)
    softmax = drawn["Softmax"]
    keys = [number(2 ** softmax[factor]) for factor in (1.0, 2.0)]
    assert (
        f"**Multiplying all logits by λ = 2 sharpens softmax from {keys[0]} to {keys[1]} effective keys. The spread "
        f"of squared ReLU stays the same.** The entropy of softmax changes from {softmax[1.0]:.2f} to "
        f"{softmax[2.0]:.2f} bits. The entropy of squared ReLU stays at "
        f"{drawn['Squared ReLU ÷ row sum'][2.0]:.2f} bits, because"
    ) in spoken(at)


def test_squared_relus_growth_is_judged_by_its_own_line():
    at = open_entropy(h_view="normalizer")
    line = points(at)["Squared ReLU: Σ relu(x)²"]
    slope = np.polyfit(np.log(list(line)), np.log(list(line.values())), 1)[0]
    assert f"The totals of squared ReLU grow approximately as {power(slope)}." in spoken(at)
    table = at.dataframe[0].value.set_index("variant and sum Z")
    assert table["exponent a of Z ∝ nᵃ"].iloc[1] == pytest.approx(slope)
    for n in (16, 128):
        qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=3))
        logits = (qkv.q.double() @ qkv.k.double().mT) / math.sqrt(32)
        middle = logits.logsumexp(-1).mean(-1).median().exp()
        assert float(table[f"Z({n})"].iloc[0]) == pytest.approx(float(middle), rel=5e-3)
