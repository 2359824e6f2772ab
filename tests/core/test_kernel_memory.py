"""Tests of the memory of kernel variants, counted: at most twice their output, in training three times full attention.

The tests use eight heads of 64 numbers at 2,048 tokens, like benchmarks/targets.py. They run the defaults, every choice
of every setting, and the largest numbers of features and bases in the benchmarks.
"""

from functools import cache

import pytest
import torch
from contract import causal_forms, settings_of

import attention_core as ac
from attention_core.attention import Attention
from attention_core.benchmarking.counting import count
from attention_core.benchmarking.timing import prepare

N, HEADS, SIZE = 2048, 8, 64
OUTPUT = HEADS * N * SIZE
KERNEL = [v for v in ac.all_variants() if v.family == "kernel"]
LARGE = [
    *(ac.get("performer", features=256, kind=kind) for kind in ("positive", "hyperbolic", "trig", "relu")),
    ac.get("emanet", bases=64),
]
# The mode "cumsum" holds all states in memory. The mode "recurrent" has the counts of chunks, but takes 2,000 steps.
FORMS = [
    a
    for a in (*(Attention(v, p) for v in KERNEL for p in settings_of(v, numbers=False)), *LARGE)
    if getattr(a.params, "mode", "chunked") == "chunked"
]
TRAINED = [*(Attention(v, v.params()) for v in KERNEL), ac.get("performer", features=256), ac.get("emanet", bases=64)]


def cases(attentions):
    return [pytest.param(a, causal, id=f"{a.word}-{causal}") for a in attentions for causal in causal_forms(a)]


@cache
def peak_elements(attention, mode, causal):
    """Return the peak number of elements in memory, without q, k and v."""
    q, k, v = torch.randn(3, 1, HEADS, N, SIZE, generator=torch.Generator().manual_seed(N))
    call = prepare(attention, q, k, v, mode=mode, causal=causal)
    with torch.set_grad_enabled(mode == "backward"):
        return count(call).peak_elements


@pytest.mark.parametrize(("attention", "causal"), cases(FORMS))
def test_memory_is_at_most_twice_the_output(attention, causal):
    assert peak_elements(attention, "forward", causal) <= 2 * OUTPUT


@pytest.mark.parametrize(("attention", "causal"), cases(TRAINED))
def test_training_memory_is_at_most_three_times_full_attention(attention, causal):
    assert peak_elements(attention, "backward", causal) <= 3 * peak_elements(ac.get("softmax"), "backward", causal)
