"""Tests of the parts of one head: they equal those of the head in the full input, and those of the matrix."""

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.analysis.matrix.inside import intermediate_results, strong_column
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec

OPEN = [v.key for v in ac.all_variants() if v.anatomy is not None]


@pytest.fixture(scope="module")
def qkv():
    return SyntheticSource(SyntheticSpec(n=19, d=8, heads=3, sharpness=2.0)).load()


@pytest.mark.parametrize("key", OPEN)
def test_the_matrix_of_a_head_equals_that_of_the_full_input(qkv, key):
    attention = ac.get(key)
    for causal in {False, attention.variant.causal_reason is None}:
        found = intermediate_results(qkv, attention, 1, causal)
        whole = attention.weights(qkv.q, qkv.k, causal=causal)[1]
        np.testing.assert_allclose(found.weights, whole.numpy(), atol=1e-6)
        assert found.parts
        assert all(isinstance(part, np.ndarray) for part in found.parts.values())


@pytest.mark.parametrize(("key", "causal"), [("nystrom", False), ("linear", True)])
def test_the_reference_is_softmax_of_the_head(qkv, key, causal):
    found = intermediate_results(qkv, ac.get(key), 2, causal)
    logits = (qkv.q[2].double() @ qkv.k[2].double().T) / 8**0.5
    if causal:
        logits = logits.masked_fill(torch.ones(19, 19).triu(1) > 0, -torch.inf)
    np.testing.assert_allclose(found.reference, logits.softmax(-1).numpy(), atol=1e-6)


def test_the_parts_of_a_head_are_computed_from_that_head(qkv):
    attention = ac.get("nystrom", landmarks=4, method="kmeans", inverse="exact")
    parts = intermediate_results(qkv, attention, 1, False).parts
    assert parts["left"].shape == (19, 4)
    np.testing.assert_allclose(
        parts["left"] @ parts["inverse"] @ parts["right"], attention.weights(qkv.q[1], qkv.k[1]), atol=1e-5
    )


def test_variants_that_couple_heads_use_all_heads(qkv):
    attention = ac.get("power_bert", keep=0.5)
    received = (qkv.q @ qkv.k.mT / 8**0.5).softmax(-1).sum((0, 1))
    for head in range(3):
        parts = intermediate_results(qkv, attention, head, False).parts
        np.testing.assert_allclose(parts["significance"], received, rtol=1e-5)
        assert set(parts["survivors"].tolist()) == set(torch.topk(received, 10).indices.tolist())


def test_a_causal_mask_is_refused_for_a_non_causal_variant(qkv):
    with pytest.raises(ac.errors.NotCausalError):
        intermediate_results(qkv, ac.get("nystrom"), 0, True)


def test_a_variant_without_intermediate_parts_is_refused(qkv):
    with pytest.raises(ValueError, match="softmax"):
        intermediate_results(qkv, ac.get("softmax"), 0, False)


def test_one_token_gives_matrices_of_one_entry(qkv):
    one = SyntheticSource(SyntheticSpec(n=1, d=8, heads=1)).load()
    for key in OPEN:
        found = intermediate_results(one, ac.get(key), 0, False)
        assert found.weights.shape == found.reference.shape == (1, 1)


def test_a_strong_column_exceeds_four_times_the_mean_of_all_columns():
    entries = np.ones((6, 6))
    entries[:, 2] = 20  # The sums are 6 and 120, so their mean is 25, and 120 exceeds 100.
    assert strong_column(entries) == (2, pytest.approx(120 / 150))
    entries[:, 2] = 10  # The sums are 6 and 60, so their mean is 15, and 60 does not exceed 60.
    assert strong_column(entries) is None
    assert strong_column(np.zeros((3, 3))) is None
