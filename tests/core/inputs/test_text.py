"""Tests of text input: any text gives a record or a one-sentence error, labels are readable, and cuts are reported."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_core import limits
from attention_core.errors import InputError
from attention_core.inputs import from_text, models, record_layers
from attention_core.inputs.labels import label_pieces, readable
from attention_core.inputs.text import read

SENTENCE = "The unbelievable Café costs 42 dollars."
LONG = "A garden is a slow conversation, and the moss wants only to be left alone. " * 80
KEYS = [info.key for info in models.BUILT_IN]


def sentences(qkv):
    return [str(notice) for notice in qkv.notices]


def test_a_sentence_in_minilm_has_the_expected_tokens_and_shapes():
    qkv = from_text(SENTENCE, layer=3)
    assert qkv.tokens == ("[CLS]", "The", "unbelievable", "Café", "costs", "42", "dollars", ".", "[SEP]")
    assert qkv.special == (True, *[False] * 7, True)
    assert len(set(qkv.groups)) == qkv.n == qkv.total_tokens == 9
    assert qkv.q.shape == qkv.k.shape == qkv.v.shape == (12, 9, 32)
    assert qkv.q.dtype == torch.float32
    assert (qkv.causal, qkv.scale, qkv.origin, qkv.notices) == (False, pytest.approx(32**-0.5), "minilm layer 3", ())


def test_a_sentence_in_smollm2_has_the_expected_tokens_and_shapes():
    qkv = from_text(SENTENCE, model="smollm2", layer=29)
    assert qkv.tokens == ("The", "unbelie", "vable", "Caf", "é", "costs", "␣", "4", "2", "dollars", ".")
    assert not any(qkv.special)
    assert qkv.q.shape == qkv.k.shape == qkv.v.shape == (9, 11, 64)
    assert (qkv.causal, qkv.origin, qkv.notices) == (True, "smollm2 layer 29", ())
    # Three query heads share one key head.
    assert torch.equal(qkv.k[0], qkv.k[2])
    assert not torch.equal(qkv.k[2], qkv.k[3])


@pytest.mark.parametrize("model", KEYS)
def test_a_single_layer_equals_the_same_layer_among_all_layers(model):
    every = record_layers(SENTENCE, model=model)
    assert len(every) == models.layer_count(model)
    for layer in (0, len(every) - 1):
        single = from_text(SENTENCE, model=model, layer=layer)
        assert single.origin == every[layer].origin
        for mine, theirs in ((single.q, every[layer].q), (single.k, every[layer].k), (single.v, every[layer].v)):
            assert torch.equal(mine, theirs)
    backwards = record_layers(SENTENCE, model=model, layers=(2, 1))
    assert [qkv.origin for qkv in backwards] == [every[2].origin, every[1].origin]
    assert not torch.equal(every[1].q, every[2].q)


def test_a_reading_stores_shared_keys_and_values_once():
    reading = read(SENTENCE, model="smollm2")
    assert reading.nbytes == len(reading) * reading[0].n * (9 + 3 + 3) * 64 * 4
    with pytest.raises(InputError, match=r"SmolLM2-135M has no layer 30\. Choose a layer from 0 to 29"):
        reading[30]
    with pytest.raises(InputError, match="Choose at least one layer"):
        record_layers("a", layers=[])


def test_records_can_be_differentiated():
    qkv = from_text("A word.")
    q = qkv.q.clone().requires_grad_()
    (q @ qkv.k.mT).softmax(-1).matmul(qkv.v).square().sum().backward()
    assert q.grad.abs().sum() > 0


@pytest.mark.parametrize("model", KEYS)
def test_threads_with_different_texts_get_their_own_records(model):
    texts = [f"{word} walked home alone." for word in ("She", "The old clockmaker", "Nobody in the town ever")]
    expected = [from_text(text, model=model, layer=1) for text in texts]
    start = threading.Barrier(len(texts))

    def work(text):
        start.wait()
        return [from_text(text, model=model, layer=1) for _ in range(8)]

    with ThreadPoolExecutor(len(texts)) as pool:
        for mine, runs in zip(expected, pool.map(work, texts), strict=True):
            for run in runs:
                assert run.tokens == mine.tokens
                torch.testing.assert_close(run.q, mine.q)


@pytest.mark.parametrize("model", KEYS)
@pytest.mark.parametrize("text", ["", "   ", "\n\t \r\n", "\u3000\xa0", " " * 30_000 + "late"])
def test_blank_text_is_refused(model, text):
    with pytest.raises(InputError, match="empty"):
        from_text(text, model=model)


@pytest.mark.parametrize("text", ["\x00", "\u200d\u202e", "\ufe0f"])
def test_text_without_any_tokens_of_the_model_is_refused(text):
    with pytest.raises(InputError, match="MiniLM-L6 finds no tokens"):
        from_text(text)


@pytest.mark.parametrize(
    ("text", "tokens", "groups"),
    [
        ("a", ("a",), (0,)),
        ("你好", ("你", "·", "好", "·"), (0, 0, 2, 2)),
        ("😀!", ("😀", "·", "·", "!"), (0, 0, 0, 3)),
        ("ש", ("ש",), (0,)),
        ("\x00\x07", ("␀", "␇"), (0, 1)),
        ("a\nb\t\n\n", ("a", "↵", "b", "⇥", "↵↵"), (0, 1, 2, 3, 4)),
        ("\ud800x", ("�", "x"), (0, 1)),
        ("\ud83d\ude00", ("😀", "·", "·"), (0, 0, 0)),
        ("x\u200d", ("x", "U+200D", "·"), (0, 1, 1)),
        ("\u0301", ("◌́", "·"), (0, 0)),
        ("\ufeffa", ("U+FEFF", "·", "·", "a"), (0, 0, 0, 3)),
        ("<|im_end|>", ("<|im_end|>",), (0,)),
    ],
)
def test_labels_of_byte_tokens_are_readable(text, tokens, groups):
    qkv = from_text(text, model="smollm2")
    assert qkv.tokens == tokens
    assert qkv.groups == groups


def test_a_text_with_split_characters_reports_how_their_tokens_are_labelled():
    qkv = from_text("好书！ok", model="smollm2")
    assert qkv.names == ("好", "好₂", "书", "书₂", "！", "！₂", "ok")
    assert qkv.continues == (False, True, False, True, False, True, False)
    [notice] = qkv.notices
    assert str(notice) == (
        "SmolLM2-135M splits some characters into two or more tokens. On the axes, these tokens share one label. In "
        "the texts of the page, the second token of “好” is called “好₂”. Number of tokens that continue a "
        "character: 3."
    )
    assert from_text("ok · ok", model="smollm2").notices == ()


def test_pieces_of_a_word_and_of_a_character_are_labelled_in_minilm():
    qkv = from_text("unbelievably 한")
    assert qkv.tokens == ("[CLS]", "un", "bel", "ie", "va", "bly", "한", "·", "·", "[SEP]")
    assert qkv.groups == (0, 1, 2, 3, 4, 5, 6, 6, 6, 9)


def test_a_piece_across_two_characters_is_labelled_with_the_new_character():
    labels, groups = label_pieces("你好", [(0, 1), (0, 2), (1, 2)], ["", "", ""])
    assert labels == ("你", "好", "·")
    assert groups == (0, 0, 0)


def test_a_piece_without_text_keeps_the_name_of_the_tokenizer():
    assert label_pieces("a", [(0, 0), (0, 1), (1, 1)], ["<s>", "", "</s>"]) == (("<s>", "a", "</s>"), (0, 1, 2))
    assert readable(" the ") == "the"
    assert readable("  ") == "␣␣"
    assert readable(" New York\n") == "New York↵"


def test_unknown_tokens_are_counted_in_a_notice():
    qkv = from_text("The cat 钥匙 sat 🦆")
    assert qkv.tokens == ("[CLS]", "The", "cat", "[UNK]", "[UNK]", "sat", "[UNK]", "[SEP]")
    assert len(sentences(qkv)) == 1
    assert "3 of the 8 tokens" in sentences(qkv)[0]
    [split] = from_text("The cat 钥匙 sat 🦆", model="smollm2").notices
    assert "the unknown token" not in str(split)
    assert "“钥” is called “钥₂”" in str(split)


def test_incomplete_characters_are_replaced_with_a_notice():
    qkv = from_text("a \ud800 b", model="smollm2")
    assert qkv.tokens == ("a", "␣", "�", "b")
    assert "incomplete characters" in sentences(qkv)[0]


@pytest.mark.parametrize(("model", "kept"), [("minilm", 512), ("smollm2", 1024)])
def test_a_long_text_is_cut_with_a_notice_of_its_last_words(model, kept):
    qkv = from_text(LONG, model=model)
    assert qkv.n == kept < qkv.total_tokens
    (notice,) = sentences(qkv)
    assert f"{qkv.total_tokens:,} tokens" in notice
    assert f"first {kept:,} " in notice
    last = [token for token, special in zip(qkv.tokens, qkv.special, strict=True) if not special][-1]
    assert notice.endswith(f"{last}”.")
    words = notice.split("“… ")[1].split("”")[0]
    assert len(words) > 20
    assert words in LONG


@pytest.mark.parametrize("room", [3, 4, 17])
def test_a_cut_text_has_the_tokens_of_the_tokenizer_truncation(room):
    loaded = models.load("minilm")
    tokenizer = type(loaded.tokenizer).from_str(loaded.tokenizer.to_str())
    tokenizer.enable_truncation(room)
    qkv = from_text(LONG, max_tokens=room)
    assert qkv.n == room
    assert (qkv.tokens[0], qkv.tokens[-1]) == ("[CLS]", "[SEP]")
    assert [label.lower() for label in qkv.tokens[1:-1]] == tokenizer.encode(LONG).tokens[1:-1]


def test_a_causal_model_gives_the_same_first_tokens_for_any_continuation():
    short, long = (from_text(LONG, model="smollm2", layer=2, max_tokens=n) for n in (16, 24))
    torch.testing.assert_close(short.q, long.q[:, :16], atol=1e-4, rtol=1e-4)
    assert short.tokens == long.tokens[:16]


def test_a_text_is_cut_at_the_limit_of_the_profile(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    assert from_text(LONG, model="smollm2").n == limits.HOSTED.matrix_tokens
    assert from_text(4 * LONG, model="smollm2", max_tokens=10**9).n == limits.HOSTED.sweep_tokens


@pytest.mark.parametrize("max_tokens", [2, 0, -5])
def test_a_limit_of_fewer_than_three_tokens_is_refused(max_tokens):
    with pytest.raises(InputError, match="at least 3"):
        from_text("A word.", max_tokens=max_tokens)


@pytest.mark.parametrize("layer", [-1, 6, 10**9])
def test_a_layer_out_of_bounds_is_refused(layer):
    with pytest.raises(InputError, match="from 0 to 5"):
        from_text("A word.", layer=layer)


@pytest.mark.parametrize("model", KEYS)
@pytest.mark.parametrize("character", ["a", "é ", "你", "🦆", "\n.", "\u202e!"])
def test_a_text_of_a_hundred_thousand_characters_is_cut_with_a_notice(model, character):
    text = (character * 100_000)[:100_000]
    qkv = from_text(text, model=model, max_tokens=64)
    assert 3 <= qkv.n <= 64
    assert "100,000 characters. Only the first 20,000" in sentences(qkv)[0]


def test_a_notice_counts_the_tokens_of_the_characters_that_are_read():
    assert "The text has 4,002 tokens. Only the first 512 are used" in sentences(from_text("word " * 4000))[0]
    _cut, counted = sentences(from_text("word " * 4001))
    assert counted.startswith("The first 20,000 characters have 4,002 tokens. Only the first 512 are used, up to “")


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(codec=None), min_size=1, max_size=40))
def test_any_text_gives_a_record_or_an_error_in_one_sentence(text):
    try:
        qkv = from_text(text)
    except InputError as error:
        assert str(error).endswith(".")  # noqa: PT017 - both outcomes are right, each with its own shape
        return
    assert qkv.n == len(qkv.tokens) == len(qkv.groups)
    assert all(qkv.tokens)
    assert all(character.isprintable() for label in qkv.tokens for character in label)
    assert list(qkv.groups) == sorted(qkv.groups)
    assert torch.isfinite(qkv.q).all()
    for notice in qkv.notices:
        str(notice).encode()  # A screen can show it.


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(codec=None), min_size=1, max_size=40))
def test_any_characters_have_printable_labels_in_smollm2(text):
    try:
        qkv = from_text(text, model="smollm2")
    except InputError:
        # Some control characters have no token.
        assert not text.strip() or not models.load("smollm2").tokenizer.encode(text).ids
        return
    assert all(label and label.isprintable() for label in qkv.tokens)
    assert torch.isfinite(qkv.q).all()
