"""Tests of kernel attention block by block: every size of a block gives the formula's result."""

import pytest
import torch

from attention_core.ops.linear.features import LogFeatures
from attention_core.ops.linear.streamed_kernel import streamed_attention

PHIS = {
    "features": lambda x: LogFeatures(x.exp()),
    "logarithms": lambda x: LogFeatures(None, x),
    "both": lambda x: LogFeatures(1 + x**2, x),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("name", PHIS)
def test_blocks_of_any_size_add_up_to_all_keys(name, size, causal):
    q, k, v = torch.randn(3, 2, 50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).unbind()
    k = k + torch.arange(50)[:, None] / 10  # the largest logarithm increases from block to block
    phi = PHIS[name]
    f_q, f_k = ((1 if base is None else base) * (1 if log is None else log.exp()) for base, log in (phi(q), phi(k)))
    similarities = f_q @ f_k.mT
    similarities = similarities.tril() if causal else similarities
    expected = similarities / similarities.sum(-1, keepdim=True) @ v
    torch.testing.assert_close(streamed_attention(phi, q, k, v, causal=causal, size=size), expected)
