"""A test of squared ReLU's intermediate values: its squares divided by any of its normalisers are its weights."""

import math

import pytest
from seeded import normal

import attention_core as ac


def anatomy_of(q, k, *, causal, **settings):
    attention = ac.get("relu2", **settings)
    return attention.variant.anatomy(q, k, k, attention.params, causal=causal)


@pytest.mark.parametrize("causal", [False, True])
def test_each_part_follows_its_formula(causal):
    q, k = normal(6, 4), normal(6, 4, seed=1)
    parts = anatomy_of(q, k, causal=causal, base_length=20)
    for i in range(6):
        keys = range(i + 1 if causal else 6)
        logits = [float(q[i] @ k[j]) / 2 for j in keys]
        squares = [max(x, 0) ** 2 for x in logits]
        assert parts["logits"][i, : len(keys)].tolist() == pytest.approx(logits)
        assert parts["squares"][i, : len(keys)].tolist() == pytest.approx(squares)
        assert not parts["logits"][i, len(keys) :].any()
        assert not parts["squares"][i, len(keys) :].any()
        assert (parts["length"][i], parts["squared"][i], parts["fixed"][i]) == (len(keys), len(keys) ** 2, 20)
        assert math.isclose(parts["sum"][i], sum(squares))
