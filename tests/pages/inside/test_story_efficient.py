"""Tests of efficient attention's story: the features' shares of tokens, and the loss in the causal form."""

import re

import numpy as np
import pytest
from driver import curves, spoken
from stories import head, open_step, seen

import attention_core as ac
from pages.inside.stories import efficient


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


def test_maps_are_told_by_their_width_and_the_sharpest_by_its_token():
    gather = np.full((3, 24), 1 / 24)
    gather[1] = 0
    gather[1, 5], gather[1, 7] = 0.75, 0.25
    told = efficient.steps(seen(ac.get("efficient"), parts={"gather": gather}))[0].sentence
    assert "Each of the 3 features" in told
    assert "the median map spreads like 24 of 24 tokens, the sharpest, feature 1, gives 75% to “t5”." in told
    assert "after the last token" not in told
    assert (
        "Shown is the map after the last token" in efficient.steps(seen(ac.get("efficient"), causal=True))[0].sentence
    )


def test_mixtures_are_told_by_their_width_and_by_the_features_nobody_prefers():
    given = np.zeros((24, 4))
    given[:14, 2], given[14:, 0] = 1, 1
    told = efficient.steps(seen(ac.get("efficient"), parts={"distribute": given}))[1].sentence
    assert told == (
        "The median query mixes like 1.0 of 4 features. Feature 2 is the largest share of 14 of 24 queries, and 2 "
        "features are nobody's largest."
    )


def test_columns_are_free():
    weights = np.full((24, 24), 1 / 24)
    weights[:, 3] += 0.5
    weights[:, 4] -= 1 / 48
    told = efficient.steps(seen(ac.get("efficient"), parts={"weights": weights}))[2].sentence
    assert "none is further from one than 0.5." in told
    assert told.endswith("“t3” is given 13.00 in all, the least of all tokens 0.50.")


def test_one_feature_that_is_nobodys_largest_is_told_from_several():
    one, two = (efficient.shares_sentence(2.0, np.array(top)) for top in ([3, 1, 0], [4, 0, 0]))
    assert one.endswith("largest share of 3 of 4 queries, and 1 feature is nobody's largest.")
    assert two.endswith("largest share of 4 of 4 queries, and 2 features are nobody's largest.")
