"""Tests that the story of softmax as a delta rule describes its steps."""

import numpy as np
from stories import seen

import attention_core as ac
from pages.inside.stories import softmax_gdn
from pages.inside.stories.softmax_gdn import steps_sentence


def test_steps_beyond_two_are_counted_and_the_largest_named():
    told = steps_sentence(np.array([0.0, 5.0, 1.6, 1.5]), "t1", 1.0)
    assert "one of 4 steps leaves the stable range: at “t1” it would take back 5×" in told
    assert "The cap of 1.0 shortens 3 steps" in told
    several = steps_sentence(np.array([0.0, 5.0, 1.7]), "t1", 2.0)  # the third may erase 1.67
    assert "2 of 3 steps leave the stable range" in several


def test_steps_within_the_range_are_said_to_be():
    told = steps_sentence(np.array([0.0, 1.2]), "t1", 1.0)
    assert "stay within the stable range on this head: at “t1” one takes back most, 1.2×" in told
    assert "The cap of 1.0 shortens one step." in told


def test_what_is_drawn_is_the_steps_own():
    shown = softmax_gdn.steps(seen(ac.get("softmax_gdn", cap=0.5), sharpness=4.0))
    assert "b = 0.5" in shown[0].formula
    assert "of its weights are negative; every row sums to 1" in shown[-1].sentence
