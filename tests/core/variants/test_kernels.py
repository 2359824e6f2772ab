"""Tests that are specific to cosine attention, retention and expectation maximisation; the contract covers the rest."""

import math

import numpy as np
import pytest
import torch
from contract import decoded
from seeded import normal
from torch import nn
from transformers import MiniMaxConfig
from transformers.models.minimax.modeling_minimax import MiniMaxLightningAttention

import attention_core as ac
from attention_core.metrics import relative_error
from attention_core.ops.random import normal as drawn

MAPS = {
    "elu+1": lambda x: nn.functional.elu(x) + 1,
    "relu": torch.relu,
    "softmax": lambda x: x.softmax(-1),
    "exp": torch.exp,
}
cosine = ac.get("cosine")


def anatomy_of(attention, q, k):
    return attention.variant.anatomy(q, k, k, attention.params, causal=False)


# Cosine


def test_cosine_depends_on_directions_only():
    q, k = normal(2, 3, 40, 6)
    sizes = normal(3, 40, 1, seed=1).exp() * 1e6
    torch.testing.assert_close(cosine.weights(sizes * q, k / sizes), cosine.weights(q, k))


def test_cosine_treats_a_zero_vector_as_orthogonal_to_all_others():
    q, k, v = (x.requires_grad_() for x in normal(3, 9, 4))
    with torch.no_grad():
        q[3], k[5] = 0, 0
    A = cosine.weights(q, k)
    torch.testing.assert_close(A[3], torch.full((9,), 1 / 9, dtype=torch.float64))
    other = torch.cat([A[:3], A[4:]])
    # The similarity of this key with every query is 1, half of the largest possible similarity.
    expected = 1 / (1 + torch.cosine_similarity(q.unsqueeze(-2), k.unsqueeze(-3), dim=-1)).sum(-1)
    torch.testing.assert_close(other[:, 5], torch.cat([expected[:3], expected[4:]]))
    for gradient in torch.autograd.grad(cosine.attend(q, k, v).sum() + A.square().sum(), (q, k, v)):
        assert gradient.isfinite().all()


# Retention


@pytest.mark.parametrize("n", [5, 32, 77])
def test_retention_equals_minimax_attention_divided_by_its_normaliser(n):
    heads, d, decay = 2, 4, 0.8
    config = MiniMaxConfig(hidden_size=heads * d, num_attention_heads=heads, head_dim=d, block_size=32)
    theirs = MiniMaxLightningAttention(config, config.layer_types.index("linear_attention"))
    # Projections, activation, norm and gate around the attention are removed.
    theirs.qkv_proj = theirs.norm = theirs.out_proj = nn.Identity()
    theirs.act_fn = nn.Identity()
    theirs.output_gate = nn.Linear(3 * heads * d, heads * d, bias=False, dtype=torch.float64)
    nn.init.zeros_(theirs.output_gate.weight)
    theirs.slope_rate = torch.full((heads, 1, 1), -math.log(decay), dtype=torch.float64)
    theirs.query_decay, theirs.key_decay, theirs.diagonal_decay = theirs.decay_factors(theirs.slope_rate)
    q, k, v = normal(3, heads, n, d)

    def run(values):
        features = torch.cat([MAPS["elu+1"](q), MAPS["elu+1"](k), values], -1)
        out, _ = theirs(features.transpose(0, 1).flatten(1).unsqueeze(0), None, None)
        return out.view(n, heads, d).transpose(0, 1)

    out = ac.get("retention", decay=decay).attend(q, k, v, causal=True)
    torch.testing.assert_close(out, run(v) / run(torch.ones_like(v)))


@pytest.mark.parametrize("feature_map", ["elu+1", "exp"])
def test_retention_decay_is_accurate_at_any_length(feature_map):
    """Check lengths at which rounding of ``n log γ`` would show and ``γ^n`` is far below the smallest number."""
    q, k, v = normal(3, 20_000, 3)
    for decay in (0.1, 0.7, 0.99):
        attention = ac.get("retention", decay=decay, feature_map=feature_map)
        tail = [x[-4000:] for x in (q, k, v)]
        expected = attention.attend(*tail, causal=True)[-100:]
        out = attention.attend(q.float(), k.float(), v.float(), causal=True)[-100:].double()
        assert relative_error(out, expected) < 2e-6


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("decay", [0.1, 0.95])
def test_retention_is_accurate_with_exponentials_of_any_size(decay, causal):
    q, k, v = normal(3, 400, 4)
    k[5:10] += 760  # By the end, the smaller decay has reduced even these keys to nothing.
    k[200:205] -= 3000
    q[10:20] *= 500
    position = torch.arange(400).double()
    distance = position[:, None] - position
    log = torch.logsumexp(q.unsqueeze(-2) + k.unsqueeze(-3), -1) + distance.abs() * math.log(decay)
    A = (log.masked_fill(distance < 0, -torch.inf) if causal else log).softmax(-1)
    attention = ac.get("retention", decay=decay, feature_map="exp")
    torch.testing.assert_close(attention.weights(q, k, causal=causal), A, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(attention.attend(q, k, v, causal=causal), A @ v)
    if causal:
        torch.testing.assert_close(decoded(attention, q, k, v), A @ v)


# Expectation maximisation


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def emanet_reference(q, k, start, rounds, sharpness):
    """Return the paper's EM rounds in plain numpy: responsibilities and bases of each round, and the matrix."""
    bases, seen, led = start, [], []
    for _ in range(rounds):
        z = np.exp(sharpness * k @ bases.T)
        z /= z.sum(1, keepdims=True)
        seen.append(z)
        bases = unit((z / z.sum(0)).T @ k)
        led.append(bases)
    given = np.exp(sharpness * q @ bases.T)
    return seen, led, given / given.sum(1, keepdims=True) @ (z / z.sum(0)).T


@pytest.mark.parametrize("rounds", [1, 3, 8])
def test_emanet_equals_the_rounds_of_the_paper(rounds):
    q, k, v = normal(3, 30, 5)
    attention = ac.get("emanet", bases=6, iterations=rounds, sharpness=1.7, seed=4)
    found = anatomy_of(attention, q, k)
    seen, bases, A = emanet_reference(q.numpy(), k.numpy(), unit(drawn((6, 5), 4, q).numpy()), rounds, 1.7)
    np.testing.assert_allclose(found["responsibilities"], seen)
    np.testing.assert_allclose(found["bases"], bases)
    np.testing.assert_allclose(attention.weights(q, k), A)
    np.testing.assert_allclose(attention.attend(q, k, v), A @ v.numpy())
    np.testing.assert_allclose(found["given"].sum(-1), 1)


def test_emanet_finds_the_clusters_of_its_keys():
    centres = 8 * torch.eye(4, 6, dtype=torch.float64)
    k = centres.repeat(10, 1) + normal(40, 6, size=0.1)
    attention = ac.get("emanet", bases=24, iterations=10, sharpness=3.0)
    A = attention.weights(k, k)
    same = torch.eye(4, dtype=torch.float64).repeat(10, 10)
    assert (A * same).sum(-1).min() > 0.99
    assert relative_error(A, same / 10) < 0.05


def test_emanet_converges():
    k = normal(200, 8, size=2.0)
    bases = anatomy_of(ac.get("emanet", iterations=20), k, k)["bases"]
    moves = (bases[1:] - bases[:-1]).norm(dim=(-2, -1))
    assert moves[-1] < 0.2 * moves[0]
    torch.testing.assert_close(anatomy_of(ac.get("emanet", iterations=3), k, k)["bases"], bases[:3])


def test_emanet_is_finite_with_bases_that_no_token_chooses():
    """Check bases that no token chooses: their responsibilities are zero in any precision.

    Shares of zero still sum to one, and gradients are finite.
    """
    q, k, v = (x.float().requires_grad_() for x in normal(3, 20, 4, size=40.0))
    attention = ac.get("emanet", bases=64, sharpness=20.0)
    assert (anatomy_of(attention, q, k)["responsibilities"].sum(-2) == 0).any()
    torch.testing.assert_close(attention.weights(q, k).sum(-1), torch.ones(20))
    assert all(x.isfinite().all() for x in torch.autograd.grad(attention.attend(q, k, v).sum(), (q, k, v)))
    silent = torch.zeros(20, 4)
    torch.testing.assert_close(attention.weights(silent, silent), torch.full((20, 20), 1 / 20))


# References


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rise", [0.0, 0.4, 40.0])
@pytest.mark.parametrize(
    "attention",
    [
        ac.get("linear", feature_map="exp"),
        ac.get("performer", features=16),
        ac.get("performer", features=16, kind="trig"),
        ac.get("efficient"),
        ac.get("retention", feature_map="exp"),
        ac.get("retention", feature_map="exp", decay=0.1),
    ],
    ids=lambda a: a.word,
)
def test_chunks_equal_the_matrix_for_rapidly_rising_keys(attention, rise, causal):
    # For a small rise, one reference is enough for a chunk. For a large rise, it would leave the first rows at zero.
    q, k, v = torch.randn(3, 3, 200, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    k = k + rise * torch.arange(200).unsqueeze(-1) / 8
    wanted = attention.weights(q, k, causal=causal) @ v
    torch.testing.assert_close(attention.attend(q, k, v, causal=causal), wanted, rtol=1e-8, atol=1e-8)
