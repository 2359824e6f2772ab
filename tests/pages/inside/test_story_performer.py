"""Tests of Performer's story: directions, the estimate, and the error over the number of features."""

import math

import numpy as np
import pytest
import torch
from driver import board, charts, lines_of, spoken
from stories import data, head, open_step, said, source

import attention_core as ac
from app.figures.lines.spread import Spread
from attention_core.experiments import performer_error
from pages.inside.words.performer import (
    bias_sentence,
    error_headline,
    estimate_sentence,
    fall_sentence,
    feature_captions,
    length_name,
    mean_formula,
)


@pytest.mark.parametrize("row_norms", ["chi", "fixed"])
def test_orthogonal_and_independent_directions_are_compared(row_norms):
    at = open_step(ac.get("performer", row_norms=row_norms), 2)
    across, free = said(at, r"their mean absolute cosine is ([\d.]+) \(independent: ([\d.]+)\)\.")
    # The mean |cosine| of two random directions in eight dimensions is Γ(4) / (√π Γ(4.5)).
    assert across == pytest.approx(math.gamma(4) / (math.pi**0.5 * math.gamma(4.5)), rel=0.1)
    assert free == pytest.approx(across, rel=0.1)
    assert ("mathcal{N}" in at.latex[0].value) == (row_norms == "chi")
    drawn = lines_of(at)
    fixed, chi = (drawn[length_name(each, chosen=each == row_norms)][1] for each in ("fixed", "chi"))
    assert np.allclose(fixed, 8**0.5)
    assert chi == sorted(chi)
    assert chi[0] < 2.3 < 3.3 < chi[-1]


def test_the_chosen_lengths_are_named():
    assert length_name("chi", chosen=True) == "random (chosen)"
    assert length_name("fixed", chosen=False) == "all √d"


@pytest.mark.parametrize("orthogonal", [True, False])
def test_more_directions_than_dimensions_are_orthogonal_in_groups(orthogonal):
    at = open_step(ac.get("performer", features=20, orthogonal=orthogonal), 2)
    assert "Only directions of the same group of 8 are orthogonal." in spoken(at)
    cosines = {panel["title"]: values for panel, values in board(at, "inside.performer.2.cosines")[1].values()}
    groups = np.arange(20) // 8
    same = (groups[:, None] == groups) & ~np.eye(20, dtype=bool)
    drawn = np.abs(cosines["Orthogonal directions"])
    assert drawn[same].max() == 0
    [across, _free] = said(at, r"their mean absolute cosine is ([\d.]+) \(independent: ([\d.]+)\)\.")
    assert across == pytest.approx(drawn[groups[:, None] != groups].mean(), abs=0.0051)


@pytest.mark.parametrize(("features", "captions"), [
    (8, ["the chosen kind", ""]), (129, ["the chosen kind · first 128 of 129", "first 128 of 129"]),
])  # fmt: skip
def test_the_first_directions_are_drawn_if_there_are_many(features, captions):
    at = open_step(ac.get("performer", features=features), 2)
    panels = board(at, "inside.performer.2.cosines")[1].values()
    assert [panel["caption"] for panel, _values in panels] == captions
    assert ("In 8 dimensions, up to 8 directions can be orthogonal." in spoken(at)) == (features <= 8)


def test_a_single_direction_has_no_cosine():
    assert "There is only one direction, so there are no two directions to compare." in spoken(
        open_step(ac.get("performer", features=1), 2)
    )


def test_a_single_feature_determines_the_whole_row():
    [bearing, features] = said(open_step(ac.get("performer", features=1), 3), r"depend on ([\d.]+) of the (\d+) feat")
    assert (bearing, features) == (1, 1)


def test_the_estimate_is_drawn_against_the_truth():
    at = open_step(ac.get("performer", features=32), 1)
    q, k, _ = head()
    kernel = (q @ k.mT / 8**0.5).exp()
    kernel = (kernel / kernel.amax(-1, keepdim=True)).flatten().sort().values
    x, y = lines_of(at)["query–key pairs"]
    assert len(x) == 24 * 24
    assert x == pytest.approx(kernel.tolist(), rel=1e-4)
    [near, middle] = said(at, r"noisy: ([\d.]+)% of the estimates.*pair, the estimate is ([^\s×]+)× the true value")
    ratio = np.array(y) / np.array(x)
    assert near == pytest.approx(100 * ((ratio > 0.5) & (ratio < 2)).mean(), abs=0.51)
    assert middle == pytest.approx(np.median(ratio), rel=0.06)


@pytest.mark.parametrize("kind", ["positive", "hyperbolic", "trig"])
def test_the_estimate_of_directions_of_random_length_is_unbiased(kind):
    """Check that the mean of many estimates, each with one independent direction, is the true value."""
    x, y = torch.tensor([[0.3, -0.2]]).double(), torch.tensor([[0.5, 0.1]]).double()
    found = []
    for seed in range(4000):
        params = ac.get("performer", kind=kind, features=1, orthogonal=False, seed=seed).params
        inside = ac.variant("performer").anatomy(x * 2**0.25, y * 2**0.25, y, params, causal=False)
        found.append(float(inside["estimate"]))
    assert np.mean(found) == pytest.approx(1, abs=4.5 * np.std(found) / 4000**0.5)


def test_the_error_over_the_features_equals_the_library():
    at = open_step(ac.get("performer", kind="relu"), 4)
    drawn = lines_of(at)
    assert set(drawn) == {
        "1/√m",
        "zero everywhere: 1",
        *(f"{kind} · {way}" for kind in ("positive", "hyperbolic", "trig") for way in ("orthogonal", "independent")),
        "relu · orthogonal",
    }
    task = performer_error.tasks(source(), head=1, kinds=[("positive", False)])[3]  # default lengths
    expected = np.median([row.kernel for row in performer_error.run(task)])
    x, y = drawn["positive · independent"]
    assert y[x.index(task.params.features)] == pytest.approx(expected)
    assert drawn["1/√m"][1][0] / drawn["1/√m"][1][-1] == pytest.approx((1024 / 8) ** 0.5)
    [start, end] = said(at, r"features falls from (\S+) to (\S+?)\.\*\*")
    positive = drawn["positive · orthogonal"][1]
    assert (start, end) == (pytest.approx(positive[0], rel=0.06), pytest.approx(positive[-1], rel=0.06))


def test_small_logits_reach_the_expected_power():
    at = open_step(ac.get("performer", row_norms="chi"), 4)
    here = np.polyfit(*np.log(lines_of(at)["positive · orthogonal"]), 1)[0]
    at.button_group(key="logits").set_value(0.05).run()
    small = np.polyfit(*np.log(lines_of(at)["positive · orthogonal"]), 1)[0]
    assert -0.65 < small < -0.35
    assert small < here


@pytest.mark.parametrize(("sharpness", "rare"), [(0.2, False), (4.0, True)])
def test_estimates_that_are_far_too_small_are_explained(sharpness, rare):
    q, k, _ = head(sharpness=sharpness)
    sizes = ((q[:, None] + k[None]).square().sum(-1) / 8**0.5).flatten()
    assert (float(sizes.median()) > math.log(1024)) == rare
    at = open_step(ac.get("performer", features=8), 1, sharpness=sharpness)
    assert "a few very large estimates dominate this mean" in spoken(at) or not rare
    at = open_step(ac.get("performer", features=8), 4, again=at, sharpness=sharpness)
    ends = lines_of(at)["positive · orthogonal"][1]
    assert ("far too small" in spoken(at)) == rare == (ends[-1] > 0.8)
    # The curves of both kinds can coincide: the last one drawn is dashed, so that the other stays visible.
    figure = charts(at)[-1]
    named = [t for t in figure["data"] if "name" in t]
    [positive] = [t for t in named if t["name"] == "positive · orthogonal"]
    assert positive["line"]["dash"] != "solid"
    assert named.index(positive) > max(i for i, t in enumerate(named) if t["name"].startswith("hyperbolic"))


def spreads(**of):
    """Return the errors with 8, 16 and 32 directions, by kind of feature and whether directions are orthogonal."""
    x = (8.0, 16.0, 32.0)
    return {
        (kind, way): Spread(x=x[: len(y)], middle=y, low=y, high=y) for kind, y in of.items() for way in (True, False)
    }


NO_HELP = "On this input, more random directions do not help: from 8 to 32 directions, the error of positive features"
NEAR_ONE = (
    "On this input, estimates with positive features are no better than zero everywhere: from 8 to 32 directions, "
    "their relative error stays near 1."
)
FALLING = {"positive": (4.0, 2.0, 1.0), "hyperbolic": (2.0, 1.0, 0.5), "trig": (800.0, 400.0, 200.0)}


def test_the_fall_is_described_by_the_best_features():
    text = fall_sentence(spreads(**FALLING))
    assert text.startswith("With the largest number of random directions, **hyperbolic** features")
    assert text.endswith(
        "**hyperbolic** features have the smallest error (0.50) of all kinds of features. The error of **trig** "
        "features (sines and cosines) is 200."
    )
    rising = fall_sentence(spreads(**FALLING | {"positive": (1.0, 1.5, 2.0)}))
    assert "Rare, very large estimates carry the mean of positive features, and 32 directions miss most" in rising
    assert "Divide the logits by 20 above to see the error with small logits." in rising
    assert "Divide the logits" not in fall_sentence(spreads(**FALLING | {"positive": (1.0, 1.5, 2.0)}), divides=True)
    assert "Rare" not in text
    endless = spreads(**FALLING | {"hyperbolic": (2.0, 1.0, math.inf)})
    assert "**positive** features have the smallest error (1)" in fall_sentence(endless)


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ((4.0, 2.0, 1.0), "From 8 to 32 random directions, the error of positive features falls from 4 to 1."),
        ((1.04, 1.0, 0.94), "From 8 to 32 random directions, the error of positive features falls from 1.0 to 0.94."),
        ((0.94, 1.0, 0.94), f"{NO_HELP} stays at 0.94."),
        ((0.0301, 0.0306, 0.0312), f"{NO_HELP} goes from 0.030 to 0.031."),
        ((1.0, 1.5, 2.0), NEAR_ONE),
        ((1.04, 1.0, 0.96), NEAR_ONE),
        ((1.0, 1.5, 2.1), f"{NO_HELP} goes from 1 to 2.1."),
        ((1.0,), ""),
        ((0.0, 0.0, 0.0), "The error is zero or not defined."),
        ((1.0, 1.0, math.inf), "The error is zero or not defined."),
    ],
)
def test_the_headline_says_whether_more_directions_help(errors, words):
    assert error_headline(spreads(positive=errors)["positive", True]) == words


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({}, "**hyperbolic** features have the smallest error (0.50) of all kinds of features. The error of **trig** "
        "features (sines and cosines) is 200."),
        ({("trig", True): (0.35,)}, "**trig** features have the smallest error (0.35) of all kinds of features."),
        ({("trig", False): (0.34,), ("trig", True): (0.35,)}, "**trig** features with independent directions have the "
        "smallest error (0.34) of all kinds of features."),
        ({("hyperbolic", False): (0.4,)}, "**hyperbolic** features with independent directions have the smallest error "
        "(0.40) of all kinds of features. The error of **trig** features (sines and cosines) is 200."),
    ],
)  # fmt: skip
def test_the_best_features_are_named_with_their_directions_and_trig_once(changes, last):
    errors = spreads(**FALLING) | {form: Spread(x=(32.0,), middle=y, low=y, high=y) for form, y in changes.items()}
    assert fall_sentence(errors).endswith(f"With the largest number of random directions, {last}")


@pytest.mark.parametrize(
    ("positive", "near"),
    [((0.95, 0.95, 0.95), True), ((0.95, 0.95, 0.94), False), ((1.9, 1.0, 0.96), True), ((2.1, 1.0, 0.96), False)],
)
def test_errors_near_one_are_explained_and_have_no_exponent(positive, near):
    text = fall_sentence(spreads(**FALLING | {"positive": positive}))
    assert text.startswith("Most estimates of the exponential are far too small. Divide the logits by 20") == near


def test_the_fall_needs_errors_at_two_numbers_of_directions():
    assert fall_sentence(spreads(positive=(1.0,), trig=(1.0,))) == "Drawing directions …"
    assert fall_sentence(spreads(positive=(2.0, 1.0), trig=())) == "Drawing directions …"
    for middle in ((0.0, 0.0), (math.inf, 1.0)):
        assert fall_sentence(spreads(positive=middle, trig=(1.0, 1.0))).startswith("The error is zero or not defined")


def test_one_draw_is_described_by_its_accuracy_and_its_median():
    assert estimate_sentence(0.256, 0.0321) == (
        "Because the features are random, each estimate is noisy: 26% of the estimates are within a factor of two of "
        "the true value. For the median query–key pair, the estimate is 0.032× the true value."
    )


@pytest.mark.parametrize(
    ("kind", "row_norms", "middle", "words"),
    [
        ("positive", "chi", 0.49, "a few very large estimates dominate this mean"),
        ("positive", "chi", 0.5, "so the estimator is unbiased."),
        ("hyperbolic", "chi", 0.1, "Most estimates are therefore too small."),
        ("trig", "chi", 0.1, "so the estimator is unbiased."),
        ("relu", "fixed", 0.1, "so the estimator is unbiased."),
        ("positive", "fixed", 0.1, "If all random vectors have the same length, the estimate is biased"),
        ("trig", "fixed", 0.9, "If all random vectors have the same length, the estimate is biased"),
    ],
)
def test_bias_and_spread_explain_the_median_estimate(kind, row_norms, middle, words):
    assert words in bias_sentence(kind, row_norms, middle)
    formula = mean_formula(kind, row_norms)
    assert (r"\approx" in formula) == ("biased" in words and "unbiased" not in words)
    assert (r"\theta" in formula) == (kind == "relu")


def formula_features(x, directions, kind):
    """Return the features of queries or keys, computed by the formula that the page shows."""
    x = x / x.shape[-1] ** 0.25
    projections, half_norm, m = x @ directions.T, (x**2).sum(-1, keepdims=True) / 2, len(directions)
    return {
        "positive": lambda: np.exp(projections - half_norm) / m**0.5,
        "hyperbolic": lambda: np.exp(np.hstack([projections, -projections]) - half_norm) / (2 * m) ** 0.5,
        "trig": lambda: np.exp(half_norm) * np.hstack([np.cos(projections), np.sin(projections)]) / m**0.5,
        "relu": lambda: np.maximum(projections, 0) / m**0.5,
    }[kind]()


@pytest.mark.parametrize("kind", ["positive", "hyperbolic", "trig", "relu"])
def test_the_captions_of_the_features_say_how_they_are_scaled(kind):
    parts = data(ac.get("performer", kind=kind, features=6)).parts
    drawn = parts["query_features"], parts["key_features"]
    exact = [formula_features(x.numpy(), parts["directions"], kind) for x in head()[:2]]
    largest = exact[1].max(0)
    scaled = {
        "each column divided by its largest value": lambda x: x / largest,
        "each column multiplied by φ(k)'s largest value, then each row divided by its largest value": lambda x: (
            x * largest / (x * largest).max(-1, keepdims=True)
        ),
        "each query's features scaled to the same length": lambda x: (
            x * np.linalg.norm(drawn[0][0]) / np.linalg.norm(x, axis=-1, keepdims=True)
        ),
        "all features multiplied by the same factor": lambda x: x * np.linalg.norm(drawn[1]) / np.linalg.norm(exact[1]),
    }
    for found, features, caption in zip(drawn, exact, feature_captions(kind), strict=True):
        assert found == pytest.approx(scaled[caption](features), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("kind", ["positive", "trig", "relu"])
def test_the_panels_of_the_features_have_the_captions_of_their_kind(kind):
    panels = board(open_step(ac.get("performer", kind=kind, features=6), 3), "inside.performer.3")[1]
    assert [panel["caption"] for panel, _values in panels.values()] == [*feature_captions(kind)]


@pytest.mark.parametrize("kind", ["positive", "hyperbolic"])
def test_the_largest_feature_of_a_query_is_its_largest_contribution_to_a_weight(kind):
    at = open_step(ac.get("performer", kind=kind, features=6), 3)
    assert "The largest value in a row of φ(q) marks the feature that contributes most" in spoken(at)
    drawn = next(values for _panel, values in board(at, "inside.performer.3")[1].values())
    directions = data(ac.get("performer", kind=kind, features=6)).parts["directions"]
    q, k = (formula_features(x.numpy(), directions, kind) for x in head()[:2])
    assert drawn.argmax(-1).tolist() == (q * k.max(0)).argmax(-1).tolist()
