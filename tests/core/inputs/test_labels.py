"""Tests that token labels are distinguishable."""

import pytest

from attention_core.inputs.labels import number_repeats


@pytest.mark.parametrize(
    ("tokens", "labels"),
    [
        (["cat", "cat", "cat"], ("cat", "cat (2)", "cat (3)")),
        (["a", "a", "a (2)"], ("a", "a (3)", "a (2)")),
        (["a (2)", "a", "a", "a"], ("a (2)", "a", "a (3)", "a (4)")),
        (["a", "a", "a (2)", "a (2)"], ("a", "a (3)", "a (2)", "a (2) (2)")),
        ([], ()),
    ],
)
def test_numbered_repeats_never_collide(tokens, labels):
    assert number_repeats(tokens) == labels
