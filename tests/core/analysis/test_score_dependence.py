"""Tests of which variants depend on the scores only: the trial agrees with their formulas."""

import pytest
import torch

import attention_core as ac
from attention_core.analysis.matrix.score_dependence import depends_only_on_scores
from attention_core.errors import NotCausalError

ABLE = [variant.key for variant in ac.all_variants() if not variant.causal_reason]


@pytest.mark.parametrize(
    ("key", "only_scores"),
    [
        ("softmax", True),
        ("local", True),
        ("topk", True),
        ("relu2", True),
        ("sigmoid", True),
        ("taylor2", True),
        ("linear", False),  # A feature map.
        ("performer", False),
        ("cosine", False),  # Norms.
        ("deltanet", False),
        ("fox", False),  # A gate.
        ("additive", False),
    ],
)
def test_variants_with_features_norms_or_gates_depend_on_more_than_scores(key, only_scores):
    assert depends_only_on_scores(ac.get(key)) == only_scores


@pytest.mark.parametrize("key", ABLE)
def test_equal_scores_give_equal_weights_if_a_variant_depends_only_on_scores(key):
    attention = ac.get(key)
    if not depends_only_on_scores(attention):
        return
    # The rows of the scores as queries, and unit vectors as keys, have the same scores.
    q, k = torch.randn(2, 2, 20, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    scores = q @ k.mT / 5**0.5
    unit = torch.eye(20, dtype=torch.float64).expand(2, -1, -1)
    found = attention.weights(scores * 20**0.5, unit, causal=True)
    torch.testing.assert_close(found, attention.weights(q, k, causal=True), rtol=1e-6, atol=1e-9)


def test_a_non_causal_variant_is_refused():
    with pytest.raises(NotCausalError):
        depends_only_on_scores(ac.get("nystrom"))
