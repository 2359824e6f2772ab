"""Tests of Performer: unbiased estimates, smaller errors with more and with orthogonal features, no lower bound."""

import math

import numpy as np
import pytest
import torch
from seeded import normal

import attention_core as ac
from attention_core.benchmarking.counting import count
from attention_core.metrics import relative_error
from attention_core.variants.kernel.performer import KINDS, PerformerParams, directions

softmax = ac.get("softmax")


def anatomy_of(attention, q, k, *, causal=False):
    return attention.variant.anatomy(q, k, k, attention.params, causal=causal)


def z_scores(q, k, seeds=20, **settings):
    """Return the distance of each entry's mean estimate from the kernel, in standard errors."""
    found = [anatomy_of(ac.get("performer", seed=s, **settings), q, k) for s in range(seeds)]
    estimates = torch.stack([f["estimate"] for f in found])
    return (estimates.mean(0) - found[0]["kernel"]) / (estimates.std(0) / seeds**0.5)


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_is_unbiased(kind, orthogonal):
    q, k = normal(2, 6, 4)
    # Blocks of d directions are independent: each entry has 20 x 2048 / 4 samples.
    z = z_scores(q, k, kind=kind, orthogonal=orthogonal, features=2048)  # The row norms are the default.
    assert z.abs().max() < 4.5
    assert z.square().mean() < 2.5


def test_rows_of_fixed_length_bias_all_kernels_except_relu():
    q, k = normal(2, 6, 4)
    for kind in ("positive", "hyperbolic", "trig"):
        assert z_scores(q, k, kind=kind, features=2048, row_norms="fixed").abs().max() > 10
    assert z_scores(q, k, kind="relu", features=2048, row_norms="fixed").abs().max() < 4.5


def test_the_true_kernels_equal_their_formulas():
    q, k = normal(2, 5, 4)
    x, y = (t.numpy() / math.sqrt(2) for t in (q, k))
    exponential = np.exp(x @ y.T)
    found = anatomy_of(ac.get("performer"), q, k)["kernel"]
    np.testing.assert_allclose(found, exponential / exponential.max(-1, keepdims=True))
    # The arc-cosine kernel is the mean of two positive parts, computed by quadrature over the shared half plane.
    turns = np.linspace(0, 2 * np.pi, 20_001)[:-1]
    radius = 2  # E r² of two normal numbers.
    for i in range(5):
        for j in range(5):
            angle = np.arccos(x[i] @ y[j] / np.linalg.norm(x[i]) / np.linalg.norm(y[j]))
            mean = np.mean(np.maximum(np.cos(turns), 0) * np.maximum(np.cos(turns - angle), 0)) * radius
            expected = mean * np.linalg.norm(x[i]) * np.linalg.norm(y[j])
            assert anatomy_of(ac.get("performer", kind="relu"), q, k)["kernel"][i, j] == pytest.approx(
                expected, rel=1e-6
            )


def mean_square_error(q, k, seeds, **settings):
    errors = []
    for seed in range(seeds):
        found = anatomy_of(ac.get("performer", seed=seed, **settings), q, k)
        errors.append((found["estimate"] - found["kernel"]).square().mean())
    return float(torch.stack(errors).mean())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("orthogonal", [True, False])
def test_the_error_falls_like_one_over_the_root_of_the_features(kind, orthogonal):
    q, k = normal(2, 8, 8, size=0.5)
    few, many = (
        mean_square_error(q, k, seeds, kind=kind, orthogonal=orthogonal, row_norms="chi", features=m)
        for m, seeds in ((16, 2000), (256, 200))
    )
    assert math.log(few / many, 16) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("kind", ["positive", "hyperbolic", "trig"])
def test_orthogonal_directions_beat_independent_ones(kind):
    q, k = normal(2, 8, 8, size=0.5)
    orthogonal, independent = (
        mean_square_error(q, k, 2000, kind=kind, features=8, row_norms="chi", orthogonal=o) for o in (True, False)
    )
    assert orthogonal < 0.85 * independent


def test_rows_of_fixed_length_have_smaller_errors():
    q, k = normal(2, 4, 64, 16)
    exact = softmax.weights(q, k)
    fixed, chi = (
        np.mean(
            [
                relative_error(ac.get("performer", features=256, row_norms=norms, seed=s).weights(q, k), exact).mean()
                for s in range(20)
            ]
        )
        for norms in ("fixed", "chi")
    )
    assert fixed < 0.95 * chi


def test_hyperbolic_features_have_smaller_errors_than_positive_ones():
    q, k = normal(2, 8, 8, size=0.5)
    both = {"row_norms": "chi", "orthogonal": False}
    hyperbolic = mean_square_error(q, k, 400, kind="hyperbolic", features=16, **both)
    assert hyperbolic < 0.95 * mean_square_error(q, k, 400, kind="positive", features=32, **both)


@pytest.mark.parametrize("row_norms", ["fixed", "chi"])
def test_directions_are_orthogonal_in_blocks_and_uniform(row_norms):
    W = directions(torch.zeros(4, dtype=torch.float64), PerformerParams(features=11, seed=3, row_norms=row_norms))
    assert W.shape == (11, 4)
    gram = W @ W.T
    for start in (0, 4, 8):
        block = gram[start : start + 4, start : start + 4]
        torch.testing.assert_close(block, block.diagonal().diag())
    assert (gram[:4, 4:].abs() > 1e-3).all()
    lengths = W.norm(dim=-1)
    assert torch.equal(lengths.sub(2).abs() < 1e-12, torch.full((11,), row_norms == "fixed"))
    each = (PerformerParams(features=4, seed=seed, row_norms=row_norms) for seed in range(800))
    many = torch.stack([directions(W, p) for p in each])
    # Each entry has mean 0 and variance 1, and no row is determined by the signs of the others.
    assert many.mean(0).abs().max() < 4.5 / 800**0.5
    assert many.square().mean(0).sub(1).abs().max() < 4.5 * 2**0.5 / 800**0.5


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [1.0, 10.0, 300.0])
def test_no_constant_is_added_at_any_magnitude(causal, scale):
    """Check logits in the thousands, which only sums of logarithms can handle: no row becomes a mean of v."""
    q, k, v = normal(3, 300, 6, size=scale)
    attention = ac.get("performer", features=16)
    W = anatomy_of(attention, q, k)["directions"]
    a, b = ((x / 6**0.25) @ W.T - (x / 6**0.25).square().sum(-1, keepdim=True) / 2 for x in (q, k))
    log = torch.logsumexp(a[:, None] + b[None], -1)
    log = log.masked_fill(torch.ones(300, 300, dtype=torch.bool).triu(1), -torch.inf) if causal else log
    expected = log.softmax(-1)
    torch.testing.assert_close(attention.weights(q, k, causal=causal), expected, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(attention.attend(q, k, v, causal=causal), expected @ v, rtol=1e-6, atol=1e-6 * scale)
    if not causal:  # The largest keys may come first or last.
        turned = attention.attend(q, k.flip(0), v.flip(0))
        torch.testing.assert_close(turned, expected @ v, rtol=1e-6, atol=1e-6 * scale)


def test_relu_leaves_a_row_without_features_zero():
    attention = ac.get("performer", kind="relu", features=1)
    W = anatomy_of(attention, *normal(2, 2, 3))["directions"]
    q, v = W.expand(4, 3).clone(), normal(4, 3)
    k = torch.cat([-W, W, W, -W])
    for causal in (False, True):
        out = attention.attend(q, k, v, causal=causal)
        expected = torch.stack([v[:0].sum(0), v[1], v[1:3].mean(0), v[1:3].mean(0)])
        torch.testing.assert_close(out, expected if causal else v[1:3].mean(0).expand(4, 3))
        torch.testing.assert_close(attention.attend(-q, k[:1].expand(4, 3) * -1, v, causal=causal), torch.zeros_like(v))


def test_many_features_approximate_softmax():
    q, k = normal(2, 2, 40, 6, size=0.5)
    exact = softmax.weights(q, k, causal=True)
    errors = [
        float(relative_error(ac.get("performer", features=m, row_norms="chi").weights(q, k, causal=True), exact).mean())
        for m in (8, 128, 2048)
    ]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert errors[2] < 0.05


def test_features_are_never_in_memory_for_all_tokens():
    attention = ac.get("performer", features=256)
    peaks = []
    for n in (1024, 4096):
        q, k, v = normal(3, n, 16).float()
        peaks.append(count(lambda q=q, k=k, v=v: attention.attend(q, k, v)).peak_elements)
    # Only the outputs grow, once in blocks and once together.
    assert (peaks[1] - peaks[0]) <= 2 * 16 * 3072
