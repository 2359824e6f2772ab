"""Tests of Reformer's story: its hash and order, found and missed pairs, and activations that are not stored."""

import re

import numpy as np
import pytest
from driver import charts, spoken
from plotly.graph_objects import Figure
from stories import drawn_words, open_step, said, source

import attention_core as ac
from app.figures.sorting import sorting
from attention_core.experiments import reversible
from attention_core.experiments.reversible import CHECKPOINTS, PLAIN, REVERSIBLE, ReversibleRow
from pages.inside.stories.reformer import (
    cut_sentence,
    filled_sentence,
    likeness_sentence,
    memory_sentence,
    some,
    union_sentence,
)

REFORMER = ac.get("reformer", bucket_size=3, rounds=3)


def hashed(**changes):
    qkv = source(**changes).load()
    parts = REFORMER.variant.anatomy(qkv.q, qkv.k, qkv.v, REFORMER.params, causal=False)
    seen = REFORMER.variant.pattern(qkv.q, qkv.k, REFORMER.params, causal=False)[1].numpy()
    return {name: part[1].numpy() for name, part in parts.items()}, seen


def test_the_hash_and_its_order_follow_the_round_picked():
    parts, _ = hashed()
    at = open_step(REFORMER, 1)
    for number in (0, 2):
        at.selectbox(key="hash_round").set_value(number).run()
        assert at.session_state["hash_round"] == number
        buckets = parts["buckets"][number]
        told = said(at, r"Round (\d+) puts (\d+) tokens into \*\*(\d+) buckets\*\*; the fullest holds (\d+)")
        assert told == (number + 1, 24, len(set(buckets)), np.bincount(buckets).max())
    assert "2" in at.query_params["hash_round"]
    at = open_step(REFORMER, 2, again=at)
    assert at.selectbox(key="hash_round").value == 2
    shown = re.findall(r'title="token (\d+): bucket (\d+)', drawn_words(at))
    order = parts["order"][2]
    assert shown == [(str(i), str(parts["buckets"][2][i])) for i in order]
    assert drawn_words(at).count("border-left") == 24 // 3 - 1
    told = " ".join(m.value for m in at.markdown)
    assert "8 chunks, every 3 places, no matter where a bucket ends" in told


def test_rounds_and_what_they_miss_are_counted():
    parts, seen = hashed(sharpness=8.0)
    two = ~np.eye(24, dtype=bool)
    at = open_step(REFORMER, 3, sharpness=8.0)
    assert said(at, r"With all rounds ([\d.]+)%") == (round(100 * (seen & two).sum() / (24 * 23), 1),)
    at = open_step(REFORMER, 4, again=at, sharpness=8.0)
    assert said(at, r"let \*\*([\d.]+)%\*\* of (\d+) pairs") == (round(100 * (seen & two).sum() / 552, 1), 552)
    assert at.get("plotly_chart")
    held = (parts["all_pairs"] * (seen | ~two)).sum(-1).mean()
    assert said(at, r"hold \*\*(\d+)%\*\* of shared-QK softmax's mass") == (round(100 * held),)
    at = open_step(REFORMER, 5, again=at, sharpness=8.0)
    outside = np.where(seen | ~two, 0, parts["all_pairs"])
    assert said(at, r"\*\*(\d+)%\*\* of shared-QK softmax's mass lies outside") == (
        round(100 * outside.sum(-1).mean()),
    )
    i, j = np.unravel_index(outside.argmax(), outside.shape)
    table = at.dataframe[0].value
    assert (table["query"][0], table["key"][0]) == (f"{i} t{i}", f"{j} t{j}")
    assert list(table["weight over all pairs"]) == sorted(table["weight over all pairs"], reverse=True)
    assert not seen[i, j]


def test_a_single_round_has_no_picker():
    at = open_step(ac.get("reformer", rounds=1), 1)
    assert not [box for box in at.selectbox if box.key == "hash_round"]


def test_sorting_draws_each_token_once_from_place_to_place():
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


def held(way, depth, bytes_, error=None):
    return ReversibleRow(way=way, depth=depth, n=24, d=8, peak_bytes=bytes_, error=error)


def test_memory_over_depth_is_the_experiments():
    at = open_step(ac.get("reformer"), 6)
    assert not at.exception
    rows = [row for task in reversible.tasks(source(), 24, 8, head=1) for row in reversible.run(task)]
    [chart] = charts(at)
    drawn = {(trace["name"], trace["line"]["dash"]): trace for trace in chart["data"]}
    for name, way in (("plain residuals", PLAIN), ("reversible residuals", REVERSIBLE)):
        counted = [row.peak_bytes / 2**20 for row in rows if row.way == way]
        assert list(drawn[name, "solid"]["y"]) == pytest.approx(counted)
        promised = [found / 2**20 for _depth, found in reversible.predicted_bytes(rows)[way]]
        assert list(drawn[name, "dash"]["y"]) == pytest.approx(promised)
    assert memory_sentence(rows) in [m.value for m in at.markdown]
    by = {(row.way, row.depth): row.peak_bytes for row in rows}
    told = r"At \*\*(\d+) blocks\*\*.*every (\d+) blocks.*\*\*: ([\d.]+)× less than plain"
    blocks, every, factor = said(at, told)
    assert "at most 0.0% off" in " ".join(c.value for c in at.caption)
    assert (blocks, every, factor) == (25, 5, round(by[PLAIN, 25] / by[REVERSIBLE, 25], 1))


def test_memory_over_depth_is_told_once_a_deep_stack_is_there_in_all_ways():
    first = [held(PLAIN, 1, 10), held(CHECKPOINTS, 1, 10), held(REVERSIBLE, 1, 10, 1e-7)]
    second = [held(PLAIN, 4, 4000), held(CHECKPOINTS, 4, 2048), held(REVERSIBLE, 4, 1000, 2e-7)]
    third = [held(PLAIN, 9, 9000), held(CHECKPOINTS, 9, 3072), held(REVERSIBLE, 9, 1500, 3.4e-7)]
    assert memory_sentence([]) == memory_sentence(first) == memory_sentence([*first, *second[:2]]) == ""
    told = memory_sentence([*first, *second])
    assert "At **4 blocks** plain residuals hold 3.9 KiB, a checkpoint every 2 blocks 2.0 KiB" in told
    assert "**1.0 KiB**: 4.0× less than plain" in told
    assert "-fold" not in told
    assert "within 2.0 × 10⁻⁷ of its size" in told.replace("\N{NO-BREAK SPACE}", " ")
    deeper = memory_sentence([*first, *second, *third])
    assert "At **9 blocks**" in deeper
    assert "From 4 blocks to 9 theirs grows 1.50-fold, plain ones' 2.25-fold." in deeper
    assert "3.4 × 10⁻⁷" in deeper.replace("\N{NO-BREAK SPACE}", " ")


def test_the_last_step_names_the_reference_that_is_reformers_own():
    at = open_step(REFORMER, 7)
    assert "7 · Beside shared-QK softmax" in str(next(s for s in at.get("button_group") if "step" in s.proto.id).proto)
    said_of_it = " ".join(m.value for m in at.markdown)
    assert "% from shared-QK softmax's, where looking everywhere alike" in said_of_it
    assert "on other tokens than shared-QK softmax does" in said_of_it
    assert "than softmax" not in said_of_it


def test_a_long_list_of_tokens_is_cut():
    assert some(["a", "b*"]) == "“a”, “b\\*”"
    assert some(list("abcde")) == "“a”, “b”, “c”, “d”, “e”"
    assert some(list("abcdef")) == "“a”, “b”, “c”, “d”, “e” and 1 more"


def test_likeness_is_told_where_there_are_two_of_each():
    assert "of one bucket have a mean cosine of 0.90, two of different ones −0.10" in likeness_sentence(
        0.9, -0.1
    ).replace("-", "−")
    assert likeness_sentence(np.nan, 0.1) == likeness_sentence(0.1, np.nan) == ""


def test_a_bucket_ends_a_chunk_where_the_future_is_hidden():
    assert cut_sentence(8, 3, causal=False) == (
        "The order is cut into 8 chunks, every 3 places, no matter where a bucket ends."
    )
    assert cut_sentence(8, 3, causal=True) == ("The order is cut into 8 chunks, each bucket by itself, every 3 places.")


def test_what_rounds_find_together():
    assert union_sentence(1, 10, 10, 40).startswith("One round lets **25.0%** of 40 pairs look; more rounds would")
    assert union_sentence(3, 1000, 250, 4000) == (
        "3 rounds together let **25.0%** of 4,000 pairs look; 25% of these were found by one round only."
    )
    assert union_sentence(2, 0, 0, 0).startswith("2 rounds together let **0.0%** of 0 pairs look; 0% of")


def test_nothing_is_missed_where_every_pair_looks():
    at = open_step(ac.get("reformer", bucket_size=64), 5)
    assert "Every pair looks: nothing is missed." in spoken(at)
    assert not at.dataframe


def test_one_bucket_is_told_from_several():
    assert (
        filled_sentence(1, 2, 1, ["a", "b"])
        == "Round 1 puts 2 tokens into **1 bucket**; the fullest holds 2: “a”, “b”."
    )
    assert "into **2 buckets**; the fullest holds 1: “a”." in filled_sentence(1, 2, 2, ["a"])
