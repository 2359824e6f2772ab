"""The stories of Reformer, PoWER-BERT, Linformer, pooled keys, pyramids and Funnel, on the page."""

import json
import re

import numpy as np
import pytest
import torch
from test_inside_kernels import SIZE, open_page

import attention_core as ac
from app.figures.sorting import sorting
from app.inside.reversing import in_one_sentence
from app.inside.tokens import painted, strip
from attention_core.experiments import reversible
from attention_core.experiments.reversible import CHECKPOINTS, PLAIN, REVERSIBLE

STEPS = {"reformer": 7, "power_bert": 5, "linformer": 5, "pooled": 5, "pyramid": 5, "funnel": 5}
DEFAULT = [ac.get(key) for key in STEPS]
TURNED = [
    ac.get("reformer", rounds=1, bucket_size=64),
    ac.get("reformer", rounds=16, bucket_size=2),
    ac.get("power_bert", keep=1.0),
    ac.get("power_bert", keep=0.05),
    ac.get("linformer", projection="conv", rank=1),
    ac.get("linformer", projection="gaussian", share=False),
    ac.get("pooled", stride=1),
    ac.get("pooled", stride=64, pool="max"),
    ac.get("pyramid", levels=16),
    ac.get("funnel", stride=1),
    ac.get("funnel", stride=64),
]


def word(attention):
    return attention.word


def head(**changes):
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(**{**SIZE, **changes}))
    return qkv.q[1].double().numpy(), qkv.k[1].double().numpy()


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def said(at, pattern):
    """The numbers that a sentence names."""
    [found] = re.findall(pattern, " ".join(m.value for m in at.markdown))
    return tuple(float(x.replace(",", "")) for x in (found if isinstance(found, tuple) else (found,)))


def pages(at):
    return " ".join(h.proto.body for h in at.get("html"))


@pytest.mark.parametrize("attention", [*DEFAULT, *TURNED], ids=word)
def test_every_step_is_drawn(attention):
    at = None
    for step in range(1, STEPS[attention.key] + 1):
        at = open_page(attention, step, again=at)
        assert not at.exception, step
        assert not at.error
        assert at.session_state["step"] == step
        assert at.get("bidi_component") or at.get("plotly_chart") or at.get("html")
        assert "nan" not in " ".join(m.value for m in at.markdown).lower()


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("attention", DEFAULT, ids=word)
def test_one_and_two_tokens(attention, n):
    at = None
    for step in range(1, STEPS[attention.key] + 1):
        at = open_page(attention, step, again=at, n=n)
        assert not at.exception, step


CAUSAL = [
    ac.get("reformer", bucket_size=2),
    ac.get("pooled"),
    ac.get("pooled", stride=1),
    ac.get("pooled", stride=7, pool="max"),
    ac.get("pooled", stride=64),
]


@pytest.mark.parametrize("attention", CAUSAL, ids=word)
@pytest.mark.parametrize("n", [1, 30])
def test_what_can_be_causal_is_drawn_step_by_step(attention, n):
    at = None
    for step in range(1, STEPS[attention.key] + 1):
        at = open_page(attention, step, again=at, causal=True, n=n)
        assert not at.exception, step
        assert "nan" not in " ".join(m.value for m in at.markdown).lower()
        assert not any("cannot be causal" in c.value for c in at.caption)


def test_the_others_say_why_not():
    at = None
    for attention in DEFAULT:
        if attention.variant.causal_reason:
            at = open_page(attention, again=at, causal=True)
            assert any("cannot be causal" in c.value for c in at.caption)


def test_pools_and_looks_are_those_of_the_formula():
    q, k = head()
    means = k.reshape(6, 4, 8).mean(1)
    left = softmax(q @ means.T / 8**0.5)
    i, r = np.unravel_index(left.argmax(), left.shape)
    at = open_page(ac.get("pooled"), 1)
    assert said(at, r"(\d+) tokens become \*\*(\d+) keys.*amounts to ([\d.]+)") == (24, 6, 4)
    assert pages(at).count('<div style="flex:4 1 0') == 6
    at = open_page(ac.get("pooled"), 2, again=at)
    exact = softmax(q @ k.T / 8**0.5)[i, 4 * r : 4 * r + 4].sum()
    wanted = (i, round(100 * left[i, r]), 4 * r, 4 * r + 3, round(100 * exact))
    assert said(at, r"\(token (\d+)\) puts (\d+)%.*tokens (\d+) to (\d+)\).*puts (\d+)% there") == wanted
    assert f"{left[i, r]:.1%}" in pages(at)
    at.selectbox(key="inside.pooled.2.query").set_value(3).run()
    assert f"{left[3].max():.1%}" in pages(at)


def test_blur_is_the_distance_no_weights_can_undo():
    q, k = head(sharpness=6.0)
    S = softmax(q @ k.T / 8**0.5)
    P = np.kron(np.eye(6), np.full((1, 4), 0.25))
    A = softmax(q @ (P @ k).T / 8**0.5) @ P
    best = np.linalg.lstsq(P.T, S.T, rcond=None)[0].T @ P
    off = [round(100 * np.linalg.norm(x - S) / np.linalg.norm(S)) for x in (best, A)]
    assert off[1] > off[0]
    at = open_page(ac.get("pooled"), 3, sharpness=6.0)
    told = said(at, r"rank (\d+) of (\d+) and (\d+) different columns.*?\*\*(\d+)%\*\*.*?\*\*(\d+)%\*\*")
    assert told == (6, 24, 6, *off)
    fine = open_page(ac.get("pooled", stride=1), 3, again=at)
    assert "nothing has to be blurred" in " ".join(m.value for m in fine.markdown)


def test_a_leak_names_its_tokens_and_counts_the_future():
    q, k = head()
    left = softmax(q @ k.reshape(6, 4, 8).mean(1).T / 8**0.5)
    own = [left[i, i // 4] / left[i, : i // 4 + 1].sum() for i in range(24)]
    ahead = [share * (3 - i % 4) / 4 for i, share in enumerate(own)]
    at = open_page(ac.get("pooled"), 4)
    first, last, query, token, distance = said(
        at, r"key of tokens (\d+) to (\d+) tells query (\d+),.*?of token (\d+),.*?(\d+) ahead"
    )
    assert (first % 4, last - first, query, token, distance) == (0, 3, first, last, 3)
    assert said(at, r"still (\d+)% .* average, (\d+)%") == (round(100 * np.mean(ahead)), round(100 * max(ahead)))
    assert said(at, r"nothing leaks; but (\d+) of (\d+) queries see no key then") == (3, 24)
    assert "Causal, this variant does so" in " ".join(m.value for m in at.markdown)
    at = open_page(ac.get("pooled", stride=1), 4, again=at)
    assert "Causal, this variant does so" not in " ".join(m.value for m in at.markdown)
    # 16 pools and, as three levels would have more, 24 of single tokens: a query always has its own.
    at = open_page(ac.get("pyramid", levels=16), 4, again=at)
    assert "nothing leaks; each query still sees a key" in " ".join(m.value for m in at.markdown)


def causal_left(q, k):
    """Weights of each query on the pools of four before its own, and on its own pool's tokens so far."""
    own = (np.arange(24) // 4 == np.arange(24)[:, None] // 4) & np.tri(24, dtype=bool)
    seen = np.hstack([np.arange(6) < np.arange(24)[:, None] // 4, own])
    logits = q @ np.vstack([k.reshape(6, 4, 8).mean(1), k]).T / 8**0.5
    return softmax(np.where(seen, logits, -np.inf))


def test_causal_pools_are_those_before_and_ones_own_is_seen_one_by_one():
    q, k = head()
    left = causal_left(q, k)
    at = open_page(ac.get("pooled"), 1, causal=True)
    assert said(at, r"(\d+) tokens make \*\*(\d+) pools\*\* of (\d+).*at most (\d+) keys") == (24, 6, 4, 9)
    assert pages(at).count('<div style="display:flex') == 2
    at = open_page(ac.get("pooled", stride=7), 1, again=at, causal=True)
    assert said(at, r"at most (\d+) keys instead of (\d+).*last pool is (\d+) long") == (9, 24, 3)
    at = open_page(ac.get("pooled"), 2, again=at, causal=True)
    i, r = np.unravel_index(left[:, :6].argmax(), (24, 6))
    exact = softmax(np.where(np.tri(24), q @ k.T / 8**0.5, -np.inf))[i, 4 * r : 4 * r + 4].sum()
    told = r"look at a pool: .*\(token (\d+)\) puts (\d+)%.*tokens (\d+) to (\d+)\).*puts (\d+)% .*average (\d+)% of"
    assert said(at, told) == (
        i,
        round(100 * left[i, r]),
        4 * r,
        4 * r + 3,
        round(100 * exact),
        round(100 * left[:, 6:].sum() / 24),
    )
    alone = open_page(ac.get("pooled", stride=64), 2, again=at, causal=True)
    assert "no query has another before its own" in " ".join(m.value for m in alone.markdown)


def test_causal_blur_is_that_of_earlier_pools_alone():
    q, k = head(sharpness=6.0)
    P = np.kron(np.eye(6), np.full((1, 4), 0.25))
    S = softmax(np.where(np.tri(24), q @ k.T / 8**0.5, -np.inf))
    best = S.copy()
    for i in range(24):
        start = i - i % 4
        best[i, :start] = S[i, :start].reshape(-1, 4).mean(-1).repeat(4)
    own = causal_left(q, k) @ np.vstack([P, np.eye(24)])
    off = tuple(round(100 * np.linalg.norm(x - S) / np.linalg.norm(S)) for x in (best, own))
    assert 0 < off[0] < off[1]
    at = open_page(ac.get("pooled"), 3, causal=True, sharpness=6.0)
    assert said(at, r"makes the product \*\*(\d+)%\*\*.*make it \*\*(\d+)%\*\*") == off


def test_both_cuts_are_told_apart():
    at = open_page(ac.get("pooled"), 4, causal=True)
    # Six pools of four: 3 + 2 + 1 pairs each look ahead inside, of 24 * 23 / 2.
    assert said(at, r"pool of query (\d+), .* token (\d+), .*let ([\d.]+)% .* alone (\d+) of (\d+) queries") == (
        0,
        3,
        round(100 * 36 / 276, 1),
        3,
        24,
    )
    fine = open_page(ac.get("pooled", stride=1), 4, again=at, causal=True)
    assert "this is causal softmax itself" in " ".join(m.value for m in fine.markdown)


def test_funnels_questions_come_from_later_tokens():
    at = open_page(ac.get("funnel", stride=4), 4)
    # The first token asks alone; 23 others in six segments of four, the last of three.
    ahead = [0, *[(3 - i % 4) / 4 for i in range(20)], 2 / 3, 1 / 3, 0]
    assert said(at, r"On average (\d+)% of a question") == (round(100 * np.mean(ahead)),)


def test_the_pyramid_has_its_levels():
    assert " 1, 3, 6, 8 times 2, the setting" in " ".join(
        m.value for m in open_page(ac.get("pyramid", levels=2)).markdown
    )
    at = open_page(ac.get("pyramid"), 1)
    assert said(at, r"\*\*(\d+) keys\*\* on (\d+) levels: (\d+), (\d+), (\d+), (\d+) pools") == (18, 4, 1, 3, 6, 8)
    assert pages(at).count('<div style="display:flex') == 4


def test_linformer_says_it_is_untrained_and_what_comes_back():
    for projection in ("mean", "conv", "gaussian"):
        attention = ac.get("linformer", projection=projection)
        told = " ".join(m.value for m in open_page(attention).markdown)
        assert "untrained" in told
    E = attention.variant.anatomy(*torch.zeros(3, 24, 8), attention.params, causal=False)["provenance"].numpy()
    at = open_page(attention)
    assert said(at, r"comes back as ([\d.-]+) of itself") == (round(float(np.diag(E.T @ E).mean()), 2),)


def test_who_stays_and_what_the_others_held():
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(**SIZE))
    S = softmax((qkv.q @ qkv.k.mT).double().numpy() / 8**0.5)
    received = S.sum((0, 1))
    ranked = np.argsort(-received, kind="stable")
    gone = ranked[6:]
    attention = ac.get("power_bert", keep=0.25)
    at = open_page(attention, 1)
    assert said(at, r"\*\*([\d.]+) times\*\*") == (round(received.max() / received.mean(), 1),)
    assert f"“t{ranked[0]}” receives most" in " ".join(m.value for m in at.markdown)
    at = open_page(attention, 2, again=at)
    assert said(at, r"\*\*(\d+) of (\d+)\*\* tokens stay") == (6, 24)
    struck = re.findall(r'line-through;" title="token (\d+)', pages(at))
    assert sorted(map(int, struck)) == sorted(gone)
    at = open_page(attention, 3, again=at)
    assert said(at, r"\*\*(\d+) of (\d+)\*\* rows are zero, (\d+)%") == (18, 24, 75)
    at = open_page(attention, 4, again=at)
    shares = [100 * received[gone].sum() / received.sum(), 75, 100 * S[1][:, gone].sum(-1).mean()]
    told = said(at, r"held \*\*([\d.]+)%\*\*.*would be (\d+)%; in head 1 ([\d.]+)%")
    np.testing.assert_allclose(told, shares, atol=0.051)


REFORMER = ac.get("reformer", bucket_size=3, rounds=3)


def hashed(**changes):
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(**{**SIZE, **changes}))
    parts = REFORMER.variant.anatomy(qkv.q, qkv.k, qkv.v, REFORMER.params, causal=False)
    seen = REFORMER.variant.pattern(qkv.q, qkv.k, REFORMER.params, causal=False)[1].numpy()
    return {name: part[1].numpy() for name, part in parts.items()}, seen


def test_the_hash_and_its_order_follow_the_round_picked():
    parts, _ = hashed()
    at = open_page(REFORMER, 1)
    for number in (0, 2):
        at.selectbox(key="inside.reformer.1.round").set_value(number).run()
        assert at.session_state["hash_round"] == number
        buckets = parts["buckets"][number]
        told = said(at, r"Round (\d+) puts (\d+) tokens into \*\*(\d+) buckets\*\*; the fullest holds (\d+)")
        assert told == (number + 1, 24, len(set(buckets)), np.bincount(buckets).max())
    assert "2" in at.query_params["hash_round"]
    at = open_page(REFORMER, 2, again=at)
    assert at.selectbox(key="inside.reformer.2.round").value == 2
    shown = re.findall(r'title="token (\d+): bucket (\d+)', pages(at))
    order = parts["order"][2]
    assert shown == [(str(i), str(parts["buckets"][2][i])) for i in order]
    assert pages(at).count("border-left") == 24 // 3 - 1
    told = " ".join(m.value for m in at.markdown)
    assert "8 chunks, every 3 places, no matter where a bucket ends" in told


def test_rounds_and_what_they_miss_are_counted():
    parts, seen = hashed(sharpness=8.0)
    two = ~np.eye(24, dtype=bool)
    at = open_page(REFORMER, 3, sharpness=8.0)
    assert said(at, r"With all rounds ([\d.]+)%") == (round(100 * (seen & two).sum() / (24 * 23), 1),)
    at = open_page(REFORMER, 4, again=at, sharpness=8.0)
    assert said(at, r"let \*\*([\d.]+)%\*\* of (\d+) pairs") == (round(100 * (seen & two).sum() / 552, 1), 552)
    assert at.get("plotly_chart")
    held = (parts["all_pairs"] * (seen | ~two)).sum(-1).mean()
    assert said(at, r"hold \*\*(\d+)%\*\* of shared-QK softmax's mass") == (round(100 * held),)
    at = open_page(REFORMER, 5, again=at, sharpness=8.0)
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
    at = open_page(ac.get("reformer", rounds=1), 1)
    assert not [box for box in at.selectbox if str(box.key).endswith(".round")]


def test_sorting_draws_each_token_once_from_place_to_place():
    order, kinds = np.array([2, 0, 1, 3]), [1, 1, 0, 7]
    words = {"above": "text", "below": "sorted", "x_title": "place", "kind": "bucket"}
    figure = sorting(order, kinds, ["a", "b", "<i>", "d"], borders=[2], **words)
    lines = {trace.name: (trace.x, trace.y) for trace in figure.data}
    assert lines["bucket 0 (1)"] == ((2, 0, None), (1, 0, None))
    assert lines["bucket 1 (2)"] == ((0, 1, None, 1, 2, None), (1, 0, None, 1, 0, None))
    assert "&lt;i>" in figure.data[0].customdata[0]
    assert figure.layout.shapes[0].x0 == 1.5
    many = sorting(np.arange(30), list(range(30)), ["x"] * 30, **words)
    assert not any(trace.showlegend for trace in many.data)


def test_a_row_of_many_boxes_has_no_edges_that_would_push_it_off_a_narrow_screen():
    def row(count):
        return strip([[(i, i) for i in range(count)]], [["a"] * count])

    assert row(40).count("padding:2px 3px;") == 40
    assert row(41).count("padding:2px 0;border-width:1px 0;border-radius:0;") == 41


def test_words_in_pictures_are_never_markup():
    text = painted(["<b>", "&"], [0, -1], notes=['"><script>', ""], faded={1}, borders={1})
    assert "<b>" not in text
    assert "<script>" not in text
    assert "&amp;" in text
    assert text.count("line-through") == text.count("border-left") == 1
    assert "<u>" not in strip([[(0, 1), (2, 2)]], [["<u>", '"']], [[0.0, 0.0]])


def held(way, depth, bytes_, error=None):
    return {"way": way, "depth": depth, "n": 24, "d": 8, "peak_bytes": bytes_, "error": error}


def test_memory_over_depth_is_the_experiments():
    at = open_page(ac.get("reformer"), 6)
    assert not at.exception
    source = ac.inputs.source.SyntheticSource(ac.inputs.SyntheticSpec(**SIZE))
    rows = [row for task in reversible.tasks(source, 24, 8, head=1) for row in reversible.run(task)]
    [chart] = [json.loads(found.proto.spec) for found in at.get("plotly_chart")]
    drawn = {(trace["name"], trace["line"]["dash"]): trace for trace in chart["data"]}
    for name, way in (("plain residuals", PLAIN), ("reversible residuals", REVERSIBLE)):
        counted = [row["peak_bytes"] / 2**20 for row in rows if row["way"] == way]
        assert list(drawn[name, "solid"]["y"]) == pytest.approx(counted)
        promised = [found / 2**20 for _depth, found in reversible.promised(rows)[way]]
        assert list(drawn[name, "dash"]["y"]) == pytest.approx(promised)
    assert in_one_sentence(rows) in [m.value for m in at.markdown]
    by = {(row["way"], row["depth"]): row["peak_bytes"] for row in rows}
    told = r"At \*\*(\d+) blocks\*\*.*every (\d+) blocks.*\*\*: ([\d.]+) times less than plain"
    blocks, every, factor = said(at, told)
    assert "at most 0.0% off" in " ".join(c.value for c in at.caption)
    assert (blocks, every, factor) == (25, 5, round(by[PLAIN, 25] / by[REVERSIBLE, 25], 1))


def test_memory_over_depth_is_told_once_a_deep_stack_is_there_in_all_ways():
    first = [held(PLAIN, 1, 10), held(CHECKPOINTS, 1, 10), held(REVERSIBLE, 1, 10, 1e-7)]
    second = [held(PLAIN, 4, 4000), held(CHECKPOINTS, 4, 2048), held(REVERSIBLE, 4, 1000, 2e-7)]
    third = [held(PLAIN, 9, 9000), held(CHECKPOINTS, 9, 3072), held(REVERSIBLE, 9, 1500, 3.4e-7)]
    assert in_one_sentence([]) == in_one_sentence(first) == in_one_sentence([*first, *second[:2]]) == ""
    told = in_one_sentence([*first, *second])
    assert "At **4 blocks** plain residuals hold 3.9 KiB, a checkpoint every 2 blocks 2.0 KiB" in told
    assert "**1.0 KiB**: 4.0 times less than plain" in told
    assert "-fold" not in told
    assert "within 2.0 × 10⁻⁷ of its size" in told.replace("\N{NO-BREAK SPACE}", " ")
    deeper = in_one_sentence([*first, *second, *third])
    assert "At **9 blocks**" in deeper
    assert "From 4 blocks to 9 theirs grows 1.50-fold, plain ones' 2.25-fold." in deeper
    assert "3.4 × 10⁻⁷" in deeper.replace("\N{NO-BREAK SPACE}", " ")


def test_the_last_step_names_the_reference_that_is_reformers_own():
    at = open_page(REFORMER, 7)
    assert "7 · Beside shared-QK softmax" in str(next(s for s in at.get("button_group") if "step" in s.proto.id).proto)
    said_of_it = " ".join(m.value for m in at.markdown)
    assert "% from shared-QK softmax's, where looking everywhere alike" in said_of_it
    assert "on other tokens than shared-QK softmax does" in said_of_it
    assert "than softmax" not in said_of_it
