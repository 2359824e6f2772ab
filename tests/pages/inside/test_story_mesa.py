"""Tests that the sentences of Mesa's story agree with its numbers."""

import numpy as np
import pytest
import torch
from driver import board
from stories import head, open_step, said, seen

import attention_core as ac
from pages.inside.stories import mesa
from pages.inside.stories.mesa import found_sentence, solved_sentence


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def solved(ridge, *, causal):
    """Return queries, keys, and each query solved by least squares over the visible keys, one system at a time."""
    q, k, _ = map(unit, head())
    units = torch.eye(8, dtype=q.dtype)
    keys = [k[: i + 1] if causal else k for i in range(24)]
    rows = [torch.linalg.solve(so_far.mT @ so_far + ridge * units, q[i]) for i, so_far in enumerate(keys)]
    return q, k, torch.stack(rows)


@pytest.mark.parametrize("causal", [True, False])
def test_how_far_queries_turn_is_what_least_squares_makes_of_them(causal):
    q, _, found = solved(0.5, causal=causal)
    cosines = (unit(found) * q).sum(-1)
    at = open_step(ac.get("mesa", ridge=0.5), 1, causal=causal)
    told = said(at, r"is ([\d.]+) on average and ([\d.]+) at .*between ([\d.]+) and ([\d.]+)\. .*1/λ = ([\d.]+)\.")
    lengths = found.norm(dim=-1)
    np.testing.assert_allclose(told[:2], [cosines.mean(), cosines.min()], atol=0.006)
    np.testing.assert_allclose(told[2:], [lengths.min(), lengths.max(), 2.0], rtol=0.06)


@pytest.mark.parametrize("causal", [True, False])
def test_on_how_many_tokens_a_row_rests_is_counted_for_both_queries(causal):
    q, k, found = solved(1.0, causal=causal)
    seen_pairs = np.tri(24, dtype=bool) if causal else np.ones((24, 24), bool)
    linear, read = (np.where(seen_pairs, (x @ k.mT).numpy(), 0.0) for x in (q, found))

    def rests(rows):
        return (np.abs(rows).sum(-1) ** 2 / (rows**2).sum(-1)).mean()

    at = open_step(ac.get("mesa"), 2, causal=causal)
    told = said(at, r"rests on ([\d.]+) tokens on average, with the solved query on ([\d.]+)\.")
    np.testing.assert_allclose(told, [rests(linear), rests(read)], rtol=0.06)
    negative = said(at, r"([\d.]+)% of the weights by the solved query are negative, ([\d.]+)% of those by the query")
    wanted = [100 * (x[seen_pairs] < 0).mean() for x in (read, linear)]
    np.testing.assert_allclose(negative, wanted, rtol=0.06)
    for (_, drawn), matrix in zip(board(at, "inside.mesa.2")[1].values(), (linear, read), strict=True):
        np.testing.assert_allclose(drawn, np.where(seen_pairs, matrix, np.nan), atol=2e-3)


def test_rows_that_rest_on_as_many_are_said_to():
    assert "rests on 3.0 tokens on average, by the query as by the solved one" in found_sentence(3.001, 2.999, 0, 0)
    assert "rests on 5 tokens on average, with the solved query on 3." in found_sentence(5, 3, 0.25, 0.5)
    assert "50% of the weights by the solved query are negative, 25% of those by the query" in found_sentence(
        5, 3, 0.25, 0.5
    )


def test_the_query_that_turns_most_is_named():
    told = solved_sentence(np.array([0.9, 0.5, 0.7]), np.array([0.1, 0.4, 0.2]), ("a", "b", "c"), 4.0)
    assert "is 0.70 on average and 0.50 at “b”, the length between 0.10 and 0.40" in told
    assert told.endswith("1/λ = 0.25.")


@pytest.mark.parametrize("causal", [True, False])
def test_the_system_is_that_of_the_keys_it_says(causal):
    solved_query, found, _ = mesa.steps(seen(ac.get("mesa"), causal=causal))
    assert ("H_i" in solved_query.formula, "one system holds for all" in solved_query.sentence) == (causal, not causal)
    assert (r"\Gamma_{ij}" in found.formula, r"\Gamma_{nj}" in found.formula) == (causal, not causal)
