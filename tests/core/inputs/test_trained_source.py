"""Tests of trained tiny models as a source: their queries, keys and values, their words, and what is refused."""

import subprocess
import sys

import pytest
import torch
from safetensors.torch import load as read_safetensors
from safetensors.torch import save

from attention_core.errors import LabError
from attention_core.experiments import learning
from attention_core.experiments.task import load
from attention_core.inputs import TrainedSource
from attention_core.inputs.positions import Rope
from attention_core.inputs.trained import run_from_words, sequence_of, trained_weights, training_run, words_of
from attention_core.learning import train
from attention_core.learning.tasks import TASKS
from attention_core.limits import HOSTED

QUICK = "steps~5"
RUNS = [
    ("recall", "softmax", QUICK),
    ("induction", "softmax", QUICK, "heads~2", "positions~rotary", "layers~3"),
    ("parity", "deltanet~strength~2.0", QUICK, "convolution~0"),
    ("digits", "linear", QUICK, "heads~2"),
    ("maximum", "local~window~4", QUICK),
]


def tensors_from_hooks(source):
    """Return the queries, keys and values of each layer, computed from the outputs of the model's own projections."""
    spec = source.spec
    model = train.initial_model(spec)
    model.load_state_dict(read_safetensors(trained_weights(spec)))
    seen = []
    for layer in model.layers:
        last = layer.project if isinstance(layer.mix, torch.nn.Identity) else layer.mix
        last.register_forward_hook(lambda _module, _inputs, output: seen.append(output[0]))
    with torch.no_grad():
        model(sequence_of(spec, source.sequence).inputs)
    return [[projection_by_head(each, spec, rotates=i < 2) for i, each in enumerate(out.chunk(3, -1))] for out in seen]


def projection_by_head(x, spec, *, rotates):
    """Return a projection ``[n, H d]`` as ``[H, n, d]``, rotated by complex numbers if the model uses RoPE."""
    x = torch.stack(x.split(spec.model.width // spec.model.heads, -1))
    if not rotates or spec.model.positions != "rotary":
        return x
    n, d = x.shape[-2:]
    angles = torch.arange(n)[:, None] * 10_000.0 ** (-torch.arange(0, d, 2) / d)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


@pytest.mark.parametrize("words", RUNS, ids=lambda words: words[0])
@pytest.mark.parametrize("sequence", [0, 7])
def test_queries_keys_and_values_equal_those_of_a_hooked_forward_pass(words, sequence):
    source = TrainedSource.of(*words, sequence=sequence)
    expected = tensors_from_hooks(source)
    assert len(expected) == source.layer_count
    for layer, tensors in enumerate(expected):
        record = source.at_layer(layer).load()
        for found, wanted in zip(record.tensors, tensors, strict=True):
            torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    layers = source.layers(load)
    assert [torch.equal(each.q, source.at_layer(i).load().q) for i, each in enumerate(layers)] == [True] * len(layers)
    assert layers.nbytes == sum(x.nbytes for each in layers for x in each.tensors)


@pytest.mark.parametrize("words", RUNS, ids=lambda words: words[0])
def test_the_record_has_the_tokens_mask_and_notices_of_its_task(words):
    source = TrainedSource.of(*words)
    record, task = source.load(), TASKS[words[0]]
    assert record.causal == task.causal
    assert record.n == task.length
    assert record.heads == source.spec.model.heads
    assert list(record.tokens) == learning.example_labels(source.spec)
    found = [str(each) for each in record.notices]
    assert sum(each.startswith("This model was trained with") for each in found) == (words[1] != "softmax")
    learned = [each for each in found if each.startswith("This model has also learned: ")]
    assert len(learned) == bool(source.spec.model.trainable)
    assert all(each.title in text for text in learned for each in source.spec.model.trainable)
    assert source.own_rope == (Rope() if "positions~rotary" in words else None)


def test_words_of_a_run_with_fixed_gates_include_the_setting():
    spec = run_from_words(["recall", "deltanet", "fixed~True"])
    assert spec.model.fixed
    assert words_of(spec) == ["recall", "deltanet", "fixed~True"]
    assert not run_from_words(["recall", "deltanet", "fixed~False"]).model.fixed
    assert words_of(run_from_words(["recall", "synthesizer"])) == ["recall", "synthesizer"]


def test_space_tokens_have_a_visible_label():
    record = TrainedSource.of("characters", "softmax", "steps~1").load()
    assert "␣" in record.tokens
    assert all(each.strip() for each in record.tokens)


def test_sequence_0_is_the_example_and_others_are_evaluation_sequences():
    spec = training_run("recall", steps=5)
    assert torch.equal(sequence_of(spec, 0).inputs, learning.example_batch(spec).inputs)
    every = train.evaluation_batch(spec, spec.length, spec.items)
    for number in (1, 255):
        assert torch.equal(sequence_of(spec, number).inputs[0], every.inputs[number])
        assert torch.equal(sequence_of(spec, number).targets[0], every.targets[number])


def test_the_weights_equal_those_of_the_learning_experiment_and_are_cached(monkeypatch):
    spec = training_run("recall", steps=6)
    [row] = learning.run(learning.TrainTask(spec=spec, start=None, until=6))
    assert row.checkpoint.weights == trained_weights(spec)
    monkeypatch.setattr(train, "train_until", None)
    given = TrainedSource(spec, 3, 1, weights=row.checkpoint.weights)
    assert torch.equal(given.load().q, TrainedSource(spec, 3, 1).load().q)
    assert given == TrainedSource(spec, 3, 1)
    assert repr(given) == repr(TrainedSource(spec, 3, 1))


def test_another_process_computes_the_same_numbers_from_the_code_of_a_source():
    source = TrainedSource.of("recall", "linear", QUICK, "rate~0.01", sequence=4, layer=1)
    code = f"import attention_core as ac; x = {source.code}.load(); print(*x.tokens, *x.q.double().sum(-1)[0].tolist())"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    record = source.load()
    assert tuple(found[: record.n]) == record.tokens
    assert [float(each) for each in found[record.n :]] == pytest.approx(
        record.q.double().sum(-1)[0].tolist(),
        abs=1e-4,  # The processes may add in another order.
    )


def test_the_first_tokens_of_a_causal_model_equal_those_of_the_shorter_sequence():
    source = TrainedSource.of("parity", "softmax", QUICK, layer=1)
    model = train.model_of(source.spec, trained_weights(source.spec))
    shorter = model.qkv_by_layer(sequence_of(source.spec, 0).inputs[:, :9])[1]
    for found, expected in zip(source.load(9).tensors, shorter, strict=True):
        torch.testing.assert_close(found, expected[0], atol=1e-5, rtol=1e-4)
    assert "the same as if the model read only the shorter sequence" in str(source.lengths_notice(source.load()))
    digits = TrainedSource.of("digits", "softmax", "steps~1")
    assert "from the whole sequence" in str(digits.lengths_notice(digits.load()))


@pytest.mark.parametrize(
    "words",
    [
        *RUNS,
        ("recall", "softmax"),
        ("recall", "softmax", "positions~learned", "tokens~256"),
        ("copying", "softmax", "length~64"),
        ("copying", "softmax", "tokens~32", "length~64", "items~3"),
        ("recall", "softmax", "rate~0.01", "seed~3", "width~32"),
    ],
)
def test_words_describe_a_run_completely(words):
    spec = run_from_words(words)
    assert run_from_words(words_of(spec)) == spec
    assert sorted(words_of(spec)) == sorted(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "A training run needs a task and a variant, for example “recall softmax”."),
        (("recal", "softmax"), "There is no task 'recal'. Did you mean 'recall'?"),
        (("recall", "softmin"), "There is no attention variant 'softmin'."),
        (("recall", "nystrom"), "Nyström cannot be trained on this task: "),
        (("recall", "softmax", "steps~x"), "steps is 'x'. Write a number."),
        (("recall", "softmax", "steps"), "steps is ''. Write a number."),
        (("recall", "deltanet", "fixed~banana"), "Invalid fixed: 'banana'. Choose True or False."),
        (("recall", "deltanet", "fixed"), "Invalid fixed: ''. Choose True or False."),
        (("recall", "softmax", "stepz~4"), "A training run has no setting 'stepz'. Did you mean 'steps'?"),
        (("recall", "softmax", "batch~9999"), "A training run has no setting 'batch'."),
        (("recall", "softmax", "model~x"), "A training run has no setting 'model'."),
        (("recall", "softmax", "steps~0"), "steps is 0. Choose a number from 1 to 20000."),
        (("recall", "softmax", "steps~20001"), "steps is 20001. Choose a number from 1 to 20000."),
        (("recall", "softmax", "seed~-1"), "seed is -1."),
        (("recall", "softmax", "rate~nan"), "learning rate is nan. Choose a number from 0.0 to 1.0."),
        (("recall", "softmax", "positions~up"), "There is no position encoding 'up'."),
        (
            ("recall", "softmax", "items~11"),
            "Associative recall with 32 tokens cannot have 11 pairs or symbols to remember.",
        ),
        (("recall", "softmax", "length~2000"), "Associative recall has no sequences of 2000 tokens."),
        (("recall", "softmax", "width~512"), "width is 512."),
        (("recall", "softmax", "heads~3"), "The width 64 cannot be divided evenly among 3 heads."),
        (("recall", "softmax", "positions~learned", "tokens~-1"), "tokens is -1. Choose a number from 0 to 1024."),
        (("recall", "softmax", "length~1024", "width~256", "layers~8"), "layers × sequence length × width is 2097152."),
    ],
)
def test_a_run_that_cannot_be_trained_is_refused_with_its_reason(words, message):
    with pytest.raises(LabError) as refused:
        run_from_words(words)
    assert str(refused.value).startswith(message)


def test_a_hosted_server_allows_the_runs_of_the_learn_page(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    for task in TASKS.values():
        assert training_run(task.key, steps=HOSTED.learn_steps, layers=4)
    with pytest.raises(LabError, match=r"layers × sequence length × width is 16448\. Choose a number from 1 to 16384"):
        training_run("recall", length=257, layers=1, width=64)


@pytest.mark.parametrize(("sequence", "layer"), [(256, 0), (-1, 0), (0, 2)])
def test_a_sequence_or_layer_that_does_not_exist_is_refused(sequence, layer):
    with pytest.raises(LabError, match=r"(sequence|layer) is -?\d+. Choose a number from 0 to"):
        TrainedSource.of("recall", "softmax", sequence=sequence, layer=layer)


def test_a_training_with_weights_that_are_not_finite_is_reported():
    spec = training_run("recall", steps=1)
    weights = train.initial_model(spec).state_dict()
    source = TrainedSource(spec, weights=save({name: torch.full_like(x, torch.nan) for name, x in weights.items()}))
    with pytest.raises(LabError, match="Training failed"):
        source.load()
