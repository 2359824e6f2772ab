"""Tests of blocks and residues: every allowed pair occurs once, residues are views, and tokens return in order."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_core.ops.pattern.layouts import (
    block_extent,
    block_runs,
    residue_groups,
    restore_token_order,
    window_pairs,
)
from attention_core.ops.pattern.pieces import residue_pairs


def positions(n: int) -> torch.Tensor:
    """Return tokens that each contain their own position, ``[2, n, 1]``."""
    return torch.arange(n, dtype=torch.float64)[:, None].expand(2, n, 1).contiguous()


@given(n=st.integers(1, 60), block=st.integers(1, 20), before=st.integers(0, 70), after=st.integers(0, 70))
@settings(max_examples=100, deadline=None)
def test_blocks_contain_each_pair_of_the_band_once(n: int, block: int, before: int, after: int):
    seen = torch.zeros(n, n)
    for first, last in block_runs(n, block, before, after):
        rows, columns = block_extent(first, n, block, before, after)
        for shift in range(0, (last - first + 1) * block, block):
            seen[rows.start + shift : rows.stop + shift, columns.start + shift : columns.stop + shift] += 1
    distance = torch.arange(n)[:, None] - torch.arange(n)
    assert seen.max() == 1
    assert seen[(distance <= before) & (distance >= -after)].min() == 1
    assert seen.sum() == window_pairs(n, block=block, before=before, after=after)


@given(n=st.integers(1, 60), stride=st.integers(1, 70))
@settings(max_examples=100, deadline=None)
def test_residue_groups_are_views_and_are_restored_in_order(n: int, stride: int):
    x = positions(n).requires_grad_()
    groups = list(residue_groups(x, stride))
    pairs = 0
    for g in groups:
        assert g.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        position = g[0, :, :, 0].detach()
        assert (position % stride == position[:, :1] % stride).all()
        assert (position.diff(dim=-1) == stride).all()
        pairs += g.shape[1] * g.shape[2] ** 2
    distance = torch.arange(n)[:, None] - torch.arange(n)
    assert pairs == residue_pairs(n, stride, causal=False) == (distance % stride == 0).sum()
    back = restore_token_order([2 * g for g in groups], x, stride)
    assert torch.equal(back, 2 * x)
    assert torch.equal(torch.autograd.grad(back.sum(), x)[0], torch.full_like(x, 2))
