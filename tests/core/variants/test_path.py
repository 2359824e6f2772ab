"""Tests of special settings of PaTH, and of fast weights that erase along directions other than the keys."""

import pytest
import torch

import attention_core as ac
from attention_core.ops.delta.fast_weights import CHUNK, Tokens, attention, matrix


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def check(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("strength", [0.3, 1.0, 1.7])
def test_along_the_keys_it_is_deltanet_but_for_how_strongly_values_are_written(strength):
    q, k = normal(2, 90, 6), normal(2, 90, 6, seed=1)
    for causal in (True, False):
        path = ac.get("path", along="keys", strength=strength).weights(q, k, causal=causal)
        check(strength * path, ac.get("deltanet", strength=strength).weights(q, k, causal=causal))


def test_a_strength_of_zero_takes_nothing_out():
    q, k = normal(90, 6), normal(90, 6, seed=1)
    check(ac.get("path", strength=0.0).weights(q, k, causal=True), (unit(q) @ unit(k).T).tril())


def test_with_one_direction_for_all_only_the_distance_counts():
    """Check that only the distance counts if each token applies the same reflection, which flips the part along w."""
    n = 20
    q, k = (normal(1, 5, seed=i).expand(n, 5) for i in range(2))
    found = ac.get("path", along="fixed", strength=2.0).weights(q, k, causal=True)
    for distance in range(1, n):
        diagonal = found.diagonal(-distance)
        check(diagonal, diagonal[:1].expand(n - distance))
    check(found[2:, 0], found[:-2, 0])
    assert (found[1, 0] - found[0, 0]).abs() > 0.01


@pytest.mark.parametrize("channels", [1, 4])
def test_a_state_that_fades_too_is_its_recurrence(channels):
    """Check gates and strengths of writing and erasing that differ between tokens."""
    n, d = CHUNK + 9, 4
    q, k, w, v = normal(n, d), normal(n, d, seed=1), unit(normal(n, d, seed=2)), normal(n, 3, seed=3)
    gates = -normal(n, channels, seed=4).abs()
    write, erase = normal(2, n, 1, seed=5).abs()
    state, outs = torch.zeros(d, 3, dtype=v.dtype), []
    for i in range(n):
        state = gates[i].exp().unsqueeze(-1) * state
        state = state + write[i] * torch.outer(k[i], v[i]) - erase[i] * torch.outer(w[i], w[i] @ state)
        outs.append(q[i] @ state)
    tokens = Tokens(q, k, write, gates, erase, w)

    def rule(q, k, p, first):
        at = slice(first, first + k.shape[-2])
        return Tokens(q, k, *(x[at] for x in tokens[2:]))

    for causal, wanted in ((True, torch.stack(outs)), (False, q @ state)):
        check(matrix(tokens, causal=causal) @ v, wanted)
        check(attention(rule, q, k, v, None, causal=causal), wanted)
