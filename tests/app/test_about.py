"""Tests of the text about an attention variant: its cost on an input, its references and its code."""

import pytest
from driver import assert_says, chosen, open_page, visit

import attention_core as ac
from app.ui.about import describe_cost, describe_counts, sources
from app.words.i18n import enumeration, escape_markdown
from attention_core.variant import Paper


def test_a_cost_is_relative_to_softmax_and_says_what_is_counted():
    softmax, local = ac.get("softmax"), ac.get("local", window=4)
    own, full = (a.cost(64, 8).multiply_adds for a in (local, softmax))
    assert own < full
    assert describe_cost(local, n=64, d=8, heads=3) == (
        f"**O({local.variant.complexity})**: {own:,} multiply-adds per head, {own / full:.2f}× as many as softmax."
    )
    assert describe_cost(softmax, n=64, d=8, heads=3) == f"**O(n² d)**: {full:,} multiply-adds per head."
    assert describe_cost(ac.get("alibi"), n=64, d=8, heads=3).endswith(" multiply-adds per head, as many as softmax.")
    assert describe_cost(ac.get("local", window=9), n=64, d=8, heads=3) != describe_cost(local, n=64, d=8, heads=3)


def test_a_variant_that_shares_work_between_heads_divides_its_cost():
    latents = ac.get("mla", rank=8)
    whole = latents.cost(64, 8, heads=9).multiply_adds
    assert f" {whole // 9:,} multiply-adds per head" in describe_cost(latents, n=64, d=8, heads=9)
    assert whole > 9 * latents.cost(64, 8).multiply_adds


def test_the_cost_on_a_page_is_for_its_input():
    at = open_page(
        "matrices", input="synthetic", n=24, heads=3, d=8, variants=chosen("softmax", "local"), more="explain"
    )
    cost = describe_cost(at.session_state["variants"][0], n=24, d=8, heads=3)
    assert_says(at, cost)
    [shown] = [each for each in at.markdown if each.value == cost]
    assert shown.help.endswith(describe_counts())


@pytest.mark.parametrize(
    ("key", "causal", "with_mask"), [("linear", True, True), ("linear", False, False), ("nystrom", True, False)]
)
def test_the_cost_includes_the_causal_mask_if_the_variant_can_be_causal(key, causal, with_mask):
    at = open_page("matrices", input="synthetic", n=64, heads=1, d=32, causal=causal, variants=chosen("softmax", key),
                   more="explain", explained=key)  # fmt: skip
    costs = {mask: describe_cost(ac.get(key), n=64, d=32, heads=1, causal=mask) for mask in {with_mask, False}}
    [shown] = [each for each in at.markdown if each.value == costs[with_mask]]
    assert ("no causal mask" in shown.help) == (not with_mask)
    assert len(set(costs.values())) == len(costs)


def cited(paper: Paper) -> str:
    return f"[{escape_markdown(paper.heading)} ({paper.year})]({paper.url})"


def test_sources_are_cited_with_further_references():
    lone = next(v for v in ac.all_variants() if not v.further)
    more = next(v for v in ac.all_variants() if len(v.further) > 1)
    assert sources(lone) == f"Source: {cited(lone.source)}"
    assert sources(more) == f"Source: {cited(more.source)}. See also {enumeration(map(cited, more.further))}"


@pytest.mark.parametrize(("key", "first"), [("deltanet", "def definition("), ("nystrom", "def weights(")])
def test_the_definition_is_shown_without_the_rest_of_its_file(key, first):
    at = visit(
        "matrices",
        {"input": "synthetic", "n": "8", "variants": ["softmax", key], "more": "explain"} | {"explained": key},
    )
    [shown] = [each.value for each in at.code if each.value.startswith("def ")]
    assert shown == ac.variant(key).definition_code().strip()
    assert shown.startswith(first)
    assert "VARIANT" not in shown
