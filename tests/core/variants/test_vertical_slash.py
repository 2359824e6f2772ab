"""Tests of vertical-slash attention against its article's rule, written with loops."""

import math

import pytest
import torch
from seeded import normal

import attention_core as ac
from attention_core.errors import NotCausalError
from attention_core.variants.sparse.vertical_slash import select_lines


def chosen_columns_and_diagonals(logits, p):
    """Return the columns and diagonals that the last queries choose, in order."""
    n = len(logits)
    column, diagonal = dict.fromkeys(range(n), 0.0), dict.fromkeys(range(1 - n, n), 0.0)
    for i in range(max(0, n - p.judges), n):
        each = [math.exp(x - max(logits[i])) for x in logits[i]]
        for j in range(n):
            column[j] += each[j] / sum(each)
            diagonal[i - j] += each[j] / sum(each)
    diagonal[0] = math.inf
    columns = sorted(column, key=lambda j: (-column[j], j))[: p.columns]
    diagonals = sorted(diagonal, key=lambda o: (-diagonal[o], o))[: p.diagonals]
    return columns, diagonals


def pairwise(q, k):
    return [[float(a @ b) / math.sqrt(q.shape[1]) for b in k] for a in q]


@pytest.mark.parametrize("size", [1, 12**0.5, 12])
@pytest.mark.parametrize("judges", [1, 4, 64])
def test_selection_is_equal_in_float32_and_float64(size, judges):
    q, k = (size * normal(64, 16, seed=seed).float() for seed in (1, 2))
    p = ac.get("vertical_slash", columns=24, diagonals=24, judges=judges).params
    columns, diagonals = select_lines(q, k, p)
    assert (columns.tolist(), diagonals.tolist()) == chosen_columns_and_diagonals(pairwise(q.double(), k.double()), p)


def test_each_head_selects_its_own_columns():
    q, k = normal(2, 2, 30, 4)
    a = ac.get("vertical_slash", columns=3, diagonals=1)
    parts = a.variant.primitives(q, k, a.params, causal=False)
    assert parts["column"][:, 0].sum(-1).tolist() == [3, 3]
    assert not torch.equal(parts["column"][0], parts["column"][1])
    assert torch.equal(parts["diagonal"], torch.eye(30, dtype=torch.bool).expand(2, 30, 30))


def test_selection_uses_the_end_of_the_text_so_causal_raises():
    q, k, v = normal(3, 2, 9, 4)
    with pytest.raises(NotCausalError, match="depends on the end of the text"):
        ac.get("vertical_slash").attend(q, k, v, causal=True)
    a = ac.get("vertical_slash", columns=1, diagonals=1, judges=1)
    other = q.clone()
    other[:, -1] = -q[:, -1]
    assert not torch.equal(a.weights(q, k)[:, 0] > 0, a.weights(other, k)[:, 0] > 0)
