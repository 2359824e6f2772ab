"""A test of the distance between two variants on an input."""

import pytest

import attention_core as ac
from attention_core.analysis.matrix.special_case import max_weight_difference
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec


@pytest.mark.parametrize("causal", [False, True])
def test_the_distance_is_the_largest_difference_of_the_weights_with_the_same_mask(causal):
    qkv = SyntheticSource(SyntheticSpec(n=12, d=4, heads=2, sharpness=2.0)).load()
    one, other = ac.get("softmax"), ac.get("linear")
    weights, others = (each.weights(qkv.q, qkv.k, causal=causal).numpy() for each in (one, other))
    assert max_weight_difference(qkv, one, other, causal=causal) == pytest.approx(abs(weights - others).max())
