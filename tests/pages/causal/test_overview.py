"""Tests of the Overview: a row for each variant that can generate, and a reason for each that cannot."""

from dataclasses import replace

import pytest
from driver import chosen, spoken, table

import attention_core as ac
from attention_core.experiments.generation import MemoryRow
from pages.causal.overview import cheaper, in_words, sentence


def row(state=0, grown=0):
    return MemoryRow(variant="linear", state_bytes=state, grown_bytes=grown, token_bytes=2048, outgrown=None)


def test_every_variant_has_a_row_or_a_reason_and_the_selected_ones_come_first(open_view):
    at = open_view("overview", variants=chosen("softmax", "nystrom", "linear"))
    assert not at.exception
    found = table(at)
    able = [v for v in ac.all_variants() if not v.causal_reason]
    assert len(found) == len(able)
    assert list(found.index[:2]) == ["Softmax", "Linear"]
    said = spoken(at)
    assert f"- **Nyström · landmarks 32**: {ac.variant('nystrom').causal_reason}" in said
    assert said.count("- **") == len(ac.all_variants()) - len(able)
    assert f"**{len(able)} of {len(ac.all_variants())} variants can generate text.**" in said
    assert found.loc["Softmax", "Memory at 1,024 tokens"] == 1024 * 2 * (8 + 8) * 4 / 2**10
    assert found.loc["Linear", "Memory at 1,024 tokens"] == 2 * 8 * 9 * 4 / 2**10
    assert found.loc["Softmax", "Memory"] == f"{2 * (8 + 8) * 4 / 2**10:.1f} KiB per token"  # two heads of size 8
    assert found.loc["Linear", "Memory"] == f"{2 * 8 * 9 * 4 / 2**10:.1f} KiB, constant"
    assert found.loc["Softmax", "Cheaper than softmax from"] == "reference"


def test_settings_of_selected_variants_count(open_view):
    found = table(open_view("overview", variants=(ac.get("softmax"), ac.get("local", window=4))))
    assert found.loc["Local · window 4", "Memory"] == "0.5 KiB, constant"


@pytest.mark.parametrize(
    ("state", "grown", "words"),
    [(1024, 0, "1.0 KiB, constant"), (0, 1024, "1.0 KiB per token"), (2048, 1024, "2.0 KiB + 1.0 KiB per token")],
)
def test_a_memory_is_constant_or_grows(state, grown, words):
    assert in_words(row(state, grown)) == words


@pytest.mark.parametrize(("n", "words"), [(None, "never"), (16, "any length"), (1024, "1,024 tokens")])
def test_from_where_a_variant_is_cheaper(n, words):
    assert cheaper(ac.get("linear"), replace(row(), cheaper=n)) == words


def test_the_sentence_counts_the_kinds_of_memory():
    assert sentence([row(1024), row(512), row(0, 1024), row(0, 2048)], 1) == (
        "**4 of 5 variants can generate text.** 2 of these variants need constant memory. The other 2 need a cache "
        "that grows with the text. 1 variant cannot generate text, because its earlier outputs depend on later tokens."
    )
    assert sentence([row(1024)], 2) == (
        "**1 of 3 variants can generate text.** 1 of these variants needs constant memory. The other 0 need a cache "
        "that grows with the text. 2 variants cannot generate text, because their earlier outputs depend on later "
        "tokens."
    )
