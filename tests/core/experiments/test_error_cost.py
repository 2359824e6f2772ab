"""Tests of the timing in the error experiment: each round has every point, and more work takes longer."""

import statistics

import pytest

from attention_core.errors import NotCausalError
from attention_core.experiments.error_cost import ROUNDS, ErrorCostSpec, next_sample, run
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec

SOURCE = SyntheticSource(SyntheticSpec(n=768, d=16, heads=2))


def measured(spec):
    rows = []
    while (task := next_sample(spec, rows)) is not None:
        rows += run(task)
    return rows


@pytest.mark.parametrize("causal", [False, True])
def test_every_round_times_every_point_in_alternating_order(causal):
    words = ("uniform", "softmax", "local~window~4")
    rows = measured(ErrorCostSpec(source=SOURCE, words=words, causal=causal))
    assert [r.word for r in rows[:6]] == [*words, *reversed(words)]
    assert [r.round for r in rows] == [i for i in range(ROUNDS) for _ in words]
    taken = {word: statistics.median(r.ms for r in rows if r.word == word) for word in words}
    assert 0 < taken["uniform"] < taken["softmax"]


def test_a_non_causal_variant_is_refused_for_causal_timing():
    with pytest.raises(NotCausalError):
        measured(ErrorCostSpec(source=SOURCE, words=("nystrom",), causal=True))
