"""Tests of Performer's story: bias and chance, and the theoretical error over the number of features."""

import math

import mpmath
import numpy as np
import pytest
import torch
from driver import charts, curves, spoken
from stories import head, open_step, said, seen, source

import attention_core as ac
from app.figures.lines.spread import Spread
from attention_core.analysis.low_rank.performer_bias import TOKENS
from attention_core.experiments import performer_error
from attention_core.formatting import number
from pages.inside.stories import performer
from pages.inside.stories.performer import (
    estimate_sentence,
    fall_sentence,
    in_the_mean,
    mean_formula,
    price_sentence,
    rare_sentence,
    what_to_expect,
)


@pytest.mark.parametrize("row_norms", ["chi", "fixed"])
def test_orthogonal_directions_are_told_from_independent_ones(row_norms):
    at = open_step(ac.get("performer", row_norms=row_norms), 1)
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
    [bearing, features] = said(open_step(ac.get("performer", features=1), 2), r"rests on ([\d.]+) of its (\d+) feat")
    assert (bearing, features) == (1, 1)


def test_the_estimate_is_drawn_against_the_truth():
    at = open_step(ac.get("performer", features=32), 3)
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
        at = open_step(ac.get("performer", row_norms=norms), 3)
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
    """Check Var / mean² of one independent direction, as written in the third step."""
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
    """Check that ‖x + y‖² is the logarithm of a positive feature's relative variance, as the third step says."""
    x, y = torch.tensor([[0.3, -0.2]]).double(), torch.tensor([[0.5, 0.1]]).double()
    size = float((x + y).square().sum())
    attention, found = ac.get("performer", features=1, orthogonal=False, row_norms="chi"), []
    for seed in range(4000):
        params = ac.get("performer", features=1, orthogonal=False, row_norms="chi", seed=seed).params
        inside = attention.variant.anatomy(x * 2**0.25, y * 2**0.25, y, params, causal=False)
        found.append(float(inside["estimate"]))
    assert np.var(found) == pytest.approx(math.exp(size) - 1, rel=0.2)


def test_the_error_over_the_features_is_the_cores():
    at = open_step(ac.get("performer", kind="relu"), 4)
    drawn = curves(at)
    assert set(drawn) == {
        "1/√m",
        *(f"{kind}, {way}" for kind in ("positive", "hyperbolic", "trig") for way in ("orthogonal", "independent")),
        "relu, orthogonal",
    }
    task = performer_error.tasks(source(), head=1, ways=[("positive", False)])[3]  # default lengths
    wanted = np.median([row.kernel for row in performer_error.run(task)])
    x, y = drawn["positive, independent"]
    assert y[x.index(task.features)] == pytest.approx(wanted)
    assert drawn["1/√m"][1][0] / drawn["1/√m"][1][-1] == pytest.approx((1024 / 8) ** 0.5)
    [start, end] = said(at, r"error falls from (\S+) to (\S+), as m")
    positive = drawn["positive, orthogonal"][1]
    assert (start, end) == (pytest.approx(positive[0], rel=0.06), pytest.approx(positive[-1], rel=0.06))


def test_small_logits_keep_the_promise():
    at = open_step(ac.get("performer", row_norms="chi"), 4)
    [here] = said(at, r"as m to the power (-[\d.]+) where")
    at.button_group(key="logits").set_value(0.05).run()
    assert not at.exception
    [small] = said(at, r"as m to the power (-[\d.]+) where")
    assert -0.65 < small < -0.35
    assert small < here


@pytest.mark.parametrize(("sharpness", "rare"), [(0.2, False), (4.0, True)])
def test_a_root_mean_square_is_told_from_a_typical_draw(sharpness, rare):
    q, k, _ = head(sharpness=sharpness)
    sizes = ((q[:, None] + k[None]).square().sum(-1) / 8**0.5).flatten()
    assert (float(sizes.median()) > math.log(1024)) == rare
    at = None
    for step in (3, 4):
        at = open_step(ac.get("performer", features=8), step, again=at, sharpness=sharpness)
        assert "root mean square" in spoken(at)
        assert "misses the rare directions" in spoken(at) or not rare
    assert ("misses the rare directions" in spoken(at)) == rare
    ends = curves(at)["positive, orthogonal"][1]
    assert ("far too small" in spoken(at)) == rare == (ends[-1] > 0.8)
    # The curves of both kinds can coincide: the last one drawn is dashed, so that the other stays visible.
    figure = charts(at)[-1]
    named = [t for t in figure["data"] if "name" in t]
    [positive] = [t for t in named if t["name"] == "positive, orthogonal"]
    assert positive["line"]["dash"] != "solid"
    assert named.index(positive) > max(i for i, t in enumerate(named) if t["name"].startswith("hyperbolic"))
    assert "where −0.5 was promised" in spoken(at)


def spreads(**of):
    """Return medians by kind of feature, orthogonal or not, at 8, 16 and 32 directions."""
    x = (8.0, 16.0, 32.0)
    return {
        (kind, way): Spread(x=x[: len(y)], middle=y, low=y, high=y) for kind, y in of.items() for way in (True, False)
    }


FALLING = {"positive": (4.0, 2.0, 1.0), "hyperbolic": (2.0, 1.0, 0.5), "trig": (800.0, 400.0, 200.0)}


@pytest.mark.parametrize("row_norms", ["chi", "fixed"])
def test_the_fall_is_told_by_its_ends_its_power_and_the_best(row_norms):
    told = fall_sentence(spreads(**FALLING), row_norms=row_norms)
    assert "From 8 to 32 directions **positive** features' error falls from 4 to 1, as m to the power −1.0 " in told
    assert told.endswith("The least is 0.50, by **hyperbolic**; **trig** has 200.")
    assert ("where −0.5 was promised of a root mean square" in told) == (row_norms == "chi")
    assert ("where −0.5 is promised of what chance adds, not of the bias" in told) == (row_norms == "fixed")
    endless = spreads(**FALLING | {"hyperbolic": (2.0, 1.0, math.inf)})
    assert "The least is 1, by **positive**" in fall_sentence(endless, row_norms=row_norms)


@pytest.mark.parametrize(
    ("positive", "near"),
    [((0.9, 0.9, 0.81), True), ((0.9, 0.9, 0.8), False), ((1.24, 1.0, 0.9), True), ((1.25, 1.0, 0.9), False)],
)
def test_an_error_that_stays_near_one_is_all_of_the_truth(positive, near):
    told = fall_sentence(spreads(**FALLING | {"positive": positive}), row_norms="chi")
    assert (
        told.endswith("The median of 12 draws stays near 1: an estimate far too small misses nearly all of the truth.")
        == near
    )


def test_there_is_no_fall_before_two_numbers_of_directions_and_none_from_nothing():
    assert fall_sentence(spreads(positive=(1.0,), trig=(1.0,)), row_norms="chi") == "Drawing directions …"
    assert fall_sentence(spreads(positive=(2.0, 1.0), trig=()), row_norms="chi") == "Drawing directions …"
    for middle in ((0.0, 0.0), (math.inf, 1.0)):
        assert fall_sentence(spreads(positive=middle, trig=(1.0, 1.0)), row_norms="chi").startswith("Nothing falls")


@pytest.mark.parametrize(
    ("kind", "row_norms", "middle", "told"),
    [
        ("positive", "chi", 0.49, True),
        ("positive", "chi", 0.5, False),
        ("hyperbolic", "chi", 0.1, True),
        ("trig", "chi", 0.1, False),
        ("positive", "fixed", 0.1, False),
    ],
)
def test_a_typical_draw_far_below_the_mean_is_explained(kind, row_norms, middle, told):
    assert bool(rare_sentence(kind, row_norms, middle)) == told


def test_the_price_of_a_good_estimate():
    assert price_sentence("relu", 10.0) == ""
    told = price_sentence("positive", 10.0)
    assert "‖x + y‖² = 10," in told
    assert "err by 10%" in told
    assert "about $10^{6}$ of them" in told  # e^10 / 0.1² = 2.2 million
    assert "$10^{0}$" in price_sentence("trig", 1e-6)


def test_one_draw_is_told_by_its_share_near_the_truth_and_its_middle():
    assert estimate_sentence(0.256, 0.0321) == (
        "26% of the similarities are estimated within a factor of two; the median estimate is 0.032 of the truth."
    )


def test_means_of_fewer_tokens_than_there_are_say_so():
    words = [performer.steps(seen(ac.get("performer"), n=n))[2].sentence for n in (TOKENS, TOKENS + 1)]
    assert [f"Both means are of the first {TOKENS} tokens." in told for told in words] == [False, True]
