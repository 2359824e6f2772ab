"""Tests of squared ReLU's story: its normalizers, the factor that cancels, and the gated unit behind it."""

import dataclasses

import numpy as np
import pytest
import torch
from driver import board, lines_of, spoken
from stories import data, head, open_step, said, source

import attention_core as ac
from attention_core.analysis.state.gau import UnitAnalysis, analyse_unit
from pages.inside.stories import relu2
from pages.inside.stories.relu2 import gate_sentence, matrix_sentence


@pytest.mark.parametrize("causal", [False, True])
def test_the_page_shows_negative_logits_row_sums_and_normalisers(causal):
    q, k, _ = head()
    logits = q @ k.mT / 8**0.5
    allowed = torch.ones(24, 24, dtype=torch.bool).tril() if causal else torch.ones(24, 24, dtype=torch.bool)
    [negative] = said(open_step(ac.get("relu2"), 1, causal=causal), r"([\d.]+)% of the logits are negative")
    assert negative == pytest.approx(100 * float((logits[allowed] < 0).double().mean()), abs=0.51)
    at = open_step(ac.get("relu2"), 3, causal=causal)
    drawn = lines_of(at)
    sums = (logits.relu().square() * allowed).sum(-1)
    assert [z or 0 for z in drawn["row sum"][1]] == pytest.approx(sums.tolist(), rel=1e-4)
    assert drawn["number of keys n"][1] == (list(range(1, 25)) if causal else [24] * 24)
    assert drawn["squared number of keys n²"][1] == [n**2 for n in drawn["number of keys n"][1]]
    assert set(drawn["fixed number n₀"][1]) == {512}


def test_a_factor_changes_normalised_rows_of_softmax_only():
    at = open_step(ac.get("relu2"), 4)
    q, k, _ = head()
    [one, two] = said(at, r"raises the largest weight from (\S+) to (\S+)\. If")
    squares = (q @ k.mT / 8**0.5).relu().square()
    largest = float(squares.max() / 24)
    assert (one, two) == (pytest.approx(largest, rel=0.01), pytest.approx(4 * largest, rel=0.01))
    x, y = (tops := lines_of(at))["divided by the number of keys n"]
    assert y == pytest.approx([largest * factor**2 for factor in x], rel=1e-4)
    steady = float((squares / squares.sum(-1, keepdim=True)).max())
    assert tops["divided by the row sum"][1] == pytest.approx([steady] * len(x), rel=1e-4)
    expected = [float(ac.get("softmax").weights(factor * q, k).max()) for factor in x]
    assert tops["softmax"][1] == pytest.approx(expected, rel=1e-4)


RELU2 = ac.get("relu2")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("normalizer", ["length", "sum"])
def test_one_matrix_is_shown_next_to_the_heads(normalizer, causal):
    attention = ac.get("relu2", normalizer=normalizer)
    at = open_step(attention, 5, causal=causal)
    qkv, found = source().load(), analyse_unit(source().load(), attention, causal=causal)
    shown = list(board(at, "inside.relu2.5")[1].values())
    q, k, _ = head()
    expected_panels = [found.weights, attention.weights(q, k, causal=causal).numpy(), *found.heads]
    assert len(shown) == len(expected_panels) == 2 + qkv.heads
    for (_panel, values), matrix in zip(shown, expected_panels, strict=True):
        expected = np.where(np.tri(24) > 0, matrix, np.nan) if causal else matrix
        np.testing.assert_allclose(values, expected, rtol=2e-3, atol=1e-3 * np.nanmax(abs(expected)))
    assert "untrained" in spoken(at)
    [apart] = said(at, r"([\d.]+)% of a row's weight")
    assert apart == pytest.approx(100 * found.head_difference, abs=0.51)
    formula = at.latex[0].value
    assert ("{n_i}" in formula) == (normalizer == "length")


def test_the_gate_is_drawn_and_each_channel_has_a_matrix():
    at = open_step(RELU2, 6)
    found = analyse_unit(source().load(), RELU2, causal=False)
    [(gate, values)] = board(at, "inside.relu2.6.gate")[1].values()
    np.testing.assert_allclose(values, found.gate, rtol=2e-3, atol=1e-3)
    assert (gate["rows"], gate["cols"]) == (24, 2 * source().load().heads * 8)
    at.select_slider(key="inside.relu2.6.channel").set_value(11).run()
    (_, shared), (_, own) = board(at, "inside.relu2.6.own")[1].values()
    np.testing.assert_allclose(shared, found.weights, rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(own, np.diag(found.gate[:, 11]) @ found.weights, rtol=4e-3, atol=1e-3)
    [away] = said(
        at, r"closest multiple of A V differs from the gated output by ([\d.]+)% of the size of the gated output\."
    )
    assert away == pytest.approx(100 * found.gate_distance, abs=0.51)


def test_one_head_and_many_are_described():
    assert "There is only one head here, so softmax has a single attention matrix." in matrix_sentence(1, 16, 0.0)
    many = matrix_sentence(12, 768, 0.314)
    assert "(GAU), all 768 channels share one attention matrix." in many
    assert "each of the 12 heads. On average, 31% of a row's weight" in many
    assert "one head" not in many


def test_the_effect_of_the_gate_is_described():
    plain = UnitAnalysis(
        weights=np.eye(2),
        gate=np.array([[0.05, -0.2], [2.0, -0.01]]),
        attended=np.ones((2, 2)),
        heads=np.eye(2)[None],
        head_difference=0.0,
        gate_distance=0.42,
    )
    text = gate_sentence(plain)
    assert "The gates are untrained here: 50% are nearly closed (between −0.1 and 0.1), and 50% are negative." in text
    assert "The largest gate is 2." in text
    assert (
        "the gated output is not a multiple of the output without gates, A V. Even the closest multiple of A V "
        "differs from the gated output by 42% of the size of the gated output." in text
    )
    assert "The gated output is a multiple of the output without gates, A V." in gate_sentence(
        dataclasses.replace(plain, gate_distance=0.004)
    )
    nothing = gate_sentence(dataclasses.replace(plain, gate_distance=None))
    assert "The gated output is zero." in nothing
    assert "multiple" not in nothing


def test_the_first_steps_count_negative_and_kept_entries():
    logits = np.full((24, 24), -1.0)
    logits[:, :6], logits[0] = 2.0, -3.0
    squares = np.maximum(logits, 0) ** 2
    step_data = data(RELU2, parts={"logits": logits, "squares": squares})
    first, second, *_ = relu2.steps(step_data)
    assert first.findings.startswith("Logits range from −3 to 2, and 76% of the logits are negative")
    assert second.findings == (
        "76% of the squares are exactly zero. A typical query gives weight to 6 of 24 keys (median over queries). "
        "1 query gives no weight to any key."
    )


@pytest.mark.parametrize(
    ("normalizer", "name"), [("length", "number of keys n"), ("sum", "row sum"), ("fixed", "fixed number n₀")]
)
def test_the_current_divisor_is_named_with_the_row_sums(normalizer, name):
    step_data = data(ac.get("relu2", normalizer=normalizer))
    steps = relu2.steps(step_data)
    total = np.median(step_data.weights.sum(-1))
    assert steps[2].findings.endswith(f"After division by the {name}, the median of the row sums is **{total:.2g}**.")
    low, high = step_data.weights.sum(-1).min(), step_data.weights.sum(-1).max()
    assert steps[-1].details.endswith(f"The row sums range from {low:.2g} to {high:.2g}.")


def test_queries_without_keys_are_counted():
    two, one, none = (relu2.zeros_sentence(0.5, np.array(counts)) for counts in ([0, 0, 2], [0, 2, 2], [1, 2, 2]))
    assert two.endswith("2 queries give no weight to any key.")
    assert one.endswith("gives weight to 2 of 3 keys (median over queries). 1 query gives no weight to any key.")
    assert none.endswith(
        "gives weight to 2 of 3 keys (median over queries). Every query gives weight to at least one key."
    )
