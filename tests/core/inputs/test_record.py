"""The record of an input: what it says of itself."""

from dataclasses import replace

import torch

import attention_core as ac
from attention_core.inputs.record import QKV
from attention_core.inputs.source import first_tokens


def test_a_record_prints_as_one_line_however_large_it_is():
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(kind="needle", n=500, heads=8, d=64))
    assert repr(qkv) == f"QKV({qkv.origin!r}, 8 heads x 500 tokens x 64)"
    assert str(qkv) == repr(qkv)


def test_a_record_prints_what_is_unusual_of_it():
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=12, heads=2, d=4))
    other = replace(qkv, v=torch.zeros(2, 12, 3), causal=True, total_tokens=40, origin="my file")
    wanted = "QKV('my file', 2 heads x 7 tokens x 4, values of 3, causal, cut from 40, notices: 1)"
    assert repr(first_tokens(other, 7)) == wanted
    assert isinstance(other, QKV)
