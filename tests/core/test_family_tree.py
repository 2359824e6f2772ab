"""Tests of the family tree: each special case, on random inputs, causal and not, by matrix and output."""

import pytest
import torch
from contract import values_of
from hypothesis import given
from hypothesis import strategies as st

from attention_core import family_tree, registry
from attention_core.family_tree import Branch

EDGES = {
    f"{edge.general.key}-{edge.special.key}-{i}": edge
    for variant in registry.all_variants()
    for i, edge in enumerate(family_tree.edges(variant))
}


@pytest.mark.parametrize("name", EDGES)
@given(data=st.data())
def test_special_cases_are_equal(name, data):
    edge = EDGES[name]
    n, d = data.draw(st.integers(1, 24)), 2 * data.draw(st.integers(1, 6))
    shared = [s for s in edge.general.params.settings() if s.name in edge.case.shared]
    general, special = edge.attentions(n, **{s.name: data.draw(values_of(s, most=12)) for s in shared})
    torch.manual_seed(data.draw(st.integers(0, 2**31)))
    q, k, v = torch.randn(3, 2, 2, n, d, dtype=torch.float64)
    for causal in filter(lambda causal: edge.holds(causal=causal), (False, True)):
        torch.testing.assert_close(
            general.weights(q, k, causal=causal), special.weights(q, k, causal=causal), atol=1e-7, rtol=1e-7
        )
        torch.testing.assert_close(
            general.attend(q, k, v, causal=causal), special.attend(q, k, v, causal=causal), atol=1e-7, rtol=1e-7
        )


@pytest.mark.parametrize("edge", EDGES.values(), ids=EDGES)
def test_variants_differ_from_their_special_cases_at_the_defaults(edge):
    """Check that a variant differs from its special case at the defaults."""
    q, k = torch.randn(2, 1, 4, 40, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    _, special = edge.attentions(40)
    general = registry.get(edge.general.key)
    assert any(
        (general.weights(q, k, causal=causal) - special.weights(q, k, causal=causal)).abs().max() > 1e-3
        for causal in (False, True)
        if edge.holds(causal=causal)
    )


def test_every_special_case_is_in_the_tree_once():
    seen = []

    def walk(branch: Branch, parent: Branch | None = None):
        seen.append(branch.variant.key)
        assert (branch.edge is None) == (parent is None)
        if branch.edge is not None:
            assert (branch.edge.general, branch.edge.special) == (branch.variant, parent.variant)
        for each in branch.branches:
            walk(each, branch)

    for tree in family_tree.trees():
        walk(tree)
    assert len(seen) == len(set(seen))
    assert {v.key for v in registry.all_variants() if v.special_cases} <= set(seen)
    assert seen[0] == "softmax"
