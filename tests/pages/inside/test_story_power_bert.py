"""PoWER-BERT's story: who stays, and what the others held."""

import re

import numpy as np
from stories import drawn_words, open_step, said, softmax, source

import attention_core as ac


def test_who_stays_and_what_the_others_held():
    qkv = source().load()
    S = softmax((qkv.q @ qkv.k.mT).double().numpy() / 8**0.5)
    received = S.sum((0, 1))
    ranked = np.argsort(-received, kind="stable")
    gone = ranked[6:]
    attention = ac.get("power_bert", keep=0.25)
    at = open_step(attention, 1)
    assert said(at, r"\*\*([\d.]+) times\*\*") == (round(received.max() / received.mean(), 1),)
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
