"""Tests of the numbers on the Matrices page, against plain formulas."""

import dataclasses
import math

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.analysis.matrix.compare import allowed_pairs, compare, ranks, select_tokens
from attention_core.analysis.matrix.miniatures import miniatures


@pytest.fixture(scope="module")
def qkv():
    return ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=20, heads=3, d=8))


@pytest.fixture(scope="module")
def text():
    return ac.inputs.from_text("the cat saw the dog", model="minilm", layer=1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head", [None, 1])
def test_the_matrix_difference_and_errors_equal_their_formulas(qkv, causal, head):
    local = ac.get("local", window=3)
    found = compare(qkv, local, head=head, causal=causal)
    pick = slice(None) if head is None else slice(head, head + 1)
    own, full = (a.weights(qkv.q, qkv.k, causal=causal)[pick] for a in (local, ac.get("softmax")))
    i, j = torch.meshgrid(torch.arange(20), torch.arange(20), indexing="ij")
    hidden = ((i - j).abs() > 3) | (causal & (j > i))
    assert torch.equal(torch.from_numpy(found.weights).isnan(), hidden)
    torch.testing.assert_close(torch.from_numpy(found.weights)[~hidden], own.mean(0)[~hidden])
    future = causal & (j > i)
    assert torch.equal(torch.from_numpy(found.difference).isnan(), future.expand(20, 20))
    torch.testing.assert_close(torch.from_numpy(found.difference)[~future], (own.mean(0) - full.mean(0))[~future])
    v = qkv.v[pick]
    assert found.output_error == pytest.approx(float((own @ v - full @ v).norm() / (full @ v).norm()), rel=1e-4)
    assert found.misplaced == pytest.approx(float((full * hidden).sum(-1).mean()), abs=1e-6)
    seen = (j <= i) if causal else torch.ones(20, 20, dtype=torch.bool)
    uniform = torch.stack([v[:, seen[t]].mean(1) for t in range(20)], 1)
    assert found.uniform_error == pytest.approx(float((uniform - full @ v).norm() / (full @ v).norm()), rel=1e-4)


@pytest.mark.parametrize("head", [None, 1])
def test_left_out_is_the_weight_of_words_on_special_tokens(text, head):
    pick = slice(None) if head is None else slice(head, head + 1)
    full = ac.get("softmax").weights(text.q, text.k)[pick]
    outside = full[:, 1:-1][..., [0, -1]].sum(-1).mean()
    assert compare(text, ac.get("softmax"), head=head, causal=False, special=False).left_out == pytest.approx(
        float(outside), abs=1e-6
    )
    assert compare(text, ac.get("softmax"), head=head, causal=False).left_out == 0


def test_the_masked_weight_on_special_tokens_is_a_part_of_the_masked_weight(text):
    local = ac.get("local", window=1)
    masked = ac.get("softmax").weights(text.q, text.k)[1] * ~local.mask(text.n)
    on_special = dict(zip(("[CLS]", "[SEP]"), masked.mean(0)[[0, -1]].tolist(), strict=True))
    for special in (False, True):
        found = compare(text, local, head=1, causal=False, special=special)
        assert found.misplaced_special == pytest.approx(on_special, abs=1e-6)
        assert 0 < sum(found.misplaced_special.values()) < found.misplaced
    without = dataclasses.replace(text, special=(False,) * text.n)
    assert compare(without, local, head=1, causal=False).misplaced_special == {}


def test_row_sums_include_the_weights_on_tokens_that_are_not_shown(text):
    signed = ac.get("differential")
    sums = signed.weights(text.q, text.k)[1, 1:-1].double().sum(-1)
    found = compare(text, signed, head=1, causal=False, special=False)
    ends = found.passport.row_sum_min, found.passport.row_sum_max
    assert ends == pytest.approx((float(sums.min()), float(sums.max())), abs=1e-6)
    assert abs(found.weights.sum(-1) - sums.numpy()).max() > 0.1, "rescaling changes sums"


@pytest.mark.parametrize("head", [None, 1])
def test_errors_of_large_finite_matrices_are_finite(qkv, head):
    # The squares of these outputs exceed float32.
    large = dataclasses.replace(qkv, q=2e5 * qkv.q, k=2e5 * qkv.k)
    series, pick = ac.get("centred_taylor"), slice(None) if head is None else slice(head, head + 1)
    found = compare(large, series, head=head, causal=False)
    v = large.v[pick].double()
    own, full = (a.weights(large.q, large.k)[pick].double() @ v for a in (series, ac.get("softmax")))
    assert np.isfinite(found.weights).all()
    assert found.output_error == pytest.approx(float((own - full).norm() / full.norm()), rel=1e-4)
    assert found.output_error > 1e19
    own, full = (a.weights(large.q, large.k)[pick].mean(0).double() for a in (series, ac.get("softmax")))
    assert found.passport.relative_error == pytest.approx(float((own - full).norm() / full.norm()), rel=1e-4)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("head", [None, 1])
def test_ranks_are_computed_from_the_displayed_matrix(text, head, special):
    linear = ac.get("linear")
    compared = compare(text, linear, head=head, causal=False, special=special)
    shown = compared.weights
    values = np.linalg.svd(shown.astype(float), compute_uv=False)
    shares = values / values.sum()
    found = ranks(compared)
    assert found.rank == np.linalg.matrix_rank(shown)
    assert found.effective_rank == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-4)


def test_masked_pairs_count_as_zeros_and_a_nan_matrix_has_no_rank(qkv):
    local = compare(qkv, ac.get("local", window=3), head=0, causal=True)
    assert ranks(local).rank == np.linalg.matrix_rank(np.nan_to_num(local.weights)) == 20
    nothing = dataclasses.replace(qkv, q=qkv.q * math.nan)
    assert math.isnan(ranks(compare(nothing, ac.get("linear"), head=0, causal=False)).rank)


def test_softmax_has_no_error_against_itself(qkv):
    found = compare(qkv, ac.get("softmax"), head=0, causal=False)
    assert found.output_error == 0
    assert found.passport.relative_error == 0
    assert not found.difference.any()


def test_reformer_is_compared_with_its_own_full_attention(qkv):
    everything = ac.get("reformer", bucket_size=512)
    found = compare(qkv, everything, head=0, causal=False)
    assert found.passport.relative_error < 1e-5


def test_a_causal_comparison_of_a_non_causal_variant_is_refused(qkv):
    with pytest.raises(ac.errors.NotCausalError, match="cannot be causal"):
        compare(qkv, ac.get("nystrom"), head=0, causal=True)


def test_rows_keep_their_total_without_special_tokens(text):
    found = compare(text, ac.get("softmax"), head=2, causal=False, special=False)
    assert found.weights.shape == (5, 5)
    torch.testing.assert_close(torch.from_numpy(found.weights).sum(-1), torch.ones(5))
    whole = torch.from_numpy(compare(text, ac.get("softmax"), head=2, causal=False).weights[1:-1, 1:-1])
    torch.testing.assert_close(torch.from_numpy(found.weights / found.weights[:, :1]), whole / whole[:, :1])


def test_dropping_tokens_of_a_signed_matrix_keeps_the_absolute_total():
    kept = select_tokens(
        torch.tensor([[0.5, -0.5, 1.0], [0.0, 0.0, 2.0], [1.0, 1.0, 1.0]]), torch.tensor([True, True, False])
    )
    torch.testing.assert_close(kept, torch.tensor([[1.0, -1.0], [0.0, 0.0]]))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
def test_masked_pairs_have_no_weight(qkv, variant, causal):
    if causal and variant.causal_reason:
        return
    attention = ac.get(variant.key)
    seen = allowed_pairs(qkv, attention, causal=causal)
    assert not attention.weights(qkv.q, qkv.k, causal=causal)[~seen].any()


def test_miniatures_keep_single_peaks():
    layers = ac.inputs.record_layers("the cat saw the dog " * 12, model="minilm")
    small = miniatures(layers, causal=False)
    assert small.shape == (6, 12, 24, 24)
    assert torch.equal(small.amax((-2, -1)), torch.ones(6, 12))
    weights = ac.get("softmax").weights(layers[3].q, layers[3].k)[5]
    row, col = divmod(int(weights.argmax()), weights.shape[-1])
    scale = 24 / weights.shape[-1]
    assert small[3, 5, int(row * scale), int(col * scale)] == 1
