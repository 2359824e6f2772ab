"""The story of expectation maximisation: bases and the tokens they hold."""

import pytest
from driver import spoken
from stories import head, open_step, said

import attention_core as ac


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
