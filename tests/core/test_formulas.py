"""Tests that each variant's printed formula, evaluated independently, gives the variant's matrix and output."""

import formulas.cache
import formulas.dense
import formulas.gated
import formulas.kernel
import formulas.low_rank
import formulas.mixed
import formulas.sparse  # noqa: F401 - registers its transcriptions
import pytest
import torch
from contract import any_settings, settings_of
from formulas import TRANSCRIPTIONS
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_core as ac
from attention_core.attention import Attention
from attention_core.variant import Variant

SHAPES = ((1, 4), (2, 3), (7, 8), (33, 5), (40, 16))
"""Numbers of tokens and head sizes: one token, an odd head size, and lengths that no block or stride divides."""
TOLERANCE = 1e-9
"""Largest difference between two entries, relative to the largest entry of the matrix; both are float64."""

VARIANTS = ac.all_variants()
CASES = [Attention(v, p) for v in VARIANTS for p in settings_of(v)]


def label(a: Attention) -> str:
    return a.word


def check_formula(a: Attention, n: int, d: int) -> None:
    """Check the matrix and the output of n tokens, with 2 examples of 3 heads."""
    source = torch.Generator().manual_seed(100 * n + d)
    q, k, v = torch.randn(3, 2, 3, n, d, generator=source, dtype=torch.float64)
    for causal in (False,) if a.variant.causal_reason else (False, True):
        wanted = TRANSCRIPTIONS[a.key].matrix(q, k, a.params, causal)
        for name, found, sought in (
            ("weights", a.weights(q, k, causal=causal), wanted),
            ("attend", a.attend(q, k, v, causal=causal), wanted @ a.values(v)),
        ):
            assert sought.shape == found.shape
            off = (sought - found).abs().max() / wanted.abs().max().clamp(min=1e-30)
            assert off <= TOLERANCE, f"n={n} d={d} causal={causal}: an entry of {name} is off by {off:.1e}"
        if a.variant.mask is not None:
            weighted = (wanted != 0).flatten(0, 1).any(0)
            assert torch.equal(a.mask(n, causal=causal), weighted), f"n={n} d={d} causal={causal}: the mask is wrong"


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
def test_each_transcription_quotes_the_current_formula(variant: Variant):
    assert variant.key in TRANSCRIPTIONS, f"transcribe the formula of {variant.key}"
    assert TRANSCRIPTIONS[variant.key].formula == variant.formula, "the formula changed: transcribe it again"


@pytest.mark.parametrize("attention", CASES, ids=label)
def test_each_formula_gives_its_matrix(attention: Attention):
    for n, d in SHAPES:
        check_formula(attention, n, d)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
@given(data=st.data())
@settings(max_examples=30)
def test_each_formula_gives_its_matrix_with_any_settings(variant: Variant, data: st.DataObject):
    p = data.draw(any_settings(variant, most=12, text=True), "settings")
    # In smaller heads, a dozen landmarks can be so nearly dependent that rounding errors decide their exact inverse.
    smallest = 4 if getattr(p, "inverse", "") == "exact" else 2
    check_formula(Attention(variant, p), data.draw(st.integers(1, 40), "n"), data.draw(st.integers(smallest, 8), "d"))
