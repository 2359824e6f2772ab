"""The stories of Performer, linear, efficient and expectation-maximisation attention, and of squared ReLU."""

import json
import math
import re

import driver
import mpmath
import numpy as np
import pytest
import torch
from driver import curves, set_state, spoken

import attention_core as ac
from app.inside.more_features import what_to_expect
from app.inside.stories.performer import in_the_mean, mean_formula
from attention_core.experiments import performer_error
from attention_core.writing import number

SIZE = {"n": 24, "heads": 2, "d": 8}
LAST = {"performer": 5, "linear": 6, "relu2": 8, "efficient": 4, "emanet": 6}
"""Steps of each story."""
TURNED = [
    ac.get("performer", kind="trig", row_norms="chi", orthogonal=False),
    ac.get("performer", kind="relu", features=3),
    ac.get("performer", kind="hyperbolic", features=100, row_norms="fixed"),
    ac.get("performer", kind="trig", row_norms="fixed"),
    ac.get("linear", feature_map="exp"),
    ac.get("linear", feature_map="relu"),
    ac.get("linear", feature_map="softmax"),
    ac.get("relu2", normalizer="sum"),
    ac.get("relu2", normalizer="fixed"),
    ac.get("relu2", normalizer="squared"),
    ac.get("emanet", iterations=1, bases=1),
    ac.get("emanet", iterations=9, bases=40, sharpness=20.0),
]


def open_page(attention, step=1, *, again=None, **state):
    given = {"input": "synthetic", "head": 1, "causal": False, **SIZE, **state, "inside": attention, "step": step}
    return set_state(again, **given) if again else driver.open_page("inside", **given)


def head(**changes):
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(**{**SIZE, **changes}))
    return qkv.q[1].double(), qkv.k[1].double(), qkv.v[1].double()


def said(at, pattern):
    """The numbers that a sentence names."""
    [found] = re.findall(pattern, spoken(at).replace("−", "-"))
    return tuple(float(x.rstrip("%.").replace(",", "")) for x in (found if isinstance(found, tuple) else (found,)))


@pytest.mark.parametrize("key", list(LAST))
@pytest.mark.parametrize("causal", [False, True])
def test_every_step_opens(key, causal):
    at = None
    for step in range(1, LAST[key] + 1):
        at = open_page(ac.get(key), step, again=at, causal=causal)
        assert not at.exception
        assert not at.error
        assert at.session_state["step"] == step
        assert at.get("plotly_chart") or at.get("bidi_component") or at.dataframe
    assert f"{LAST[key]} · Beside softmax" in str(next(s for s in at.get("button_group") if "step" in s.proto.id).proto)


@pytest.mark.parametrize("attention", TURNED, ids=lambda a: a.word)
def test_every_step_opens_with_its_knobs_turned(attention):
    at = None
    for step in range(1, LAST[attention.key] + 1):
        at = open_page(attention, step, again=at, causal=attention.variant.causal_reason is None)
        assert not at.exception
        assert not at.error
        assert "nan" not in spoken(at)


@pytest.mark.parametrize("key", list(LAST))
@pytest.mark.parametrize("n", [1, 2])
def test_a_token_or_two_can_be_taken_apart(key, n):
    at = None
    for step in range(1, LAST[key] + 1):
        at = open_page(ac.get(key), step, again=at, n=n)
        assert not at.exception
        assert "nan" not in spoken(at)


@pytest.mark.parametrize("key", list(LAST))
def test_the_last_step_tells_the_errors_of_the_core(key):
    q, k, _ = head()
    own, full = ac.get(key).weights(q, k), ac.get("softmax").weights(q, k)
    at = open_page(ac.get(key), LAST[key])
    off, zero = said(
        at, r"is off by ([\d.]+)% from softmax's, where looking everywhere alike would be off by ([\d.]+)%"
    )
    assert off == pytest.approx(100 * float((own - full).norm() / full.norm()), abs=0.51)
    assert zero == pytest.approx(100 * float((1 / 24 - full).norm() / full.norm()), abs=0.51)
    if key == "relu2":
        assert "of a row's mass" not in spoken(at)
    else:
        [wrong] = said(at, r"puts ([\d.]+)% of a row's mass")
        assert wrong == pytest.approx(100 * float((own - full).abs().sum(-1).mean() / 2), abs=0.51)


@pytest.mark.parametrize("row_norms", ["chi", "fixed"])
def test_orthogonal_directions_are_told_from_independent_ones(row_norms):
    at = open_page(ac.get("performer", row_norms=row_norms), 1)
    straight, free = said(at, r"is ([\d.]+) if they are made orthogonal, ([\d.]+) if chance decides")
    assert straight == 0
    # The mean |cosine| of two random directions in eight dimensions is Γ(4) / (√π Γ(4.5)).
    assert free == pytest.approx(math.gamma(4) / (math.pi**0.5 * math.gamma(4.5)), rel=0.25)
    [low, high, root] = said(at, r"lie between ([\d.]+) and ([\d.]+); √d is ([\d.]+)\.")
    assert root == 2.8
    assert (low == high == root) if row_norms == "fixed" else (low < 2.3 < 3.3 < high)
    assert ("mathcal{N}" in at.latex[0].value) == (row_norms == "chi")
    drawn = curves(at)
    assert np.allclose(drawn["fixed"][1], 8**0.5)
    assert drawn["chi"][1] == sorted(drawn["chi"][1])
    assert drawn["chi"][1][0] < 2.3 < 3.3 < drawn["chi"][1][-1]


def test_a_single_feature_bears_the_whole_row():
    [bearing, features] = said(open_page(ac.get("performer", features=1), 2), r"rests on ([\d.]+) of its (\d+) feat")
    assert (bearing, features) == (1, 1)


def test_the_estimate_is_drawn_against_the_truth():
    at = open_page(ac.get("performer", features=32), 3)
    q, k, _ = head()
    kernel = (q @ k.mT / 8**0.5).exp()
    kernel = (kernel / kernel.amax(-1, keepdim=True)).flatten().sort().values
    x, y = curves(at)["this draw"]
    assert len(x) == 24 * 24
    assert x == pytest.approx(kernel.tolist(), rel=1e-4)
    [near, middle] = said(at, r"([\d.]+)% of the similarities.*median estimate is (\S+) of the truth")
    ratio = np.array(y) / np.array(x)
    assert near == pytest.approx(100 * ((ratio > 0.5) & (ratio < 2)).mean(), abs=0.51)
    assert middle == pytest.approx(np.median(ratio), rel=0.06)
    sizes = ((q[:, None] + k[None]).square().sum(-1) / 8**0.5).flatten()
    [size, needed] = said(at, r"‖² = (\d+), .* only from about \$10\^\{(\d+)\}")
    assert size == pytest.approx(float(sizes.quantile(0.5)), abs=0.51)
    assert needed == pytest.approx(float(sizes.quantile(0.5)) / math.log(10) + 2, abs=0.51)


def test_bias_and_chance_are_shown_apart():
    q, k, _ = head()
    size = torch.cdist(q, -k).square().flatten() / 8**0.5
    for norms, biased in (("chi", False), ("fixed", True)):
        at = open_page(ac.get("performer", row_norms=norms), 3)
        drawn = curves(at)
        [over_all] = [name for name in drawn if name.startswith("mean over all draws")]
        [over_some] = [name for name in drawn if name.startswith("mean of 100 draws")]
        x, y = map(np.array, drawn[over_all])
        found = float(np.median(y / x))
        assert over_all == f"mean over all draws: {number(found)} of the truth"
        with mpmath.workdps(30):
            middle = mpmath.mpf(float(size.quantile(0.5)))
            truth = float(mpmath.hyp0f1(4, 2 * middle) * mpmath.exp(-middle / 2))
        assert found == pytest.approx(truth if biased else 1, rel=0.02)
        many = float(np.median(np.array(drawn[over_some][1]) / np.array(drawn[over_some][0])))
        assert over_some == f"mean of 100 draws: {number(many)} of the truth"
        assert ("there is no bias" in spoken(at)) != biased
        assert (f"the mean over all draws is {number(found)} of the truth at the median pair" in spoken(at)) == biased
        assert f"the mean of 100 draws is {number(many)} of it" in spoken(at)
        assert ("0F_1" in at.latex[0].value) == biased


@pytest.mark.parametrize("kind", ["positive", "hyperbolic", "trig", "relu"])
@pytest.mark.parametrize("row_norms", ["chi", "fixed"])
def test_what_is_said_of_the_mean_holds_for_each_setting(kind, row_norms):
    words = in_the_mean(kind=kind, row_norms=row_norms, expected=0.4, found=0.3, draws=7)
    biased = row_norms == "fixed" and kind != "relu"
    assert ("Directions of fixed length are biased: the mean over all draws is 0.40" in words) == biased
    assert ("there is no bias" in words) == (row_norms == "chi" and kind != "relu")
    assert ("relu's own kernel" in words) == (kind == "relu")
    assert "mean of 7 draws is 0.30 of it" in words
    endless = in_the_mean(kind=kind, row_norms=row_norms, expected=math.nan, found=0.3, draws=7)
    assert ("beyond what a number can hold" in endless) == biased
    formula = mean_formula(kind, row_norms)
    assert ("0F_1" in formula) == biased
    assert (r"\operatorname{Var}" in formula) == (row_norms == "chi" and kind != "relu")
    assert ("x - y" in formula) == (kind == "trig")
    assert (r"\theta" in formula) == (kind == "relu")


def test_what_theory_promises_depends_on_the_lengths():
    chi, fixed = (what_to_expect(10.0, 8, row_norms=norms) for norms in ("chi", "fixed"))
    assert "err by $e^{5.0}$ / √m" in chi
    assert "it is $e^{1.2}$ / √m" in chi  # √(e^2.5 - 1)
    assert "carry it" in chi
    assert "carry it" not in what_to_expect(5.0, 8, row_norms="chi")
    with mpmath.workdps(30):
        missed = [float(1 - mpmath.hyp0f1(4, 2 * s) * mpmath.exp(-s / 2)) for s in (mpmath.mpf(10), mpmath.mpf("2.5"))]
    assert f"miss {missed[0]:.0%} of the truth in the mean" in fixed
    assert f"they miss {missed[1]:.0%}." in fixed


@pytest.mark.parametrize("kind", ["positive", "hyperbolic", "trig"])
def test_the_spread_in_the_formula_is_the_features(kind):
    """Var / mean² of one independent direction, as the third step writes it."""
    x, y = torch.tensor([[0.3, -0.2]]).double(), torch.tensor([[0.5, 0.1]]).double()
    square = float((x - y if kind == "trig" else x + y).square().sum())
    found = []
    for seed in range(4000):
        params = ac.get("performer", kind=kind, features=1, orthogonal=False, seed=seed).params
        inside = ac.variant("performer").anatomy(x * 2**0.25, y * 2**0.25, y, params, causal=False)
        found.append(float(inside["estimate"]))
    assert np.mean(found) == pytest.approx(1, abs=4.5 * np.std(found) / 4000**0.5)
    expected = math.exp(square) - 1 if kind == "positive" else math.cosh(square) - 1
    assert np.var(found) == pytest.approx(expected, rel=0.25)


def test_the_features_that_theory_asks_for_are_enough():
    """‖x + y‖² is the logarithm of a positive feature's relative variance, as the third step says."""
    x, y = torch.tensor([[0.3, -0.2]]).double(), torch.tensor([[0.5, 0.1]]).double()
    size = float((x + y).square().sum())
    attention, found = ac.get("performer", features=1, orthogonal=False, row_norms="chi"), []
    for seed in range(4000):
        params = ac.get("performer", features=1, orthogonal=False, row_norms="chi", seed=seed).params
        inside = attention.variant.anatomy(x * 2**0.25, y * 2**0.25, y, params, causal=False)
        found.append(float(inside["estimate"]))
    assert np.var(found) == pytest.approx(math.exp(size) - 1, rel=0.2)


def test_the_error_over_the_features_is_the_cores():
    at = open_page(ac.get("performer", kind="relu"), 4)
    drawn = curves(at)
    assert set(drawn) == {
        "1/√m",
        *(f"{kind}, {way}" for kind in ("positive", "hyperbolic", "trig") for way in ("orthogonal", "independent")),
        "relu, orthogonal",
    }
    source = ac.inputs.SyntheticSource(ac.inputs.SyntheticSpec(**SIZE))
    task = performer_error.tasks(source, head=1, ways=[("positive", False)])[3]  # lengths as they are by default
    wanted = np.median([row["kernel"] for row in performer_error.run(task)])
    x, y = drawn["positive, independent"]
    assert y[x.index(task.features)] == pytest.approx(wanted)
    assert drawn["1/√m"][1][0] / drawn["1/√m"][1][-1] == pytest.approx((1024 / 8) ** 0.5)
    [start, end] = said(at, r"error falls from (\S+) to (\S+), as m")
    positive = drawn["positive, orthogonal"][1]
    assert (start, end) == (pytest.approx(positive[0], rel=0.06), pytest.approx(positive[-1], rel=0.06))


def test_small_logits_keep_the_promise():
    at = open_page(ac.get("performer", row_norms="chi"), 4)
    [here] = said(at, r"as m to the power (-[\d.]+) where")
    next(g for g in at.get("button_group") if g.proto.id.endswith(".factor")).set_value(0.05).run()
    assert not at.exception
    [small] = said(at, r"as m to the power (-[\d.]+) where")
    assert -0.65 < small < -0.35
    assert small < here


def test_feature_maps_are_drawn_and_the_chosen_one_stands_out():
    at = open_page(ac.get("linear", feature_map="relu"), 1)
    figure = json.loads(at.get("plotly_chart")[-1].proto.spec)
    dashes = {
        t["name"]: t["line"]["dash"]
        for t in figure["data"]
        if t.get("name") in {"elu+1", "relu", "exp"} or "softmax" in t.get("name", "")
    }
    assert dashes == {"elu+1": "dot", "relu": "solid", "softmax × 8, others 0": "dot", "exp": "dot"}
    x, y = curves(at)["elu+1"]
    assert y == pytest.approx([a + 1 if a > 0 else math.exp(a) for a in x])
    q, k, _ = head()
    [share] = said(at, r"([\d.]+)% of the entries of queries and keys are negative")
    assert share == pytest.approx(100 * float((torch.stack([q, k]) < 0).double().mean()), abs=0.51)
    middle = torch.stack([q, k]).quantile(torch.tensor([0.25, 0.75]).double()).tolist()
    assert curves(at)["middle half of the entries"][0] == pytest.approx(middle)
    assert said(at, r"lies between (\S+) and (\S+) \(shaded\)") == pytest.approx(middle, abs=0.051)


@pytest.mark.parametrize("causal", [False, True])
def test_the_kernel_is_drawn_beside_the_exponential(causal):
    at = open_page(ac.get("linear"), 3, causal=causal)
    q, k, _ = head()
    allowed = torch.ones(24, 24, dtype=torch.bool).tril() if causal else torch.ones(24, 24, dtype=torch.bool)
    own, full = (ac.get(key).weights(q, k, causal=causal)[allowed] for key in ("linear", "softmax"))
    x, y = curves(at)["pairs of tokens"]
    assert x == pytest.approx(full.sort().values.tolist(), rel=1e-4)
    [middle] = said(at, r"median pair gets (\S+) times")
    assert middle == pytest.approx(float((own / full).quantile(0.5)), rel=0.06)
    assert sorted(y) == pytest.approx(own.sort().values.tolist(), rel=1e-4)


@pytest.mark.parametrize("n", [3, 24])
def test_the_cheaper_order_is_counted(n):
    at = open_page(ac.get("linear"), 4, n=n)
    own, exact, cheaper = said(at, r"tokens ([\d,]+) multiply-adds instead of ([\d,]+)\. .* from n = (\d+) on")
    # Softmax: 2 n² d. Linear: φ(k)ᵀv and φ(q) times it, n d² each, and the normaliser, n d.
    assert exact == 2 * n * n * 8
    assert own == 2 * n * 64 + n * 8
    assert cheaper == 9
    assert (own <= exact) == (n >= cheaper)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("feature_map", ["elu+1", "exp"])
def test_a_query_reads_its_output_from_the_sum(feature_map, causal):
    attention = ac.get("linear", feature_map=feature_map)
    q, k, v = head()
    outputs = attention.attend(q, k, v, causal=causal)
    at = open_page(attention, 4, causal=causal)
    for query in (23, 5):
        at.selectbox(key="inside.linear.4.query").set_value(query).run()
        assert curves(at)["φ(q)ᵀ S / φ(q)ᵀ z"][1] == pytest.approx(outputs[query].tolist(), rel=1e-4, abs=1e-6)
    if feature_map == "elu+1":
        sums = (torch.nn.functional.elu(k[: 6 if causal else None]) + 1).sum(0)
        assert curves(at, -2)["z = Σ φ(k)"][1] == pytest.approx(sums.tolist(), rel=1e-4)
        assert curves(at, -3)["φ(q)"][1] == pytest.approx((torch.nn.functional.elu(q[5]) + 1).tolist(), rel=1e-4)


def test_the_normaliser_is_one_product_per_query():
    at = open_page(ac.get("linear"), 5)
    q, k, _ = head()
    z = (torch.nn.functional.elu(q) + 1) @ (torch.nn.functional.elu(k) + 1).sum(0)
    assert curves(at)["normaliser"][1] == pytest.approx(z.tolist(), rel=1e-4)
    assert "up to the factor" not in spoken(at)
    assert "up to the factor" in spoken(open_page(ac.get("linear", feature_map="exp"), 5))


@pytest.mark.parametrize("causal", [False, True])
def test_squares_and_normalisers(causal):
    q, k, _ = head()
    logits = q @ k.mT / 8**0.5
    allowed = torch.ones(24, 24, dtype=torch.bool).tril() if causal else torch.ones(24, 24, dtype=torch.bool)
    [negative] = said(open_page(ac.get("relu2"), 1, causal=causal), r"and ([\d.]+)% of them are negative")
    assert negative == pytest.approx(100 * float((logits[allowed] < 0).double().mean()), abs=0.51)
    at = open_page(ac.get("relu2"), 3, causal=causal)
    drawn = curves(at)
    sums = (logits.relu().square() * allowed).sum(-1)
    assert [z or 0 for z in drawn["row sum"][1]] == pytest.approx(sums.tolist(), rel=1e-4)
    assert drawn["length n"][1] == (list(range(1, 25)) if causal else [24] * 24)
    assert drawn["squared length n²"][1] == [n**2 for n in drawn["length n"][1]]
    assert set(drawn["fixed n₀"][1]) == {512}


def test_a_factor_moves_softmax_alone():
    at = open_page(ac.get("relu2"), 4)
    drawn = curves(at, 0)
    x, y = drawn["softmax"]
    q, k, _ = head()
    for factor in (0.25, 1.0, 8.0):
        wanted = ac.metrics.entropy(ac.get("softmax").weights(factor * q, k)).mean()
        assert y[x.index(factor)] == pytest.approx(float(wanted), abs=1e-4)
    assert np.ptp(drawn["over the row sum"][1]) < 1e-5
    [one, two] = said(at, r"largest weight, (\S+), becomes (\S+) when all logits double")
    squares = (q @ k.mT / 8**0.5).relu().square()
    largest = float(squares.max() / 24)
    assert (one, two) == (pytest.approx(largest, rel=0.01), pytest.approx(4 * largest, rel=0.01))
    x, y = (tops := curves(at, 1))["over the length"]
    assert y == pytest.approx([largest * factor**2 for factor in x], rel=1e-4)
    steady = float((squares / squares.sum(-1, keepdim=True)).max())
    assert tops["over the row sum"][1] == pytest.approx([steady] * len(x), rel=1e-4)
    wanted = [float(ac.get("softmax").weights(factor * q, k).max()) for factor in x]
    assert tops["softmax"][1] == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(("sharpness", "rare"), [(0.2, False), (4.0, True)])
def test_a_root_mean_square_is_told_from_a_typical_draw(sharpness, rare):
    q, k, _ = head(sharpness=sharpness)
    sizes = ((q[:, None] + k[None]).square().sum(-1) / 8**0.5).flatten()
    assert (float(sizes.median()) > math.log(1024)) == rare
    at = None
    for step in (3, 4):
        at = open_page(ac.get("performer", features=8), step, again=at, sharpness=sharpness)
        assert "root mean square" in spoken(at)
        assert "misses the rare directions" in spoken(at) or not rare
    assert ("misses the rare directions" in spoken(at)) == rare
    ends = curves(at)["positive, orthogonal"][1]
    assert ("far too small" in spoken(at)) == rare == (ends[-1] > 0.8)
    # The curves of both kinds may coincide: the last one drawn lets the other through.
    figure = json.loads(at.get("plotly_chart")[-1].proto.spec)
    named = [t for t in figure["data"] if "name" in t]
    [positive] = [t for t in named if t["name"] == "positive, orthogonal"]
    assert positive["line"]["dash"] != "solid"
    assert named.index(positive) > max(i for i, t in enumerate(named) if t["name"].startswith("hyperbolic"))
    assert "where −0.5 was promised" in spoken(at)


@pytest.mark.parametrize(
    ("value", "digits", "words"),
    [
        (521.3, 2, "521"),
        (0.00021, 2, "2.1\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻⁴"),
        (-0.5, 1, "−0.5"),
        (0, 2, "0"),
        (9.99e9, 2, "1\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10¹⁰"),
        (2.5e307, 2, "2.5\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10³⁰⁷"),
        (math.inf, 2, "∞"),
        (math.nan, 2, "–"),
    ],
)
def test_numbers_are_written_as_in_a_text(value, digits, words):
    assert number(value, digits) == words


def test_a_features_map_and_sums_without_a_division():
    at = open_page(ac.get("efficient"), 1)
    q, k, _ = head()
    gather = k.softmax(0).mT
    wide = (-(gather * gather.log()).sum(-1)).exp()
    sharpest = int(wide.argmin())
    assert curves(at)[f"feature {sharpest}"][1] == pytest.approx(gather[sharpest].tolist(), rel=1e-4)
    next(s for s in at.selectbox if s.key.endswith(".feature")).set_value(0).run()
    assert curves(at)["feature 0"][1] == pytest.approx(gather[0].tolist(), rel=1e-4)
    drawn = curves(open_page(ac.get("efficient"), 3))
    assert drawn["sum of its row, as a query"][1] == pytest.approx([1] * 24, abs=1e-5)
    assert drawn["sum of its column, as a key"][1] == pytest.approx((q.softmax(-1) @ gather).sum(0).tolist(), rel=1e-4)


def test_efficient_says_what_its_causal_form_loses():
    lost = ac.variant("efficient").note
    told = [m.value for m in open_page(ac.get("efficient"), 3, causal=True).markdown]
    assert any(words.startswith("No row is further from one than") and lost in words for words in told)
    assert "Its rank is at most" not in spoken(open_page(ac.get("efficient"), 4, causal=True))
    assert "No row was divided by anything" in spoken(open_page(ac.get("efficient"), 3))
    assert "Its rank is at most C = 8" in spoken(open_page(ac.get("efficient"), 4))


def test_bases_hold_tokens():
    attention = ac.get("emanet", bases=5, iterations=4, sharpness=6.0)
    q, k, v = head()
    z = attention.variant.anatomy(q, k, v, attention.params, causal=False)["responsibilities"]
    table = open_page(attention, 3).dataframe[0].value.set_index("basis")
    assert table["tokens held"].sum() == pytest.approx(24)
    assert table["tokens held"].to_dict() == pytest.approx(dict(enumerate(z[-1].sum(0).tolist())), rel=1e-4)
    first, last = said(open_page(attention, 2), r"responsibility goes from ([\d.]+)% to ([\d.]+)%")
    largest = 100 * z.amax(-1).mean(-1)
    assert (first, last) == (pytest.approx(float(largest[0]), abs=0.51), pytest.approx(float(largest[-1]), abs=0.51))
    moved = (z.argmax(-1).diff(dim=0) != 0).double().mean(-1)
    second, final = said(open_page(attention, 1), r"; ([\d.]+)% of the tokens changed .*, ([\d.]+)% in the last")
    assert (second, final) == (
        pytest.approx(100 * float(moved[0]), abs=0.51),
        pytest.approx(100 * float(moved[-1]), abs=0.51),
    )


def test_emanet_stays_whole_while_causal_is_on():
    at = open_page(ac.get("emanet"), 5, causal=True)
    assert not at.exception
    assert any("cannot be causal" in c.value for c in at.caption)
    assert "24 × 16 times 16 × 24" in spoken(at)


def test_tokens_in_sentences_are_shown_as_they_are_written():
    at = open_page(ac.get("efficient"), 1, input="text", text="**a** $x$ **b** $y$", head=0)
    assert not at.exception
    assert not re.search(r"“[*$]”", spoken(at))
