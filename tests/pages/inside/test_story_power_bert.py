"""Tests of PoWER-BERT's story: the tokens that stay, and the mass of the dropped tokens."""

import re

import numpy as np
from stories import drawn_words, open_step, said, seen, softmax, source

import attention_core as ac
from pages.inside.stories import power_bert


def test_who_stays_and_what_the_others_held():
    qkv = source().load()
    S = softmax((qkv.q @ qkv.k.mT).double().numpy() / 8**0.5)
    received = S.sum((0, 1))
    ranked = np.argsort(-received, kind="stable")
    gone = ranked[6:]
    attention = ac.get("power_bert", keep=0.25)
    at = open_step(attention, 1)
    assert said(at, r"\*\*([\d.]+)×\*\*") == (round(received.max() / received.mean(), 1),)
    assert f"“t{ranked[0]}” receives most" in " ".join(m.value for m in at.markdown)
    at = open_step(attention, 2, again=at)
    assert said(at, r"\*\*(\d+) of (\d+)\*\* tokens stay") == (6, 24)
    struck = re.findall(r'line-through;" title="token (\d+)', drawn_words(at))
    assert sorted(map(int, struck)) == sorted(gone)
    at = open_step(attention, 3, again=at)
    assert said(at, r"\*\*(\d+) of (\d+)\*\* rows are zero, (\d+)%") == (18, 24, 75)
    at = open_step(attention, 4, again=at)
    shares = [100 * received[gone].sum() / received.sum(), 75, 100 * S[1][:, gone].sum(-1).mean()]
    told = said(at, r"held \*\*([\d.]+)%\*\*.*would be (\d+)%; in head 1 ([\d.]+)%")
    np.testing.assert_allclose(told, shares, atol=0.051)


def tell(keep, received):
    """Return the sentences for a head whose tokens receive this much attention."""
    received = np.array(received, float)
    stays = np.argsort(-received, kind="stable")[: max(1, round(keep * len(received)))]
    parts = {"significance": received, "survivors": stays}
    return [
        step.sentence for step in power_bert.steps(seen(ac.get("power_bert", keep=keep), n=len(received), parts=parts))
    ]


def test_a_dropped_token_is_told_from_the_last_to_stay():
    count, drop, _rows, _lost, _ = tell(0.5, [1.0, 4.0, 2.0, 1.0])
    assert "Over all 2 heads “t1” receives most attention, **2.0×** what it would if all were alike" in count
    assert "“t2”, “t0” follow. Half of all attention goes to 1 of 4 tokens." in count
    assert drop == (
        "**2 of 4** tokens stay. The last to stay is “t2” with 1.00× the mean, the first to go “t0” with 0.50; "
        "“t0”, “t3” receive least."
    )


def test_where_all_stay_nothing_is_lost_and_a_token_alone_is_followed_by_none():
    count, drop, _rows, lost, _ = tell(1.0, [1.0, 4.0])
    assert drop == "All 2 tokens stay: nothing is dropped at this share."
    assert lost == "Nothing is dropped, so nothing is lost."
    assert "alike; none follow." in tell(1.0, [1.0])[0]
    assert "alike; “t0” follow." in count


def test_one_dropped_token_is_told_from_several():
    assert "The 1 dropped token held **10.0%** of all" in tell(0.75, [4.0, 3.0, 2.0, 1.0])[3]
    assert "The 2 dropped tokens held **30.0%** of all" in tell(0.5, [4.0, 3.0, 2.0, 1.0])[3]
