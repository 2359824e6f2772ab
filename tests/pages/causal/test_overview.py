"""Tests of the Overview: what each variant remembers, and a reason for each that cannot generate text."""

from dataclasses import replace

import pytest
from driver import charts, chosen, points, spoken, table

import attention_core as ac
from attention_core.experiments.generation import MemoryRow, MemoryTask, run
from pages.causal.overview import (
    KINDS,
    cheaper,
    in_words,
    kind,
    method,
    names_at_lines,
    sentence,
    typical_memory,
    words_at_mark,
)


def row(state=0, grown=0):
    return MemoryRow(variant="linear", state_bytes=state, grown_bytes=grown, token_bytes=2048, outgrown=None)


def test_every_variant_has_a_row_by_what_it_remembers_and_a_reason_if_it_cannot_generate(open_view):
    at = open_view("overview", variants=chosen("softmax", "nystrom", "linear"))
    assert not at.exception
    found = table(at)
    able = [v for v in ac.all_variants() if not v.causal_reason]
    assert len(found) == len(ac.all_variants())
    kinds = list(found["Remembers"])[1:]
    assert kinds == sorted(kinds, key=[*KINDS.values(), "cannot generate text"].index)
    assert found.index[0] == "Softmax"
    assert found.index[1] == "Linear", "selected variants are first of their kind"
    assert found.index[len(able) :].str.contains("Nyström · landmarks 32").sum() == 1
    said = spoken(at)
    assert f"- **Nyström · landmarks 32**: {ac.variant('nystrom').causal_reason}" in said
    assert said.count("- **") == len(ac.all_variants()) - len(able)
    assert f"**{len(able)} of {len(ac.all_variants())} variants can generate text token by token.**" in said
    assert " Nyström · landmarks 32 and 9 others cannot, because" in said
    assert found.loc["Softmax", "Memory"] == f"{2 * (8 + 8) * 4 / 2**10:.1f} KiB per token"  # two heads of size 8
    assert found.loc["Linear", "Memory"] == f"{2 * 8 * 9 * 4 / 2**10:.1f} KiB, constant"
    assert found.loc["Softmax", "Fewer multiply-adds than softmax"] == "reference"


def test_the_chart_has_the_memory_of_every_variant(open_view):
    found = points(open_view("overview"), 0)
    able = sum(not v.causal_reason for v in ac.all_variants())
    kinds = {name.partition(": ")[0]: name for name in found if ": " in name}
    assert set(kinds) == set(KINDS.values())
    counts = [int(name.split()[-2]) for name in kinds.values()]
    grouped = sum(name.startswith("Grouped queries") for name in found)
    softmax_itself = 1
    assert sum(counts) + softmax_itself + grouped == able
    assert found[kinds["all keys and values"]][1024] == 1024 * 2 * (8 + 8) * 4 / 2**10
    [linear] = [line for name, line in found.items() if "Linear" in name.split(", ")]
    assert set(linear.values()) == {2 * 8 * 9 * 4 / 2**10}


def test_every_line_of_constant_size_has_a_name_above_it_or_above_a_neighbour(open_view):
    sizes = {"longformer": 100, "deltanet": 200, "linear": 300, "gla": 450, "performer": 700, "cosine": 1000}
    rows = [
        MemoryRow(variant=word, state_bytes=b, grown_bytes=0, token_bytes=8, outgrown=9) for word, b in sizes.items()
    ]
    assert names_at_lines([*rows, row(0, 512)]) == {
        100: "Longformer",
        450: "Gated linear and 2 others",
        1000: "Cosine and 1 other",
    }
    local = MemoryRow(variant="local", state_bytes=200, grown_bytes=0, token_bytes=8, outgrown=9)
    assert names_at_lines([*rows[1:3], local])[300] == "3 variants with 0.2 KiB to 0.3 KiB", "two kinds"
    assert names_at_lines([rows[1], local])[200] == "2 variants with 0.2 KiB"
    [figure] = charts(open_view("overview"))
    shown = [text for trace in figure["data"] for text in trace.get("text", ()) if text]
    flat = {float(trace["y"][0]) for trace in figure["data"] if trace["y"][0] == trace["y"][-1]}
    named = {float(trace["y"][0]) for trace in figure["data"] if any(trace.get("text", ()))}
    assert 1 < len(shown) == len(named) <= len(flat)


@pytest.mark.parametrize(
    ("word", "found"),
    [("softmax", "all"), ("gqa", "all"), ("local", "some"), ("heavy_hitters", "some"), ("linear", "state")],
)
def test_what_a_variant_remembers(word, found):
    [measured] = run(MemoryTask(word=word, heads=2, d=8, d_v=8))
    assert kind(measured) == found


def test_settings_of_selected_variants_count(open_view):
    found = table(open_view("overview", variants=(ac.get("softmax"), ac.get("local", window=4))))
    assert found.loc["Local · window 4", "Memory"] == "0.5 KiB, constant"


@pytest.mark.parametrize(
    ("state", "grown", "words"),
    [(1024, 0, "1.0 KiB, constant"), (0, 1024, "1.0 KiB per token"), (2048, 1024, "2.0 KiB + 1.0 KiB per token")],
)
def test_a_memory_is_constant_or_grows(state, grown, words):
    assert in_words(row(state, grown)) == words


@pytest.mark.parametrize(("n", "words"), [(None, "never"), (16, "at any length"), (1024, "from 1,024 tokens")])
def test_from_where_a_variant_is_cheaper(n, words):
    assert cheaper(replace(row(), cheaper=n)) == words


def test_the_sentence_counts_the_kinds_of_memory():
    found = [replace(row(1024), outgrown=17), replace(row(512), outgrown=9), row(0, 1024), row(0, 2048)]
    assert sentence(found, ["Nyström", "Funnel"]) == (
        "**4 of 6 variants can generate text token by token.** Nyström and 1 other cannot, because their earlier "
        "outputs depend on later tokens. 2 variants store every key and value, so their memory grows with the text. 2 "
        "merge or discard earlier tokens, so their memory stays constant. Half of these 2 need at most 0.5 KiB, which "
        "softmax's key-value cache exceeds from 9 tokens on."
    )
    assert sentence(found[:1], ["Nyström"]).endswith(
        "It needs 1.0 KiB, which softmax's key-value cache exceeds from 17 tokens on."
    )
    assert words_at_mark(found[0]) == "softmax needs over 1.0 KiB"
    assert " 1 variant stores every key and value, so its memory grows with the text. 1 merges or" in sentence(
        found[1:3], ["Nyström"]
    )
    assert "cannot" not in sentence(found, ["Nyström"])
    assert sentence(found[2:], ["Nyström", "Funnel"]).endswith("so their memory grows with the text.")
    assert "store" not in sentence(found[:2], ["Nyström"])


def test_the_method_names_the_size_of_the_layer():
    assert method(2, 8).startswith("Memory of one layer with 2 heads of size 8 (float32).")


def test_the_typical_memory_is_the_median():
    rows = [row(size) for size in (4096, 1024, 2048, 512)]
    assert typical_memory(rows) is rows[1]
    assert typical_memory(rows[:3]) is rows[2]
    assert typical_memory([row(0, 8)]) is None
