"""Tests of the properties of each source: its longest length, its layers, its seeds, and how it is created again."""

import pytest
import torch

import attention_core
from attention_core.experiments.task import load
from attention_core.inputs import SyntheticSource, SyntheticSpec, TextSource, UploadSource, example_npz
from attention_core.inputs.positions import Rope

LONG = "A garden is a slow conversation, and the moss wants only to be left alone. " * 80


class Counting:
    """A loader that records the lengths it is called with."""

    def __init__(self):
        self.asked = []

    def __call__(self, source, tokens=None):
        self.asked.append(tokens)
        return load(source, tokens)


def test_a_causal_model_is_sliced_and_read_at_most_twice():
    source, counting = TextSource(LONG, "smollm2", 1), Counting()
    found = {n: source.at_length(n, 1200, counting) for n in (16, 64, 1100)}
    assert set(counting.asked) == {None, 1200}
    for n, record in found.items():
        assert record.n == n
        direct = source.load(n)
        torch.testing.assert_close(record.q, direct.q, atol=1e-3, rtol=1e-3)
        assert record.tokens == direct.tokens


def test_a_bidirectional_model_reads_each_length_separately():
    source = TextSource(LONG, "minilm", 2)
    record = source.at_length(24, 64, load)
    assert (record.n, record.tokens[-1]) == (24, "[SEP]")
    torch.testing.assert_close(record.q, source.load(24).q)
    assert (record.q - source.load().q[:, :24]).abs().max() > 0.1


def test_an_upload_is_sliced():
    source = UploadSource.of("mine.npz", example_npz())
    whole = source.load()
    assert torch.equal(source.at_length(5, 9, load).k, whole.k[:, :5])


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
def test_max_tokens_is_the_length_of_the_text_or_a_limit(source, most, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    record = source.load()
    assert source.max_tokens(record) == most
    assert source.at_length(most, most, load).n == most


def test_seeds_count_from_the_seed_of_the_source():
    found = SyntheticSource(SyntheticSpec(seed=7)).reseeded(3)
    assert [(seed, source.spec.seed) for seed, source in found] == [(7, 7), (8, 8), (9, 9)]
    text = TextSource("a")
    assert text.reseeded(3) == ((None, text),)


UPLOAD = UploadSource.of("mine.npz", example_npz())
SYNTHETIC = SyntheticSource(SyntheticSpec(n=12, d=4, heads=2, seed=3, rope=True))
TEXT = TextSource("one two three", "minilm", 4)


@pytest.mark.parametrize("source", [TEXT, SYNTHETIC])
def test_the_code_of_a_source_recreates_it(source):
    assert eval(source.code, {"ac": attention_core}) == source


def test_the_code_of_an_upload_reads_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "your-file.npz").write_bytes(UPLOAD.data)
    assert eval(UPLOAD.code, {"ac": attention_core}) == UPLOAD


def test_a_text_has_the_layers_of_its_model_and_other_sources_have_one():
    assert (TEXT.layer_count, SYNTHETIC.layer_count, UPLOAD.layer_count) == (6, 1, 1)
    records = TEXT.layers(load)
    assert len(records) == 6
    torch.testing.assert_close(records[4].q, TEXT.load().q)
    torch.testing.assert_close(records[1].q, TEXT.at_layer(1).load().q)
    assert SYNTHETIC.at_layer(1) == SYNTHETIC
    [only] = SYNTHETIC.layers(load)
    assert torch.equal(only.q, SYNTHETIC.load().q)


def test_sources_report_is_generated_is_text_and_may_be_trained():
    found = [(source.is_generated, source.is_text, source.may_be_trained) for source in (TEXT, SYNTHETIC, UPLOAD)]
    assert found == [(False, True, True), (True, False, False), (False, False, True)]


def test_rope_comes_from_the_model_or_the_spec_and_uploads_have_no_rope():
    assert TEXT.rope is None
    assert TextSource("a", "smollm2").rope == Rope(base=100_000.0, halves=True)
    assert SYNTHETIC.rope == Rope(base=10_000.0, halves=False)
    assert SyntheticSource(SyntheticSpec()).rope is None
    assert UPLOAD.rope is None


def test_the_lengths_notice_depends_on_the_kind_of_source():
    causal = TextSource("one two three", "smollm2")
    found = {source: str(source.lengths_notice(source.load())) for source in (TEXT, causal, SYNTHETIC, UPLOAD)}
    assert "bidirectional" in found[TEXT]
    assert "new sequence" in found[SYNTHETIC]
    assert "the same as if the model read only the shorter sequence" in found[causal]
    assert found[causal] == found[UPLOAD]
