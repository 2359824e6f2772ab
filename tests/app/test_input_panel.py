"""What the panel says of an input."""

import dataclasses

from app.input_panel import shown_tokens, size_in_words, unmasked
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec


def record(special):
    qkv = SyntheticSource(SyntheticSpec(n=16, heads=1, d=8)).load()
    return dataclasses.replace(qkv, special=tuple(special))


def test_tokens_are_counted_as_they_are_shown():
    qkv = record([True] + [False] * 14 + [True])
    assert len(shown_tokens(qkv)) == 14
    assert size_in_words(qkv, shown=14) == "14 tokens shown, 2 special ones hidden · 1 head of 8"
    assert size_in_words(qkv, shown=15) == "15 tokens shown, 1 special one hidden · 1 head of 8"
    assert size_in_words(qkv, shown=1) == "1 token shown, 15 special ones hidden · 1 head of 8"
    assert size_in_words(qkv, shown=16) == "16 tokens · 1 head of 8"
    assert shown_tokens(record([True] * 16)) == qkv.tokens  # where nothing would be left, nothing is hidden


def test_one_token_is_not_called_several():
    qkv = SyntheticSource(SyntheticSpec(n=1, heads=2, d=4)).load()
    assert size_in_words(qkv, shown=1) == "1 token · 2 heads of 4"


def test_a_mask_that_is_off_is_named_with_its_head():
    assert "64% of softmax's mass in head 3 lies on later tokens" in unmasked(0.64, 3)
    assert "64% of softmax's mass, the mean of all heads, lies on later tokens" in unmasked(0.64, None)
    assert all("Switch **Causal** on" in unmasked(0.1, head) for head in (None, 0))
