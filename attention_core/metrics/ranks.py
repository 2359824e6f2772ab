"""Whether two measures put things in one order."""

from collections.abc import Sequence

import torch
from torch import Tensor


def ranks(values: Sequence[float]) -> Tensor:
    """The place of each value from 1, equal ones sharing the mean of theirs, float64 ``[m]``."""
    given = torch.as_tensor(values, dtype=torch.float64)
    below = (given[:, None] > given).sum(1)
    equal = (given[:, None] == given).sum(1)
    return below + (equal + 1).double() / 2


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's ρ, the correlation of the ranks, from -1 to 1; NaN where either never changes."""
    a, b = (ranks(values) - ranks(values).mean() for values in (x, y))
    return float((a @ b) / (a.norm() * b.norm()))


def farthest_off(x: Sequence[float], y: Sequence[float]) -> int:
    """The place of the value whose ranks in the two differ most."""
    return int((ranks(x) - ranks(y)).abs().argmax())


def same_order(x: Sequence[float], y: Sequence[float], groups: Sequence[object]) -> tuple[int, int]:
    """Count the pairs of values from different groups that both measures put in the same order.

    Args:
        x: one measure of m things.
        y: the other, of the same things.
        groups: what each thing belongs to; pairs within a group do not count.

    Returns:
        How many pairs have the same order in both, and how many pairs both measures tell apart.
    """
    a, b = (torch.as_tensor(values, dtype=torch.float64) for values in (x, y))
    names = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    place = torch.tensor([names[group] for group in groups])
    agree = torch.sign(a[:, None] - a) * torch.sign(b[:, None] - b) * (place[:, None] != place)
    return int((agree > 0).sum()) // 2, int((agree != 0).sum()) // 2


def kendall(x: Sequence[float], y: Sequence[float]) -> float:
    """Kendall's τ-b: pairs in the same order less pairs in the other, over those that either tells apart."""
    a, b = (torch.as_tensor(values, dtype=torch.float64) for values in (x, y))
    before, after = torch.sign(a[:, None] - a), torch.sign(b[:, None] - b)
    return float((before * after).sum() / (before.abs().sum() * after.abs().sum()).sqrt())
