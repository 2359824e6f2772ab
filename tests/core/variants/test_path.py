"""Tests of special settings of PaTH, and of fast weights that erase along directions other than the keys."""

import pytest
import torch
from seeded import normal

from attention_core.ops.delta.fast_weights import CHUNK, RuleInputs, fast_weight_attention, matrix


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def check(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("channels", [1, 4])
def test_the_path_rule_with_decay_equals_its_recurrence(channels):
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
    tokens = RuleInputs(q, k, write, gates, erase, w)

    def rule(q, k, p, first):
        at = slice(first, first + k.shape[-2])
        return RuleInputs(q, k, *(x[at] for x in tokens[2:]))

    for causal, wanted in ((True, torch.stack(outs)), (False, q @ state)):
        check(matrix(tokens, causal=causal) @ v, wanted)
        check(fast_weight_attention(rule, q, k, v, None, causal=causal), wanted)
