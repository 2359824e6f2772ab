"""Rank statistics of two lists of numbers for the same items: how far the lists agree on the order of the items."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def ranks(values: Sequence[float]) -> Tensor:
    """Return the rank of each value, from 1, float64 ``[m]``; equal values share their mean rank."""
    x = torch.as_tensor(values, dtype=torch.float64)
    below = (x[:, None] > x).sum(1)
    equal = (x[:, None] == x).sum(1)
    return below + (equal + 1).double() / 2


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Compute Spearman's ρ, the correlation of the ranks, from -1 to 1; NaN if x or y is constant or has NaN."""
    if any(map(math.isnan, (*x, *y))):  # NaN has no rank
        return math.nan
    a, b = (ranks(values) - ranks(values).mean() for values in (x, y))
    return float((a @ b) / (a.norm() * b.norm()))


def farthest_off(x: Sequence[float], y: Sequence[float]) -> int:
    """Return the index of the value whose ranks in x and y differ most."""
    return int((ranks(x) - ranks(y)).abs().argmax())


def same_order(x: Sequence[float], y: Sequence[float], groups: Sequence[object]) -> tuple[int, int]:
    """Count the pairs of items from different groups that two measures put in the same order.

    Args:
        x: first measure of m items.
        y: second measure of the same items.
        groups: group of each item; pairs within a group are not counted.

    Returns:
        The number of pairs in the same order in both, and the number of pairs without a tie in either measure.
    """
    a, b = (torch.as_tensor(values, dtype=torch.float64) for values in (x, y))
    index_of_group = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    group_index = torch.tensor([index_of_group[group] for group in groups])
    agree = torch.sign(a[:, None] - a) * torch.sign(b[:, None] - b) * (group_index[:, None] != group_index)
    return int((agree > 0).sum()) // 2, int((agree != 0).sum()) // 2


def kendall(x: Sequence[float], y: Sequence[float]) -> float:
    """Compute Kendall's τ-b from the pairs in the same order, the pairs in opposite orders and the ties.

    It is NaN if x or y is constant or has NaN.
    """
    if any(map(math.isnan, (*x, *y))):
        return math.nan
    a, b = (torch.as_tensor(values, dtype=torch.float64) for values in (x, y))
    order_x, order_y = torch.sign(a[:, None] - a), torch.sign(b[:, None] - b)
    return float((order_x * order_y).sum() / (order_x.abs().sum() * order_y.abs().sum()).sqrt())
