"""Tests of swapped attention: only the named layers change, transformers' models agree, and the swap is undone."""

import copy
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    BartConfig,
    DynamicCache,
    GPT2Config,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaModel,
    MistralConfig,
)

import attention_core as ac
from attention_core.errors import InputError, LabError, ModelError, NotCausalError, UnknownVariantError
from attention_core.inputs import models
from attention_core.inputs.models.attention_interface import RECORDER
from attention_core.inputs.models.recorder import record
from attention_core.model_patching import (
    MEAN,
    copy_losses,
    from_word,
    layer_range,
    losses,
    perplexity,
    repeated,
    swapped,
)
from attention_core.model_patching.swap import _token_mask

TEXTS = (
    "The librarian who had lost her keys asked the boy beside the window whether he had seen them.",
    "the cat saw the dog and the dog saw the cat",
    "图书管理员 3.14 naïve!",
)
SOFTMAX = ac.get("softmax")


def in_all_layers(loaded, attends):
    return dict.fromkeys(range(loaded.info.layers), attends)


def read(loaded, ids, mask=None):
    with torch.no_grad():
        return loaded.model(input_ids=ids, attention_mask=mask).last_hidden_state


def with_transformers_attention(model):
    """Return the same model with transformers' own attention."""
    twin = type(model)._from_config(copy.deepcopy(model.config), attn_implementation="sdpa").eval()
    twin.load_state_dict(model.state_dict())
    return twin


@pytest.fixture(scope="module", params=["minilm", "smollm2"])
def model_pair(request):
    loaded = models.load(request.param)
    return loaded, with_transformers_attention(loaded.model)


@pytest.fixture(scope="module")
def smol():
    return models.load("smollm2")


def tiny(config, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return AutoModel.from_config(copy.deepcopy(config), attn_implementation=RECORDER).eval().requires_grad_(False)


LLAMA = LlamaConfig(
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=48,
    vocab_size=64,
)


@pytest.mark.parametrize("side", ["left", "right"])
def test_swapped_softmax_equals_transformers_with_padding(model_pair, side):
    loaded, own = model_pair
    each = [torch.tensor(loaded.tokenizer.encode(text).ids) for text in TEXTS]
    ids = torch.nn.utils.rnn.pad_sequence(each, batch_first=True, padding_side=side)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(x) for x in each], batch_first=True, padding_side=side)
    with swapped(loaded.model, in_all_layers(loaded, SOFTMAX)), torch.no_grad():
        found = loaded.model(input_ids=ids, attention_mask=mask).last_hidden_state
        outputs_with = [loaded.model(input_ids=x[None]).last_hidden_state[0] for x in each]
    with torch.no_grad():
        true = own(input_ids=ids, attention_mask=mask).last_hidden_state
        words = loaded.model.get_input_embeddings().weight
        for place, x in enumerate(each):
            kept = mask[place].bool()
            for ours, theirs in (
                (found[place][kept], true[place][kept]),
                (outputs_with[place], own(input_ids=x[None]).last_hidden_state[0]),
            ):
                torch.testing.assert_close(ours @ words.mT, theirs @ words.mT, atol=1e-4, rtol=1e-4)


class Elsewhere:
    """A model without layers on another device, which needs its tokens on that device."""

    device = torch.device("meta")

    def __init__(self, config):
        self.config = config
        self.embedding = torch.nn.Embedding(config.vocab_size, config.hidden_size, device="meta")

    def get_input_embeddings(self):
        return self.embedding

    def __call__(self, input_ids):
        assert input_ids.device == self.device
        return SimpleNamespace(last_hidden_state=self.embedding(input_ids))


def test_losses_are_computed_on_the_models_device_and_need_known_tokens(smol):
    assert losses(replace(smol, model=Elsewhere(smol.model.config)), [1, 2, 3]).device == Elsewhere.device
    for token in (-1, 49_152):
        with pytest.raises(InputError, match=rf"token number is {token}\. Choose a number from 0 to 49151"):
            losses(smol, [1, token])


def test_perplexity_equals_transformers_loss(smol):
    own = LlamaForCausalLM._from_config(copy.deepcopy(smol.model.config), attn_implementation="sdpa").eval()
    own.model.load_state_dict(smol.model.state_dict())
    own.tie_weights()
    for text in TEXTS:
        ids = smol.tokenizer.encode(text).ids
        given = torch.tensor([ids])
        with torch.no_grad():
            loss = own(input_ids=given, labels=given).loss
        assert perplexity(losses(smol, ids)) == pytest.approx(float(loss.exp()), rel=1e-4)


@pytest.mark.parametrize(
    "word", ["topk~k~24", "local~window~24", "sink~window~24~sinks~0", "sink~window~24~sinks~4", "atrous~stride~1"]
)
def test_decoder_with_a_full_window_is_unchanged(smol, word):
    ids = smol.tokenizer.encode(TEXTS[0]).ids
    assert len(ids) <= 24
    before = losses(smol, ids)
    with swapped(smol.model, in_all_layers(smol, from_word(word))):
        torch.testing.assert_close(losses(smol, ids), before, atol=1e-3, rtol=1e-4)


def test_encoder_with_one_landmark_per_token_is_unchanged():
    loaded = models.load("minilm")
    ids = torch.tensor([loaded.tokenizer.encode(TEXTS[1]).ids])
    before = read(loaded, ids)
    with swapped(loaded.model, in_all_layers(loaded, ac.get("nystrom", landmarks=64, inverse="exact"))):
        torch.testing.assert_close(read(loaded, ids), before, atol=1e-3, rtol=1e-3)


def test_model_is_bit_identical_after_the_block(model_pair):
    loaded, _ = model_pair
    ids = torch.tensor([loaded.tokenizer.encode(TEXTS[0]).ids])
    before, state, config = read(loaded, ids), copy.deepcopy(loaded.model.state_dict()), loaded.model.config.to_dict()
    with swapped(loaded.model, in_all_layers(loaded, MEAN)):
        assert not torch.allclose(read(loaded, ids), before, atol=1e-2)
    with pytest.raises(RuntimeError, match="on the way"), swapped(loaded.model, {0: MEAN}):
        raise RuntimeError("on the way")
    assert torch.equal(read(loaded, ids), before)
    assert loaded.model.config.to_dict() == config
    assert all(torch.equal(state[name], now) for name, now in loaded.model.state_dict().items())


def test_only_the_given_layers_are_replaced(smol):
    ids = smol.tokenizer.encode(TEXTS[0]).ids
    before = record(smol.model, ids)
    with swapped(smol.model, {12: MEAN}):
        inside = record(smol.model, ids)
    for layer in range(smol.info.layers):
        assert torch.equal(inside[layer].q, before[layer].q) == (layer <= 12)


def test_a_replacement_may_be_given_by_its_word(smol):
    ids = torch.tensor([smol.tokenizer.encode(TEXTS[0]).ids])
    for word in ("linear", "uniform"):
        with swapped(smol.model, {3: from_word(word)}):
            expected = read(smol, ids)
        with swapped(smol.model, {3: word}):
            assert torch.equal(read(smol, ids), expected)
    with pytest.raises(UnknownVariantError, match="Did you mean 'linear'"), swapped(smol.model, {3: "linaer"}):
        pass


def test_inner_swap_takes_precedence(smol):
    ids = torch.tensor([smol.tokenizer.encode(TEXTS[1]).ids])
    with swapped(smol.model, {1: MEAN, 5: SOFTMAX}):
        with swapped(smol.model, {5: MEAN}):
            nested = read(smol, ids)
        outer = read(smol, ids)
    with swapped(smol.model, {1: MEAN, 5: MEAN}):
        assert torch.equal(read(smol, ids), nested)
    with swapped(smol.model, {1: MEAN}):
        torch.testing.assert_close(read(smol, ids), outer, atol=1e-4, rtol=1e-4)


def test_concurrent_swaps_are_independent():
    loaded = models.load("minilm")
    ids = torch.tensor([loaded.tokenizer.encode(TEXTS[0]).ids])
    words = ("uniform", "local~window~1", "linear", None)

    def outputs_with(word):
        if word is None:
            return read(loaded, ids)
        with swapped(loaded.model, in_all_layers(loaded, from_word(word))):
            return read(loaded, ids)

    true = {word: outputs_with(word) for word in words}
    together = threading.Barrier(len(words))

    def visitor(word):
        together.wait(30)
        return word, [outputs_with(word) for _ in range(8)]

    with ThreadPoolExecutor(len(words)) as threads:
        for word, found in threads.map(visitor, words):
            assert all(torch.equal(each, true[word]) for each in found)


def test_non_causal_variant_raises_and_restores_the_model(smol):
    ids = smol.tokenizer.encode(TEXTS[1]).ids
    before = losses(smol, ids)
    variant = ac.get("nystrom")
    with pytest.raises(NotCausalError) as refused, swapped(smol.model, {3: variant}):
        pass
    assert variant.variant.causal_reason in str(refused.value)
    assert torch.equal(losses(smol, ids), before)
    encoder = models.load("minilm")
    with swapped(encoder.model, {0: variant}):
        assert read(encoder, torch.tensor([encoder.tokenizer.encode("a").ids])).isfinite().all()


@pytest.mark.parametrize("variant", [v for v in ac.all_variants() if not v.causal_reason], ids=lambda v: v.key)
def test_causal_variants_do_not_use_later_tokens(variant):
    model = tiny(LLAMA)
    ids = torch.randint(64, (1, 21), generator=torch.Generator().manual_seed(1))
    other = ids.clone()
    other[0, 15:] = 7
    with swapped(model, dict.fromkeys(range(3), ac.get(variant.key))), torch.no_grad():
        found, changed = (model(input_ids=x).last_hidden_state for x in (ids, other))
    torch.testing.assert_close(found[:, :15], changed[:, :15], atol=1e-4, rtol=1e-3)
    assert not torch.allclose(found[:, 15:], changed[:, 15:])


@pytest.mark.parametrize(
    "word", ["softmax", "local~window~3", "sink~window~4", "topk~k~2", "linear", "reformer", "uniform"]
)
def test_decoding_with_a_cache_gives_the_same_outputs(word):
    model = tiny(LLAMA)
    ids = torch.randint(64, (1, 12), generator=torch.Generator().manual_seed(2))
    with swapped(model, dict.fromkeys(range(3), from_word(word))), torch.no_grad():
        whole = model(input_ids=ids).last_hidden_state
        cache, steps = DynamicCache(), []
        for piece in (ids[:, :5], *ids[:, 5:].split(1, dim=1)):
            steps.append(model(input_ids=piece, past_key_values=cache, use_cache=True).last_hidden_state)
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-4, rtol=1e-4)


def test_a_text_that_another_text_interrupted_is_refused():
    model, one = tiny(LLAMA), torch.tensor([[3]])
    with swapped(model, {0: ac.get("topk", k=2)}), torch.no_grad():
        caches = [DynamicCache() for _ in range(2)]
        for cache, text in zip(caches, ([1, 2, 3, 4], [9, 8, 7, 6]), strict=True):
            model(input_ids=torch.tensor([text]), past_key_values=cache, use_cache=True)
        with pytest.raises(ModelError, match="did not read last"):
            model(input_ids=one, past_key_values=caches[0], use_cache=True)


@pytest.mark.parametrize("word", ["softmax", "selective", "reformer"])
def test_beam_search_with_and_without_a_cache_gives_the_same_texts(word):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = LlamaConfig(**{**LLAMA.to_dict(), "initializer_range": 0.3})  # sharp attention, so beams differ
        model = AutoModelForCausalLM.from_config(config, attn_implementation=RECORDER).eval()
    ids = torch.randint(64, (2, 7), generator=torch.Generator().manual_seed(3))
    settings = {"num_beams": 4, "num_return_sequences": 4, "max_new_tokens": 9, "do_sample": False, "pad_token_id": 0}
    settings |= {"output_scores": True, "return_dict_in_generate": True, "attention_mask": torch.ones_like(ids)}
    with swapped(model, dict.fromkeys(range(3), from_word(word))):
        found, expected = (model.generate(ids, use_cache=use, **settings) for use in (True, False))
    assert torch.equal(found.sequences, expected.sequences)
    torch.testing.assert_close(found.sequences_scores, expected.sequences_scores, atol=1e-5, rtol=1e-5)


def test_a_cache_from_before_the_swap_is_refused():
    model, cache = tiny(LLAMA), DynamicCache()
    with torch.no_grad():
        model(input_ids=torch.tensor([[1, 2, 3]]), past_key_values=cache, use_cache=True)
        with swapped(model, {0: MEAN}), pytest.raises(ModelError, match="empty cache"):
            model(input_ids=torch.tensor([[4]]), past_key_values=cache, use_cache=True)


def test_gpt2_with_logits_scaled_by_layer_is_unchanged():
    config = GPT2Config(
        n_embd=24, n_layer=3, n_head=3, n_positions=32, vocab_size=64, scale_attn_by_inverse_layer_idx=True
    )
    model, ids = tiny(config), torch.tensor([[5, 3, 9, 1, 7]])
    with torch.no_grad():
        before = model(input_ids=ids).last_hidden_state
        with swapped(model, dict.fromkeys(range(3), SOFTMAX)):
            torch.testing.assert_close(model(input_ids=ids).last_hidden_state, before, atol=1e-5, rtol=1e-5)


def test_replaced_cross_attention_accepts_fewer_keys_than_queries():
    config = BartConfig(
        vocab_size=64,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
    )
    model = tiny(config)
    ids = {"input_ids": torch.tensor([[5, 3, 9, 1]]), "decoder_input_ids": torch.tensor([[7, 2, 8, 4, 6, 11]])}
    with torch.no_grad():
        before = model(**ids, use_cache=False).last_hidden_state
        with swapped(model, {2: SOFTMAX}):  # the layers are the encoder's, the decoder's, and the cross-attention
            found = model(**ids, use_cache=False).last_hidden_state
    torch.testing.assert_close(found, before, atol=1e-5, rtol=1e-5)


def test_layer_with_a_sliding_window_raises():
    config = MistralConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=64,
        sliding_window=4,
    )
    model = tiny(config)
    with torch.no_grad(), swapped(model, {0: MEAN}):
        model(input_ids=torch.tensor([[1, 2, 3]]))  # Within its window.
        with pytest.raises(ModelError, match="sliding window"):
            model(input_ids=torch.arange(9)[None])


@pytest.mark.parametrize(("places", "word"), [({30: MEAN}, "from 0 to 29"), ({-1: MEAN}, "from 0 to 29")])
def test_missing_layer_raises_an_error_with_the_valid_range(smol, places, word):
    with pytest.raises(InputError, match=word), swapped(smol.model, places):
        pass


def test_model_without_the_interface_raises():
    model = LlamaModel(LLAMA).eval()
    with pytest.raises(ModelError, match=RECORDER), swapped(model, {0: MEAN}):
        pass


def test_losses_of_an_encoder_raise():
    with pytest.raises(ModelError, match="next token"):
        losses(models.load("minilm"), [1, 2, 3])


@pytest.mark.parametrize("ids", [[], [5]])
def test_too_few_tokens_raise(smol, ids):
    with pytest.raises(InputError, match="at least two"):
        losses(smol, ids)


@pytest.mark.parametrize("causal", [False, True])
def test_mean_attention_is_uniform(causal):
    q, k, v = torch.randn(3, 2, 7, 4, generator=torch.Generator().manual_seed(0))
    found = MEAN.attend(q, k, v, causal=causal)
    true = torch.stack([v[:, : i + 1].mean(1) for i in range(7)], 1) if causal else v.mean(1, keepdim=True).expand_as(v)
    torch.testing.assert_close(found, true)
    torch.testing.assert_close(MEAN.weights(q, k, causal=causal) @ v, true)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_mean_attention_sums_half_precision_in_float32(causal, dtype):
    v = (200 + 9 * torch.randn(2, 600, 4, generator=torch.Generator().manual_seed(0))).to(dtype)
    exact = MEAN.attend(v.double(), v.double(), v.double(), causal=causal)
    found = MEAN.attend(v, v, v, causal=causal)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), exact, rtol=torch.finfo(dtype).eps, atol=0)
    weights = MEAN.weights(v, v, causal=causal)
    assert weights.dtype == dtype
    torch.testing.assert_close(
        weights.double().sum(-1), torch.ones(2, 600).double(), rtol=torch.finfo(dtype).eps, atol=0
    )


def test_layer_range_parses_words():
    assert layer_range("all", 5) == (0, 1, 2, 3, 4)
    assert layer_range("3", 5) == (3,)
    assert layer_range("1-3", 5) == (1, 2, 3)
    for word in ("", "5", "3-1", "-1", "1-", "0-5", "a", "1-2-3", "²"):
        with pytest.raises(LabError, match="10-20"):
            layer_range(word, 5)


def test_repeated_returns_ordinary_tokens_twice(smol):
    found = repeated(smol, 40, 3)
    assert found[:40] == found[40:] == repeated(smol, 40, 3)[:40]
    assert found != repeated(smol, 40, 4)
    assert not set(found) & set(smol.tokenizer.get_added_tokens_decoder())
    with pytest.raises(InputError, match="at least two"):
        repeated(smol, 1, 0)


def test_a_model_copies_text_unless_it_attends_only_to_neighbours(smol):
    first, second = copy_losses(smol, 24, 0)
    assert len(first) == len(second) == 23
    assert second.mean() < first.mean() / 3
    with swapped(smol.model, in_all_layers(smol, ac.get("sink", window=8, sinks=4))):
        first, second = copy_losses(smol, 24, 0)
    assert second.mean() > first.mean() * 0.8


def test_perplexity_of_a_loss_beyond_floats_is_infinite():
    assert perplexity([0.0, 0.0]) == 1.0
    assert perplexity([1e4]) == float("inf")
    assert math.isnan(perplexity([]))
    assert math.isnan(perplexity([1.0, math.nan]))


@pytest.mark.parametrize("side", ["left", "right"])
def test_window_mask_in_a_padded_batch_raises(side):
    mask = torch.ones(2, 1, 6, 6, dtype=torch.bool).tril()
    real = torch.tensor([[True] * 6, [False] * 2 + [True] * 4 if side == "left" else [True] * 4 + [False] * 2])
    assert torch.equal(_token_mask(mask & real[:, None, None], causal=True), real)
    late = mask & real[:, None, None]
    late[0, 0, 5, 0] = False
    with pytest.raises(ModelError, match="sliding window"):
        _token_mask(late, causal=True)
    middle = mask & real[:, None, None]
    middle[1, 0, 3, 2] = False
    with pytest.raises(ModelError, match="sliding window"):
        _token_mask(middle, causal=True)
