"""Tests of the mean of Performer's similarities over all draws: closed forms, other computations, actual draws."""

import math

import mpmath
import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.analysis.low_rank.performer_bias import (
    DIRECTIONS,
    DRAWS,
    TOKENS,
    exponential_share,
    mean_share,
    means,
    trig_share,
)
from attention_core.variants.kernel.performer import KINDS

SQUARES = [0.0, 1e-9, 0.3, 2.0, 10.0, 40.0, 100.0, 400.0, 1300.0]


def numbers(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def inside(q, k, **settings):
    attention = ac.get("performer", **settings)
    return attention.variant.anatomy(q, k, k, attention.params, causal=False)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 64, 256])
def test_the_closed_forms_at_fifty_digits(d):
    squares = torch.tensor(SQUARES, dtype=torch.float64)
    with mpmath.workdps(50):
        half = [mpmath.mpf(square) / 2 for square in SQUARES]
        falling = [mpmath.hyp0f1(mpmath.mpf(d) / 2, d * h / 2) * mpmath.exp(-h) for h in half]
        turning = [mpmath.hyp0f1(mpmath.mpf(d) / 2, -d * h / 2) * mpmath.exp(h) for h in half]
        np.testing.assert_allclose(exponential_share(squares, d), [float(x) for x in falling], rtol=1e-10, atol=1e-300)
        np.testing.assert_allclose(trig_share(squares, d), [float(x) for x in turning], rtol=1e-9)


def test_the_closed_forms_by_chance():
    """Check the closed forms against a mean over random directions, drawn with numpy only."""
    d, s = 5, 1.7
    w = np.random.default_rng(0).standard_normal((400_000, d))
    along = math.sqrt(d) * w[:, 0] / np.linalg.norm(w, axis=-1)
    for samples, found in (
        (np.exp(along * s - s**2 / 2), exponential_share(torch.tensor(s**2), d)),
        (np.cos(along * s) * np.exp(s**2 / 2), trig_share(torch.tensor(s**2), d)),
    ):
        assert abs(samples.mean() - float(found)) < 4.5 * samples.std() / 400_000**0.5
        assert abs(1 - float(found)) > 20 * samples.std() / 400_000**0.5  # Far from unbiased.


def test_beyond_numbers():
    far = torch.tensor([1e4, 1e12], dtype=torch.float64)
    assert exponential_share(far, 64).tolist() == [0, 0]
    assert trig_share(far, 64).isnan().all()


def test_the_bias_grows_with_the_pair_and_fades_with_the_head_size():
    squares = torch.linspace(0, 60, 200, dtype=torch.float64)
    few, many = exponential_share(squares, 8), exponential_share(squares, 128)
    assert few[0] == many[0] == 1
    assert (few.diff() < 0).all()
    assert (many.diff() < 0).all()
    assert (many[1:] > few[1:]).all()


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("row_norms", ["chi", "fixed"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_mean_of_the_variant_itself(kind, row_norms, orthogonal):
    q, k = numbers(2, 6, 4)
    found = [
        inside(q, k, kind=kind, row_norms=row_norms, orthogonal=orthogonal, features=2048, seed=s) for s in range(20)
    ]
    estimates = torch.stack([f["estimate"] for f in found])
    share = mean_share(q, k, kind=kind, row_norms=row_norms)
    z = (estimates.mean(0) - share * found[0]["kernel"]) / (estimates.std(0) / 20**0.5)
    assert z.abs().max() < 4.5
    biased = row_norms == "fixed" and kind != "relu"
    assert bool((share - 1).abs().max() > 0.05) == biased
    if kind in ("positive", "hyperbolic") and biased:
        assert (share < 1).all()


def record(n, d, scale=1.0):
    q, k = numbers(2, n, d, scale=scale)
    out = {name: x[None].float().numpy() for name, x in (("q", q), ("k", k), ("v", k))}
    return ac.inputs.QKV(
        q=torch.from_numpy(out["q"]),
        k=torch.from_numpy(out["k"]),
        v=torch.from_numpy(out["v"]),
        tokens=("a",) * n,
        special=(False,) * n,
        groups=tuple(range(n)),
        causal=False,
        scale=1.0,
        origin="",
        total_tokens=n,
    )


@pytest.mark.parametrize("row_norms", ["chi", "fixed"])
def test_many_draws_show_bias_and_chance_apart(row_norms):
    qkv, attention = record(12, 4, scale=1.3), ac.get("performer", features=100, row_norms=row_norms)
    found = means(qkv, attention, head=0)
    q, k = qkv.q[0].double(), qkv.k[0].double()
    truth = (q @ k.mT / 2).exp()
    np.testing.assert_allclose(found.truth, truth / truth.amax(-1, keepdim=True))
    one_by_one = [inside(q, k, features=100, row_norms=row_norms, seed=s)["estimate"] for s in range(DRAWS)]
    np.testing.assert_allclose(found.drawn, torch.stack(one_by_one).mean(0))
    ratio, share = np.median(found.drawn / found.truth), np.median(found.share)
    assert found.draws == DRAWS
    assert abs(ratio - share) < 0.1
    assert (share == 1) if row_norms == "chi" else (share < 0.8)


def test_long_inputs_and_many_features_are_bounded():
    found = means(record(TOKENS + 3, 4), ac.get("performer", features=2048, seed=2**31 - 1), head=0)
    assert found.truth.shape == found.drawn.shape == found.share.shape == (TOKENS, TOKENS)
    assert found.draws == DIRECTIONS // 2048
    assert np.isfinite(found.drawn).all()
