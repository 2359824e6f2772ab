"""Tests of rules: verdicts, and the margin to the threshold that decides, on each side of the threshold."""

import pytest

from attention_core import claims
from attention_core.claims import Verdict
from attention_core.claims.rule import Condition, Measured, Rule, all_of, any_of, parts

HOLDS, PARTLY, FAILS = Verdict.HOLDS, Verdict.PARTLY, Verdict.FAILS
PERFECT = {"difference": 0.0, "times": 2.0, "growth": 1.0}
SLOW = {"local": 2.0, "sparse": 2.0, "atrous": 0.5, "masked": 2.0, "local_here": 2.0, "sparse_here": 2.0}
STEADY = {"squared": 0.0, "scaled": 0.0, "scaled_beyond": 0.0, "plain": 1.0, "plain_beyond": 1.0}
NEAR = {"mass": 90.0, "even": 10.0, "error": 1.0, "mass_rest": 90.0, "even_rest": 10.0, "error_rest": 1.0}
SPREAD = {"softmax": 0.5, "linear": 0.9, "hedgehog": 0.9, "cosformer": 0.9, "less": 99.0}


@pytest.mark.parametrize(
    ("key", "numbers", "quantity", "threshold", "below", "above"),
    [
        ("landmark_inverse", {"exact_wins": 100.0}, "iterated_wins", 75, (74, PARTLY), (76, HOLDS)),
        ("nystrom_all_landmarks", {}, "error", 1e-6, (9e-7, HOLDS), (2e-6, PARTLY)),
        ("nystrom_all_landmarks", {}, "error", 1e-2, None, (2e-2, FAILS)),
        ("nystrom_beats_performer", {"nystrom": 0.1, "uniform": 1.0}, "wins", 75, (74, PARTLY), (76, HOLDS)),
        ("nystrom_beats_performer", {"nystrom": 0.1, "uniform": 1.0}, "wins", 50, (49, FAILS), None),
        ("nystrom_beats_performer", {"wins": 100.0, "uniform": 2.0}, "nystrom", 1.8, (1.7, HOLDS), (1.9, PARTLY)),
        ("nystrom_deterministic", {"nystrom": 0.0}, "performer", 1, (0.9, PARTLY), (1.1, HOLDS)),
        ("nystrom_deterministic", {"performer": 50.0}, "nystrom", 1e-4, (9e-5, HOLDS), (2e-4, FAILS)),
        ("pooling_leaks", {"leaking": 6.0, "pooled": 6.0, "moved": 0.0}, "left", 6, (5, PARTLY), None),
        ("segment_means", {"ratio": 1.0, "segments": 0.1, "uniform": 1.0}, "most", 1.1, (1.09, HOLDS), (1.2, PARTLY)),
        ("segment_means", {"most": 2.0, "segments": 0.1, "uniform": 1.0}, "ratio", 1.1, None, (1.2, FAILS)),
        ("linformer_rank", {"error": 0.1, "floor": 0.5}, "exponent", 0.15, (0.14, HOLDS), None),
        ("linformer_rank", {"error": 0.9, "exponent": 0.9}, "floor", 0.1, (0.09, PARTLY), (0.2, FAILS)),
        ("six_iterations", {"error": 0.5, "later": 0.1}, "residual", 0.1, (0.09, HOLDS), None),
        ("six_iterations", {"residual": 0.9, "later": 0.05}, "error", 0.1, None, (0.11, FAILS)),
        ("six_iterations", {"residual": 0.9, "error": 0.4}, "later", 0.38, (0.37, FAILS), None),
        ("cosine_closest", {"cosine": 0.1, "uniform": 1.0}, "heads", 50, (49, PARTLY), (51, HOLDS)),
        ("cosine_closest", {"cosine": 0.1, "uniform": 1.0}, "heads", 17, (16, FAILS), None),
        ("cosine_closest", {"heads": 100.0, "uniform": 1.0}, "cosine", 1, (0.9, HOLDS), (1.1, FAILS)),
        ("double_softmax", {"off": 1e-9}, "used", 1e-4, (9e-5, HOLDS), (2e-4, PARTLY)),
        ("drowning", {"softmax_fall": 0.0, "kept": 10.0}, "fall", 0.8, (0.79, PARTLY), (0.81, HOLDS)),
        ("drowning", {"softmax_fall": 0.7, "kept": 10.0}, "fall", 0.95, (0.94, PARTLY), (0.96, HOLDS)),
        ("drowning", {"softmax_fall": 0.0, "fall": 2.0}, "kept", 50, (49, HOLDS), (51, PARTLY)),
        ("linear_cost", {"memory": 0.5, "saved": 9.0}, "work", 1.05, (1.04, HOLDS), (1.06, FAILS)),
        ("linear_cost", {"memory": 0.5, "work": 0.5}, "saved", 1, (0.99, PARTLY), (1.01, HOLDS)),
        ("linear_sparsity", SPREAD, "less", 90, (89, PARTLY), (91, HOLDS)),
        ("linear_sparsity", SPREAD, "hedgehog", 0.5, (0.49, PARTLY), (0.51, HOLDS)),
        ("running_sums", PERFECT, "growth", 1.2, (1.19, HOLDS), (1.21, PARTLY)),
        ("running_sums", PERFECT, "growth", 0.8, (0.79, PARTLY), (0.81, HOLDS)),
        ("running_sums", PERFECT, "times", 1, (0.99, FAILS), (1.01, HOLDS)),
        ("three_algorithms", {"difference": 0.0, "below": 9.0}, "above", 1, (0.99, HOLDS), (1.01, PARTLY)),
        ("delta_unstable", {"within": 0.1}, "beyond", 1, (0.99, PARTLY), (1.01, HOLDS)),
        ("inverse_within_one", {}, "unit", 1, (0.99, HOLDS), (1.01, FAILS)),
        ("path_deltanet", {}, "same", 1e-6, (9e-7, HOLDS), (2e-6, FAILS)),
        ("softmax_delta_rule", {"closer": 100.0}, "near", 75, (74, PARTLY), (76, HOLDS)),
        ("centred_keys", {"own": 1.0, "exponential": 9.0}, "closer", 75, (74, PARTLY), (76, HOLDS)),
        ("centred_keys", {"closer": 100.0, "exponential": 9.0}, "own", 9, (8.9, HOLDS), (9.1, PARTLY)),
        ("log_n_scale", STEADY, "scaled", 0.1, (0.09, HOLDS), (0.11, PARTLY)),
        ("log_n_scale", STEADY, "scaled_beyond", -0.1, (-0.11, PARTLY), (-0.09, HOLDS)),
        ("log_n_scale", STEADY | {"scaled_beyond": 0.3}, "scaled", 0.67, None, (0.68, FAILS)),
        ("log_n_scale", STEADY, "squared", 0.001, (0.0009, HOLDS), (0.0011, FAILS)),
        ("memory_quadruples", {}, "factor", 4.1, (4.09, HOLDS), (4.11, PARTLY)),
        ("memory_quadruples", {}, "factor", 3.5, (3.49, FAILS), None),
        ("relu2_normaliser", {"slower": 0.0}, "exponent", 0.9, (0.89, HOLDS), (0.91, FAILS)),
        ("relu2_normaliser", {"exponent": 9.0}, "slower", 25, (24, FAILS), None),
        ("near_diagonal", NEAR, "error", 25, (24, HOLDS), (26, PARTLY)),
        ("near_diagonal", NEAR, "mass_rest", 20, (19, PARTLY), (21, HOLDS)),
        ("second_order_blocks", {"loses": 1.0}, "wins", 75, (74, PARTLY), (76, HOLDS)),
        ("second_order_blocks", {"loses": 50.0}, "wins", 50, (49, FAILS), None),
        ("sparse_costs", {"local": 0.5}, "saving", 3.8, (3.79, PARTLY), (3.81, HOLDS)),
        ("sparse_costs", {"saving": 4.0}, "local", 1.2, (1.19, HOLDS), (1.21, PARTLY)),
        ("sparse_time", SLOW, "atrous", 1, (0.99, HOLDS), (1.01, PARTLY)),
        ("sparse_time", SLOW, "masked", 1 / 1.1, (0.9, PARTLY), (0.92, HOLDS)),
        (
            "sparse_time",
            SLOW | {"local": 0.5, "sparse": 0.5, "sparse_here": 0.5},
            "local_here",
            1.1,
            (1.09, FAILS),
            None,
        ),
        ("two_layers", {}, "two", 100, (99, PARTLY), (100, HOLDS)),
        ("two_layers", {}, "two", 90, (89, FAILS), None),
        ("error_predicts_copying", {}, "rho", 0.9, (0.89, PARTLY), (0.91, HOLDS)),
        ("error_predicts_perplexity", {}, "rho", 0.6, (0.59, FAILS), None),
        ("four_sinks", {"window": 9.0, "four": 0.5}, "gain", 5, (4.9, HOLDS), (5.1, PARTLY)),
        ("four_sinks", {"window": 9.0, "gain": 0.0}, "four", 1.1, (1.09, HOLDS), (1.11, PARTLY)),
        ("four_sinks", {"four": 0.5, "gain": 0.0}, "window", 1.5, (1.4, FAILS), (1.6, HOLDS)),
        ("one_layer", {"lost": 1.0}, "worst", 1.1, (1.09, HOLDS), (1.11, PARTLY)),
        ("sharpest_logits", {"keepers": 4.0, "others": 5.0, "spared": 0.0}, "alive", 4, (3, PARTLY), (4, HOLDS)),
        ("sharpest_logits", {"keepers": 4.0, "others": 5.0, "spared": 0.0}, "alive", 2, (2, FAILS), None),
        ("mean_output", {}, "heads", 95, (94, PARTLY), (95, HOLDS)),
        ("mean_output", {}, "heads", 50, (49, FAILS), None),
        ("square_window", {}, "better", 4, (3, PARTLY), (4, HOLDS)),
    ],
)
def test_the_verdict_changes_at_a_threshold(key, numbers, quantity, threshold, below, above):
    claim = claims.claim(key)
    for value, verdict in filter(None, (below, above)):
        measured = {**numbers, quantity: value}
        margins = [each.margin(measured, claim.bounds) for each in claim.verdict if each.quantity == quantity]
        assert claim.verdict(measured, claim.bounds) is verdict
        assert (value, pytest.approx(threshold)) in [(margin.value, margin.threshold) for margin in margins]


def test_every_claim_has_a_threshold_in_the_table_and_names_its_quantities():
    [table] = (mark.args[1] for mark in test_the_verdict_changes_at_a_threshold.pytestmark)
    missing = {claim.key for claim in claims.all_claims()} - {row[0] for row in table}
    assert not missing, f"add rows for {missing} to the table of test_the_verdict_changes_at_a_threshold"
    for claim in claims.all_claims():
        conditions = list(claim.verdict)
        assert {condition.quantity for condition in conditions} <= {each.name for each in claim.quantities}
        bounds = {each.threshold for each in conditions if isinstance(each.threshold, str)}
        assert bounds <= set(claim.bounds)


A, B = Condition("a", "<=", "most"), Condition("b", "<=", "most")


@pytest.mark.parametrize(
    ("rule", "a", "b", "verdict"),
    [
        (parts(A, B), 1, 8, HOLDS),
        (parts(A, B), 9, 11, PARTLY),
        (parts(A, B), 9.5, 11, PARTLY),
        (parts(A, B), 12, 11, FAILS),
        (Rule(holds=all_of(A, B)), 30, 9.9, FAILS),
        (Rule(holds=all_of(A, B)), 30, 20, FAILS),
        (Rule(holds=A, partly=B), 30, 9, PARTLY),
        (Rule(holds=A, partly=B), 30, 20, FAILS),
        (Rule(holds=A, partly=B), 1, 10, HOLDS),
        (Rule(holds=all_of(A, Condition("a", "<=", 5.0)), partly=B), 30, 9, PARTLY),
        (Rule(requires=A, holds=B), 9, 1, HOLDS),
        (Rule(requires=A, holds=B), 9.5, 11, PARTLY),
        (Rule(requires=A, holds=B), 20, 11, FAILS),
        (Rule(requires=A, holds=B, partly=Condition("b", "<=", 20.0)), 1, 30, FAILS),
        (Rule(holds=any_of(A, B)), 1, 20, HOLDS),
        (Rule(holds=any_of(A, B)), 11, 20, FAILS),
    ],
)
def test_a_rule_combines_conditions(rule, a, b, verdict):
    measured, bounds = {"a": a, "b": b}, {"most": 10}
    assert rule(measured, bounds) is verdict


@pytest.mark.parametrize(
    ("condition", "met", "unmet"),
    [
        (Condition("a", "<=", "most"), (9, 10), (11,)),
        (Condition("a", "<", "most"), (9,), (10, 11)),
        (Condition("a", ">=", "most"), (10, 11), (9,)),
        (Condition("a", ">", "most"), (11,), (9, 10)),
        (Condition("a", "<=", "most", tolerance=1.0), (10, 11), (11.5,)),
        (Condition("a", ">=", "most", tolerance=1.0), (9, 10), (8.5,)),
        (Condition("a", ">", "most", tolerance=-1.0), (11.5,), (10, 11)),
        (Condition("a", "<=", 2.0, around="most"), (8, 10, 12), (7.9, 12.1)),
        (Condition("a", "<=", Measured("b")), (3,), (3.1,)),
        (Condition("a", "<=", Measured("b", "most")), (30,), (30.1,)),
    ],
)
def test_a_condition_holds_on_one_side_of_its_threshold_only(condition, met, unmet):
    bounds = {"most": 10}
    assert all(condition.holds({"a": a, "b": 3}, bounds) for a in met)
    assert not any(condition.holds({"a": a, "b": 3}, bounds) for a in unmet)
