"""Tests of every claim's rule: numbers with which the claim just holds, and numbers with another verdict."""

import pytest

from attention_core import claims
from attention_core.claims import Verdict

HOLDS, PARTLY, FAILS = Verdict.HOLDS, Verdict.PARTLY, Verdict.FAILS
RHO = (
    {"rho": 0.8999999999999999},
    {HOLDS: [{"rho": 0.91}], PARTLY: [{"rho": 0.89}, {"rho": 0.61}], FAILS: [{"rho": 0.59}, {"rho": -1}]},
)
# By claim: numbers with which it just holds, then by verdict the changes of these numbers that give this verdict.
CASES = {
    "centred_keys": (
        {"own": 1.0, "exponential": 2.0, "closer": 75.0},
        {PARTLY: [{"closer": 74.9}, {"own": 2.0}], FAILS: [{"own": 2.0, "closer": 74.9}]},
    ),
    "cosine_closest": (
        {"heads": 50, "duels": 50, "cosine": 0.7, "uniform": 0.8},
        {PARTLY: [{"heads": 49}, {"heads": 17.1}], FAILS: [{"heads": 17}, {"heads": 0, "duels": 90}, {"cosine": 0.8}]},
    ),
    "delta_unstable": (
        {"within": 1.0, "beyond": 1.01},
        {PARTLY: [{"within": 1.01}, {"beyond": 1.0}], FAILS: [{"within": 1.01, "beyond": 0.9}]},
    ),
    "double_softmax": ({"off": 1e-4, "used": 1e-4}, {PARTLY: [{"used": 1.01e-4}], FAILS: [{"off": 1.01e-4}]}),
    "drowning": (
        {"fall": 0.8, "softmax_fall": 0.55, "kept": 50.0},
        {
            PARTLY: [{"fall": 0.79, "softmax_fall": 0.0}, {"softmax_fall": 0.56}, {"kept": 51.0}],
            FAILS: [{"fall": 0.79, "softmax_fall": 0.0, "kept": 51.0}, {"softmax_fall": 0.56, "kept": 51.0}],
        },
    ),
    "error_predicts_copying": RHO,
    "error_predicts_perplexity": RHO,
    "four_sinks": (
        {"window": 1.6, "four": 1.09, "gain": 4.99},
        {
            HOLDS: [{"gain": -3}],
            PARTLY: [{"four": 1.11}, {"gain": 5.01}],
            FAILS: [{"four": 1.11, "gain": 5.01}, {"window": 1.4}],
        },
    ),
    "inverse_within_one": ({"unit": 1.0}, {FAILS: [{"unit": 1.0001}]}),
    "landmark_inverse": (
        {"iterated_wins": 75, "exact_wins": 75},
        {PARTLY: [{"iterated_wins": 74}, {"exact_wins": 74}], FAILS: [{"iterated_wins": 74, "exact_wins": 74}]},
    ),
    "linear_convolution": (
        {"with": 95.0, "without": 62.4},
        {PARTLY: [{"without": 62.5}], FAILS: [{"without": 95.0}, {"without": 25.0, "with": 94.9}]},
    ),
    "linear_cost": (
        {"work": 1.0, "memory": 0.8, "saved": 1.01},
        {HOLDS: [{"work": 1.05}], PARTLY: [{"saved": 1.0}], FAILS: [{"work": 1.06}, {"memory": 1.06}]},
    ),
    "linear_pairs": (
        {"linear_few": 100.0, "softmax_few": 100.0, "linear": 8, "softmax": 12, "linear_many": 80, "softmax_many": 80},
        {
            PARTLY: [{"softmax": 8, "softmax_many": 81}],
            FAILS: [{"softmax": 8}, {"linear_few": 94.9}, {"softmax_few": 94.9}],
        },
    ),
    "linear_sparsity": (
        {"softmax": 0.5, "linear": 0.9, "hedgehog": 0.8, "cosformer": 0.7, "less": 90.0},
        {PARTLY: [{"less": 89.9}, {"hedgehog": 0.5}], FAILS: [{"less": 89.9, "cosformer": 0.4}]},
    ),
    "linformer_rank": (
        {"exponent": 0.15, "error": 0.5, "floor": 0.11},
        {
            PARTLY: [{"error": 0.51, "floor": 0.1}, {"exponent": 0.16, "floor": 0.1}],
            FAILS: [{"exponent": 0.16}, {"error": 0.51}],
        },
    ),
    "log_n_scale": (
        {"plain": 0.5, "scaled": 0.1, "plain_beyond": 0.5, "scaled_beyond": -0.1, "squared": 0.001},
        {
            PARTLY: [{"scaled_beyond": 0.4}, {"scaled": 0.4}, {"scaled": 0.33, "scaled_beyond": -0.33}],
            FAILS: [
                {"squared": 0.0011},
                {"scaled": 0.33, "scaled_beyond": 0.34},
                {"scaled": 0.34, "scaled_beyond": 0.33},
                {"scaled": 0.34, "scaled_beyond": -0.34},
                {"plain": 0.0, "scaled": -0.2, "plain_beyond": 0.0, "scaled_beyond": 0.2},
            ],
        },
    ),
    "maximum_disperses": (
        {"softmax_falls": 20.0, "softmax_log_n_falls": 10.0, "sigmoid_falls": 30.0, "relu2_falls": 30.0},
        {
            PARTLY: [{"softmax_log_n_falls": 20.0}, {"sigmoid_falls": 20.0}, {"relu2_falls": 20.0}],
            FAILS: [
                {"relu2_falls": 20.0, "softmax_log_n_falls": 20.0},
                {"softmax_falls": 5.0, "softmax_log_n_falls": 1.0},
            ],
        },
    ),
    "mean_output": ({"heads": 95}, {PARTLY: [{"heads": 94}, {"heads": 50}], FAILS: [{"heads": 49}]}),
    "memory_quadruples": (
        {"factor": 4.09},
        {
            HOLDS: [{"factor": 3.91}],
            PARTLY: [{"factor": 4.2}, {"factor": 3.51}],
            FAILS: [{"factor": 4.6}, {"factor": 3.4}],
        },
    ),
    "near_diagonal": (
        {"even": 12, "mass": 24, "error": 25, "even_rest": 12, "mass_rest": 24, "error_rest": 25},
        {
            PARTLY: [
                {"mass": 23.9},
                {"error": 25.1},
                {"mass_rest": 23.9},
                {"error_rest": 25.1},
                {"mass": 23.9, "error": 25.1, "mass_rest": 23.9},
            ],
            FAILS: [{"mass": 23.9, "error": 25.1, "mass_rest": 23.9, "error_rest": 25.1}],
        },
    ),
    "negative_eigenvalues": (
        {"strong": 100.0, "weak": 50.0, "softmax": 50.0, "longer": 95.0},
        {
            PARTLY: [{"weak": 75.0}, {"softmax": 75.0}, {"longer": 94.9}],
            FAILS: [{"strong": 94.9}, {"weak": 75.0, "softmax": 75.0}],
        },
    ),
    "nystrom_all_landmarks": (
        {"error": 1e-6},
        {PARTLY: [{"error": 1.1e-6}, {"error": 0.01}], FAILS: [{"error": 0.011}]},
    ),
    "nystrom_beats_performer": (
        {"wins": 75, "nystrom": 0.9, "uniform": 1.0},
        {PARTLY: [{"wins": 74}, {"nystrom": 0.91}], FAILS: [{"wins": 49}]},
    ),
    "nystrom_deterministic": (
        {"performer": 1.0, "nystrom": 1e-4},
        {PARTLY: [{"performer": 0.99}], FAILS: [{"nystrom": 2e-4}]},
    ),
    "one_layer": (
        {"worst": 1.09, "lost": 9},
        {PARTLY: [{"worst": 1.11}, {"lost": 11}], FAILS: [{"worst": 1.11, "lost": 11}]},
    ),
    "path_deltanet": ({"same": 1e-6}, {FAILS: [{"same": 1.1e-6}]}),
    "pooling_leaks": (
        {"pooled": 6, "leaking": 6, "left": 6, "moved": 0},
        {PARTLY: [{"moved": 1}, {"left": 5}, {"left": 0}, {"leaking": 5}, {"leaking": 3}], FAILS: [{"leaking": 2}]},
    ),
    "relu2_longer": (
        {"softmax_short": 100.0, "relu2_short": 100.0, "lead": 5.0},
        {PARTLY: [{"lead": 4.9}], FAILS: [{"lead": 0.0}, {"relu2_short": 94.9}, {"softmax_short": 94.9}]},
    ),
    "relu2_normaliser": (
        {"slower": 60, "exponent": 0.9},
        {PARTLY: [{"slower": 40, "exponent": 0.91}], FAILS: [{"slower": 24.9, "exponent": 0.91}]},
    ),
    "running_sums": (
        {"difference": 1e-6, "times": 1.1, "growth": 0.81},
        {
            HOLDS: [{"growth": 1.2}],
            PARTLY: [{"growth": 0.79}, {"growth": 1.21}],
            FAILS: [{"times": 1.0}, {"difference": 1.1e-6}],
        },
    ),
    "second_order_blocks": (
        {"wins": 75, "loses": 25},
        {PARTLY: [{"wins": 74, "loses": 20}], FAILS: [{"wins": 30, "loses": 30}, {"wins": 10, "loses": 60}]},
    ),
    "segment_means": (
        {"ratio": 1.1, "most": 1.1, "segments": 0.9, "uniform": 1.0},
        {PARTLY: [{"most": 1.11}, {"segments": 0.91}], FAILS: [{"ratio": 1.11, "most": 1.2}]},
    ),
    "sharpest_logits": (
        {"keepers": 4, "others": 5, "alive": 4, "spared": 0},
        {PARTLY: [{"alive": 3}, {"spared": 2}], FAILS: [{"alive": 2}, {"spared": 3}]},
    ),
    "short_window": (
        {"wide": 95.0, "short": 62.4},
        {PARTLY: [{"short": 62.5}], FAILS: [{"short": 95.0}, {"short": 25.0, "wide": 94.9}]},
    ),
    "six_iterations": (
        {"residual": 0.1, "error": 0.4, "later": 0.379},
        {
            PARTLY: [
                {"residual": 0.11, "error": 0.1},
                {"residual": 0.11, "later": 0.381},
                {"residual": 0.11, "later": 0.9},
            ],
            FAILS: [{"residual": 0.11}],
        },
    ),
    "softmax_delta_rule": (
        {"near": 75, "closer": 75},
        {PARTLY: [{"near": 74}, {"closer": 74}], FAILS: [{"near": 74, "closer": 74}]},
    ),
    "sparse_costs": (
        {"saving": 3.81, "local": 1.2},
        {PARTLY: [{"saving": 3.79}, {"saving": 4.19, "local": 1.21}], FAILS: [{"saving": 4.21, "local": 1.21}]},
    ),
    "sparse_time": (
        {"local": 1.11, "sparse": 1.11, "atrous": 0.99, "masked": 0.91, "local_here": 1.1, "sparse_here": 1.1},
        {
            PARTLY: [
                {"atrous": 1.0},
                {"masked": 0.9},
                {"local": 1.1},
                {"sparse": 1.1},
                {"local": 1.1, "sparse": 1.1, "local_here": 1.11},
                {"local": 1.1, "sparse": 1.1, "sparse_here": 1.11},
            ],
            FAILS: [{"local": 1.1, "sparse": 1.1}],
        },
    ),
    "square_window": ({"better": 4}, {PARTLY: [{"better": 3}, {"better": 1}], FAILS: [{"better": 0}]}),
    "three_algorithms": (
        {"difference": 1e-4, "below": 1.0, "above": 0.99},
        {PARTLY: [{"below": 0.99}, {"above": 1.0}], FAILS: [{"difference": 1.1e-4}]},
    ),
    "two_layers": ({"two": 100}, {PARTLY: [{"two": 99.9}, {"two": 90}], FAILS: [{"two": 89.9}]}),
    "two_layers_recall": (
        {"one": 62.4, "two": 95.0},
        {PARTLY: [{"one": 62.5}], FAILS: [{"one": 95.0}, {"one": 25.0, "two": 94.9}]},
    ),
}


@pytest.mark.parametrize("key", claims.discover())
def test_numbers_around_the_thresholds_give_the_expected_verdicts(key):
    claim, (numbers, changes_by_verdict) = claims.claim(key), CASES[key]
    assert claim.verdict(numbers, claim.bounds) is HOLDS
    for verdict, changes in changes_by_verdict.items():
        for changed in changes:
            assert claim.verdict({**numbers, **changed}, claim.bounds) is verdict, changed
