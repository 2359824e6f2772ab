import pytest
import torch
from contract import decoded
from torch import Tensor

import attention_core as ac

MAPS = ("elu+1", "relu", "softmax", "exp")


def inputs(n: int, size: float = 1.0, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    source = torch.Generator().manual_seed(n)
    q, k, v = (torch.randn(2, n, d, generator=source, dtype=torch.float64) for d in (4, 4, 3))
    return [(size * q).to(dtype).requires_grad_(), (size * k).to(dtype).requires_grad_(), v.to(dtype).requires_grad_()]


@pytest.mark.parametrize("n", [1, 5, 64, 130])
@pytest.mark.parametrize("feature_map", MAPS)
def test_three_algorithms_agree_in_outputs_and_gradients(feature_map: str, n: int):
    q, k, v = inputs(n)
    attention = ac.get("linear", feature_map=feature_map)
    wanted = attention.variant.definition(q, k, v, attention.params, causal=True)
    slope = wanted.detach().sin()
    gradients = torch.autograd.grad(wanted, (q, k, v), slope)
    for mode in ("chunked", "recurrent", "cumsum"):
        out = attention.with_settings(mode=mode).attend(q, k, v, causal=True)
        torch.testing.assert_close(out, wanted)
        for one, other in zip(torch.autograd.grad(out, (q, k, v), slope), gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("mode", ["chunked", "recurrent", "cumsum"])
def test_exp_is_finite_with_jumps_of_hundreds(mode: str):
    """Compare float32 with logarithms in float64; every row sums to one and every gradient is finite."""
    q, k, v = inputs(130, 200.0, torch.float32)
    attention = ac.get("linear", feature_map="exp", mode=mode)
    logits = (q.double()[:, :, None] + k.double()[:, None]).logsumexp(-1)
    for causal in (False, True):
        seen = logits.masked_fill(torch.ones(130, 130, dtype=torch.bool).triu(1), -torch.inf) if causal else logits
        wanted = seen.softmax(-1)
        torch.testing.assert_close(attention.weights(q, k, causal=causal).double(), wanted, rtol=0, atol=1e-4)
        out = attention.attend(q, k, v, causal=causal)
        torch.testing.assert_close(out.double(), wanted @ v.double(), rtol=0, atol=3e-4)
        assert all(g.isfinite().all() for g in torch.autograd.grad(out.sum(), (q, k, v)))


def test_relu_rows_without_features_are_zero_in_weights_and_output():
    q, k, v = inputs(6)
    with torch.no_grad():
        q[0, 2] = -1
    attention = ac.get("linear", feature_map="relu")
    for causal in (False, True):
        matrix, out = attention.weights(q, k, causal=causal), attention.attend(q, k, v, causal=causal)
        assert not matrix[0, 2].any()
        assert not out[0, 2].any()
        torch.testing.assert_close(out, matrix @ v)


def test_elu_plus_one_is_accurate_far_below_zero():
    q = torch.full((1, 2, 1), -20.0)
    k = torch.tensor([[[-20.0], [-21.0]]])
    found = ac.get("linear").weights(q, k)[0, 0]
    torch.testing.assert_close(found, torch.tensor([0.0, -1.0]).softmax(0), rtol=1e-6, atol=0)


@pytest.mark.parametrize("feature_map", MAPS)
def test_the_decoder_equals_attend_for_large_inputs(feature_map: str):
    q, k, v = inputs(40, 30.0)
    attention = ac.get("linear", feature_map=feature_map)
    wanted = attention.attend(q, k, v, causal=True)
    torch.testing.assert_close(decoded(attention, q, k, v), wanted, rtol=1e-7, atol=1e-9)
