"""Tests of the tiny models: equal to a plain transformer, trainable with every variant, seeded, and resumable."""

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attention_core as ac
from attention_core.errors import InputError
from attention_core.inputs.positions import rotary
from attention_core.learning.learning_task import IGNORED, Batch
from attention_core.learning.model import ModelSpec, ShortConvolution, TinyModel, refusal
from attention_core.learning.tasks import TASKS
from attention_core.learning.train import (
    WARM_UP_STEPS,
    TrainSpec,
    evaluate,
    evaluation_batch,
    initial_model,
    loss_of,
    measure,
    model_of,
    train,
    train_until,
    training_batch,
)


def spec_of(word="softmax", *, task="recall", length=16, items=2, count=20, batch=16, seed=0, **model):
    model = ModelSpec(task=task, word=word, **{"tokens": 80, "positions": TASKS[task].positions} | model)
    return TrainSpec(model=model, length=length, items=items, steps=count, batch=batch, seed=seed)


def plain_logits(model, spec, inputs):
    """Compute the model with torch's own attention layer and hand-written convolutions."""
    weights = dict(model.named_parameters())
    x = F.embedding(inputs, weights["embed.weight"])
    if spec.positions == "learned":
        x = x + weights["places"][: inputs.shape[1]]
    n, width = inputs.shape[1], spec.width
    future = torch.ones(n, n, dtype=torch.bool).triu(1)
    for i in range(spec.layers):
        y = F.layer_norm(x, (width,), weights[f"layers.{i}.norm.weight"], weights[f"layers.{i}.norm.bias"])
        parts = []
        kernels = [None] * 3 if not spec.convolution else weights[f"layers.{i}.mix.weight"].chunk(3)
        for W, kernel in zip(weights[f"layers.{i}.project.weight"].chunk(3), kernels, strict=True):
            z = y @ W.T
            if kernel is not None:
                last = spec.convolution - 1
                shifted = [F.pad(z, (0, 0, last - j, 0))[:, :n] for j in range(spec.convolution)]
                z = sum(kernel[:, 0, j] * shifted[j] for j in range(spec.convolution))
            parts.append(z)
        plain = nn.MultiheadAttention(width, spec.heads, bias=False, batch_first=True)
        unit = torch.eye(width)
        with torch.no_grad():
            plain.in_proj_weight.copy_(torch.cat([unit] * 3))
            plain.out_proj.weight.copy_(unit)
        out, _ = plain(*parts, attn_mask=future, need_weights=True)
        x = x + out @ weights[f"layers.{i}.out.weight"].T
    x = F.layer_norm(x, (width,), weights["norm.weight"], weights["norm.bias"])
    return x @ weights["head.weight"].T + weights["head.bias"]


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("convolution", [0, 3])
@pytest.mark.parametrize("positions", ["none", "learned"])
def test_the_softmax_model_equals_a_plain_transformer_with_its_gradients(heads, convolution, positions):
    spec = spec_of(heads=heads, convolution=convolution, positions=positions)
    batch = training_batch(spec, 0)
    model = initial_model(spec)
    for parameter in model.parameters():  # a trained convolution is not the identity
        nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(parameter.numel()))
    torch.testing.assert_close(model(batch.inputs), plain_logits(model, spec.model, batch.inputs), atol=1e-5, rtol=1e-5)
    loss_of(model, batch).backward()
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    logits = plain_logits(model, spec.model, batch.inputs)
    F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, atol=1e-5, rtol=1e-4)


TRAINED = [
    (variant.key, task)
    for variant in ac.all_variants()
    for task in ("recall", "digits")
    if (variant.causal_reason is None) == (task == "recall")
]


@pytest.mark.parametrize(("key", "task"), TRAINED)
def test_every_variant_trains_and_equal_seeds_give_equal_weights(key, task):
    sizes = {"length": 16, "items": 2} if task == "recall" else {"length": 64, "items": 0}
    spec = spec_of(key, task=task, batch=8, **sizes)
    _, early = train_until(spec, 4)
    _, again = train_until(spec, 4)
    assert again.weights == early.weights
    model, at = train_until(spec, 20, early)
    gradients = [parameter.grad for parameter in model.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() and gradient.any() for gradient in gradients)
    batch = evaluation_batch(spec, spec.length, spec.items)
    loss, _ = evaluate(model, batch)
    assert math.isfinite(loss)
    assert loss < evaluate(initial_model(spec), batch)[0]
    assert at.step == 20


def test_a_non_causal_variant_is_refused_on_causal_tasks_only():
    spec = spec_of("nystrom")
    assert refusal(spec.model) == ac.variant("nystrom").causal_reason
    with pytest.raises(InputError, match="Nyström cannot be trained on this task: each query uses all landmarks"):
        initial_model(spec)
    assert not refusal(replace(spec.model, task="digits"))


@pytest.mark.parametrize("pause", [1, 7, 19])
@pytest.mark.parametrize("word", ["softmax", "deltanet"])
def test_a_run_that_continues_from_a_checkpoint_gives_the_same_weights(pause, word):
    spec = spec_of(word)
    whole, end = train_until(spec, 20)
    _, start = train_until(spec, pause)
    continued, other = train_until(spec, 20, start)
    assert end.weights == other.weights
    assert end.moments == other.moments
    assert end.tokens == other.tokens == 20 * 16 * 16
    assert other.seconds > 0
    assert measure(spec, whole, end).loss == measure(spec, continued, other).loss


def test_another_seed_gives_other_weights_and_other_sequences():
    first, second = spec_of(), spec_of(seed=1)
    assert not torch.equal(initial_model(first).head.weight, initial_model(second).head.weight)
    assert not torch.equal(training_batch(first, 0).inputs, training_batch(second, 0).inputs)
    assert not torch.equal(training_batch(first, 0).inputs, training_batch(first, 1).inputs)


def test_training_does_not_change_the_global_random_state():
    torch.manual_seed(7)
    wanted = torch.rand(3)
    torch.manual_seed(7)
    train_until(spec_of(count=2), 2)
    assert torch.equal(torch.rand(3), wanted)


def test_threads_that_make_models_at_the_same_time_get_the_weights_of_their_seeds():
    specs = [spec_of(seed=seed) for seed in range(60)]
    wanted = [initial_model(spec).state_dict() for spec in specs]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads alternate often, as on a busy server
    try:
        with ThreadPoolExecutor(4) as threads:
            found = [model.state_dict() for model in threads.map(initial_model, specs)]
    finally:
        sys.setswitchinterval(interval)
    for weights, expected in zip(found, wanted, strict=True):
        assert all(torch.equal(weights[name], expected[name]) for name in expected)


def test_train_measures_at_each_interval_and_after_the_last_step():
    rows = list(train(spec_of(count=5), every=2))
    assert [row.step for row, _ in rows] == [2, 4, 5]
    assert rows[-1][0].tokens == 5 * 16 * 16
    last, at = rows[-1]
    again = measure(spec_of(count=5), model_of(spec_of(count=5), at.weights), at)
    assert again == last


def test_a_run_whose_loss_is_not_finite_reports_it():
    spec = replace(spec_of(count=3), rate=1e30)
    model, at = train_until(spec, 3)
    row = measure(spec, model, at)
    assert not math.isfinite(row.loss)
    assert row.accuracy == 0


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_a_short_convolution_starts_as_the_identity_and_uses_only_its_neighbours(width, causal):
    mix = ShortConvolution(4, width, causal=causal)
    x = torch.randn(2, 9, 4)
    torch.testing.assert_close(mix(x), x)
    nn.init.ones_(mix.weight)
    one = torch.zeros(1, 9, 4)
    one[:, 4] = 1.0
    touched = mix(one)[0, :, 0].nonzero().flatten().tolist()
    assert len(touched) == width
    assert 4 in touched
    assert min(touched) == 4 if causal else max(abs(i - 4) for i in touched) == width // 2


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("width", [1, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_a_short_convolution_equals_conv1d_with_its_gradients(n, width, causal):
    mix = ShortConvolution(4, width, causal=causal).double()
    nn.init.normal_(mix.weight, generator=torch.Generator().manual_seed(3))
    x = torch.randn(2, n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(4), requires_grad=True)
    before = width - 1 if causal else width // 2
    out, plain = mix(x), F.conv1d(F.pad(x.mT, (before, width - 1 - before)), mix.weight, groups=4).mT
    torch.testing.assert_close(out, plain)
    for found, wanted in zip(
        *(torch.autograd.grad(y.square().sum(), (x, mix.weight)) for y in (out, plain)), strict=True
    ):
        torch.testing.assert_close(found, wanted)


def test_rotary_positions_rotate_queries_and_keys_but_not_values():
    spec = spec_of(positions="rotary")
    plain = replace(spec, model=replace(spec.model, positions="none"))
    inputs = training_batch(spec, 0).inputs
    (q, k, v), (own_q, own_k, own_v) = (
        initial_model(spec).qkv_by_layer(inputs)[0],
        initial_model(plain).qkv_by_layer(inputs)[0],
    )
    torch.testing.assert_close(q, rotary(own_q))
    torch.testing.assert_close(k, rotary(own_k))
    torch.testing.assert_close(v, own_v)


def test_queries_keys_and_values_by_layer_are_those_of_the_model():
    spec = spec_of(heads=2)
    model = initial_model(spec)
    inputs = training_batch(spec, 0).inputs
    x = model.embedded(inputs)
    for layer, (q, k, v) in zip(model.layers, model.qkv_by_layer(inputs), strict=True):
        assert q.shape == k.shape == v.shape == (16, 2, 16, 32)
        outputs = ac.get("softmax").weights(q, k, causal=True) @ v
        x = x + outputs.transpose(1, 2).flatten(2) @ layer.out.weight.T
    torch.testing.assert_close(x @ torch.eye(64), model_body(model, inputs), atol=1e-5, rtol=1e-5)


def model_body(model, inputs):
    x = model.embedded(inputs)
    for layer in model.layers:
        x = layer(x)
    return x


def test_more_tokens_than_learned_positions_are_refused():
    spec = spec_of(positions="learned", tokens=8)
    with pytest.raises(InputError, match="learned weights for 8 positions only"):
        initial_model(spec)(torch.zeros(1, 9, dtype=torch.long))


@pytest.mark.parametrize(
    ("name", "value"), [("layers", 0), ("layers", 9), ("heads", 0), ("heads", 3), ("convolution", -1), ("width", 4)]
)
def test_a_model_out_of_bounds_is_refused(name, value):
    with pytest.raises(InputError, match="Choose"):
        ModelSpec(task="recall", word="softmax", **{name: value})


def test_the_default_model_is_tiny():
    model = TinyModel(ModelSpec(task="recall", word="softmax"))
    assert 35_000 < sum(parameter.numel() for parameter in model.parameters()) < 50_000


def test_the_accuracy_counts_only_positions_with_a_target_and_finite_logits():
    logits = torch.tensor([[[2.0, 1.0], [0.0, 1.0], [3.0, 0.0], [math.inf, 0.0]]])
    batch = Batch(inputs=torch.zeros(1, 4, dtype=torch.long), targets=torch.tensor([[0, IGNORED, 1, 0]]))
    loss, accuracy = evaluate(lambda inputs: logits, batch)
    assert accuracy == pytest.approx(1 / 3)
    assert not math.isfinite(loss)
    finite = Batch(inputs=batch.inputs[:, :3], targets=batch.targets[:, :3])
    loss, accuracy = evaluate(lambda inputs: logits[:, :3], finite)
    assert accuracy == 0.5
    assert loss == pytest.approx((math.log1p(math.exp(-1)) + math.log1p(math.exp(3))) / 2)


@pytest.mark.parametrize("step", [0, 1, 7])
def test_the_evaluation_uses_other_sequences_than_training(step):
    spec = spec_of(batch=64)
    trained = {tuple(row) for row in training_batch(spec, step).inputs.tolist()}
    tested = {tuple(row) for row in evaluation_batch(spec, 16, 2, 64).inputs.tolist()}
    assert not trained & tested


def test_the_learning_rate_rises_from_a_small_first_step():
    spec = spec_of()
    before = torch.cat([p.detach().flatten() for p in initial_model(spec).parameters()])
    after = torch.cat([p.detach().flatten() for p in train_until(spec, 1)[0].parameters()])
    # The first step of AdamW changes each parameter by the learning rate, and the first rate is 1 / WARM_UP of it.
    assert (after - before).abs().max().item() == pytest.approx(spec.rate / WARM_UP_STEPS, rel=0.01)


LEARNED = [variant.key for variant in ac.all_variants() if variant.trainable]


def with_random_tensors(attention, q, tokens):
    """Return the attention with a random tensor for everything that it declares trainable."""
    heads, d, draw = q.shape[-3], q.shape[-1], torch.Generator().manual_seed(5)
    shapes = {"token": (*q.shape[:-1], 1), "channel": q.shape, "head": (heads, 1, 1)}
    return attention.with_learned(
        {
            each.name: torch.randn(
                shapes[each.per] if each.shape is None else each.shape(attention.params, tokens, d), generator=draw
            ).to(q.dtype)
            for each in attention.trainable
        }
    )


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n", [1, 7, 150])
@pytest.mark.parametrize(
    "word", [*LEARNED, "deltanet~keys~exact", "synthesizer~kind~random", "linformer~share~False", "pooled~pool~conv"]
)
def test_algorithm_matrix_and_definition_agree_with_learned_tensors(word, n, causal):
    attention = ac.registry.from_word(word)
    if causal and attention.variant.causal_reason is not None:
        causal = False
    q, k, v = torch.randn(3, 2, 3, n, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    trained = with_random_tensors(attention, q, max(n, 32))
    out = trained.attend(q, k, v, causal=causal)
    torch.testing.assert_close(trained.weights(q, k, causal=causal) @ v, out, atol=1e-9, rtol=1e-9)
    if (definition := attention.variant.definition) is not None:
        torch.testing.assert_close(definition(q, k, v, trained.params, causal=causal), out, atol=1e-9, rtol=1e-9)
    if n > 1:
        assert (out - attention.attend(q, k, v, causal=causal)).abs().max() > 1e-5


@pytest.mark.parametrize("word", [key for key in LEARNED if ac.variant(key).decoder is not None])
def test_a_recurrent_decoder_uses_the_learned_tensors_of_each_token(word):
    attention = ac.get(word)
    q, k, v = torch.randn(3, 1, 2, 70, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    trained = with_random_tensors(attention, q, 70)
    decoder, outputs = attention.variant.decoder, []
    state = decoder.init_state(q[..., 0, :], v[..., 0, :], trained.params)
    for t in range(70):
        out, state = decoder.step(state, q[..., t, :], k[..., t, :], v[..., t, :], trained.params)
        outputs.append(out)
    torch.testing.assert_close(torch.stack(outputs, -2), trained.attend(q, k, v, causal=True), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("softmax", []),
        ("deltanet", ["strength"]),
        ("gated_deltanet", ["gate", "strength"]),
        ("gated_deltanet~decay~0.5", ["strength"]),
        ("gla~gate~constant", []),
        ("synthesizer", ["inner", "positions"]),
        ("synthesizer~kind~random", ["logits"]),
        ("linformer", ["E"]),
        ("linformer~share~False", ["E", "F"]),
    ],
)
def test_a_model_trains_only_the_parameters_that_its_variant_and_settings_declare(word, names):
    task = "digits" if word.startswith("linformer") else "recall"
    spec = spec_of(word, task=task).model
    own = {name.split(".")[-1] for name, _ in TinyModel(spec).named_parameters() if ".learned.weights." in name}
    assert sorted(own) == sorted(names)
    fixed = TinyModel(replace(spec, fixed=True))
    assert not any("learned" in name for name, _ in fixed.named_parameters())
    assert replace(spec, fixed=True).fixed == bool(names)


def test_learned_strengths_depend_on_their_token_and_differ_between_heads():
    spec = spec_of("gated_deltanet", heads=2)
    layer = initial_model(spec).layers[0]
    for parameter in layer.learned.parameters():
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(3))
    x = torch.randn(1, 5, 64, generator=torch.Generator().manual_seed(2))
    changed = x.clone()
    changed[:, 3] += torch.randn(64, generator=torch.Generator().manual_seed(4))
    before, after = (layer.attention_on(layer.norm(y)).params.learned["strength"] for y in (x, changed))
    assert before.shape == (1, 2, 5, 1)
    assert [bool((before[0, :, t] != after[0, :, t]).all()) for t in range(5)] == [False, False, False, True, False]
    assert not torch.equal(before[:, 0], before[:, 1])
    weight, bias = layer.learned.weights["strength"], layer.learned.biases["strength"]
    wanted = F.linear(layer.norm(x), weight, bias)[0].T[..., None]
    torch.testing.assert_close(before[0], wanted)


@pytest.mark.parametrize(
    ("word", "learned", "same"),
    [
        # A share of one half is σ(0), and a gate of 0.9 is σ(x)^(1/root).
        ("deltanet~strength~2.0", {"strength": 0.0}, "deltanet~strength~1.0"),
        ("deltanet~strength~2.0", {"strength": math.log(3)}, "deltanet~strength~1.5"),
        ("path~strength~2.0", {"strength": -math.log(3)}, "path~strength~0.5"),
        ("scalar_decay", {"gate": -math.log(0.9**-16 - 1)}, "scalar_decay~decay~0.9"),
        ("gla~root~2.0", {"gate": -math.log(0.9**-2 - 1)}, "gla~gate~constant~decay~0.9"),
        ("fox", {"gate": -math.log(0.8**-16 - 1)}, "fox~gate~constant~decay~0.8"),
        ("mesa", {"gate": -math.log(0.9**-16 - 1)}, "mesa~decay~0.9"),
        ("sink_logit", {"logit": 1.5}, "sink_logit~logit~1.5"),
        ("differential~taken~0.25", {"factor": 0.5}, "differential~taken~0.75"),
    ],
)
def test_a_learned_number_acts_as_the_setting_of_that_value(word, learned, same):
    attention = ac.registry.from_word(word)
    q, k, v = torch.randn(3, 2, 3, 9, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    shapes = {"token": (2, 3, 9, 1), "channel": (2, 3, 9, 8), "head": (3, 1, 1)}
    trained = attention.with_learned(
        {each.name: torch.full(shapes[each.per], learned.get(each.name, 0.0)).double() for each in attention.trainable}
    )
    torch.testing.assert_close(
        trained.attend(q, k, v, causal=True), ac.registry.from_word(same).attend(q, k, v, causal=True)
    )


@pytest.mark.parametrize("word", ["additive", "synthesizer", "synthesizer~kind~random", "linformer", "pooled", "path"])
def test_a_learned_tensor_of_zeros_does_not_change_the_output(word):
    attention = ac.registry.from_word(word)
    q, k, v = torch.randn(3, 1, 2, 20, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    zeros = {
        each.name: torch.zeros(q.shape if each.shape is None else each.shape(attention.params, 32, 8)).double()
        for each in attention.trainable
        if each.name != "strength"
    }
    torch.testing.assert_close(attention.with_learned(zeros).attend(q, k, v), attention.attend(q, k, v))
