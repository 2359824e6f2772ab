"""Tests of cross-attention on every page: an uploaded file whose queries and keys come from different sequences."""

import io

import numpy as np
import pytest
from driver import board, board_settings, open_page, unpacked

import attention_core as ac
from app.ui.input_forms import UPLOAD
from attention_core.inputs.source import UploadSource

DRAW = np.random.default_rng(7)
Q, K, V = (DRAW.normal(size=(2, tokens, 8)) for tokens in (5, 9, 9))
WORDS = np.array(["one", "two", "one", "four", "five", "six", "seven", "eight", "nine"])
VARIANTS = ("softmax", "local", "linear", "topk~k~3", "nystrom~landmarks~4")


def upload(page, *, variants=VARIANTS, **state):
    file = io.BytesIO()
    np.savez(file, q=Q, k=K, v=V, key_tokens=WORDS)
    source = UploadSource.of("cross.npz", file.getvalue())
    return open_page(page, input="upload", **{UPLOAD: source}, variants=tuple(map(ac.from_word, variants)), **state)


def softmax(x):
    terms = np.exp(x - x.max(-1, keepdims=True))
    return terms / terms.sum(-1, keepdims=True)


@pytest.mark.parametrize("view", ["weights", "difference"])
@pytest.mark.parametrize("more", ["numbers", "row", "heads", "explain", "download"])
def test_matrices_are_rectangular(view, more):
    at = upload("matrices", view=view, more=more, head=0)
    assert not at.error
    header, panels = board(at, "matrices.board")
    assert header["row_labels"] == [f"t{i}" for i in range(5)]
    assert header["col_labels"] == ["one", "two", "one (2)", "four", "five", "six", "seven", "eight", "nine"]
    found = {key: matrix for key, (_panel, matrix) in panels.items()}
    assert found.keys() == {"softmax", "linear", "topk", "nystrom"} - ({"softmax"} if view == "difference" else set())
    exact = softmax(Q[0] @ K[0].T / 8**0.5)
    linear = found["linear"] + (exact if view == "difference" else 0.0)
    np.testing.assert_allclose(linear.sum(-1), np.ones(5), atol=2e-3)
    if view == "weights":
        np.testing.assert_allclose(found["softmax"], exact, rtol=1e-3)
        assert np.isnan(found["topk"]).sum() == 5 * 6


LEFT_OUT = ":material/block: These variants are left out because the queries and the keys come from different sequences"
ONE_LEFT_OUT = LEFT_OUT.replace("These variants are", "This variant is")


def left_out(at):
    """Return the message on variants that are left out, without escapes."""
    starts = (LEFT_OUT, ONE_LEFT_OUT)
    return [caption.value.replace("\\", "") for caption in at.caption if caption.value.startswith(starts)]


def test_variants_of_one_sequence_are_left_out_with_their_reasons():
    at = upload("matrices", variants=("softmax", "local", "atrous", "reformer", "linear"))
    local, reformer = (ac.variant(key).cross_reason.rstrip(".") for key in ("local", "reformer"))
    assert left_out(at) == [f"{LEFT_OUT}: Local and Atrous ({local}); Reformer ({reformer})."]
    single = upload("matrices", variants=("softmax", "local", "linear"))
    assert left_out(single) == [f"{ONE_LEFT_OUT}: Local ({local})."]
    reason = ac.variant("local").cross_reason
    text = "This variant is left out because the queries and the keys come from different sequences: "
    assert text + reason in [each.value for each in at.info]


@pytest.mark.parametrize("word", [v.key for v in ac.all_variants()])
def test_every_variant_is_drawn_or_left_out(word):
    at = upload("matrices", variants=dict.fromkeys(("softmax", word)), more="explain", explained=word)
    assert not at.error
    assert bool(left_out(at)) == (ac.variant(word).cross_reason is not None)


def test_the_strip_of_a_query_shows_the_keys():
    at = upload("matrices", row=2)
    [sent] = [each.proto for each in at.get("bidi_component") if "-matrices.strips-" in f"{each.proto.id}-"]
    header, _payload = unpacked(sent.bytes)
    assert header["tokens"] == WORDS.tolist()
    assert header["queries"] == [f"t{i}" for i in range(5)]
    assert board_settings(at, "matrices.board")["pinned"] == 2
    weights = softmax(Q[1] @ K[1].T / 8**0.5)[2]
    at = upload("matrices", row=2, head=1, variants=("softmax",))
    [text] = [line["note"] for line in board_settings(at, "matrices.strips")["strips"]]
    first = int(np.argmax(weights))
    names = ["one", "two", "one (2)", *WORDS[3:]]
    assert text.startswith("top keys:")
    assert names[first] in text.split(";")[0]
    assert f"{weights[first]:.0%}" in text


@pytest.mark.parametrize("page", ["matrices", "masks", "entropy", "error"])
def test_a_causal_mask_gives_a_sentence_on_what_to_do(page):
    at = upload(page, causal=True)
    assert [error.value for error in at.error] == [
        "The keys and the queries of this file come from different sequences, so no key comes before or after a query. "
        "Switch Causal off."
    ]


@pytest.mark.parametrize("page", ["causal", "claims", "inside"])
@pytest.mark.parametrize("causal", [False, True])
def test_pages_about_one_sequence_ask_for_another_input(page, causal):
    at = upload(page, causal=causal)
    [error] = [error.value for error in at.error]
    assert error.startswith("The keys and the queries of this file come from different sequences. ")
    assert error.endswith(" Choose another input in the panel on the left.")


@pytest.mark.parametrize("page", ["home", "learn", "lessons", "model", "picture", "timing"])
def test_pages_without_this_input_are_unchanged(page):
    at = upload(page)
    assert not any("another sequence" in each.value for each in [*at.error, *at.info, *at.caption])


@pytest.mark.parametrize("part", ["reach", "numbers", "order", "download"])
def test_masks_draws_patterns_without_a_stack(part):
    at = upload("masks", masks_part=part)
    assert not at.error
    assert board(at, "masks.board")[0]["col_labels"][-1] == "nine"
    texts = [each.value for each in [*at.markdown, *at.info, *at.caption]]
    assert not any("never connect" in each or "stack is empty" in each for each in texts)
    assert any("layers cannot be stacked" in each for each in texts) == (part == "reach")
    if part == "numbers":
        assert "5 queries, 9 keys." in texts
        table = at.dataframe[0].value
        top = table[table["variant"].str.startswith("Top-k")].iloc[0]
        assert (top["pairs allowed"], top["of n m"]) == (15, pytest.approx(15 / 45, abs=5e-4))


@pytest.mark.parametrize("view", ["entropy", "normalizer", "factor"])
def test_entropy_grows_with_the_number_of_keys(view):
    at = upload("entropy", h_view=view)
    assert not at.error
    assert any("5 queries · " in caption.value for caption in at.caption)


def test_the_distance_view_needs_one_sequence():
    at = upload("entropy", h_view="distance")
    [error] = [error.value for error in at.error]
    assert "distance between a query and a key is defined only within one sequence" in error


@pytest.mark.parametrize("against", ["cost", "budget", "length"])
def test_errors_are_measured_with_all_keys(against):
    at = upload("error", against=against)
    assert not at.error
    assert any(" · 5 queries · " in caption.value and "9 keys](#input)" in caption.value for caption in at.caption)
    assert any(" keys, the error of " in markdown.value for markdown in at.markdown) == (against == "length")


@pytest.mark.parametrize("positions", ["rope", "alibi", "none"])
def test_positions_of_one_sequence_are_refused(positions):
    at = upload("matrices", positions=positions)
    [error] = [error.value for error in at.error]
    assert "these keys come from another sequence" in error


def test_masks_without_a_pattern_names_a_variant_that_has_one():
    at = upload("masks", variants=("softmax", "local"))
    assert any("Add Top-k" in each.value for each in at.info)
