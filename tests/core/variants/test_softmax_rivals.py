"""Tests of alternatives to softmax against articles' formulas in float64, and against transformers if it has them."""

import types

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from seeded import normal
from transformers import DiffLlamaConfig
from transformers.models.diffllama.modeling_diffllama import DiffLlamaAttention
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward

import attention_core as ac
from attention_core.ops.softmax.masked import scores
from attention_core.variants.dense.entmax import entmax, threshold


def logits_of(q, k, causal):
    found = (q @ k.mT / q.shape[-1] ** 0.5).numpy()
    return np.where(np.tri(len(found)) > 0, found, -np.inf) if causal else found


# -- the sink logit


@pytest.mark.parametrize("logit", [-2.0, 0.0, 3.0])
def test_sink_logit_equals_gpt_oss(logit):
    q, k, v = (normal(1, 3, 20, 8, seed=i).float() for i in range(3))
    module = types.SimpleNamespace(sinks=torch.full((3,), logit), num_key_value_groups=1, training=False)
    hidden = torch.full((20, 20), -torch.inf).triu(1)[None, None]
    out, matrix = eager_attention_forward(module, q, k, v, hidden, scaling=8**-0.5)
    attention = ac.get("sink_logit", logit=logit)
    torch.testing.assert_close(attention.attend(q, k, v, causal=True), out.transpose(1, 2))
    if matrix.shape[-1] == 20:
        torch.testing.assert_close(attention.weights(q, k, causal=True), matrix)


def test_a_very_low_sink_logit_gives_softmax():
    q, k = normal(30, 8), normal(30, 8, seed=1)
    low = ac.get("sink_logit", logit=-20.0)
    torch.testing.assert_close(low.weights(q, k), ac.get("softmax").weights(q, k), rtol=1e-8, atol=0)


# -- sigmoid


# -- entmax


def sparsemax(z):
    """Return the projection onto the simplex by sorting (Martins and Astudillo 2016, algorithm 1)."""
    ordered = np.sort(z)[::-1]
    sums = np.cumsum(ordered)
    support = np.nonzero(1 + np.arange(1, len(z) + 1) * ordered > sums)[0].max() + 1
    return np.maximum(z - (sums[support - 1] - 1) / support, 0)


def entmax15(z):
    """Return entmax with α = 1.5 by sorting (Peters and others 2019, algorithm 2)."""
    ordered = np.sort(z / 2)[::-1]
    count = np.arange(1, len(z) + 1)
    mean = np.cumsum(ordered) / count
    spread = np.cumsum(ordered**2) - count * mean**2
    tau = mean - np.sqrt(np.maximum((1 - spread) / count, 0))
    support = (tau <= ordered).sum()
    return np.maximum(z / 2 - tau[support - 1], 0) ** 2


logits = st.lists(st.floats(-60, 60), min_size=1, max_size=40)


@given(logits)
def test_entmax_equals_the_sorting_algorithm(z):
    for alpha, reference in ((2.0, sparsemax), (1.5, entmax15)):
        found = entmax(torch.tensor([z], dtype=torch.float64), alpha)[0].numpy()
        np.testing.assert_allclose(found, reference(np.array(z)), atol=1e-7)


@pytest.mark.parametrize("alpha", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_entmax_ignores_a_constant_that_all_logits_of_a_row_share(alpha, dtype):
    logits = torch.tensor([1, 0.5, 0, -0.25, 0.75], dtype=dtype)
    plain, within = entmax(logits, alpha), threshold(logits, alpha)
    torch.testing.assert_close(plain.sum(), torch.ones_like(plain.sum()))
    for constant in (2.0**10, 2.0**20, 2.0**21, -(2.0**21)):  # These sums are exact in float32.
        assert torch.equal(entmax(logits + constant, alpha), plain)
        torch.testing.assert_close(threshold(logits + constant, alpha), within + constant)
    for factor in (1e9, 1e12):
        assert entmax(logits * factor, alpha).tolist() == [1, 0, 0, 0, 0]


@given(logits, st.floats(1.1, 2.0))
def test_entmax_satisfies_the_conditions_of_its_maximum(z, alpha):
    """Check that weights are positive only for logits above one common threshold, and that they sum to one."""
    found = entmax(torch.tensor([z], dtype=torch.float64), alpha)[0].numpy()
    assert found.sum() == pytest.approx(1, abs=1e-9)
    x, kept = (alpha - 1) * np.array(z), found > 0
    tau = x[kept] - found[kept] ** (alpha - 1)
    np.testing.assert_allclose(tau, tau[0], atol=1e-9 * (1 + abs(x).max()))
    assert (x[~kept] <= tau[0] + 1e-9 * (1 + abs(x).max())).all()


def test_entmax_has_more_zeros_for_higher_alpha_and_approaches_softmax():
    q, k = normal(60, 8), normal(60, 8, seed=1)
    zeros = [float((ac.get("entmax", alpha=alpha).weights(q, k) == 0).double().mean()) for alpha in (1.1, 1.5, 2.0)]
    assert zeros[0] < zeros[1] < zeros[2]
    softmax = ac.get("softmax").weights(q, k)
    off = [float((entmax(scores(q, k), alpha) - softmax).norm()) for alpha in (1.01, 1.1, 1.5, 2.0)]
    assert off == sorted(off)
    assert off[0] < 0.05 * float(softmax.norm())


# -- softpick


def test_softpick_row_of_negative_logits_is_zero():
    q, k, v = torch.ones(6, 4), -torch.ones(6, 4), torch.ones(6, 3)
    assert not ac.get("softpick").weights(q, k).any()
    assert not ac.get("softpick").attend(q, k, v).any()
    assert not ac.get("softpick").weights(torch.zeros(6, 4), k).any(), "nor does one of zeros"


# -- ALiBi


# -- scalable softmax, gated outputs


@pytest.mark.parametrize("causal", [False, True])
def test_the_sink_logit_scales_the_softmax_output_by_a_gate(causal):
    q, k, v = (normal(25, 8, seed=i) for i in range(3))
    found = np.log(np.exp(logits_of(q, k, causal)).sum(-1, keepdims=True))
    gated = ac.get("softmax").attend(q, k, v, causal=causal) / torch.from_numpy(1 + np.exp(1.5 - found))
    torch.testing.assert_close(ac.get("sink_logit", logit=1.5).attend(q, k, v, causal=causal), gated)


# -- differential attention


def test_differential_attention_equals_diffllama():
    """Compare with DiffLlama: two of its heads are the halves of one head here. The final norm is omitted."""
    n, d, width = 12, 8, 32
    config = DiffLlamaConfig(
        hidden_size=width, num_attention_heads=2, num_key_value_heads=2, head_dim=d, attention_bias=False
    )
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    layer = DiffLlamaAttention(config, layer_idx=1).double().eval()
    kept = []
    layer.groupnorm.register_forward_pre_hook(lambda _, given: kept.append(given[0]))
    x = normal(1, n, width)
    hidden = torch.full((n, n), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    still = torch.ones(1, n, d, dtype=torch.float64), torch.zeros(1, n, d, dtype=torch.float64)  # No rotation.
    with torch.no_grad():
        layer(x, still, hidden)
        q, k, v = (linear(x[0]).unflatten(-1, (2, d)) for linear in (layer.q_proj, layer.k_proj, layer.v_proj))
        one = torch.exp(layer.lambda_q1.double() @ layer.lambda_k1.double())
        two = torch.exp(layer.lambda_q2.double() @ layer.lambda_k2.double())
        taken = float(one - two + layer.lambda_init)
    attention = ac.get("differential").variant
    matrix = attention.weights(q.flatten(1), k.flatten(1), types.SimpleNamespace(taken=taken, learned={}), causal=True)
    values = v.flatten(1)
    torch.testing.assert_close(matrix @ values, kept[0][0, :, 0], rtol=1e-6, atol=1e-6)


# -- selective attention


def test_selective_never_masks_the_first_key_and_masks_permanently():
    q = k = torch.ones(12, 4, dtype=torch.float64)
    A = ac.get("selective").weights(q, k, causal=True)
    assert (A.argmax(-1)[3:] == 0).all()
    assert (A[4:, 1].diff() < 0).all(), "key 1 is seen less from query to query"
