"""Tests of the Overview: what each variant remembers, and a reason for each that cannot generate text."""

from dataclasses import replace

import pytest
from driver import charts, chosen, points, spoken, table

import attention_core as ac
from attention_core.experiments.generation import MemoryRow, MemoryTask, run
from pages.causal.overview import (
    KINDS,
    cheaper,
    constant_line,
    in_words,
    kind,
    method,
    neighbours,
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
    assert " The other 10, such as Nyström · landmarks 32, cannot: their" in said
    assert found.loc["Softmax", "Memory"] == f"{2 * (8 + 8) * 4 / 2**10:.1f} KiB per token"  # two heads of size 8
    assert found.loc["Linear", "Memory"] == f"{2 * 8 * 9 * 4 / 2**10:.1f} KiB, constant"
    assert found.loc["Softmax", "Fewer multiply-adds than softmax"] == "reference"


def test_the_chart_has_the_memory_of_every_variant(open_view):
    [figure] = charts(open_view("overview"))
    lines = [trace for trace in figure["data"] if "name" in trace]
    able = sum(not v.causal_reason for v in ac.all_variants())
    listed = [text.partition(": ")[0] for trace in lines for text in str(trace["customdata"][0]).split("<br>")]
    assert len({text for text in listed if not text.endswith("iB")}) == able
    found = points(open_view("overview"), 0)
    [softmax] = [line for name, line in found.items() if name.startswith("Softmax and ")]
    assert softmax[1024] == 1024 * 2 * (8 + 8) * 4 / 2**10
    [linear] = [trace for trace in lines if "Linear: " in trace["customdata"][0]]
    assert f"Linear: {2 * 8 * 9 * 4 / 2**10:.1f} KiB" in linear["customdata"][0].split("<br>")
    assert figure["layout"]["yaxis"]["title"]["text"] == "memory of one layer, all 2 heads"
    assert not any(trace.get("text") for trace in lines), "all names are in the margin"
    assert len([each for each in figure["layout"]["annotations"] if "name" in each]) == len(lines)


def test_nearly_equal_constant_sizes_are_one_band_with_their_number():
    sizes = {"longformer": 1000, "deltanet": 1250, "linear": 1500, "gla": 1520, "cosine": 9000, "performer": 9180}
    rows = [
        MemoryRow(variant=word, state_bytes=b, grown_bytes=0, token_bytes=8, outgrown=9) for word, b in sizes.items()
    ]
    groups = neighbours([*rows, row(0, 512)])
    assert [[each.variant for each in own] for own in groups] == [
        ["longformer"],
        ["deltanet", "linear", "gla"],
        ["cosine", "performer"],
    ]
    one, band, equal = map(constant_line, groups)
    assert (one.name, one.low) == ("Longformer", None)
    assert (band.name, band.y[0]) == ("3 variants: 1.2 to 1.5 KiB", 1500 / 2**10)
    assert (band.low[0], band.high[0]) == (1250 / 2**10, 1520 / 2**10)
    assert (equal.name, equal.low) == ("Performer and 1 other", None), "the chart cannot distinguish 2%"
    apart = constant_line([rows[4], replace(rows[5], state_bytes=9190)])
    assert (apart.name, apart.low[0]) == ("2 variants: 8.8 to 9.0 KiB", 9000 / 2**10)
    large = constant_line([replace(each, state_bytes=2**10 * each.state_bytes) for each in groups[1]])
    assert large.name == "3 variants: 1.2 to 1.5 MiB"


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
    assert sentence(found, ["Nyström", "Funnel"], "MiniLM") == (
        "**4 of 6 variants can generate text token by token.** The other 2, such as Nyström, cannot: their earlier "
        "outputs depend on later tokens. 2 of those that can generate text store every key and value, so their memory "
        "grows with the text. 2 merge or discard earlier tokens, so their memory stays constant. 1 of these 2 variants "
        "needs at most 0.5 KiB. From 9 tokens on, softmax's key-value cache is larger than 0.5 KiB. MiniLM cannot "
        "generate text. It is used here only for the number and size of its heads."
    )
    assert "2 of these 3 variants need at most 0.5 KiB." in sentence([*found, found[1]], ["Nyström"])
    assert sentence(found[:1], ["Nyström"]).endswith(
        "The constant memory is 1.0 KiB. From 17 tokens on, softmax's key-value cache is larger than 1.0 KiB."
    )
    assert sentence([row(512)], ["Nyström"]).endswith("The constant memory is 0.5 KiB."), "softmax never needs more"
    assert words_at_mark(found[0]) == "softmax needs over 1.0 KiB"
    assert (
        " 1 of those that can generate text stores every key and value, so its memory grows with the text. 1 merges or"
        in sentence(found[1:3], ["Nyström"])
    )
    assert "cannot" not in sentence(found, ["Nyström"])
    assert sentence(found[2:], ["Nyström", "Funnel"]).endswith("so their memory grows with the text.")
    assert "store" not in sentence(found[:2], ["Nyström"])


@pytest.mark.parametrize(("model", "expected"), [("minilm", True), ("smollm2", False)])
def test_a_model_that_sees_later_tokens_is_said_to_generate_nothing(open_view, model, expected):
    at = open_view("overview", input="text", text="A few words.", model=model, layer=0)
    assert ("cannot generate text. It is used here only for" in spoken(at)) == expected


def test_the_method_names_the_size_of_the_layer():
    assert method(2, 8).startswith("Memory of one layer with 2 heads of size 8 (float32).")


def test_the_typical_memory_is_the_median():
    rows = [row(size) for size in (4096, 1024, 2048, 512)]
    assert typical_memory(rows) is rows[1]
    assert typical_memory(rows[:3]) is rows[2]
    assert typical_memory([row(0, 8)]) is None
