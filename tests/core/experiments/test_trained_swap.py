"""Tests of replacing the attention of a tiny trained model."""

import math

import pytest
import torch

import attention_core as ac
from attention_core.errors import LabError
from attention_core.experiments import learning, trained_swap
from attention_core.inputs.trained import trained_weights, training_run
from attention_core.learning.learning_task import IGNORED
from attention_core.learning.train import evaluation_batch, model_of
from attention_core.model_patching import UNIFORM

SPEC = training_run("recall", "softmax", steps=60, rate=0.01)


def effects(spec, words, layers):
    return [trained_swap.run(task)[0] for task in trained_swap.tasks(spec, words, layers)]


def test_replacing_a_variant_by_itself_changes_nothing():
    original, same = effects(SPEC, ["softmax"], (0, 1))
    assert (original.layers, same.layers) == ((), (0, 1))
    assert same.loss == pytest.approx(original.loss, abs=1e-6)
    assert same.accuracy == original.accuracy


def test_the_unchanged_model_has_the_loss_and_accuracy_of_training():
    [row] = learning.run(learning.TrainTask(spec=SPEC, start=None, until=SPEC.steps))
    [original] = effects(SPEC, [], (0,))
    assert (original.loss, original.accuracy) == (row.row.loss, row.row.accuracy)
    [given] = trained_swap.run(trained_swap.tasks(SPEC, [], (), weights=row.checkpoint.weights)[0])
    assert given == original


@torch.no_grad()
def plain(spec, mixes):
    """Return loss and accuracy of a model whose layers mix values by the given functions of queries and keys."""
    model, batch = model_of(spec, trained_weights(spec)), evaluation_batch(spec, spec.length, spec.items)
    x = model.embedded(batch.inputs)
    for layer, mix in zip(model.layers, mixes, strict=True):
        q, k, v = layer.qkv(layer.norm(x))
        x = x + layer.out((mix(q, k) @ v).transpose(1, 2).flatten(2))
    asked = batch.targets != IGNORED
    logs = model.head(model.norm(x)).log_softmax(-1)[asked]
    right = batch.targets[asked]
    return -logs.gather(1, right[:, None]).mean().item(), (logs.argmax(-1) == right).float().mean().item()


def softmax(q, k):
    n, d = q.shape[-2:]
    return (q @ k.mT / math.sqrt(d)).masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf).softmax(-1)


def mean(q, _k):
    n = q.shape[-2]
    return torch.ones(n, n).tril() / torch.arange(1, n + 1)[:, None]


def window(q, k):
    near = softmax(q, k) * torch.ones(q.shape[-2], q.shape[-2]).triu(-2)
    return near / near.sum(-1, keepdim=True)


@pytest.mark.parametrize(
    ("word", "layers", "mixes"),
    [
        ("softmax", (), (softmax, softmax)),
        (UNIFORM, (0, 1), (mean, mean)),
        (UNIFORM, (1,), (softmax, mean)),
        ("local~window~2", (0,), (window, softmax)),
    ],
)
def test_a_replacement_gives_the_accuracy_of_a_plain_forward_pass(word, layers, mixes):
    row = effects(SPEC, [word], layers)[-1] if layers else effects(SPEC, [], ())[0]
    loss, accuracy = plain(SPEC, mixes)
    assert row.loss == pytest.approx(loss, abs=1e-4)
    assert row.accuracy == pytest.approx(accuracy, abs=2e-3)


def test_a_non_causal_variant_raises_for_a_causal_task():
    with pytest.raises(LabError, match="cannot be causal"):
        effects(SPEC, ["nystrom"], (0,))
    digits = training_run("digits", "softmax", steps=1)
    assert math.isfinite(effects(digits, ["nystrom"], (0,))[1].loss)


def test_learned_gates_stay_with_the_variant_that_learned_them():
    spec = training_run("recall", "gla", steps=30, rate=0.01)
    original, same, other, uniform = effects(spec, ["gla", "scalar_decay", UNIFORM], (0, 1))
    assert same.loss == pytest.approx(original.loss, abs=1e-6)
    untrained = ac.get("scalar_decay")  # It has its own fixed gate, not the gates that the model has learned.
    expected = plain(spec, [lambda q, k: untrained.weights(q, k, causal=True)] * 2)
    assert (other.loss, other.accuracy) == pytest.approx(expected, abs=1e-4)
    assert (uniform.loss, uniform.accuracy) == pytest.approx(plain(spec, [mean] * 2), abs=1e-4)
