"""The cache of looks: one for each look, keyed on what is asked and on nothing else."""

import threading

import numpy as np
import pytest

import attention_core as ac
from app import compute
from app.gate import Gate
from attention_core.inputs import SyntheticSource, SyntheticSpec

SOURCE = SyntheticSource(SyntheticSpec(n=12, d=4, heads=2))


def test_each_look_has_a_cache_of_its_own():
    performer = ac.get("performer")
    weights = compute.causal_weights(SOURCE, performer, head=0)
    means = compute.performer_means(SOURCE, performer, head=0)
    assert weights.shape == means.truth.shape == (12, 12)


def test_settings_head_and_source_are_told_apart_and_a_repeated_question_is_not_computed_again(monkeypatch):
    def found(source=SOURCE, head=0, **settings):
        return compute.causal_weights(source, ac.get("retention", **settings), head=head)

    answers = [found(decay=0.5), found(decay=0.9), found(head=1, decay=0.5), found(head=None, decay=0.5)]
    answers.append(found(SyntheticSource(SyntheticSpec(n=12, d=4, heads=2, seed=1)), decay=0.5))
    assert len({answer.tobytes() for answer in answers}) == len(answers)
    monkeypatch.setattr(compute, "record", lambda source: pytest.fail("computed again"))
    np.testing.assert_array_equal(found(decay=0.5), answers[0])


@pytest.mark.parametrize("places", [1, 2])
def test_who_is_alone_may_read_records_and_nobody_waits_for_ever(places, monkeypatch):
    gate, log = Gate(places), []
    monkeypatch.setattr(compute, "gate", lambda: gate)

    def alone(seed):
        with gate.alone():
            source = SyntheticSource(SyntheticSpec(n=8, d=4, heads=1, seed=seed))
            compute.record(source)  # takes a turn
            compute._load(source, 16)  # gives the place back meanwhile
            log.append(seed)

    threads = [threading.Thread(target=alone, args=(20_260_401 + i % 2,), daemon=True) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(log) == 4
    with gate.alone(), gate.turn():
        pass
