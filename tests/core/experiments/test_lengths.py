from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention_core import limits
from attention_core.experiments.lengths import at_length, ladder, reach, reseeded
from attention_core.experiments.task import load
from attention_core.inputs import SyntheticSource, SyntheticSpec, TextSource, UploadSource, example_npz

LONG = "A garden is a slow conversation, and the moss wants only to be left alone. " * 80


class Counting:
    """Loads, and remembers at which lengths."""

    def __init__(self):
        self.asked = []

    def __call__(self, source, tokens=None):
        self.asked.append(tokens)
        return load(source, tokens)


@given(st.integers(1, 8192))
def test_lengths_climb_evenly_to_the_longest(longest):
    rungs = ladder(longest)
    assert rungs[-1] == longest
    assert list(rungs) == sorted(set(rungs))
    assert all(b / a < 3 for a, b in pairwise(rungs))
    assert len(rungs) <= 11
    if longest >= 10:
        assert len(rungs) >= 4
    if longest >= 64:
        assert rungs[0] == 16


def test_a_long_ladder_doubles():
    assert ladder(4096) == (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    assert ladder(64) == (16, 23, 32, 45, 64)


def test_a_causal_model_is_sliced_and_read_at_most_twice():
    source, counting = TextSource(LONG, "smollm2", 1), Counting()
    found = {n: at_length(source, n, 1200, counting) for n in (16, 64, 1100)}
    assert set(counting.asked) == {None, 1200}
    for n, record in found.items():
        assert record.n == n
        alone = source.load(n)
        torch.testing.assert_close(record.q, alone.q, atol=1e-3, rtol=1e-3)
        assert record.tokens == alone.tokens


def test_a_model_that_reads_both_ways_reads_each_beginning_anew():
    source = TextSource(LONG, "minilm", 2)
    record = at_length(source, 24, 64, load)
    assert (record.n, record.tokens[-1]) == (24, "[SEP]")
    torch.testing.assert_close(record.q, source.load(24).q)
    assert (record.q - source.load().q[:, :24]).abs().max() > 0.1


def test_an_upload_is_sliced():
    source = UploadSource.of("mine.npz", example_npz())
    whole = source.load()
    assert torch.equal(at_length(source, 5, 9, load).k, whole.k[:, :5])


@pytest.mark.parametrize(
    ("source", "most"),
    [
        (TextSource("one two three", "minilm"), 5),
        (TextSource(LONG, "minilm"), 512),
        (TextSource(4 * LONG, "smollm2"), 4096),
        (SyntheticSource(SyntheticSpec(n=8)), 4096),
        (SyntheticSource(SyntheticSpec(n=8, d=128, heads=16)), 2048),
    ],
)
def test_reach_is_the_texts_length_or_a_bound(source, most, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    record = source.load()
    assert reach(source, record) == most
    assert at_length(source, most, most, load).n == most


def test_seeds_count_from_the_sources_own():
    found = reseeded(SyntheticSource(SyntheticSpec(seed=7)), 3)
    assert [(seed, source.spec.seed) for seed, source in found] == [(7, 7), (8, 8), (9, 9)]
    text = TextSource("a")
    assert reseeded(text, 3) == ((None, text),)


def test_both_profiles_measure_thousands_of_tokens():
    assert min(limits.OWN_MACHINE.sweep_tokens, limits.HOSTED.sweep_tokens) >= 4096
