"""Tests that each variant's printed formula, evaluated independently, gives the variant's matrix."""

import formulas.cache
import formulas.dense
import formulas.gated
import formulas.kernel
import formulas.low_rank
import formulas.mixed
import formulas.sparse  # noqa: F401 - registers its transcriptions
import pytest
import torch
from contract import settings_of
from formulas import TRANSCRIPTIONS

import attention_core as ac
from attention_core.variant import Attention, Variant

SHAPES = ((1, 4), (2, 3), (7, 8), (33, 5), (40, 16))
"""Numbers of tokens and head sizes: one token, an odd head size, and lengths that no block or stride divides."""
TOLERANCE = 1e-9
"""Largest difference between two entries, relative to the largest entry of the matrix; both are float64."""

VARIANTS = ac.all_variants()
CASES = [Attention(v, p) for v in VARIANTS for p in settings_of(v)]


def label(a: Attention) -> str:
    return a.word


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
def test_each_formula_is_transcribed_as_it_is_printed(variant: Variant):
    assert variant.key in TRANSCRIPTIONS, f"transcribe the formula of {variant.key}"
    assert TRANSCRIPTIONS[variant.key].formula == variant.formula, "the formula changed: transcribe it again"


@pytest.mark.parametrize("attention", CASES, ids=label)
def test_each_formula_gives_its_matrix(attention: Attention):
    for n, d in SHAPES:
        source = torch.Generator().manual_seed(100 * n + d)
        q, k = torch.randn(2, 2, 3, n, d, generator=source, dtype=torch.float64)
        for causal in (False,) if attention.variant.causal_reason else (False, True):
            wanted = TRANSCRIPTIONS[attention.key].matrix(q, k, attention.params, causal)
            found = attention.weights(q, k, causal=causal)
            assert wanted.shape == found.shape
            off = (wanted - found).abs().max() / wanted.abs().max().clamp(min=1e-30)
            assert off <= TOLERANCE, f"n={n} d={d} causal={causal}: an entry is off by {off:.1e}"
