import dataclasses

import numpy as np
import pytest
import torch
from reference import softmax

import attention_core as ac
from attention_core.analysis.matrix.future import future_share

QKV = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=30, heads=3, d=8))


def test_the_future_share_is_the_mass_above_the_diagonal():
    wanted = np.triu(softmax(QKV.q, QKV.k), 1).sum(-1).mean(-1)
    for head in range(3):
        assert future_share(QKV, head=head) == pytest.approx(wanted[head], rel=1e-6)
    assert future_share(QKV, head=None) == pytest.approx(wanted.mean(), rel=1e-6)


def test_the_future_share_of_uniform_diagonal_and_single_token_attention():
    flat = dataclasses.replace(QKV, q=torch.zeros_like(QKV.q))
    assert future_share(flat, head=0) == pytest.approx(29 / 60)  # (n - 1) / 2n
    q = torch.zeros(1, 30, 30)
    q[0, range(30), range(30)] = 1000.0
    diagonal = dataclasses.replace(QKV, q=q, k=q, v=q)
    assert future_share(diagonal, head=0) == 0
    one = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=1, heads=1, d=8))
    assert future_share(one, head=None) == 0
