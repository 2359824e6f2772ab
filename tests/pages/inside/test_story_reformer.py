"""Tests of Reformer's story: hash buckets, sorting, and the pairs that are allowed or missed."""

import re

import numpy as np
import pytest
from driver import spoken
from plotly.graph_objects import Figure
from stories import drawn_words, open_step, said, source

import attention_core as ac
from app.figures.sorting import sorting
from pages.inside.words.reformer import cut_sentence, filled_sentence, held_sentence, quoted_tokens, sort_sentence

REFORMER = ac.get("reformer", bucket_size=3, rounds=3)


def hashed(**changes):
    qkv = source(**changes).load()
    parts = REFORMER.variant.anatomy(qkv.q, qkv.k, qkv.v, REFORMER.params, causal=False)
    data = REFORMER.variant.pattern(qkv.q, qkv.k, REFORMER.params, causal=False)[1].numpy()
    return {name: part[1].numpy() for name, part in parts.items()}, data


def test_the_hash_and_its_order_follow_the_chosen_round():
    parts, _ = hashed()
    at = open_step(REFORMER, 2)
    for number in (0, 2):
        at.selectbox(key="hash_round").set_value(number).run()
        assert at.session_state["hash_round"] == number
        buckets = parts["buckets"][number]
        text = said(
            at, r"In hashing round (\d+), (\d+) tokens fall into \*\*(\d+) buckets\*\*. The largest bucket has (\d+)"
        )
        assert text == (number + 1, 24, len(set(buckets)), np.bincount(buckets).max())
        same, others = buckets[:, None] == buckets, ~np.eye(24, dtype=bool)
        assert said(
            at, r"hold (\d+)% of the weight of shared-QK softmax \(tokens shuffled among the buckets: (\d+)%"
        ) == (
            round(100 * parts["all_pairs"][same & others].sum() / parts["all_pairs"][others].sum()),
            round(100 * same[others].mean()),
        )
    assert "2" in at.query_params["hash_round"]
    at = open_step(REFORMER, 3, again=at)
    assert at.selectbox(key="hash_round").value == 2
    shown = re.findall(r'title="token (\d+): bucket (\d+)', drawn_words(at))
    order = parts["order"][2]
    assert shown == [(str(i), str(parts["buckets"][2][i])) for i in order]
    assert drawn_words(at).count("border-left") == 24 // 3 - 1
    text = " ".join(m.value for m in at.markdown)
    assert "8 chunks of at most 3 tokens, regardless of bucket boundaries" in text


def test_rounds_and_missed_pairs_are_counted():
    parts, data = hashed(sharpness=8.0)
    two = ~np.eye(24, dtype=bool)
    at = open_step(REFORMER, 1, sharpness=8.0)
    assert said(at, r"All hashing rounds together allow \*\*([\d.]+)%") == (
        round(100 * (data & two).sum() / (24 * 23), 1),
    )
    at = open_step(REFORMER, 4, again=at, sharpness=8.0)
    outside = np.where(data | ~two, 0, parts["all_pairs"])
    assert said(at, r"(\d+)% of the weight of shared-QK softmax falls on pairs that") == (
        round(100 * outside.sum(-1).mean()),
    )
    i, j = np.unravel_index(outside.argmax(), outside.shape)
    table = at.dataframe[0].value
    assert (table["query"][0], table["key"][0]) == (f"{i} t{i}", f"{j} t{j}")
    assert list(table["softmax weight"]) == sorted(table["softmax weight"], reverse=True)
    assert not data[i, j]


def test_a_single_round_has_no_menu():
    at = open_step(ac.get("reformer", rounds=1), 2)
    assert not [box for box in at.selectbox if box.key == "hash_round"]


def test_sorting_draws_each_token_once():
    order, kinds = np.array([2, 0, 1, 3]), [1, 1, 0, 7]
    words = {"above": "text", "below": "sorted", "x_title": "place", "kind": "bucket"}
    figure = Figure(sorting(order, kinds, ["a", "b", "<i>", "d"], borders=[2], **words))
    lines = {trace.name: (trace.x, trace.y) for trace in figure.data}
    assert lines["bucket 0 (1)"] == ((2, 0, None), (1, 0, None))
    assert lines["bucket 1 (2)"] == ((0, 1, None, 1, 2, None), (1, 0, None, 1, 0, None))
    assert "&lt;i>" in figure.data[0].customdata[0]
    assert figure.layout.shapes[0].x0 == 1.5
    many = Figure(sorting(np.arange(30), list(range(30)), ["x"] * 30, **words))
    assert not any(trace.showlegend for trace in many.data)


def test_the_last_step_names_reformers_own_reference():
    at = open_step(REFORMER, 5)
    said_of_it = spoken(at)
    assert re.search(
        r"farther from shared-QK softmax's matrix than equal weights are: the matrix error is [\d,]+%", said_of_it
    )
    assert "To match shared-QK softmax, " in said_of_it
    assert "of softmax" not in said_of_it.replace("of softmax's multiply-adds", "")


def test_a_long_list_of_tokens_is_cut():
    assert quoted_tokens(["a", "b*"]) == "“a” and “b\\*”"
    assert quoted_tokens(list("abcde")) == "“a”, “b”, “c”, “d” and “e”"
    assert quoted_tokens(list("abcdef")) == "“a”, “b”, “c”, “d”, “e” and 1 more"


def test_causal_chunks_end_at_bucket_ends():
    assert cut_sentence(8, 3, causal=False) == (
        "The sorted tokens are split into 8 chunks of at most 3 tokens, regardless of bucket boundaries."
    )
    assert cut_sentence(8, 3, causal=True) == (
        "Each bucket is split separately into chunks of at most 3 tokens. There are 8 chunks in total."
    )


def test_one_chunk_uses_the_singular():
    assert cut_sentence(1, 8, causal=False) == "The sorted tokens form 1 chunk of at most 8 tokens."
    assert cut_sentence(1, 8, causal=True).endswith(" There is 1 chunk in total.")


@pytest.mark.parametrize(
    ("distance", "moved", "words"),
    [
        (1, 0, "All tokens keep their places."),
        (1, 1, "“c” moves farthest, by 1 position."),
        (9, 6, "**“a”** and **“b”** are 9 tokens apart in the text and become neighbours in the sorted order. “c” "
        "moves farthest, by 6 positions."),
    ],
)  # fmt: skip
def test_the_sort_says_how_far_tokens_move(distance, moved, words):
    assert sort_sentence("a", "b", distance, "c", moved) == words


def test_tokens_that_keep_their_places_form_one_chunk():
    at = open_step(ac.get("reformer"), 3, n=5, heads=1, head=0)
    assert "All tokens keep their places." in spoken(at)
    assert "The sorted tokens form 1 chunk of at most 8 tokens." in spoken(at)


def test_no_pair_is_missed_if_all_are_allowed():
    at = open_step(ac.get("reformer", bucket_size=64), 4)
    assert "All query–key pairs are allowed, so no pair is missed." in spoken(at)
    assert not at.dataframe


def test_a_hash_is_compared_with_shuffled_tokens():
    assert held_sentence("shared-QK softmax", 0.34, 0.21) == (
        "Pairs of tokens in one bucket hold 34% of the weight of shared-QK softmax (tokens shuffled among the buckets: "
        "21%)."
    )
    assert "Pairs of tokens" not in spoken(open_step(REFORMER, 2, n=1))


def test_one_bucket_uses_the_singular():
    assert (
        filled_sentence(1, 2, 1, ["a", "b"])
        == "In hashing round 1, 2 tokens fall into **1 bucket**. The largest bucket has 2 of "
        "them: “a” and “b”."
    )
    assert "into **2 buckets**. The largest bucket has 1 of them: “a”." in filled_sentence(1, 2, 2, ["a"])
