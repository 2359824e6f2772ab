"""Tests of the patterns that each head has, against plain loops in float64."""

import math

import numpy as np
import pytest
import torch
from reference import softmax

import attention_core as ac
from attention_core.analysis.matrix.compare import compare
from attention_core.analysis.matrix.head_scores import HeadScores, head_scores, induction, ranked
from attention_core.analysis.matrix.miniatures import miniatures

TEXT = "the cat saw the dog and the cat ran"


@pytest.fixture(scope="module")
def layers():
    return ac.inputs.record_layers(TEXT, model="minilm")


def matrix_of(qkv, head, *, causal, special):
    """Return the matrix of one head and its words, computed from the formula."""
    weights = softmax(qkv.q[head], qkv.k[head], causal=causal)
    kept = [i for i in range(qkv.n) if special or not qkv.special[i]]
    weights = weights[np.ix_(kept, kept)]
    return weights / weights.sum(-1, keepdims=True), [qkv.tokens[i] for i in kept]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("special", [False, True])
def test_each_score_equals_its_definition(layers, causal, special):
    found = head_scores(layers, causal=causal, special=special)
    assert [(each.layer, each.head) for each in found] == [(layer, head) for layer in range(6) for head in range(12)]
    for each in found[::17]:
        a, words = matrix_of(layers[each.layer], each.head, causal=causal, special=special)
        n = len(words)
        masses = []
        for i in range(n):
            after = [p + 1 for p in range(i) if words[p] == words[i] and p + 1 < i]
            if after:
                masses.append(sum(a[i, j] for j in after))
        assert len(masses) == 3  # "the" occurs twice, "cat" once.
        assert each.induction == pytest.approx(np.mean(masses), abs=1e-5)
        assert each.previous == pytest.approx(np.mean([a[i, i - 1] for i in range(1, n)]), abs=1e-5)
        assert each.sink == pytest.approx(np.mean([a[i, 0] for i in range(1, n)]), abs=1e-5)
        spread = [-sum(w * math.log(w) for w in row if w > 0) for row in a]
        assert each.entropy == pytest.approx(np.mean(spread), abs=1e-5)
        far = sum(a[i, j] * abs(i - j) for i in range(n) for j in range(n)) / n
        assert each.distance == pytest.approx(far, abs=1e-4)


def test_the_entropy_score_equals_the_entropy_of_the_comparison(layers):
    scores = head_scores(layers, causal=True, special=False)[2 * 12 + 3]
    panel = compare(layers[2], ac.get("softmax"), head=3, causal=True, special=False)
    assert (scores.layer, scores.head) == (2, 3)
    assert scores.entropy == pytest.approx(panel.passport.entropy, abs=1e-5)


def test_induction_is_nan_without_repeated_tokens():
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=12, heads=2, d=4))
    assert all(math.isnan(each.induction) and each.sink > 0 for each in head_scores([qkv], causal=False))
    one = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=1, heads=1, d=4))
    [alone] = head_scores([one], causal=False)
    assert all(math.isnan(score) for score in (alone.induction, alone.previous, alone.sink))
    assert (alone.entropy, alone.distance) == (0, 0)


def test_induction_counts_tokens_after_earlier_occurrences_except_the_query_itself():
    weights = torch.arange(1.0, 26.0, dtype=torch.float64).reshape(5, 5)
    assert induction(weights, ["a", "b", "a", "c", "a"]) == pytest.approx(
        (weights[2, 1] + weights[4, [1, 3]].sum()) / 2
    )
    assert induction(weights, ["a", "a", "b", "c", "d"]).isnan()  # The second "a" itself followed the first one.
    assert induction(weights, ["a", "a", "a", "c", "d"]) == weights[2, 1]
    # Parts of characters do not count as one repeated word.
    assert induction(weights, ["·", "b", "·", "c", "·"]).isnan()


def test_the_causal_model_has_an_induction_head_on_a_repeated_sequence():
    words = "lamp frog seven river cold chair apple north dust piano"
    scores = head_scores(ac.inputs.record_layers(f"{words} {words}", model="smollm2"), causal=True)
    once = head_scores(ac.inputs.record_layers(words, model="smollm2"), causal=True)
    assert max(each.induction for each in scores) > 0.3
    assert np.median([each.induction for each in scores]) < 0.1
    assert all(math.isnan(each.induction) for each in once)


def test_the_table_has_a_column_for_each_score():
    assert list(HeadScores.columns()) == ["induction", "previous", "sink", "entropy", "distance"]


def test_miniatures_leave_out_special_tokens_like_the_page(layers):
    [layer] = layers[3:4]
    weights, words = matrix_of(layer, 5, causal=False, special=False)
    small = miniatures([layer], causal=False, special=False)
    assert small.shape == (1, 12, len(words), len(words))
    np.testing.assert_allclose(small[0, 5], weights / weights.max(), atol=1e-5)


@pytest.mark.parametrize("n", [9, 10, 11, 19, 20, 21, 95, 96])
@pytest.mark.parametrize("causal", [False, True])
def test_each_cell_of_a_miniature_shows_its_largest_weight(n, causal):
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=n, heads=3, d=8))
    pooled = torch.nn.functional.adaptive_max_pool2d(ac.get("softmax").weights(qkv.q, qkv.k, causal=causal), min(n, 10))
    small = miniatures([qkv, qkv], causal=causal, size=10)
    assert torch.equal(small[1], pooled / pooled.amax((-2, -1), keepdim=True))


def test_heads_are_ranked_by_the_chosen_score():
    def head(number, **scores):
        rest = dict.fromkeys(HeadScores.columns(), 0.5) | scores
        return HeadScores(layer=0, head=number, **rest)

    heads = [head(0, induction=0.1, entropy=2.0), head(1, induction=math.nan, entropy=0.5), head(2, induction=0.9)]
    assert [each.head for each in ranked(heads, "induction")] == [2, 0, 1]
    assert [each.head for each in ranked(heads, "entropy")] == [1, 2, 0]
    # Equal scores keep the order of heads in the model.
    assert [each.head for each in ranked(heads, "sink")] == [0, 1, 2]
