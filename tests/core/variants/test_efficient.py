import pytest
import torch
from torch import Tensor

import attention_core as ac

EFFICIENT = ac.get("efficient")


def inputs(n: int, size: float = 1.0, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    source = torch.Generator().manual_seed(n)
    return [(size * torch.randn(2, n, 4, generator=source, dtype=torch.float64)).to(dtype) for _ in range(3)]


def test_matrix_is_the_product_of_its_two_maps():
    q, k, v = inputs(50)
    parts = EFFICIENT.variant.anatomy(q, k, v, EFFICIENT.params, causal=False)
    torch.testing.assert_close(parts["gather"].sum(-1), torch.ones(2, 4, dtype=q.dtype))
    torch.testing.assert_close(parts["distribute"].sum(-1), torch.ones(2, 50, dtype=q.dtype))
    matrix = EFFICIENT.weights(q, k)
    torch.testing.assert_close(parts["distribute"] @ parts["gather"], matrix)
    torch.testing.assert_close(matrix, q.softmax(-1) @ k.softmax(-2).mT)
    torch.testing.assert_close(parts["distribute"] @ parts["summaries"], EFFICIENT.attend(q, k, v))


def prefix_matrix(q: Tensor, k: Tensor) -> Tensor:
    """Return the matrix whose row i is the double softmax of the first i + 1 tokens."""
    n = q.shape[-2]
    rows = [q[:, i : i + 1].softmax(-1) @ k[:, : i + 1].softmax(-2).mT for i in range(n)]
    return torch.cat([torch.nn.functional.pad(row, (0, n - row.shape[-1])) for row in rows], 1)


@pytest.mark.parametrize("rising", [False, True])
def test_causal_outputs_are_accurate_with_key_jumps_of_hundreds(rising: bool):
    q, k, v = inputs(130, 1.0, torch.float32)
    k = 300 * k
    if rising:
        k = k + 20 * torch.arange(130)[:, None]
    matrix, out = EFFICIENT.weights(q, k, causal=True), EFFICIENT.attend(q, k, v, causal=True)
    wanted = prefix_matrix(q.double(), k.double())
    torch.testing.assert_close(matrix.sum(-1), torch.ones(2, 130), rtol=0, atol=2e-6)
    torch.testing.assert_close(matrix.double(), wanted, rtol=0, atol=1e-5)
    torch.testing.assert_close(out.double(), wanted @ v.double(), rtol=0, atol=1e-5)
