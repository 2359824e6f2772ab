"""Tests of continuations: reading token by token with a cache gives the same as reading the whole text each time."""

import pytest
import torch

from attention_core.experiments import continuation
from attention_core.experiments.continuation import (
    ContinuationRow,
    ContinuationTask,
    cache_bytes,
    first_difference,
    run,
)
from attention_core.inputs import models
from attention_core.model_patching import from_word, swapped, unembedding

TEXT = "The cat sat on the mat, and the"


@pytest.fixture(scope="module")
def smol():
    return models.load("smollm2")


@pytest.mark.parametrize(("word", "layers"), [("softmax", ()), ("sink~window~3~sinks~1", (0, 7, 20))])
def test_greedy_continuations_equal_rereading_the_whole_text_for_each_token(smol, word, layers):
    [row] = run(ContinuationTask(text=TEXT, word=word, layers=layers, steps=4))
    ids = list(smol.tokenizer.encode(TEXT).ids)
    assert row.prompt == len(ids)
    with swapped(smol.model, dict.fromkeys(layers, from_word(word))), torch.no_grad():
        for _ in range(4):
            state = smol.model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1]
            ids.append(int((state @ unembedding(smol).mT).argmax()))
    assert list(row.ids) == ids[row.prompt :]
    assert "".join(row.written) == smol.tokenizer.decode(ids[row.prompt :])


def test_sampling_depends_only_on_the_seed():
    [one], [again], [other] = (run(ContinuationTask(text=TEXT, seed=seed, steps=6)) for seed in (1, 1, 2))
    assert one.ids == again.ids != other.ids


def test_equal_predictions_give_equal_continuations():
    everywhere = tuple(range(30))
    [one] = run(ContinuationTask(text=TEXT, seed=1, steps=3))
    [other] = run(ContinuationTask(text=TEXT, word="local~window~64", layers=everywhere, seed=1, steps=3))
    assert first_difference(one, other) is None


def row(*ids):
    return ContinuationRow(
        word="softmax", layers=(), seed=None, prompt=1, ids=ids, written=tuple(map(str, ids)), seconds=1.0, held=1
    )


def test_the_first_difference_is_the_position_of_the_first_unequal_token():
    assert first_difference(row(1, 2, 3), row(1, 2, 3)) is None
    assert first_difference(row(1, 2, 3), row(1, 5, 3)) == 1
    assert first_difference(row(1, 2), row(0, 2)) == 0


def test_cache_bytes_follow_from_the_keys_that_a_variant_needs(smol):
    token = 2 * 3 * 64 * 4  # Three groups of keys and of values, in float32.
    assert cache_bytes(smol, "softmax", (), 50) == 30 * 50 * token
    assert cache_bytes(smol, "topk", range(30), 50) == 30 * 50 * token
    # A window of 5 attends to 5 tokens before the next one, and four sinks stay.
    assert cache_bytes(smol, "local~window~5", range(30), 50) == 30 * 5 * token
    assert cache_bytes(smol, "sink~window~5~sinks~4", range(10), 50) == (20 * 50 + 10 * (4 + 4)) * token
    assert cache_bytes(smol, "uniform", range(30), 50) == 30 * 9 * 64 * 4
    assert (
        cache_bytes(smol, "linear", range(30), 50)
        == cache_bytes(smol, "linear", range(30), 5000)
        == 30 * 9 * (64 * 64 + 64) * 4
    )


def test_greedy_tasks_come_before_sampled_tasks():
    found = continuation.tasks(TEXT, ["linear"], (0,), seed=3)
    assert [(t.seed, t.word, t.layers) for t in found] == [
        (None, "softmax", ()),
        (None, "linear", (0,)),
        (3, "softmax", ()),
        (3, "linear", (0,)),
    ]
