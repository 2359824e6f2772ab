"""A test that the leaks of several variants equal those of the single analysis, task by task."""

import numpy as np

import attention_core as ac
from attention_core.analysis.matrix.influence import influence
from attention_core.experiments import leaks
from attention_core.inputs import SyntheticSource, SyntheticSpec


def test_each_task_gives_the_influence_of_its_own_variant():
    source = SyntheticSource(SyntheticSpec(n=16, d=4, heads=2))
    words = ("softmax", "local~window~3", "nystrom~landmarks~4")
    for head in (1, None):
        asked = leaks.tasks(source, words, head=head)
        assert [task.word for task in asked] == list(words)
        for task in asked:
            [found] = leaks.run(task)
            expected = influence(source.load(), ac.from_word(task.word), head=head)
            np.testing.assert_array_equal(found.moved, expected.moved)
            assert found.causal == expected.causal
