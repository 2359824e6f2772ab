"""Tests of latent attention's story: singular values, the rank, and the cache size."""

import numpy as np
import pytest
from stories import data, open_step, said, source

import attention_core as ac
from pages.inside.stories import mla
from pages.inside.stories.mla import cache_sentence, kept_share, rank_sentence


def test_the_story_shows_the_singular_values_of_all_heads():
    qkv = source().load()
    keys, values = (np.concatenate(list(x.double().numpy()), -1) for x in (qkv.k, qkv.v))
    at = open_step(ac.get("mla", rank=4), 2)
    rank, of_keys, of_values = said(
        at, r"With rank (\d+), ([\d.]+)% of the squared norm of the keys is kept, and ([\d.]+)% of the"
    )
    assert rank == 4
    for text, rows in ((of_keys, keys), (of_values, values)):
        squares = np.linalg.svd(rows, compute_uv=False) ** 2
        assert text == pytest.approx(100 * squares[:4].sum() / squares.sum(), abs=0.051)
    at = open_step(ac.get("mla", rank=4), 3, again=at)
    assert said(at, r"(\d+) numbers to the cache instead of (\d+)\. .* and take (\d+) numbers") == (8, 32, 128)


@pytest.mark.parametrize(("n", "said_"), [(15, True), (16, False)])
def test_few_tokens_limit_the_number_of_singular_values(n, said_):
    text = mla.steps(data(ac.get("mla", rank=64), n=n))[1]  # Two heads of size 8 have keys of 16 numbers per token.
    assert text.details == (f"With {n} tokens, at most {n} singular values are not zero." if said_ else "")
    assert text.findings.startswith(f"With rank {n}, **100.0%** of the squared norm of the keys is kept")


def test_the_error_of_a_rank_is_for_the_head_and_zero_at_full_rank():
    steps = mla.steps(data(ac.get("mla", rank=16)))
    assert steps[0].findings.startswith("At the full rank of 16, the keys are rebuilt without error.")
    step_data = data(ac.get("mla", rank=3))
    off = np.linalg.norm(step_data.weights - step_data.reference) / np.linalg.norm(step_data.reference)
    assert (
        f"At rank 3 (full rank: 16), the matrix error of this head is **{off:.1%}**."
        in mla.steps(step_data)[0].findings
    )


def test_the_smallest_sufficient_rank_is_named():
    text = rank_sentence(np.array([1, 4, 8]), np.array([0.5, 0.1, 0.0]), 1, 0.4)
    assert "Rank 4 is the smallest tested rank with a matrix error of at most 10% over all heads together." in text


def test_zero_matrices_lose_nothing():
    assert kept_share(np.zeros(3), 1) == 1
    assert kept_share(np.array([2.0, 1.0]), 1) == pytest.approx(0.8)


def test_the_savings_of_latents_depend_on_the_length():
    assert cache_sentence(32, 10, 32, 5) == (
        "Here, latents save no memory: they take 32 numbers per token, and keys and values take 32."
    )
    short, long = cache_sentence(8, 128, 32, 5), cache_sentence(8, 128, 32, 6)
    assert "keys and values from 6 tokens on." in short
    assert short.endswith("learned once and then used for all texts.")
    assert long.endswith("keys and values from 6 tokens on.")
