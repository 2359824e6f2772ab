"""Tests of the Error page without a browser: every view and variant, its charts, sentence and numbers."""

import math
from itertools import repeat
from urllib.parse import parse_qs

import pytest
from driver import charts, chosen, links, numbers, open_page, spoken, traces, visit

import attention_core as ac
from app.state import session as visiting
from app.ui.chart import NARROW
from app.words.labels import sentence_name
from attention_core.experiments.error_cost import ROUNDS
from pages.error.sweep import MAX_REASONS

SMALL = {"input": "synthetic", "n": 24, "heads": 2}
AXES = {
    "matrix": "matrix error",
    "mass": "misplaced weight",
    "kl": "KL divergence (nats)",
    "missed": "missed top keys",
    "output": "output error",
    "turn": "direction error (1 − cosine)",
}


def open_error(**state):
    return open_page("error", **{**SMALL, "against": "budget", "fidelity": "matrix", **state})


def test_the_page_opens_with_a_line_per_variant():
    at = open_error(input="text")
    curves = traces(at)
    names = {"Linear", "Local · window", "Atrous · stride ↓", "Nyström · landmarks"}
    assert {"Equal weights on all keys"} | names <= set(curves)
    assert "Softmax" not in curves
    assert "**No setting shown that is cheaper than softmax halves the error of equal weights.**" in spoken(at)


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
@pytest.mark.parametrize("against", ["budget", "length", "cost"])
def test_every_variant_is_drawn_in_every_view(variant, against):
    at = open_error(variants=tuple(dict.fromkeys(chosen("softmax", variant.key))), against=against, n=12)
    assert not at.error
    if variant.key != "softmax":
        assert any(name.startswith(variant.title) for name in traces(at))


def test_points_link_to_matrices_next_to_softmax_on_the_same_input():
    at = open_error(variants=chosen("softmax", "local", "nystrom"), head=1, against="cost")
    word = traces(at)["Nyström"]["meta"]["links"][1]
    address = charts(at)[0]["layout"]["meta"]["link_prefix"] + word
    page, _, query = address.partition("?")
    [best] = [link for link in links(at) if link.page == "matrices" and link.label.startswith("Matrix of")]
    matrices = visit(page, parse_qs(query))
    state = matrices.session_state
    assert not matrices.warning
    assert word.startswith("nystrom~landmarks~")
    assert [attention.word for attention in state["variants"]] == ["softmax", word]
    assert (state["input"], state["n"], state["heads"], state["head"]) == ("synthetic", 24, 2, 1)
    variants = parse_qs(best.query_string)["variants"]
    assert variants[0] == "softmax"
    assert ac.from_word(variants[1]).variant.title in spoken(at)


@pytest.mark.parametrize("measure", AXES)
@pytest.mark.parametrize("log", [False, True])
def test_every_error_metric_has_an_axis_title(measure, log):
    at = open_error(fidelity=measure, log_error=log)
    axis = charts(at)[0]["layout"]["yaxis"]
    in_brackets = {"kl": "KL divergence (nats, log scale)", "turn": "direction error (1 − cosine, log scale)"}
    title = in_brackets.get(measure, f"{AXES[measure]} (log scale)") if log else AXES[measure]
    assert axis["title"]["text"].split("<br>")[0] == title
    assert axis["type"] == ("log" if log else "linear")
    assert (axis.get("tickformat") == "~%") == (measure not in ("kl", "turn"))


@pytest.mark.parametrize(("narrow", "scale"), [(False, " (log scale)"), (True, "")])
def test_the_title_of_the_costs_fits_on_a_narrow_screen(narrow, scale):
    axis = charts(open_error(against="cost", **{NARROW: narrow}))[0]["layout"]["xaxis"]
    assert axis["title"]["text"] == f"multiply-adds relative to softmax{scale}"


def test_lines_show_the_errors_of_the_library():
    at = open_error(variants=chosen("softmax", "local"), head=1)
    line = traces(at)["Local · window"]
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=24, heads=2))
    exact = ac.get("softmax").weights(qkv.q, qkv.k)[1].double()
    assert numbers(line["x"]) == [1, 2, 4, 8, 16, 24]
    for window, shown in zip(numbers(line["x"]), numbers(line["y"]), strict=True):
        own = ac.get("local", window=int(window)).weights(qkv.q, qkv.k)[1].double()
        assert shown == pytest.approx(float((own - exact).norm() / exact.norm()), abs=1e-6)


def test_lower_bounds_are_dashed_and_only_drawn_for_the_matrix_error():
    at = open_error(variants=chosen("softmax", "local", "nystrom"))
    curves = traces(at)
    for name in ("Local · window", "Nyström · landmarks"):
        floor = curves[f"{name}: lower bound"]
        assert floor["line"]["dash"] == "dash"
        assert all(f <= e + 1e-6 for f, e in zip(numbers(floor["y"]), numbers(curves[name]["y"]), strict=True))
    assert not any(
        "lower bound" in name for name in traces(open_error(variants=chosen("softmax", "local"), fidelity="output"))
    )


def test_a_logarithmic_axis_has_gaps_at_errors_of_zero():
    y = numbers(traces(open_error(variants=chosen("softmax", "local"), log_error=True))["Local · window"]["y"])
    assert y[-1] is None or math.isnan(y[-1])
    assert min(y[:-1]) > 0


def test_the_average_of_heads_has_a_band():
    at = open_error(variants=chosen("softmax", "local"), head=-1)
    figure = charts(at)[0]
    assert any(t.get("fill") == "toself" for t in figure["data"])
    assert "the median error over 2 heads, and bands show the middle half of the errors." in spoken(at)


def test_only_the_best_points_over_the_cost_have_numbers():
    at = open_error(against="cost", variants=chosen("softmax", "local", "nystrom", "atrous", "topk"))
    curves = traces(at)
    points = sorted(
        (x, y, text)
        for name in ("Local", "Nyström", "Atrous", "Top-k", "Softmax")
        for x, y, text in zip(
            numbers(curves[name]["x"]), numbers(curves[name]["y"]), curves[name].get("text") or repeat(""), strict=False
        )
    )
    numbered = [(x, y) for x, y, text in points if text]
    assert numbered
    assert not any(x <= x0 and y < y0 for x0, y0 in numbered for x, y, _text in points)
    whole = 2 * 24 * 24 * 32
    assert numbers(curves["Softmax"]["x"]) == [whole]
    axis = charts(at)[0]["layout"]["xaxis"]
    ticks = dict(zip(axis["ticktext"], axis["tickvals"], strict=True))
    assert (ticks["100%"], ticks["50%"]) == (whole, whole / 2)
    assert ticks["200%"] == pytest.approx(10 ** axis["range"][1]) == pytest.approx(2 * whole)
    assert 2 * whole < max(numbers(curves["Nyström"]["x"]))
    assert any("Arrows: lines that continue outside the chart." in c.value for c in at.caption)


def test_the_button_measures_times_and_a_new_input_discards_them():
    at = open_error(against="cost", variants=chosen("softmax", "local"), price="ms")
    assert not charts(at)
    assert "**Press “Measure times”**" in spoken(at)
    at.button(key="error.measure").click().run()
    assert min(numbers(traces(at)["Local"]["x"])) > 0
    at.session_state["n"] = 12
    at.run()
    assert not charts(at)


def test_incomplete_times_are_labelled_and_drawn_after_the_first_round():
    at = open_error(against="cost", variants=chosen("softmax", "local"), price="ms")
    at.button(key="error.measure").click().run()
    measured, points = at.session_state["error.run"], len(at.session_state["error.run"].request.words)
    rows, measured.is_complete = list(measured.rows), False
    for count, text in ((points * ROUNDS - 1, True), (points, True), (points - 1, False)):
        measured.rows = rows[:count]
        at.run()
        captions = [c.value for c in at.caption if "The times are incomplete" in c.value]
        assert captions == [f"The times are incomplete: {count // points} of {ROUNDS} rounds are measured."] * text
        assert bool(charts(at)) == text
        assert ("**Press “Measure times”**" in spoken(at)) != text
    next(b for b in at.button if b.label == "Continue").click().run()
    assert not [c for c in at.caption if "The times are incomplete" in c.value]
    assert at.session_state["error.run"].rows[: points - 1] == rows[: points - 1]
    assert len(at.session_state["error.run"].rows) == points * ROUNDS


def test_replacements_and_variants_with_another_reference_are_named():
    at = open_error(variants=chosen("softmax", "linear", "reformer", "local"))
    assert ac.get("reformer").variant.note in spoken(at)
    curves = traces(at)
    assert curves["Linear"]["line"]["dash"] == "dashdot"
    assert curves["Reformer · rounds"]["line"]["dash"] != "dashdot"
    assert "Equal weights, compared with shared-QK softmax" in curves
    headline = next(each.value for each in at.markdown if "Compared with shared-QK softmax, " in each.value)
    own, other = headline.split("\n")
    assert "halves the error of equal weights" in own
    assert "Reformer" not in own
    assert "Local" not in other


def test_variants_without_causal_form_are_explained_and_the_others_drawn():
    at = open_error(variants=chosen("softmax", "nystrom", "local"), causal=True)
    assert any("Nyström cannot be causal" in c.value for c in at.caption)
    assert not any("Nyström" in name for name in traces(at))
    assert "Local · window" in traces(at)


@pytest.mark.parametrize("against", ["budget", "length", "cost"])
@pytest.mark.parametrize("n", [1, 2])
def test_one_token_is_enough(against, n):
    at = open_error(n=n, against=against, variants=(*visiting.default_variants()[:7], ac.get("reformer")))
    assert not at.error


def test_a_page_with_only_softmax_asks_for_another_variant():
    at = open_error(variants=chosen("softmax"))
    assert "Add a variant" in spoken(at)


def test_the_sentence_names_the_best_variant_at_half_of_softmaxs_cost():
    at = open_error(n=96, heads=1, head=0, against="cost", variants=chosen("softmax", "local", "pooled"))
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=96, heads=1))
    exact, half = ac.get("softmax").weights(qkv.q, qkv.k).double(), 96 * 96 * 32
    errors = {}
    for key, knob, values in (
        ("local", "window", (1, 2, 4, 8, 16, 32, 64, 96)),
        ("pooled", "stride", (1, 2, 4, 8, 16)),
    ):
        for value in values:
            one = ac.get(key, **{knob: value})
            if one.cost(96, 32).multiply_adds <= half:
                error = float((one.weights(qkv.q, qkv.k).double() - exact).norm() / exact.norm())
                errors[sentence_name(one)] = error
    winner = min(errors, key=errors.get)
    error = f"{100 * errors[winner]:.2g}% matrix error. Equal weights have "
    assert f"{winner} has the smallest error of the settings shown: {error}" in spoken(at)


def test_the_sentence_reports_that_no_variant_is_better_than_equal_weights():
    blunt = open_error(n=96, sharpness=0.1, against="cost", variants=chosen("softmax", "local", "topk"))
    assert "no setting shown is closer to softmax than equal weights" in spoken(blunt)
    flat = open_error(n=96, sharpness=0.0, against="cost", variants=chosen("softmax", "local", "topk"))
    assert "Equal weights already equal softmax here, so no variant can be closer." in spoken(flat)
    expensive = open_error(against="cost", variants=chosen("softmax", "topk"))
    assert "needs more than half of softmax's multiply-adds" in spoken(expensive)


def test_a_variant_with_its_own_reference_has_no_best_points():
    curves = traces(
        open_error(n=96, heads=1, against="cost", variants=chosen("softmax", "reformer", "local", "atrous", "topk"))
    )
    assert not any(curves["Reformer"].get("text") or ())


def test_a_fractional_budget_is_drawn_as_a_number_of_tokens():
    line = traces(open_error(variants=chosen("softmax", "power_bert")))["PoWER-BERT · keep × n"]
    assert max(numbers(line["x"])) == 24
    assert 12 in numbers(line["x"])


def test_the_reasons_are_below_the_chart():
    at = visit("error", {})
    [shown] = [each.value for each in at.main.markdown if "**Nyström is worse with" in each.value]
    assert shown.count("- ") == MAX_REASONS
    assert [each.label for each in at.main.expander] == ["Other findings", "How to read the chart"]
    curves = traces(at)
    assert curves["Linear"]["marker"]["size"] == [sorted(curves["Nyström"]["marker"]["size"])[-1]]
    assert "is not clearly better than equal weights" in shown
