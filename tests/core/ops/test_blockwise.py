import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_core.benchmarking.counting import count
from attention_core.errors import LabError
from attention_core.ops.softmax.blockwise import (
    ROWS,
    STEP,
    RowBlock,
    block_size,
    blockwise_attention,
    n_pairs,
    row_blocks,
)


def tokens(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def inputs(*lead, n, d=6, d_v=5, dtype=torch.float64):
    return [tokens(*lead, n, size, dtype=dtype, seed=s).requires_grad_() for s, size in enumerate((d, d, d_v))]


def softmax(q, k, rows):
    return rows.softmax(q @ k.mT)


def signed(q, k, rows):
    """Return weights that depend on the query's position: it scales the odd powers of the logits."""
    number = torch.arange(rows.start, rows.stop, dtype=q.dtype)[:, None]
    return rows.fill_future((q @ k.mT / 4) ** 3 * (1 + number), 0.0) / rows.key_counts(q.device).to(q)


def signed_reference(q, k, v, causal):
    n = q.shape[-2]
    weights = torch.einsum("...id,...jd->...ij", q, k).div(4) ** 3 * torch.arange(1, n + 1)[:, None]
    if causal:
        return torch.einsum("...ij,...jd->...id", weights.tril() / torch.arange(1, n + 1)[:, None], v)
    return torch.einsum("...ij,...jd->...id", weights / n, v)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 33, 129, 8 * ROWS + 3])
@pytest.mark.parametrize("lead", [(), (3,), (2, 2)])
def test_blockwise_softmax_equals_the_fused_kernel(lead, n, causal):
    q, k, v = inputs(*lead, n=n)
    out = blockwise_attention(softmax, q, k, v, causal=causal)
    q4, k4, v4 = (x.reshape(-1, 1, *x.shape[-2:]) for x in (q, k, v))
    mask = torch.ones(n, n, dtype=torch.bool).tril() if causal else None
    expected = F.scaled_dot_product_attention(q4, k4, v4, attn_mask=mask, scale=1.0).reshape(out.shape)
    torch.testing.assert_close(out, expected)
    g = tokens(*out.shape, seed=9)
    found, wanted = (torch.autograd.grad(x, (q, k, v), g) for x in (out, expected))
    torch.testing.assert_close(found, wanted)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 150),
    d=st.integers(1, 9),
    d_v=st.integers(1, 9),
    heads=st.integers(1, 4),
    causal=st.booleans(),
    per_pair=st.integers(1, 20),
)
def test_rule_with_row_positions_matches_the_full_matrix(n, d, d_v, heads, causal, per_pair):
    q, k, v = inputs(heads, n=n, d=d, d_v=d_v)
    out = blockwise_attention(signed, q, k, v, causal=causal, per_pair=per_pair)
    expected = signed_reference(q, k, v, causal)
    torch.testing.assert_close(out, expected)
    g = tokens(*out.shape, seed=9)
    found, wanted = (torch.autograd.grad(x, (q, k, v), g) for x in (out, expected))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_equal_finite_differences(causal):
    q, k, v = inputs(2, n=9, d=3, d_v=2)
    assert torch.autograd.gradcheck(lambda *x: blockwise_attention(signed, *x, causal=causal), (q, k, v))


def test_second_derivative_raises():
    q, k, v = inputs(n=9)
    out = blockwise_attention(softmax, q, k, v, causal=False)
    with pytest.raises(LabError, match="create_graph"):
        torch.autograd.grad(out.square().sum(), q, create_graph=True)


def test_queries_and_keys_without_heads_are_shared_by_all_heads():
    n = 8 * ROWS + 3
    q, k, _ = inputs(n=n)
    _, _, v = inputs(2, 3, n=n)
    out = blockwise_attention(softmax, q, k, v, causal=True)
    expected = blockwise_attention(softmax, *(x.expand(2, 3, *x.shape) for x in (q, k)), v, causal=True)
    torch.testing.assert_close(out, expected)
    g = tokens(*out.shape, seed=9)
    found, wanted = (torch.autograd.grad(x, (q, k, v), g) for x in (out, expected))
    torch.testing.assert_close(found, wanted)


def test_strided_views_are_accepted_and_not_changed():
    q, k, v = (tokens(2, 50, 3, 4, seed=s).transpose(1, 2) for s in range(3))
    copies = [x.clone() for x in (q, k, v)]
    expected = blockwise_attention(softmax, *copies, causal=True)
    torch.testing.assert_close(blockwise_attention(softmax, q, k, v, causal=True), expected)
    assert all(torch.equal(x, c) for x, c in zip((q, k, v), copies, strict=True))


def test_half_precision_gradients_over_many_blocks_are_accurate():
    n = 64 * ROWS
    q, k, v = (x.detach().requires_grad_() for x in inputs(n=n, d=1, d_v=1, dtype=torch.bfloat16))
    out = blockwise_attention(lambda q, k, rows: (q * 0 + 1) @ (k.mT * 0 + 1), q, k, v, causal=False)
    g = tokens(n, 1, seed=9).abs().bfloat16()
    (found,) = torch.autograd.grad(out, v, g)
    torch.testing.assert_close(found.double(), g.double().sum().expand(n, 1), rtol=2**-8, atol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("per_pair", [1, 16])
def test_blocks_cover_every_query_once_and_pairs_counts_them(causal, per_pair):
    for n in (1, 2, 7, 33, 129, 1000):
        blocks = row_blocks(n, causal=causal, per_pair=per_pair)
        assert [i for rows in blocks for i in range(rows.start, rows.stop)] == list(range(n))
        q, k, v = inputs(n=n, d=3, d_v=3)
        counts = count(lambda: blockwise_attention(softmax, q, k, v, causal=causal, per_pair=per_pair))  # noqa: B023
        assert counts.multiply_adds == 2 * 3 * n_pairs(n, causal=causal, per_pair=per_pair)
    assert n_pairs(4096, causal=True) < 0.51 * n_pairs(4096, causal=False) == 0.51 * 4096**2


def test_row_block_counts_and_masks_its_keys():
    rows = RowBlock(2, 4, 6, True)
    assert (rows.size, rows.key_count) == (2, 4)
    assert rows.key_counts(torch.device("cpu")).tolist() == [[3.0], [4.0]]
    assert rows.fill_future(torch.ones(3, 2, 4), -1.0)[1].tolist() == [[1, 1, 1, -1], [1, 1, 1, 1]]
    rows = RowBlock(2, 4, 6, False)
    assert (rows.key_count, rows.key_counts(torch.device("cpu")).tolist()) == (6, [[6.0]])
    assert rows.fill_future(torch.ones(2, 6), -1.0).min() == 1


@pytest.mark.parametrize("backward", [False, True])
def test_memory_is_linear_in_n_and_close_to_the_fused_kernel(backward):
    def peak(call, n, d=64, heads=8):
        q, k, v = (x.detach().requires_grad_(backward) for x in inputs(heads, n=n, d=d, d_v=d, dtype=torch.float32))

        def run():
            out = call(q, k, v)
            return torch.autograd.grad(out.sum(), (q, k, v)) if backward else out

        return count(run)

    def blockwise(q, k, v):
        return blockwise_attention(softmax, q, k, v, causal=False)

    def fused(q, k, v):
        return F.scaled_dot_product_attention(q[None], k[None], v[None])

    short, long = peak(blockwise, 256), peak(blockwise, 1024)
    assert long.peak_elements < 4.2 * short.peak_elements
    assert short.peak_elements < 2 * peak(fused, 256).peak_elements
    assert long.peak_elements < 1.4 * peak(fused, 1024).peak_elements
    # With one head, its own tensors are far smaller than n².
    assert peak(blockwise, 2048, d=8, heads=1).largest_elements <= max(STEP, 2048 * block_size(2048))
