"""Tests of swap experiments: rows equal the patched model's results, sweeps have no duplicates, records are found."""

import json
from dataclasses import replace

import pytest

import attention_core as ac
from attention_core.benchmarking.device import stamp
from attention_core.experiments import swap
from attention_core.experiments.swap import CopyTask, OutputErrorTask, ReadingTask, records, run
from attention_core.inputs import models
from attention_core.inputs.text import record_layers
from attention_core.model_patching import copy_losses, from_word, losses, perplexity, swapped

TEXT = "The cat sat on the mat, and the cat slept."
SINK = "sink~window~3~sinks~1"


@pytest.fixture(scope="module")
def smol():
    return models.load("smollm2")


def test_a_reading_has_the_losses_of_the_swapped_model(smol):
    [row] = run(ReadingTask(text=TEXT, word=SINK, layers=(3, 4), detail=True, live=True))
    ids = smol.tokenizer.encode(TEXT).ids
    with swapped(smol.model, dict.fromkeys((3, 4), from_word(SINK))):
        true = losses(smol, ids)
    assert row.losses == pytest.approx(true.tolist(), abs=1e-3)
    assert row.perplexity == pytest.approx(perplexity(true), rel=1e-4)
    assert (row.tokens, row.total, len(row.labels), row.recorded) == (len(ids), len(ids), len(ids), "")
    assert row.seconds > 0
    [brief] = run(ReadingTask(text=TEXT, word=SINK, layers=(3, 4), live=True))
    assert (brief.labels, brief.losses) == ((), ())
    assert brief.perplexity == pytest.approx(row.perplexity)


def test_a_text_is_cut_to_the_tokens_of_the_task_and_the_limit(smol, monkeypatch):
    [row] = run(ReadingTask(text=TEXT, tokens=5, live=True))
    assert (row.tokens, row.total) == (5, len(smol.tokenizer.encode(TEXT).ids))
    monkeypatch.setattr("attention_core.limits.OWN_MACHINE", replace(ac.limits.OWN_MACHINE, swap_tokens=4))
    assert run(ReadingTask(text=TEXT, tokens=5, live=True))[0].tokens == 4


def test_a_copy_task_has_the_losses_of_the_swapped_model(smol):
    [row] = run(CopyTask(word=SINK, layers=(0,), seed=2, period=12, detail=True, live=True))
    with swapped(smol.model, {0: from_word(SINK)}):
        first, second = copy_losses(smol, 12, 2)
    assert row.losses == pytest.approx(second.tolist(), abs=1e-3)
    assert (row.first, row.copied) == pytest.approx((float(first.mean()), float(second.mean())), rel=1e-4)


def test_the_output_error_is_the_mean_over_heads_and_layers():
    [row] = run(OutputErrorTask(text=TEXT, word=SINK, layers=(3, 7), live=True))
    own, found = from_word(SINK), []
    for qkv in record_layers(TEXT, model="smollm2", layers=(3, 7)):
        q, k, v = (x.double() for x in qkv.tensors)
        for head in range(qkv.heads):
            exact, ours = (a.weights(q, k, causal=True)[head] @ v[head] for a in (ac.get("softmax"), own))
            found.append(float((ours - exact).norm() / exact.norm()))
    assert row.output == pytest.approx(sum(found) / len(found), rel=1e-3)
    assert run(OutputErrorTask(text=TEXT, word="softmax", layers=(3,), live=True))[0].output < 1e-5


def test_tasks_read_and_copy_with_the_original_model_and_each_variant():
    found = swap.tasks(TEXT, [SINK, "linear"], (0, 1), seeds=2)
    readings = [(t.word, t.layers) for t in found if isinstance(t, ReadingTask)]
    assert readings == [("softmax", ()), (SINK, (0, 1)), ("linear", (0, 1))]
    copies = [(t.seed, t.word) for t in found if isinstance(t, CopyTask)]
    assert sorted(copies) == sorted((seed, word) for seed in (0, 1) for word in ("softmax", SINK, "linear"))
    assert {t.seed for t in found[:6] if isinstance(t, CopyTask)} == {0}


@pytest.mark.parametrize("count", [1, 2, 6, 30])
def test_layers_are_replaced_from_each_side_up_to_all(count):
    for edge in swap.EDGES:
        stacks = [t.layers for t in swap.layer_tasks(TEXT, ["linear"], edge, count) if isinstance(t, ReadingTask)]
        assert stacks[0] == ()
        assert {len(s) for s in stacks[1:]} == set(swap.layer_counts(count))
        assert {tuple(range(s[0], s[0] + len(s))) for s in stacks[1:]} == set(stacks[1:])
        assert tuple(range(count)) in stacks
        if edge != "top":
            assert (edge == "middle") or all(s[0] == 0 for s in stacks[1:])
        else:
            assert all(s[-1] == count - 1 for s in stacks[1:])
    single = [t.layers for t in swap.layer_tasks(TEXT, ["linear"], "single", count) if isinstance(t, ReadingTask)]
    assert sorted(single) == [(), *((layer,) for layer in range(count))]
    copies = [t.layers for t in swap.layer_tasks(TEXT, ["linear"], "single", count) if isinstance(t, CopyTask)]
    assert copies == single


def test_budget_tasks_use_the_budget_values_of_the_error_experiment():
    found = swap.budget_tasks(TEXT, ["local", "linear", "uniform"], (0,), 12, output_errors=True)
    words = [t.word for t in found if isinstance(t, ReadingTask)]
    assert sorted(words) == sorted(["softmax", "linear", *(f"local~window~{w}" for w in (1, 2, 4, 8, 12)), "local"])
    assert [t.word for t in found if isinstance(t, OutputErrorTask)] == words[1:]


def test_causal_words_leaves_out_non_causal_variants():
    assert swap.causal_words(["nystrom", "linear", "uniform", SINK]) == ["linear", "uniform", SINK]


def test_recorded_rows_are_returned_for_equal_tasks_and_marked_as_recorded(monkeypatch):
    task = ReadingTask(text=TEXT, word=SINK, layers=(3,), detail=True)
    copy, output_error = CopyTask(word=SINK, layers=(3, 5)), OutputErrorTask(text=TEXT, word=SINK, layers=(3,))
    rows = [(t, run(replace(t, live=True))[0]) for t in (task, copy, output_error)]
    document = records.to_json(stamp("cpu"), rows)
    json.loads(document)
    monkeypatch.setattr(records, "recorded_document", lambda: records.from_json(document))
    for each, row in rows:
        [found] = run(each)
        assert found.recorded
        name = {ReadingTask: "perplexity", CopyTask: "copied", OutputErrorTask: "output"}[type(each)]
        assert getattr(found, name) == pytest.approx(getattr(row, name), rel=1e-4)
        assert run(replace(each, live=True))[0].recorded == ""
    assert run(replace(task, detail=False))[0].recorded
    [again] = run(task)
    assert (again.labels, again.losses, again.total) == (rows[0][1].labels, rows[0][1].losses, rows[0][1].total)
    assert run(replace(copy, detail=True))[0].recorded == ""  # Only its mean was recorded.
    assert run(replace(task, text=TEXT + "."))[0].recorded == ""
    assert run(replace(task, layers=(4,)))[0].recorded == ""
    assert run(replace(task, tokens=3))[0].recorded == ""
    assert run(replace(copy, seed=1))[0].recorded == run(replace(copy, period=12))[0].recorded == ""


def test_spans_of_layers_have_unique_names():
    assert [records.format_layers(layers) for layers in ((), (7,), (3, 4, 5), (3, 5), (5, 4))] == [
        "-",
        "7-7",
        "3-5",
        "3,5",
        "5,4",
    ]
