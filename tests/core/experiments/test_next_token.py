"""Tests of one token before and after a swap: probabilities and rows against those of the models."""

from itertools import pairwise

import pytest
import torch

from attention_core.errors import NotCausalError
from attention_core.experiments import next_token
from attention_core.inputs import models
from attention_core.inputs.models.recorder import record
from attention_core.model_patching import from_word, losses, swapped

TEXT = "The cat sat on the mat, and the cat slept."
WORD = "local~window~1"


def test_probabilities_equal_those_of_both_models_and_the_most_changed_row_is_shown():
    loaded = models.load("smollm2")
    ids = loaded.tokenizer.encode(TEXT).ids
    [task] = next_token.tasks(TEXT, WORD, (3, 20), 6)
    [row] = next_token.run(task)
    before = float((-losses(loaded, ids)[5]).exp())
    with swapped(loaded.model, dict.fromkeys((3, 20), from_word(WORD))):
        after = float((-losses(loaded, ids)[5]).exp())
        now = record(loaded.model, ids[:6], {3, 20})
    assert row.probabilities == pytest.approx((before, after), rel=1e-3)
    assert (row.label, row.token, len(row.context)) == (",", 6, 6)
    assert [len(row.before), len(row.after)] == [next_token.LISTED_TOKENS] * 2
    assert all(a >= b for text in (row.before, row.after) for (_, a), (_, b) in pairwise(text))
    was, moved = record(loaded.model, ids[:6], {3, 20}), {}
    for layer in (3, 20):
        old = from_word("softmax").weights(was[layer].q, was[layer].k, causal=True)[:, -1]
        new = from_word(WORD).weights(now[layer].q, now[layer].k, causal=True)[:, -1]
        for head in range(9):
            moved[layer, head] = float((old[head] - new[head]).abs().sum() / 2)
            if (layer, head) == (row.layer, row.head):
                torch.testing.assert_close(torch.tensor(row.row_before), old[head])
                torch.testing.assert_close(torch.tensor(row.row_after), new[head])
    assert moved[row.layer, row.head] == pytest.approx(max(moved.values()), abs=1e-6)
    assert row.moved_weight == pytest.approx(max(moved.values()), abs=1e-6)


def test_uniform_attention_has_equal_weights_and_non_causal_variants_raise():
    [row] = next_token.run(next_token.tasks(TEXT, "uniform", (0,), 4)[0])
    assert row.row_after == pytest.approx([0.25] * 4)
    with pytest.raises(NotCausalError):
        next_token.run(next_token.tasks(TEXT, "nystrom", (0,), 4)[0])
