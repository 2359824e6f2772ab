"""Tests of the Overview: what each variant remembers, and a reason for each that cannot generate text."""

import re
from dataclasses import replace

import pytest
from driver import charts, chosen, full_text, points, spoken, table

import attention_core as ac
from app.ui.chart import NARROW
from attention_core.experiments import generation
from attention_core.experiments.generation import MemoryRow
from pages.causal.overview import (
    KNOWN,
    TOKEN_COUNTS,
    cheaper_from,
    constant_groups,
    constant_line,
    group_name,
    known_first,
    method,
    softmax_crossing,
    summary,
)


def row(state=0, grown=0):
    return MemoryRow(variant="linear", state_bytes=state, grown_bytes=grown, token_bytes=2048, outgrown=None)


def test_variants_are_grouped_by_memory_with_a_reason_if_they_cannot_generate(open_view):
    at = open_view("overview", variants=chosen("softmax", "nystrom", "linear"))
    found = table(at)
    able = [v for v in ac.all_variants() if not v.causal_reason]
    assert len(found) == len(ac.all_variants())
    assert found["Memory"].tolist()[len(able) :] == 2 * ["only if trained for it"] + 8 * ["cannot generate text"]
    grows = [memory.endswith("per token") for memory in found["Memory"][1 : len(able)]]
    assert grows == sorted(grows), "constant memory comes first"
    assert found.index[0] == "Softmax"
    assert found.index[1] == "DeltaNet", "the smallest constant memory"
    assert found.index[len(able) :].str.contains("Nyström · landmarks 32").sum() == 1
    text = spoken(at)
    assert f"- **Nyström · landmarks 32**: {ac.variant('nystrom').causal_reason}" in text
    assert text.count("- **") == len(ac.all_variants()) - len(able) - 2
    assert "Latent attention and quantised keys can generate text in published models, because" in text
    constant = found["Memory"].str.endswith("B").sum()
    assert f"{len(able) + 2} of {len(found)} variants can generate text, 2 of them only if trained for it. " in text
    assert re.search(rf"{constant} of the other \d+ have constant memory\.", text)
    assert " The other 8 variants, such as Nyström, cannot generate text, because" in text
    assert found.loc["Softmax", "Memory"] == f"{2 * (8 + 8) * 4} B per token"  # two heads of size 8
    assert found.loc["Linear", "Memory"] == f"{2 * 8 * 9 * 4} B"
    assert found.loc["Softmax", "Fewer multiply-adds than softmax"] == "reference"


def test_the_chart_has_the_memory_of_every_variant(open_view):
    [figure] = charts(open_view("overview"))
    *lines, crossed = [trace for trace in figure["data"] if "name" in trace]
    assert re.fullmatch(r"from [\d,]+ tokens on, softmax needs more than Linear", crossed["name"])
    able = sum(not v.causal_reason for v in ac.all_variants())
    listed = [text.partition(": ")[0] for trace in lines for text in str(trace["customdata"][0]).split("<br>")]
    assert len({text for text in listed if not text.endswith("B")}) == able
    found = points(open_view("overview"), 0)
    [(softmax_name, softmax)] = [(name, line) for name, line in found.items() if name.startswith("Softmax, ")]
    assert softmax[1024] == 1024 * 2 * (8 + 8) * 4 / 2**10
    [linear] = [trace for trace in lines if "Linear: " in trace["customdata"][0]]
    assert f"Linear: {2 * 8 * 9 * 4} B" in linear["customdata"][0].split("<br>")
    assert figure["layout"]["yaxis"]["title"]["text"] == "memory of one layer, all 2 heads (log scale)"
    assert figure["layout"]["xaxis"]["title"]["text"] == "tokens so far (log scale)"
    names = " ".join(" ".join(each["text"] for each in figure["layout"]["annotations"]).split()).replace("<br>", "")
    assert "</span> Linear, " in names
    assert softmax_name in names
    assert len([each for each in figure["layout"]["annotations"] if "name" in each]) == len(lines)
    for trace in lines:
        [title, *_others] = re.split(":|, | and ", trace["name"].replace("\N{NO-BREAK SPACE}", " "))
        listed = [text for text in trace["customdata"][0].split("<br>") if not text.endswith("B") or ": " in text]
        assert listed[0].startswith(title), "the tooltip lists the variants in its title first"


def constant(**sizes):
    """Return rows with constant memories of the given sizes in bytes, by the variant's key."""
    return [replace(row(size), variant=key) for key, size in sizes.items()]


def test_constant_memories_are_grouped_at_the_largest_gaps():
    def groups(rows):
        return [[each.variant for each in group] for group in constant_groups(rows)]

    sizes = {"gla": 1520, "linear": 1500, "longformer": 1000, "cosine": 9000, "performer": 9180}
    growing = replace(row(0, 512), variant="softmax")
    assert groups([*constant(**sizes), growing]) == [["longformer"], ["linear", "gla"], ["cosine", "performer"]]
    assert groups(constant(linear=1000, gla=1499)) == [["linear", "gla"]]
    assert groups(constant(linear=1000, gla=1500)) == [["linear"], ["gla"]]
    assert groups(constant(linear=100, gla=200, kda=500, cosine=1000, performer=3000)) == [
        ["linear", "gla"],
        ["kda"],
        ["cosine"],
        ["performer"],
    ], "the smallest gaps do not separate groups"


def test_a_group_of_constant_memories_has_the_line_of_its_best_known_variant_and_a_band():
    line = constant_line(constant(gla=1000, linear=2048, cosine=3072))
    assert (line.y[0], line.low[0], line.high[0]) == (2, 1000 / 2**10, 3)
    assert line.notes[0] == "Linear: 2.0 KiB<br>Gated linear: 1000 B<br>Cosine: 3.0 KiB"
    assert line.name.replace("\N{NO-BREAK SPACE}", " ") == "Linear, 2 more: 0.977 to 3 KiB"
    alone = constant_line(constant(longformer=2048))
    assert alone.name.replace("\N{NO-BREAK SPACE}", " ") == "Longformer · window 8: 2 KiB"
    large = constant_line(constant(linear=272656384, gla=272664576))
    assert large.name.replace("\N{NO-BREAK SPACE}", " ") == "Linear, 1 more: 260 MiB"
    small = constant_line(constant(linear=16, gla=80))
    assert small.name.replace("\N{NO-BREAK SPACE}", " ") == "Linear, 1 more: 16 to 80 B"


def test_a_group_is_named_by_its_best_known_variants():
    named = [
        group_name(known_first([replace(row(), variant=word) for word in words.split()]))
        for words in (
            "gqa",
            "gla cosine",
            "gla cosine retention",
            "gla cosine kda retention",
            "gla kda mesa cosine performer linear",
        )
    ]
    assert named == [
        "Grouped queries",
        "Gated linear and Cosine",
        "Retention, Gated linear and Cosine",
        "Retention, Gated linear, Cosine and 1 other",
        "Linear, Performer, Gated linear and 3 others",
    ]
    shown = [KNOWN.index(key) for key in KNOWN if not ac.variant(key).causal_reason]
    assert len(shown) == len(KNOWN)


def test_the_chart_marks_where_softmax_needs_more_than_linear_attention():
    point = softmax_crossing(replace(row(5000), outgrown=3))
    assert (point.x, point.y) == ([5000 / 2048], [5000 / 2**10])
    assert point.label == "from 3 tokens on, softmax<br>needs more than Linear"
    assert not point.name_at_end, "the text is at the vertical line"
    assert point.name == "from 3 tokens on, softmax needs more than Linear"


def test_settings_of_selected_variants_are_used(open_view):
    found = table(open_view("overview", variants=(ac.get("softmax"), ac.get("local", window=4))))
    assert found.loc["Local · window 4", "Memory"] == "512 B"


def test_a_narrow_screen_has_fewer_ticks(open_view):
    def ticks(**state):
        return list(charts(open_view("overview", **state))[0]["layout"]["xaxis"]["ticktext"])

    assert ticks()[-2:] == ["4,096", "16,384"]
    assert ticks(**{NARROW: True}) == ["1", "16", "256", "4,096"]


@pytest.mark.parametrize(
    ("n", "words"), [(None, "never"), (1, "at any length"), (2, "from 2 tokens"), (1024, "from 1,024 tokens")]
)
def test_the_length_from_which_a_variant_is_cheaper_is_named(n, words):
    assert cheaper_from(replace(row(), cheaper=n)) == words


def test_forms_of_linear_attention_other_than_chunks_are_cheaper_for_shorter_texts(open_view):
    captions = " ".join(each.value for each in open_view("overview").caption)
    assert "in which Linear works in chunks of 64 tokens." in captions

    def first_cheaper(causal, **settings):
        return generation.cheaper_from(ac.get("linear", **settings), 1, 32, causal=causal)

    chunked = first_cheaper(True)
    assert chunked > first_cheaper(True, mode="recurrent")
    assert chunked > first_cheaper(False)


def test_the_sentence_compares_softmax_with_linear_attention_and_counts_the_kinds():
    found = [row(2**14), replace(row(512), variant="longformer"), replace(row(0, 1024), variant="softmax")]
    assert TOKEN_COUNTS[-1] == 16384
    assert full_text(summary(found, ["Nyström", "Funnel"], 1)) == (
        "**4 of 6 variants can generate text, 1 of them only if trained for it. 2 of the other 3 have constant "
        "memory.** Softmax keeps every token, so its memory grows. After 16,384 tokens, softmax stores about 2,000 "
        "times as much as Linear. Variants with constant memory merge or discard earlier tokens. The other 2 variants, "
        "such as Nyström, cannot generate text, because their outputs depend on later tokens."
    )


def test_the_subtitle_names_the_sizes_that_the_memory_is_calculated_for(open_view):
    at = open_view("overview", input="text", text="A few words.", model="minilm", layer=0)
    assert any(method(12, 32, "MiniLM-L6") in each.value for each in at.caption)
    assert method(12, 32, "MiniLM-L6") == "Calculated for 12 heads of size 32 in float32 (MiniLM-L6)"
    assert method(1, 8, "Random").startswith("Calculated for 1 head of size 8 ")
