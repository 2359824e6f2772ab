"""Efficient attention's story: what features gather, and what the causal form loses."""

import re

import pytest
from driver import curves, spoken
from stories import head, open_step

import attention_core as ac


def test_a_features_map_and_sums_without_a_division():
    at = open_step(ac.get("efficient"), 1)
    q, k, _ = head()
    gather = k.softmax(0).mT
    wide = (-(gather * gather.log()).sum(-1)).exp()
    sharpest = int(wide.argmin())
    assert curves(at)[f"feature {sharpest}"][1] == pytest.approx(gather[sharpest].tolist(), rel=1e-4)
    next(s for s in at.selectbox if s.key.endswith(".feature")).set_value(0).run()
    assert curves(at)["feature 0"][1] == pytest.approx(gather[0].tolist(), rel=1e-4)
    drawn = curves(open_step(ac.get("efficient"), 3))
    assert drawn["sum of its row, as a query"][1] == pytest.approx([1] * 24, abs=1e-5)
    assert drawn["sum of its column, as a key"][1] == pytest.approx((q.softmax(-1) @ gather).sum(0).tolist(), rel=1e-4)


def test_efficient_says_what_its_causal_form_loses():
    lost = ac.variant("efficient").note
    told = [m.value for m in open_step(ac.get("efficient"), 3, causal=True).markdown]
    assert any(words.startswith("No row is further from one than") and lost in words for words in told)
    assert "Its rank is at most" not in spoken(open_step(ac.get("efficient"), 4, causal=True))
    assert "No row was divided by anything" in spoken(open_step(ac.get("efficient"), 3))
    assert "Its rank is at most C = 8" in spoken(open_step(ac.get("efficient"), 4))


def test_tokens_in_sentences_are_shown_as_they_are_written():
    at = open_step(ac.get("efficient"), 1, input="text", text="**a** $x$ **b** $y$", head=0)
    assert not at.exception
    assert not re.search(r"“[*$]”", spoken(at))
