"""Tests of windows and residues: every allowed pair occurs once, nothing is copied, and tokens return in order."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_core.ops.pattern.layouts import (
    join_groups,
    residue_groups,
    restore_token_order,
    window_groups,
    window_pairs,
)
from attention_core.ops.pattern.pieces import residue_pairs


def positions(n: int) -> torch.Tensor:
    """Return tokens that each contain their own position, ``[2, n, 1]``."""
    return torch.arange(n, dtype=torch.float64)[:, None].expand(2, n, 1).contiguous()


@given(n=st.integers(1, 60), block=st.integers(1, 20), before=st.integers(0, 70), after=st.integers(0, 70))
@settings(max_examples=100, deadline=None)
def test_window_groups_contain_each_allowed_pair_once(n: int, block: int, before: int, after: int):
    x = positions(n)
    groups = list(
        window_groups(x, x, x, block=block, before=before, after=after, allowed=lambda d: (d <= before) & (d >= -after))
    )
    seen = torch.zeros(n, n)
    pairs = 0
    for g in groups:
        assert g.q.untyped_storage().data_ptr() == g.k.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        i, j = g.q[0, :, :, :1].long(), g.k[0, :, None, :, 0].long()
        i, j, allowed = torch.broadcast_tensors(i, j, g.mask)
        pairs += allowed.numel()
        seen.index_put_((i[allowed], j[allowed]), torch.tensor(1.0), accumulate=True)
    distance = torch.arange(n)[:, None] - torch.arange(n)
    assert torch.equal(seen, ((distance <= before) & (distance >= -after)).float())
    assert pairs == window_pairs(n, block=block, before=before, after=after)
    assert torch.equal(join_groups([g.q for g in groups], x), x)


def test_windows_without_a_rule_have_no_mask():
    x = positions(10)
    assert [(g.q.shape[1:3], g.k.shape[1:3], g.mask) for g in window_groups(x, x, x, block=4)] == [
        ((2, 4), (2, 4), None),
        ((1, 2), (1, 2), None),
    ]


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
