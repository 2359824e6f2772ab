"""Tests of a mask on the full matrix: the output of the pattern at full cost, within limits."""

import pytest
import torch

import attention_core as ac
from attention_core.benchmarking.counting import count
from attention_core.benchmarking.device import Stamp
from attention_core.benchmarking.full_matrix_mask import FORMS, MaskedFullAttention, attention_from_word
from attention_core.benchmarking.run_file import from_json, to_json
from attention_core.benchmarking.run_records import Sample, group_samples
from attention_core.benchmarking.timing import TimingSpec, prepare, unsupported_reason
from attention_core.errors import LabError, ShapeError

PATTERNS = [variant.key for variant in ac.all_variants() if variant.mask is not None]


def drawn(n=41, d=8, dtype=torch.float64):
    return torch.randn(3, 1, 2, n, d, generator=torch.Generator().manual_seed(n)).to(dtype).unbind(0)


@pytest.mark.parametrize("key", PATTERNS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("causal", [False, True])
def test_output_and_gradients_equal_those_of_the_pattern(key, form, causal):
    q, k, v = drawn()
    masked = attention_from_word(f"{form}.{key}")
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    wanted = ac.get(key).weights(*leaves[:2], causal=causal) @ leaves[2]
    torch.testing.assert_close(masked.attend(q, k, v, causal=causal), wanted)
    torch.testing.assert_close(prepare(masked, q, k, v, mode="forward", causal=causal)(), wanted)
    found = prepare(masked, q, k, v, mode="backward", causal=causal)()
    torch.testing.assert_close(found, torch.autograd.grad(wanted.sum(), leaves))


@pytest.mark.parametrize("form", FORMS)
def test_cost_equals_full_attention_for_any_mask(form):
    q, k, v = drawn(512, 16, torch.float32)
    softmax = ac.get("softmax").cost(512, 16)
    for word in (f"{form}.local~window~1", f"{form}.local~window~512"):
        call = prepare(attention_from_word(word), q, k, v, mode="forward", causal=False)
        assert (
            count(call).multiply_adds
            == 2 * softmax.multiply_adds
            == 2 * attention_from_word(word).cost(512, 16).multiply_adds
        )
        assert count(call).largest_elements >= 512 * 512


@pytest.mark.parametrize("key", PATTERNS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("heads", [1, 8])
def test_the_bound_on_bytes_includes_the_mask_and_the_call(key, form, heads):
    masked, n = attention_from_word(f"{form}.{key}"), 512
    q, k, v = torch.randn(3, 1, heads, n, 4).unbind(0)

    def both():
        return prepare(masked, q, k, v, mode="backward", causal=True)()

    for call in (both, lambda: masked.attend(q, k, v)):
        peak = count(call, unit=torch.uint8).peak_elements
        assert peak <= 1.1 * masked.bytes(n, heads, torch.float32)


def test_the_word_of_a_mask_is_unchanged_after_parsing_and_saving():
    masked = attention_from_word("explicit.sparse~window~4~stride~16")
    assert isinstance(masked, MaskedFullAttention)
    assert attention_from_word(masked.word) == masked
    assert masked.plain == ac.get("sparse", window=4, stride=16)
    spec = TimingSpec(variants=("softmax", masked.word), sizes=(8,), rounds=1)
    rows = [
        Sample(variant=word, n=8, round=0, ms=1.0, multiply_adds=1, promised=1, peak_bytes=1) for word in spec.variants
    ]
    run = group_samples(spec, Stamp(device="a", cpu="a", cores=1, threads=1, torch="2", date="2026"), rows)
    assert from_json(to_json(run)) == run


def test_the_cost_needs_at_least_one_token():
    with pytest.raises(ShapeError, match="n is 0"):
        attention_from_word("fused.local").cost(0, 8)


@pytest.mark.parametrize("word", ["fused.softmax", "explicit.reformer", "fused.", "fused.locall", "other.local", "."])
def test_variants_without_a_mask_and_unknown_forms_are_refused(word):
    with pytest.raises(LabError):
        attention_from_word(word)
    with pytest.raises(LabError):
        TimingSpec(variants=(word,))


def test_decode_mode_is_not_supported():
    reason = unsupported_reason(attention_from_word("fused.local"), mode="decode", causal=False)
    assert reason == "It has no incremental decoding."
