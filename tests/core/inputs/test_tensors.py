"""Tests of records and sources made from tensors and arrays, and of records from a loaded model."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import GPT2Config, GPT2LMHeadModel, MambaConfig, MambaModel, PreTrainedTokenizerFast

from attention_core import QKV, claims
from attention_core.errors import InputError, ModelError, Notice, ShapeError
from attention_core.experiments import entropy_length, error
from attention_core.inputs import TensorSource, from_model, from_upload, to_npz

ARRAYS = np.random.default_rng(0).normal(size=(3, 2, 24, 8))


def test_a_record_from_tensors_equals_its_upload():
    q, k, v = ARRAYS
    made = QKV.from_tensors(q, torch.tensor(k, requires_grad=True), v.astype(np.float32), tokens=range(24), causal=True)
    read = from_upload(to_npz(made), "file")
    assert all(torch.equal(a, b) and a.dtype == torch.float32 for a, b in zip(made.tensors, read.tensors, strict=True))
    assert (made.tokens, made.special, made.groups, made.causal, made.scale) == (
        read.tokens,
        read.special,
        read.groups,
        read.causal,
        read.scale,
    )
    assert not made.k.requires_grad


def test_a_record_is_a_copy_and_takes_one_head_or_a_batch_of_one():
    q = torch.tensor(ARRAYS[0])
    assert QKV.from_tensors(q[0], q[0], q[0]).heads == 1
    made = QKV.from_tensors(q[None].float(), q[None], q[None])
    q.zero_()
    assert made.q.any()
    assert made.heads == 2


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        (lambda q: q.astype(int), InputError, "q has the type torch.int64"),
        (lambda q: q[0, 0], ShapeError, r"q has the shape \(8,\)"),
        (lambda q: np.stack([q, q]), ShapeError, r"q has the shape \(2, 2, 24, 8\)"),
        (lambda q: q[:, :0], ShapeError, r"q has the shape \(2, 0, 8\)"),
        (lambda q: q * np.nan, InputError, "NaN or infinite"),
        (lambda q: torch.tensor(q).bfloat16() / 0, InputError, "NaN or infinite"),
        (lambda q: np.full_like(q, -1e300), InputError, r"values up to 1e\+300"),
        (lambda q: q[..., :5], ShapeError, "do not match"),
    ],
)
def test_invalid_tensors_are_refused(change, error, sentence):
    with pytest.raises(error, match=sentence):
        QKV.from_tensors(change(ARRAYS[0]), ARRAYS[1], ARRAYS[2])
    with pytest.raises(ShapeError, match="token labels"):
        QKV.from_tensors(*ARRAYS, tokens=["a"])


def test_sources_are_equal_if_their_tensors_labels_and_mask_are():
    one = TensorSource.of(*ARRAYS)
    assert one == TensorSource.of(QKV.from_tensors(*ARRAYS)) == TensorSource.of(*map(torch.tensor, ARRAYS))
    assert hash(one) == hash(TensorSource.of(*ARRAYS))
    others = [
        TensorSource.of(ARRAYS[0], ARRAYS[2], ARRAYS[1]),
        TensorSource.of(*ARRAYS, causal=True),
        TensorSource.of(*ARRAYS, tokens=["a"] * 24),
        TensorSource.of(*ARRAYS, positions="rope"),
    ]
    assert len({one, *others}) == 5


def test_sources_differ_if_any_attribute_of_their_records_differs():
    record = QKV.from_tensors(*ARRAYS)
    changes = {
        "special": (True,) * 24,
        "groups": (0,) * 24,
        "scale": 1.0,
        "origin": "other",
        "total_tokens": 99,
        "notices": (Notice("Cut."),),
        "grid": (4, 6),
    }
    others = [TensorSource.of(replace(record, **{name: value})) for name, value in changes.items()]
    assert len({TensorSource.of(record), *others}) == 1 + len(changes)


def test_experiments_and_claims_accept_tensors():
    source = TensorSource.of(*ARRAYS)
    assert source.load(5).n == 5
    [row, _] = error.run(error.ErrorTask(source=source, word="softmax"))
    assert row.matrix == 0
    lengths = {task.n for task in entropy_length.tasks(source, ["softmax"], longest=24)}
    assert {entropy_length.run(t)[0].n for t in entropy_length.tasks(source, ["softmax"], longest=24)} == lengths
    [outcome] = claims.run(claims.tasks(source, keys=["double_softmax"])[0])
    assert outcome.verdict is claims.Verdict.HOLDS
    assert "RoPE" in str(source.rope_notice())


TEXT = "the cat saw the dog"


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = GPT2Config(
        n_embd=24, n_layer=3, n_head=3, n_positions=16, vocab_size=8, bos_token_id=0, eos_token_id=0, attn_pdrop=0.5
    )
    return GPT2LMHeadModel(config).train()


@pytest.fixture
def tokenizer():
    words = Tokenizer(WordLevel({word: i for i, word in enumerate(["[UNK]", *TEXT.split()])}, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()
    words.enable_truncation(2)
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")


def test_from_model_returns_the_queries_and_keys_of_the_attention(model, tokenizer):
    model.transformer.h[0].eval()
    before = model.config._attn_implementation
    record = from_model(model, tokenizer, TEXT, layer=1)
    assert record.tokens == tuple(TEXT.split())
    assert record.causal
    assert model.config._attn_implementation == before
    assert (model.training, model.transformer.h[0].training, model.transformer.h[1].training) == (True, False, True)
    assert tokenizer.backend_tokenizer.truncation["max_length"] == 2

    model.eval().set_attn_implementation("eager")  # the only implementation that returns its weights
    ids = torch.tensor([[tokenizer.convert_tokens_to_ids(word) for word in TEXT.split()]])
    with torch.no_grad():
        expected = model(input_ids=ids, output_attentions=True).attentions[1][0]
    logits = record.q @ record.k.mT / record.q.shape[-1] ** 0.5
    own = logits.masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf).softmax(-1)
    assert torch.allclose(own, expected, atol=1e-6)


def test_a_layer_that_does_not_exist_and_a_model_without_attention_are_refused(model, tokenizer):
    with pytest.raises(InputError, match="Choose a layer from 0 to 2"):
        from_model(model, tokenizer, TEXT, layer=3)
    with pytest.raises(ModelError, match="not a fast tokenizer"):
        from_model(model, str, TEXT)
    with pytest.raises(ModelError, match="attention interface"):
        from_model(MambaModel(MambaConfig(hidden_size=8, num_hidden_layers=1, vocab_size=8)), tokenizer, TEXT)


def test_html_escapes_the_name_of_a_record():
    assert "&lt;b&gt;" in QKV.from_tensors(*ARRAYS, name="<b>")._repr_html_()


def test_html_shows_the_softmax_matrix_and_its_entropy():
    q, k, v = torch.zeros(2, 70, 4), torch.zeros(2, 70, 4), torch.randn(2, 70, 4)
    html = QKV.from_tensors(q, k, v)._repr_html_()
    assert '<img class="matrix"' in html
    assert f"of the first 64 tokens, averaged over 2 heads. Mean entropy of a row: {math.log(64):.2f} nats." in html
    one = QKV.from_tensors(q[:1, :5], k[:1, :9], v[:1, :9])._repr_html_()
    assert f"<p>Softmax attention. Mean entropy of a row: {math.log(9):.2f} nats.</p>" in one
