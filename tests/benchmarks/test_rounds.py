"""Tests of one round of a benchmark: full attention is timed before and after each subject, as its baseline."""

from types import SimpleNamespace

from benchmarks.measure import take_round


class Timed:
    """A subject whose calls take given numbers of seconds."""

    def __init__(self, *seconds):
        self.seconds, self.samples, self.base = iter(seconds), [], []

    def sample(self, clock, shortest):
        seconds = next(self.seconds)
        return seconds, seconds


def test_a_baseline_is_the_mean_of_full_attention_before_and_after_the_sample():
    full = Timed(1.0, 3.0, 7.0)
    slow, slower = Timed(2.0), Timed(5.0)
    take_round(full, [slow, slower], None, SimpleNamespace(shortest=0.0))
    assert (slow.base, slower.base) == ([2.0], [5.0])
    assert full.samples == full.base == [2.0, 5.0]


def test_quick_subjects_share_the_full_attention_around_them():
    full = Timed(4.0, 6.0)
    group = [Timed(1.0), Timed(1.0), Timed(1.0)]
    take_round(full, group, None, SimpleNamespace(shortest=0.0))
    assert [each.base for each in group] == [[5.0]] * 3
