"""Tests that token labels are distinguishable."""

import pytest

from attention_core.inputs.labels import continues_character, name_pieces, number_repeats


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


@pytest.mark.parametrize(
    ("tokens", "groups", "names", "continues"),
    [
        (("你", "·", "好", "·", "·"), (0, 0, 2, 2, 2), ("你", "你₂", "好", "好₂", "好₃"), (0, 1, 0, 1, 1)),
        (("达", "·", "·", "芬"), (0, 0, 2, 3), ("达", "达₂", "·", "芬"), (0, 1, 0, 0)),
        (("你", "好", "·"), (0, 0, 0), ("你", "好", "好₂"), (0, 0, 1)),
        (("·", "a"), (0, 1), ("·", "a"), (0, 0)),
        ((), (), (), ()),
    ],
)
def test_pieces_of_a_character_are_named_after_it_but_typed_dots_are_not(tokens, groups, names, continues):
    assert name_pieces(tokens, groups) == names
    assert continues_character(tokens, groups) == tuple(map(bool, continues))
