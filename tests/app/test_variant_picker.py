"""Tests of the messages about chosen attention variants that a page leaves out, and about the limit of variants."""

import pytest
from driver import chosen, open_page

import attention_core as ac
from app.jobs import cached
from app.ui.variant_picker import refusal_text
from attention_core.limits import current


def test_a_left_out_variant_has_a_message_with_the_reason():
    until = "This variant is left out while the causal mask is on."
    assert refusal_text("A *b* cannot.") == rf":material/block: A \*b\* cannot. {until}"


def messages(**state):
    at = open_page("matrices", input="synthetic", n=8, **state)
    return [i.value for i in at.info], [c.value for c in at.caption]


def test_a_chip_gives_the_reason_while_its_variant_is_left_out():
    reason = ac.variant("linformer").causal_reason
    assert messages(variants=chosen("softmax", "linformer", "local"), causal=True)[0] == [
        f"This variant is left out while **Causal** is on: {reason}"
    ]
    assert messages(variants=chosen("softmax", "linformer", "local"))[0] == []


@pytest.mark.parametrize("page", ["matrices", "masks"])
def test_cached_results_need_no_waiting_even_if_a_variant_is_left_out(page, monkeypatch):
    variants = chosen("softmax", "linformer", "local")
    at = open_page(page, input="synthetic", n=cached.SHORT_INPUT_TOKENS + 1, variants=variants, causal=True)
    turns = []
    monkeypatch.setattr(cached, "compute_lock", lambda: turns.append("taken") or pytest.fail("a turn"))
    at.run()
    assert turns == []
    assert len([c for c in at.caption if "cannot be causal" in c.value]) == 1


def test_the_limit_of_variants_is_shown_when_it_is_reached():
    most = current().compared_variants
    keys = [v.key for v in ac.all_variants()][:most]
    full = f"At most {most} variants can be compared. Remove one to add another."
    assert full in messages(variants=chosen(*keys))[1]
    assert full not in messages(variants=chosen(*keys[:-1]))[1]
