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
    table = open_step(attention, 2).dataframe[0].value.set_index("basis")
    assert table["size in tokens"].sum() == pytest.approx(24)
    assert table["size in tokens"].to_dict() == pytest.approx(dict(enumerate(z[-1].sum(0).tolist())), rel=1e-4)
    moved = (z.argmax(-1).diff(dim=0) != 0).double().mean(-1)
    second, final = said(open_step(attention, 1), r"([\d.]+)% of the tokens in .* for ([\d.]+)% in the last")
    assert (second, final) == (
        pytest.approx(100 * float(moved[0]), abs=0.51),
        pytest.approx(100 * float(moved[-1]), abs=0.51),
    )


def test_emanet_stays_whole_while_causal_is_on():
    at = open_step(ac.get("emanet"), 3, causal=True)
    assert not at.exception
    assert any("cannot be causal" in c.value for c in at.caption)
    assert "The two factors contain 768 numbers. The full matrix contains 576." in spoken(at)


def test_what_the_rounds_change_is_told_as_far_as_there_are_any():
    start = "After {} rounds, 3 of 4 bases are nearest to at least one token."
    assert rounds_sentence(1, 3, 4, []) == "After 1 round, 3 of 4 bases are nearest to at least one token."
    assert rounds_sentence(2, 3, 4, []) == start.format(2)
    second = " The nearest basis changed for 25% of the tokens in the second round"
    assert rounds_sentence(2, 3, 4, [0.25]) == start.format(2) + second + "."
    assert rounds_sentence(4, 3, 4, [0.25, 0.2, 0.1]) == start.format(4) + second + ", and for 10% in the last round."


def test_a_step_counts_the_bases_that_tokens_have():
    attention = ac.get("emanet", bases=5, iterations=4)
    z = np.zeros((2, 24, 5))
    z[0, :, 1], z[1, 20:, 3] = 1, 1
    z[1, :20, 1] = 1 - np.arange(20) / 100
    rounds, contents, *_ = emanet.steps(seen(attention, parts={"responsibilities": z}))
    assert rounds.findings == (
        "After 2 rounds, 2 of 5 bases are nearest to at least one token. The nearest basis changed for 17% of the "
        "tokens in the second round."
    )
    assert contents.findings == (
        "The largest basis contains 18.1 of 24 tokens, mainly “t0”, “t1”, “t2”. The smallest basis contains 0.0 tokens."
    )
