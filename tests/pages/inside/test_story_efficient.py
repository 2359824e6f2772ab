"""Tests of efficient attention's story: the features' shares of tokens, and the loss in the causal form."""

import re

import numpy as np
import pytest
from driver import lines_of, spoken
from stories import data, head, open_step

import attention_core as ac
from pages.inside.stories import efficient


def test_feature_maps_and_sums_need_no_division():
    at = open_step(ac.get("efficient"), 1)
    q, k, _ = head()
    gather = k.softmax(0).mT
    wide = (-(gather * gather.log()).sum(-1)).exp()
    sharpest = int(wide.argmin())
    assert lines_of(at)[f"feature {sharpest}"][1] == pytest.approx(gather[sharpest].tolist(), rel=1e-4)
    next(s for s in at.selectbox if s.key.endswith(".feature")).set_value(0).run()
    assert lines_of(at)["feature 0"][1] == pytest.approx(gather[0].tolist(), rel=1e-4)
    drawn = lines_of(open_step(ac.get("efficient"), 3))
    assert drawn["row sum (as query)"][1] == pytest.approx([1] * 24, abs=1e-5)
    assert drawn["column sum (as key)"][1] == pytest.approx((q.softmax(-1) @ gather).sum(0).tolist(), rel=1e-4)


def test_efficient_explains_its_causal_form():
    lost = ac.variant("efficient").note
    found = [m.value for m in open_step(ac.get("efficient"), 3, causal=True).markdown]
    assert any("Every row sums to one, to within" in words and lost in words for words in found)
    assert "The rank of the matrix" not in spoken(open_step(ac.get("efficient"), 4, causal=True))
    assert "The rows of both factors sum to one. Therefore, the rows of the product also sum to one" in spoken(
        open_step(ac.get("efficient"), 3)
    )
    assert "The rank of the matrix is at most 8, the number of features." in spoken(open_step(ac.get("efficient"), 4))


def test_tokens_in_sentences_are_shown_as_they_are_written():
    at = open_step(ac.get("efficient"), 1, input="text", text="**a** $x$ **b** $y$", head=0)
    assert not re.search(r"“[*$]”", spoken(at))


def test_maps_are_described_by_width_and_the_sharpest_by_its_token():
    gather = np.full((3, 24), 1 / 24)
    gather[1] = 0
    gather[1, 5], gather[1, 7] = 0.75, 0.25
    text = efficient.steps(data(ac.get("efficient"), parts={"gather": gather}))[0].findings
    assert text == (
        "Each feature spreads its weight over 24 of the 24 tokens (effective number, median over features). Feature 1 "
        "spreads its weight least and gives 75% of it to “t5”."
    )
    assert (
        "the weights that a feature gives to tokens depend on the query. The figure shows the weights "
        "for the last query." in efficient.steps(data(ac.get("efficient"), causal=True))[0].findings
    )


def test_mixtures_are_described_by_width_and_unused_features():
    given = np.zeros((24, 4))
    given[:14, 2], given[14:, 0] = 1, 1
    text = efficient.steps(data(ac.get("efficient"), parts={"distribute": given}))[1].findings
    assert text == (
        "A query effectively mixes 1.0 of 4 features (median over queries). Feature 2 has the largest weight for "
        "14 of "
        "24 queries. 2 features never have the largest weight."
    )


def test_column_sums_are_not_constrained():
    weights = np.full((24, 24), 1 / 24)
    weights[:, 3] += 0.5
    weights[:, 4] -= 1 / 48
    text = efficient.steps(data(ac.get("efficient"), parts={"weights": weights}))[2].findings
    assert "to within 0.5." in text
    assert text.endswith("“t3” receives the largest total weight, 13.00. The smallest total weight of a token is 0.50.")


def test_one_feature_that_is_never_the_largest_is_singular():
    none, one, two = (efficient.shares_sentence(2.0, np.array(top)) for top in ([2, 1, 1], [3, 1, 0], [4, 0, 0]))
    assert none.endswith("for 2 of 4 queries. Every feature has the largest weight for at least one query.")
    assert one.endswith("largest weight for 3 of 4 queries. 1 feature never has the largest weight.")
    assert two.endswith("largest weight for 4 of 4 queries. 2 features never have the largest weight.")
