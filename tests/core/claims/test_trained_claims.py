"""Tests of the claims about trained models: their numbers and the recorded runs."""

from itertools import product
from statistics import median

import pytest
from trial import synthetic, trial

from attention_core import claims
from attention_core.claims import Verdict
from attention_core.claims.trained import linear_pairs, maximum_disperses, two_layers_recall
from attention_core.claims.trained_models import LEARNED, TrainedRow, accuracy
from attention_core.learning import recorded_runs, studies
from attention_core.limits import HOSTED

HOLDS, PARTLY = Verdict.HOLDS, Verdict.PARTLY
EVERY = claims.trained_claims()
ANY = synthetic("gaussian", n=2)


def test_trained_claims_are_numbered_after_the_claims_about_inputs():
    assert [claim.number for claim in EVERY] == list(range(len(claims.all_claims()) + 1, len(claims.discover()) + 1))
    assert {claim.key for claim in EVERY} == set(studies.STUDIES)
    assert not any(claim.is_recorded for claim in claims.all_claims())


@pytest.mark.parametrize("claim", EVERY, ids=lambda claim: claim.key)
def test_each_trained_claim_is_judged_on_its_recorded_runs(claim):
    found = trial(claim.key, ANY)
    assert found.verdict is not Verdict.UNTESTABLE
    plans = studies.STUDIES[claim.key]()
    assert found.numbers.keys() == {each.name for each in claim.quantities}
    assert {row.seed for row in found.rows} == {spec.seed for plan in plans for spec in plan.specs} == {0, 1, 2}
    assert all(0 <= row.accuracy <= 100 for row in found.rows)
    assert {each.quantity for each in claim.verdict} <= found.numbers.keys()
    texts = [text.format(**claim.formatted_numbers(found.numbers)) for text in claim.sentences(found.numbers)]
    assert all(text.endswith(".") for text in (*texts, claim.rule.format(**claim.thresholds())))


@pytest.mark.parametrize("claim", EVERY, ids=lambda claim: claim.key)
def test_a_link_to_learn_shows_each_variant_once_and_the_reference(claim):
    keys = [word.split("~")[0] for word in claim.place.variants]
    assert len(set(keys)) == len(keys)
    assert "softmax" in keys


def test_a_claim_whose_runs_are_not_recorded_is_not_judged(monkeypatch):
    monkeypatch.setattr(recorded_runs, "recorded_document", lambda task: None)
    found = trial("linear_pairs", ANY)
    assert (found.verdict, found.rows) == (Verdict.UNTESTABLE, [])
    assert found.why == "The training runs of this claim are not recorded."


def test_the_plans_of_the_runs_do_not_depend_on_the_profile(monkeypatch):
    usual = {key: study() for key, study in studies.STUDIES.items()}
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    assert {key: study() for key, study in studies.STUDIES.items()} == usual
    assert any(spec.steps > HOSTED.learn_steps for plans in usual.values() for plan in plans for spec in plan.specs)


def row(model, share, **changed):
    return TrainedRow(**{"model": model, "seed": 0, "step": 400, "length": 32, "items": 4} | changed, accuracy=share)


def test_an_accuracy_is_the_median_over_seeds_at_the_last_step():
    rows = [
        row("a", share, seed=seed, step=step)
        for step, shares in ((0, (9, 9, 9)), (25, (10, 30, 80)))
        for seed, share in enumerate(shares)
    ]
    assert accuracy(rows, "a") == 30
    assert accuracy(rows, "a", step=0) == 9


def test_learned_pairs_are_counted_up_to_the_first_accuracy_below_the_threshold():
    shares = {"linear attention": [100, LEARNED, 90, 99], "softmax": [100, 100, 100, 50]}
    rows = [
        row(model, share, items=items)
        for model, own in shares.items()
        for items, share in zip((4, 8, 12, 16), own, strict=True)
    ]
    found = linear_pairs.numbers(rows)
    assert (found["linear"], found["softmax"], found["many"]) == (8, 12, 16)
    assert (found["linear_many"], found["softmax_many"]) == (99, 50)
    none = linear_pairs.numbers([row(model, 90, items=items) for model, items in product(shares, (4, 8))])
    assert (none["linear"], none["softmax"]) == (0, 0)


def test_the_fall_in_accuracy_is_measured_from_fewest_to_most_items():
    rows = [
        row(model, share, items=n)
        for model in maximum_disperses.NAMES.values()
        for n, share in ((16, 90), (64, 20), (256, 40))
    ]
    found = maximum_disperses.numbers(rows)
    assert (found["few"], found["many"], found["sigmoid"], found["sigmoid_falls"]) == (16, 256, 90, 50)


# The recorded runs, computed from the rows without the claims.


def share(key, word, *, length=None, items=None, **model):
    """Return the median accuracy in per cent of a variant's recorded runs, at the last step or in a test."""
    found = []
    for plan in studies.STUDIES[key]():
        for each in recorded_runs.recorded_rows(plan):
            spec, row = each.spec, each.row
            if spec.model.word != word or any(getattr(spec.model, name) != value for name, value in model.items()):
                continue
            wanted = (length, spec.items if items is None else items)
            if (row.length, row.items) == wanted if each.is_test else length is None and row.step == spec.steps:
                found.append(100 * row.accuracy)
    assert len(found) == 3
    return median(found)


def test_softmax_needs_two_layers_only_without_the_convolution():
    key = "two_layers_recall"
    assert share(key, "softmax", layers=2, convolution=0) >= 95
    assert share(key, "softmax", layers=1, convolution=0) < 62.5
    assert share(key, "softmax", layers=1, convolution=3) >= 95
    found = trial(key, ANY)
    assert found.verdict is HOLDS
    last = [row.accuracy for row in found.of(model=two_layers_recall.TWO, step=studies.LONG_STEPS)]
    assert len(last) == 3
    assert found.numbers["lowest"] == min(last) < 95 <= found.numbers["two"] == median(last)
    claim = claims.claim(key)
    text = claim.finding.format(**claim.formatted_numbers(found.numbers))
    assert text.endswith(
        "With two layers, 99.8% of the answers are correct (median of three runs; 24.8% in the lowest run). With one "
        "layer, the median is 25.1%; guessing one of the four values gives 25%."
    )


def test_linear_attention_needs_the_convolution():
    key = "linear_convolution"
    assert share(key, "linear", convolution=3) >= 95
    assert share(key, "linear", convolution=0) < 62.5
    found = trial(key, ANY)
    assert found.verdict is HOLDS
    assert found.numbers["lowest"] < share(key, "linear", convolution=0) < found.numbers["highest"]


def test_a_short_window_does_not_learn_recall():
    assert share("short_window", "local~window~32") >= 95
    assert share("short_window", "local~window~4") < 62.5
    assert trial("short_window", ANY).verdict is HOLDS


def test_linear_attention_falls_with_the_number_of_pairs_before_softmax():
    tests = {4: 32, 8: 32, 12: 64, 16: 64, 24: 128}  # pairs and the length that they need
    linear, softmax = (
        {pairs: share("linear_pairs", word, length=length, items=pairs) for pairs, length in tests.items()}
        for word in ("linear", "softmax")
    )
    assert min(softmax.values()) >= 95
    assert [pairs for pairs, found in linear.items() if found < 95] == [24]
    assert trial("linear_pairs", ANY).verdict is HOLDS


def test_parity_needs_write_strengths_above_one_and_then_generalizes_to_longer_sequences():
    key = "negative_eigenvalues"
    assert share(key, "deltanet~strength~2.0") >= 95
    assert share(key, "deltanet") < 75
    assert share(key, "softmax") < 75
    assert share(key, "deltanet~strength~2.0", length=256) >= 95
    assert trial(key, ANY).verdict is HOLDS


def test_squared_relu_generalizes_slightly_worse_than_softmax_to_longer_sequences():
    squared, softmax = (
        [share("relu2_longer", word, length=length) for length in (32, 256)] for word in ("relu2", "softmax")
    )
    assert min(squared[0], softmax[0]) >= 95
    assert 0 < softmax[1] - squared[1] < 5
    assert trial("relu2_longer", ANY).verdict is PARTLY


def test_maximum_retrieval_falls_least_for_log_n_softmax_and_then_softmax():
    falls = {
        word: share("maximum_disperses", word, length=17) - share("maximum_disperses", word, length=257)
        for word in studies.MAXIMUM_VARIANTS
    }
    assert sorted(falls, key=falls.get) == ["softmax_log_n", "softmax", "sigmoid", "relu2"]
    assert falls["softmax"] > 5
    assert trial("maximum_disperses", ANY).verdict is HOLDS
