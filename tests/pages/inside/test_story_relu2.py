"""Tests of squared ReLU's story: its normalizers, the factor that cancels, and the gated unit behind it."""

import dataclasses

import numpy as np
import pytest
import torch
from driver import board, curves, spoken
from stories import figures, head, open_step, said, seen, source

import attention_core as ac
from attention_core.analysis.state.gau import UnitAnalysis, analyse_unit, block_price, unit_price
from pages.inside.stories import relu2
from pages.inside.stories.relu2 import gate_sentence, matrix_sentence, price_sentence


@pytest.mark.parametrize("causal", [False, True])
def test_squares_and_normalisers(causal):
    q, k, _ = head()
    logits = q @ k.mT / 8**0.5
    allowed = torch.ones(24, 24, dtype=torch.bool).tril() if causal else torch.ones(24, 24, dtype=torch.bool)
    [negative] = said(open_step(ac.get("relu2"), 1, causal=causal), r"and ([\d.]+)% of them are negative")
    assert negative == pytest.approx(100 * float((logits[allowed] < 0).double().mean()), abs=0.51)
    at = open_step(ac.get("relu2"), 3, causal=causal)
    drawn = curves(at)
    sums = (logits.relu().square() * allowed).sum(-1)
    assert [z or 0 for z in drawn["row sum"][1]] == pytest.approx(sums.tolist(), rel=1e-4)
    assert drawn["length n"][1] == (list(range(1, 25)) if causal else [24] * 24)
    assert drawn["squared length n²"][1] == [n**2 for n in drawn["length n"][1]]
    assert set(drawn["fixed n₀"][1]) == {512}


def test_a_factor_moves_softmax_alone():
    at = open_step(ac.get("relu2"), 4)
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
    [low, high] = figures(spoken(at, "caption"), r"Over the length a row sums to (\S+) … (\S+) at these factors")
    totals = squares.sum(-1) / 24
    assert low == pytest.approx(float(totals.min()) / 16, rel=0.06)
    assert high == pytest.approx(float(totals.max()) * 64, rel=0.06)
    x, y = (tops := curves(at, 1))["over the length"]
    assert y == pytest.approx([largest * factor**2 for factor in x], rel=1e-4)
    steady = float((squares / squares.sum(-1, keepdim=True)).max())
    assert tops["over the row sum"][1] == pytest.approx([steady] * len(x), rel=1e-4)
    wanted = [float(ac.get("softmax").weights(factor * q, k).max()) for factor in x]
    assert tops["softmax"][1] == pytest.approx(wanted, rel=1e-4)


RELU2 = ac.get("relu2")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("normalizer", ["length", "sum"])
def test_one_matrix_stands_beside_the_heads(normalizer, causal):
    attention = ac.get("relu2", normalizer=normalizer)
    at = open_step(attention, 5, causal=causal)
    qkv, found = source().load(), analyse_unit(source().load(), attention, causal=causal)
    shown = list(board(at, "inside.relu2.5")[1].values())
    q, k, _ = head()
    wanted = [found.weights, attention.weights(q, k, causal=causal).numpy(), *found.heads]
    assert len(shown) == len(wanted) == 2 + qkv.heads
    for (_panel, values), matrix in zip(shown, wanted, strict=True):
        expected = np.where(np.tri(24) > 0, matrix, np.nan) if causal else matrix
        np.testing.assert_allclose(values, expected, rtol=2e-3, atol=1e-3 * np.nanmax(abs(expected)))
    assert "untrained" in spoken(at)
    [apart] = said(at, r"([\d.]+)% of a row's mass")
    assert apart == pytest.approx(100 * found.apart, abs=0.51)
    formula = at.latex[0].value
    assert ("{n_i}" in formula) == (normalizer == "length")


def test_the_gate_is_drawn_and_a_channel_has_its_own_matrix():
    at = open_step(RELU2, 6)
    found = analyse_unit(source().load(), RELU2, causal=False)
    [(gate, values)] = board(at, "inside.relu2.6.gate")[1].values()
    np.testing.assert_allclose(values, found.gate, rtol=2e-3, atol=1e-3)
    assert (gate["rows"], gate["cols"]) == (24, 2 * source().load().heads * 8)
    at.select_slider(key="inside.relu2.6.channel").set_value(11).run()
    (_, shared), (_, own) = board(at, "inside.relu2.6.own")[1].values()
    np.testing.assert_allclose(shared, found.weights, rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(own, np.diag(found.gate[:, 11]) @ found.weights, rtol=4e-3, atol=1e-3)
    [away] = said(at, r"lies ([\d.]+)% of its length away")
    assert away == pytest.approx(100 * found.distance, abs=0.51)


def test_the_price_is_drawn_for_both():
    at = open_step(RELU2, 7)
    width, heads = 8 * source().load().heads, source().load().heads
    x, y = curves(at, 0)["two gated units"]
    assert y == [2 * unit_price(n, width).multiply_adds for n in x]
    x, y = curves(at, 1)["attention and feed-forward"]
    assert y == [heads * n * n for n in x]


def test_the_formula_on_screen_is_the_price():
    n, width = 100, 384
    s = 128
    assert block_price(n, width, 12).multiply_adds == 12 * width**2 * n + 2 * width * n**2
    assert unit_price(n, width).multiply_adds == (6 * width**2 + width * s) * n + (2 * width + s) * n**2


def test_one_head_and_many_are_told_apart():
    assert "one head, so softmax has a single matrix too" in matrix_sentence(1, 16, 0.0)
    many = matrix_sentence(12, 768, 0.314)
    assert "all its 768 channels share one matrix" in many
    assert "each of the 12 heads: 31% of a row's mass" in many
    assert "single matrix" not in many


def test_what_the_gate_does_is_said_as_it_is():
    plain = UnitAnalysis(
        weights=np.eye(2),
        gate=np.array([[0.05, -0.2], [2.0, -0.01]]),
        mixed=np.ones((2, 2)),
        heads=np.eye(2)[None],
        apart=0.0,
        distance=0.42,
    )
    told = gate_sentence(plain)
    assert "50% of these untrained gates are all but shut (between −0.1 and 0.1), 50% are negative" in told
    assert "the widest is 2." in told
    assert "lies 42% of its length away from every multiple of A V." in told
    assert "They only scale" in gate_sentence(dataclasses.replace(plain, distance=0.004))
    nothing = gate_sentence(dataclasses.replace(plain, distance=None))
    assert "Nothing comes through" in nothing
    assert "multiple" not in nothing


def test_prices_in_words():
    told = price_sentence(56, 384, 12)
    d, s = 384, 128
    # 12 D² + 2 D s + 8 s divided by 12 D².
    assert "have 1.06× as many parameters" in told
    here, far = (
        2 * (n * (6 * d * d + d * s) + n * n * (2 * d + s)) / (n * 12 * d * d + 2 * n * n * d) for n in (56, 32_768)
    )
    assert f"on 56 tokens they take {here:.2f}× as many multiply-adds" in told
    assert f"at 32,768 tokens {far:.2f}×" in told
    assert 1 < here < 1.2 < 2 < far
    assert "hold 6,272 numbers, the layer's 37,632" in told


def test_the_first_steps_count_what_is_negative_and_what_is_kept():
    logits = np.full((24, 24), -1.0)
    logits[:, :6], logits[0] = 2.0, -3.0
    squares = np.maximum(logits, 0) ** 2
    given = seen(RELU2, parts={"logits": logits, "squares": squares})
    first, second, *_ = relu2.steps(given)
    assert first.sentence.startswith("The logits run from −3 to 2, and 76% of them are negative")
    assert second.sentence == (
        "76% of the entries are exactly zero: the median query keeps 6 of 24 keys, and 1 query keeps none. Softmax "
        "never gives a zero."
    )


@pytest.mark.parametrize(("normalizer", "name"), [("length", "length n"), ("sum", "row sum"), ("fixed", "fixed n₀")])
def test_the_divisor_in_use_is_named_with_what_rows_sum_to(normalizer, name):
    given = seen(ac.get("relu2", normalizer=normalizer))
    steps = relu2.steps(given)
    total = np.median(given.weights.sum(-1))
    assert steps[2].sentence.endswith(f"divided by the {name}, so that the median row sums to {total:.2g}.")
    low, high = given.weights.sum(-1).min(), given.weights.sum(-1).max()
    assert steps[-1].sentence.endswith(f"A row sums to {low:.2g} … {high:.2g}; softmax's to 1.")


def test_one_query_without_keys_is_told_from_several():
    one, none = (relu2.zeros_sentence(0.5, np.array(kept)) for kept in ([0, 2, 2], [1, 2, 2]))
    assert "keeps 2 of 3 keys, and 1 query keeps none." in one
    assert "keeps 2 of 3 keys, and 0 queries keep none." in none
