"""Tests of EMANet's story: bases and their tokens."""

import numpy as np
import pytest
from driver import spoken
from stories import head, open_step, said, seen

import attention_core as ac
from pages.inside.stories import emanet
from pages.inside.stories.emanet import rounds_sentence


def test_bases_hold_tokens():
    attention = ac.get("emanet", bases=5, iterations=4, sharpness=6.0)
    q, k, v = head()
    z = attention.variant.anatomy(q, k, v, attention.params, causal=False)["responsibilities"]
    table = open_step(attention, 3).dataframe[0].value.set_index("basis")
    assert table["tokens held"].sum() == pytest.approx(24)
    assert table["tokens held"].to_dict() == pytest.approx(dict(enumerate(z[-1].sum(0).tolist())), rel=1e-4)
    first, last = said(open_step(attention, 2), r"responsibility goes from ([\d.]+)% to ([\d.]+)%")
    largest = 100 * z.amax(-1).mean(-1)
    assert (first, last) == (pytest.approx(float(largest[0]), abs=0.51), pytest.approx(float(largest[-1]), abs=0.51))
    moved = (z.argmax(-1).diff(dim=0) != 0).double().mean(-1)
    second, final = said(open_step(attention, 1), r"; ([\d.]+)% of the tokens changed .*, ([\d.]+)% in the last")
    assert (second, final) == (
        pytest.approx(100 * float(moved[0]), abs=0.51),
        pytest.approx(100 * float(moved[-1]), abs=0.51),
    )


def test_emanet_stays_whole_while_causal_is_on():
    at = open_step(ac.get("emanet"), 5, causal=True)
    assert not at.exception
    assert any("cannot be causal" in c.value for c in at.caption)
    assert "24 × 16 times 16 × 24" in spoken(at)


def test_what_the_rounds_change_is_told_as_far_as_there_are_any():
    start = "After {} rounds 3 of 4 bases are the nearest of some token"
    assert rounds_sentence(1, 3, 4, []) == "After 1 round 3 of 4 bases are the nearest of some token."
    assert rounds_sentence(2, 3, 4, []) == start.format(2) + "."
    second = "; 25% of the tokens changed their nearest basis in the second round"
    assert rounds_sentence(2, 3, 4, [0.25]) == start.format(2) + second + "."
    assert rounds_sentence(4, 3, 4, [0.25, 0.2, 0.1]) == start.format(4) + second + ", 10% in the last."


def test_a_step_counts_the_bases_that_tokens_have():
    attention = ac.get("emanet", bases=5, iterations=4)
    z = np.zeros((2, 24, 5))
    z[0, :, 1], z[1, 20:, 3] = 1, 1
    z[1, :20, 1] = 1 - np.arange(20) / 100
    rounds, firm, holdings, *_ = emanet.steps(seen(attention, parts={"responsibilities": z}))
    assert rounds.sentence == (
        "After 2 rounds 2 of 5 bases are the nearest of some token; 17% of the tokens changed their nearest basis in "
        "the second round."
    )
    assert "goes from 100% to 92% (alike would be 20%); it is shared among 1.0 bases" in firm.sentence
    assert holdings.sentence == (
        "The largest basis holds 18.1 of 24 tokens, above all “t0”, “t1”, “t2”; the smallest holds 0.0."
    )


def test_twins_among_bases_are_counted():
    bases = np.zeros((2, 3, 8))
    bases[0, :, :3] = np.eye(3)
    bases[1, :, 0] = 1
    told = emanet.steps(seen(ac.get("emanet", bases=3), parts={"bases": bases}))[3].sentence
    assert "is 0.00 after the first round and 1.00 after the last; 3 pairs are all but the same" in told


def test_one_pair_of_bases_is_told_from_several():
    assert emanet.bases_sentence(0.5, 0.25, 1).endswith("1 pair is all but the same (above 0.99).")
    assert emanet.bases_sentence(0.5, 0.25, 0).endswith("0 pairs are all but the same (above 0.99).")
