"""Tests of reach against breadth-first search, and against the articles' claims about windows and strides."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import attention_core as ac
from attention_core.metrics.reachability import first_layers, reached_shares, smallest_depth


def search_first_layers(layers: list[Tensor]) -> list[list[int]]:
    """Return the first layer after which query i depends on token j, by sets of tokens; -1 if no layer does."""
    n = len(layers[0])
    sources = [{i} for i in range(n)]
    first = [[0 if i == j else -1 for j in range(n)] for i in range(n)]
    for depth, layer in enumerate(layers, 1):
        sources = [sources[i].union(*(sources[m] for m in range(n) if layer[i, m])) for i in range(n)]
        for i in range(n):
            for j in sources[i]:
                if first[i][j] < 0:
                    first[i][j] = depth
    return first


@st.composite
def stacks(draw):
    n, count = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    bits = st.lists(st.booleans(), min_size=n * n, max_size=n * n)
    return [torch.tensor(draw(bits)).reshape(n, n) for _ in range(count)]


@given(stacks())
@settings(max_examples=60, deadline=None)
def test_first_layers_equal_a_graph_search(layers):
    depth = 2 * len(layers) + 1
    repeated = [layers[i % len(layers)] for i in range(depth)]
    assert first_layers(layers, depth).tolist() == search_first_layers(repeated)


@pytest.mark.parametrize("n", [63, 64, 65, 128, 130])
@pytest.mark.parametrize("share", [0.005, 0.05, 0.24, 0.26, 1.0])
def test_sparse_and_dense_layers_give_equal_first_layers(n, share):
    generator = torch.Generator().manual_seed(n)
    layers = [torch.rand(n, n, generator=generator) < each for each in (share, share / 2)]
    layers[1][n // 2] = False  # A query that attends to nothing.
    reached, found = torch.eye(n), torch.where(torch.eye(n) > 0, 0, -1)
    for depth in range(1, 40):
        reached = ((layers[(depth - 1) % 2].float() + torch.eye(n)) @ reached > 0).float()
        found[(reached > 0) & (found < 0)] = depth
    first = first_layers(layers, 5)
    assert first.dtype == torch.int16
    assert torch.equal(first.long(), torch.where(found > 5, -1, found))
    assert smallest_depth(layers, causal=False) == (None if (found < 0).any() else int(found.max()))
    shares = [float(((found >= 0) & (found <= depth)).double().mean()) for depth in range(6)]
    assert reached_shares(first, 5, causal=False) == pytest.approx(shares)


@given(stacks(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_smallest_depth_is_the_first_that_connects_all(layers, causal):
    if causal:
        layers = [layer.tril() for layer in layers]
    n = len(layers[0])
    # If one whole round reaches no new token, later rounds do not either.
    many = [layers[i % len(layers)] for i in range(len(layers) * (n * n + 1))]
    first = torch.tensor(search_first_layers(many))
    wanted = torch.ones(n, n, dtype=torch.bool).tril() if causal else torch.ones(n, n, dtype=torch.bool)
    found = smallest_depth(layers, causal=causal)
    if (first[wanted] < 0).any():
        assert found is None
    else:
        assert found == max(1, int(first[wanted].max()))


@pytest.mark.parametrize("n", [2, 17, 64, 129])
@pytest.mark.parametrize("w", [1, 3, 16, 200])
@pytest.mark.parametrize("causal", [False, True])
def test_smallest_depth_of_local_is_length_over_window(n, w, causal):
    layer = ac.get("local", window=w).mask(n, causal=causal)
    assert smallest_depth([layer], causal=causal) == math.ceil((n - 1) / w)


@pytest.mark.parametrize("n", [2, 33, 100])
@pytest.mark.parametrize("w", [1, 4, 16])
def test_local_then_atrous_connects_every_pair_in_two_layers(n, w):
    for r in range(1, w + 2):
        stack = [ac.get("local", window=w).mask(n), ac.get("atrous", stride=r).mask(n)]
        assert smallest_depth(stack, causal=False) <= 2, r
    if n > 2 * (w + 2):
        wider = [ac.get("local", window=w).mask(n), ac.get("atrous", stride=2 * w + 2).mask(n)]
        assert smallest_depth(wider, causal=False) > 2, "a stride beyond both windows leaves holes"


def test_atrous_layers_never_connect_different_residue_classes():
    layer = ac.get("atrous", stride=4).mask(40)
    assert smallest_depth([layer], causal=False) is None
    assert reached_shares(first_layers([layer], 8), 8, causal=False)[-1] == pytest.approx(1 / 4)


@pytest.mark.parametrize("key", [v.key for v in ac.all_variants() if v.mask is not None])
def test_causal_layers_never_reach_later_tokens(key):
    layer = ac.get(key).mask(50, causal=True)
    first = first_layers([layer], 6)
    assert (first.triu(1) == torch.full((50, 50), -1).triu(1)).all()
    shares = reached_shares(first, 6, causal=True)
    assert list(shares) == sorted(shares)
    assert len(shares) == 7
    assert shares[0] == pytest.approx(50 / (50 * 51 / 2))
    assert shares[-1] <= 1


def test_the_order_of_layers_matters():
    one, two = torch.zeros(2, 3, 3, dtype=torch.bool)
    one[1, 0] = two[2, 1] = True
    assert first_layers([one, two], 2)[2, 0] == 2
    assert first_layers([two, one], 2)[2, 0] == -1
