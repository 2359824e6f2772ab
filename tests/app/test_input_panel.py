"""Tests of the input panel: the description of the input, its positions (such as ALiBi), and its messages."""

import dataclasses

import numpy as np
import pytest
from driver import board, go, open_page, set_state, spoken, visit

import attention_core as ac
from app.jobs import cached
from app.state import presets
from app.ui.input_forms import UPLOAD
from app.ui.input_panel import describe_alibi, describe_positions, describe_size, future_share_message, shown_tokens
from app.ui.lazy import OPEN_FORMS, to_css_name
from attention_core.inputs.positions import ALIBI, NONE, OWN, ROPE
from attention_core.inputs.source import SyntheticSource, TextSource
from attention_core.inputs.synthetic import SyntheticSpec
from attention_core.runtime.cache import ByteLRUCache
from pages.entropy.distance import position_origin


def record(special):
    qkv = SyntheticSource(SyntheticSpec(n=16, heads=1, d=8)).load()
    return dataclasses.replace(qkv, special=tuple(special))


def test_shown_tokens_are_counted():
    qkv = record([True] + [False] * 14 + [True])
    assert len(shown_tokens(qkv)) == 14
    assert describe_size(qkv, shown=14) == "14 tokens shown · 2 special tokens hidden, rows rescaled · 1 head × 8 dims"
    one = "15 tokens shown · 1 special token hidden, rows rescaled · 1 head × 8 dims"
    assert describe_size(qkv, shown=15) == one
    assert describe_size(qkv, shown=1).startswith("1 token shown · 15 special tokens hidden, ")
    assert describe_size(qkv, shown=16) == "16 tokens · 1 head × 8 dims"
    assert shown_tokens(record([True] * 16)) == qkv.tokens  # If all tokens are special, all are shown.


def test_one_token_is_singular():
    qkv = SyntheticSource(SyntheticSpec(n=1, heads=2, d=4)).load()
    assert describe_size(qkv, shown=1) == "1 token · 2 heads × 4 dims"


def test_a_disabled_mask_is_reported_with_its_head():
    assert (
        "later tokens, but **Causal** is switched off. Later tokens now receive 64% of the softmax weight in head 3."
        in future_share_message(0.64, 3)
    )
    assert "Later tokens now receive 64% of the softmax weight on average over heads." in future_share_message(
        0.64, None
    )
    assert all("Switch **Causal** on" in future_share_message(0.1, head) for head in (None, 0))


def test_an_upload_is_shared_and_requested_again_after_its_eviction(monkeypatch):
    kept = ByteLRUCache(50_000, len)
    monkeypatch.setattr(cached, "uploads", lambda: kept)
    at = open_page("matrices", {"input": "upload", "variants": ["softmax"]})
    at.file_uploader(key="upload.widget").set_value(("m\x1bine.npz", ac.inputs.example_npz(), "")).run()
    assert at.session_state[UPLOAD].name == "m?ine.npz"
    assert at.session_state[UPLOAD].data == b""
    at.file_uploader(key="upload.widget").set_value(None).run()
    assert "Showing m?ine.npz" in [caption.value for caption in at.caption]
    assert not at.error
    kept.get("another visitor's", lambda: bytes(45_000))
    at.run()
    [error] = at.error
    assert error.value == (
        "m?ine.npz was removed, because the files of all visitors together may use at most 1024 MiB. Upload the file "
        "again."
    )


def test_a_file_of_another_kind_is_explained_and_replaced_by_the_next():
    at = open_page("matrices", {"input": "upload", "variants": ["softmax"]})
    reminder = "A file is not kept after a reload, so upload an earlier file again."
    assert any(reminder in each.value for each in at.info)
    at.file_uploader(key="upload.widget").set_value(("mine.csv", b"0.5,0.25\n", "text/csv")).run()
    [error] = at.error
    assert error.value.startswith("mine.csv is not an .npz file. Save the three arrays q, k and v with np.savez")
    assert not any(reminder in each.value for each in at.info)
    at.file_uploader(key="upload.widget").set_value(("mine.npz", ac.inputs.example_npz(), "")).run()
    assert not at.error
    assert at.session_state[UPLOAD].name == "mine.npz"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"text": ["@repeats"], "special": ["0"]}, "MiniLM-L6 · layer 2 · head 3 · 15 of 17 tokens"),
        ({"text": ["@repeats"], "head": ["-1"]}, "MiniLM-L6 · layer 2 · average of 12 heads · 17 tokens"),
        ({"input": ["synthetic"], "kind": ["needle"], "n": ["12"]}, "Needle · head 3 · 12 tokens"),
        ({"text": ["@repeats"], "model": ["smollm2"], "layer": ["0"]}, "SmolLM2-135M · layer 0 · head 3 · 15 tokens"),
    ],
)
def test_every_page_begins_with_the_name_of_its_input(query, expected):
    at = visit("matrices", {**query, "variants": ["softmax"]})
    assert f"[{expected}](#input)" in [caption.value for caption in at.main.caption]


def test_positions_are_named_if_they_differ_from_the_inputs_own():
    turned, plain = (SyntheticSource(SyntheticSpec(n=4, rope=rope)) for rope in (True, False))
    found = {
        (source.spec.rope, positions): describe_positions(dataclasses.replace(source, positions=positions))
        for source in (turned, plain)
        for positions in (OWN, NONE, ROPE)
    }
    assert all(
        describe_positions(dataclasses.replace(each, positions=ALIBI)) == ["with ALiBi"] for each in (turned, plain)
    )
    assert found[True, NONE] == ["without RoPE"]
    assert found[False, ROPE] == ["with RoPE"]
    assert sum(map(len, found.values())) == 2


def test_every_page_gets_queries_and_keys_with_the_chosen_positions():
    query = {"input": ["text"], "text": ["@repeats"], "model": ["smollm2"], "layer": ["2"], "variants": ["softmax"]}
    at = visit("matrices", query)
    own = board(at, "matrices.board")[1]["softmax"][1]
    at = at.selectbox(key="positions").set_value(NONE).run()
    assert at.query_params["positions"] == "none"
    assert "[SmolLM2-135M · layer 2 · head 3 · 15 tokens · without RoPE](#input)" in captions(at)
    source = TextSource(presets.texts()["repeats"], "smollm2", 2)
    for positions, found in ((OWN, own), (NONE, board(at, "matrices.board")[1]["softmax"][1])):
        q, k, _v = dataclasses.replace(source, positions=positions).load().tensors
        np.testing.assert_allclose(found, ac.get("softmax").weights(q[3], k[3]), atol=1e-3)
    at = go(at, "entropy", {"h_view": "distance"})
    assert any(text.endswith("15 tokens · without RoPE](#input)") for text in captions(at))
    set_state(at, **{OPEN_FORMS: (to_css_name("entropy.method"),)})
    notice = position_origin(dataclasses.replace(source, positions=NONE))
    assert "RoPE" in notice
    assert "To compute queries and keys without RoPE, these rotations are reversed" in notice
    assert notice in spoken(at.run())


def test_positions_that_a_model_does_not_allow_are_refused_on_the_page(monkeypatch):
    known = ac.inputs.models.load("smollm2")
    unknown = dataclasses.replace(known, info=dataclasses.replace(known.info, rotary_base=None))
    monkeypatch.setattr(ac.inputs.models, "load", lambda name: unknown)
    at = visit("matrices", {"text": ["@story"], "model": ["smollm2"], "positions": ["none"]})
    [error] = at.error
    assert error.value.endswith("so RoPE cannot be removed. Set “Positions” to its default, “original”.")


@pytest.mark.parametrize(
    ("alone", "others", "expected"),
    [
        (["Softmax", "Local"], [], ["only on the scores q·k / √d: Softmax and Local."]),
        ([], ["Linear"], ["or gates: Linear."]),
        (
            ["Softmax"],
            ["Linear", "Performer"],
            ["only on the scores q·k / √d: Softmax.", "or gates: Linear and Performer."],
        ),
    ],
)
def test_the_page_says_for_which_variants_two_coordinates_are_alibi(alone, others, expected):
    text = describe_alibi(alone, others)
    assert text.startswith("**ALiBi** subtracts 2^(−8h/H) × distance from each score q·k / √d")
    assert all(words in text for words in expected)
    assert (("ALiBi is exact for" in text), ("ALiBi is not exact for" in text)) == (bool(alone), bool(others))


def test_choosing_alibi_turns_causal_on_and_names_its_variants():
    spec = SyntheticSpec(n=24, d=8, heads=2)
    query = {"input": "synthetic", "n": "24", "d": "8", "heads": "2", "head": "0"}
    at = visit("matrices", query | {"variants": ["softmax", "linear", "nystrom"]})
    at = at.selectbox(key="positions").set_value(ALIBI).run()
    assert at.toggle(key="causal").value
    assert any("· 24 tokens · with ALiBi](#input)" in text for text in captions(at))
    assert describe_alibi(["Softmax"], ["Linear"]) in captions(at)
    q, k, _v = SyntheticSource(spec).load().tensors
    alibi = ac.get("alibi", slope=2**-4)  # This is the slope of the first of two heads.
    found = board(at, "matrices.board")[1]["softmax"][1]
    np.testing.assert_allclose(
        found[np.tril_indices(24)], alibi.weights(q[0], k[0], causal=True)[np.tril_indices(24)], atol=1e-3
    )
    at = at.toggle(key="causal").set_value(False).run()
    [error] = at.error
    assert error.value.startswith("ALiBi needs a causal mask. Switch Causal on")
    at = go(at, "causal")  # The Causal page always has a causal mask.
    assert not at.error
    at = go(at, "claims")
    [error] = at.error
    assert "this page also uses variants without a mask" in error.value


def captions(at):
    return [caption.value for caption in at.main.caption]


def test_a_missing_input_has_no_caption():
    at = visit("matrices", {"input": ["upload"]})
    assert not any(" · head " in caption.value for caption in at.caption)


def test_a_text_that_minilm_cannot_read_offers_the_model_that_can():
    at = open_page("masks", text="图书馆员丢了钥匙", variants=(ac.get("softmax"),))
    [notice] = [each.value for each in at.info if "the unknown token" in each.value]
    assert notice.startswith("MiniLM-L6 replaces ")
    [offer] = [each for each in at.button if each.label == "Read the text with SmolLM2-135M"]
    offer.click().run()
    assert (at.session_state["model"], at.session_state["causal"]) == ("smollm2", True)
    assert not [each for each in at.button if each.label.startswith("Read the text with")]
    assert [each.value for each in at.info if "“书” is called “书₂”" in each.value]
    at = open_page("masks", text="a cat", variants=(ac.get("softmax"),))
    assert not [each for each in at.button if each.label.startswith("Read the text with")]
