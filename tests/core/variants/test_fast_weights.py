"""Tests of fast weights with extreme gates, of their special settings, and comparisons with transformers."""

import math

import pytest
import torch
from seeded import normal
from transformers.models.kimi_linear.modeling_kimi_linear import (
    chunk_kimi_delta_attention,
    recurrent_kimi_delta_attention,
)
from transformers.models.mamba2.modeling_mamba2 import mamba2_chunk_scan
from transformers.models.qwen3_next.modeling_qwen3_next import torch_chunk_gated_delta_rule

import attention_core as ac
from attention_core.ops.delta.fast_weights import CHUNK, RuleInputs, fast_weight_attention, matrix

GATED = ("scalar_decay", "gla", "gated_deltanet", "kda")


def recurrence(q, k, v, alpha, write, erase):
    """Return each token's output, and what all queries read from the last state, computed token by token.

    ``S = diag(α) S``, ``S = S + k (β v - ε Sᵀ k)ᵀ``, ``o = Sᵀ q``; α ``[n, d]``, β and ε ``[n]``.
    """
    state, outs = torch.zeros(k.shape[-1], v.shape[-1], dtype=v.dtype), []
    for i in range(len(k)):
        state = alpha[i].unsqueeze(-1) * state
        state = state + torch.outer(k[i], write[i] * v[i] - erase[i] * (k[i] @ state))
        outs.append(q[i] @ state)
    return torch.stack(outs), q @ state


def gates(key, gate, k, decay=0.9, root=16.0):
    """Return the gates ``[n, d]`` by the rules stated on screen."""
    n, d = k.shape
    if gate == "constant":
        return torch.full((n, d), decay, dtype=torch.float64)
    if gate == "harmonic":
        return torch.tensor([[1 - 1 / t] for t in range(1, n + 1)], dtype=torch.float64).expand(n, d)
    channels = (1 / (1 + torch.exp(-k))) ** (1 / root)
    return channels if key in ("gla", "kda") else channels.log().mean(-1, keepdim=True).exp().expand(n, d)


def check(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def chunked_outputs(inputs, v, *, causal):
    """Return the chunked output for the given tokens, unchanged."""

    def rule(q, k, p, first):
        at = slice(first, first + k.shape[-2])
        return RuleInputs(q, k, *(None if x is None else x[..., at, :] for x in inputs[2:]))

    return fast_weight_attention(rule, inputs.q, inputs.k, v, None, causal=causal)


@pytest.mark.parametrize("n", [1, 5, CHUNK, CHUNK + 3])
@pytest.mark.parametrize("shape", [(1,), (4,)])
@pytest.mark.parametrize("fall", [0.0, 1e-9, 30.0, 700.0, 1e4])
def test_gates_near_one_and_underflowing_gates_equal_the_recurrence(n, shape, fall):
    """Check gates where every other token decays by e^-fall: 700 leaves the smallest numbers, 1e4 leaves zero."""
    q, k, v = normal(n, 4), normal(n, 4, seed=1), normal(n, 3, seed=2)
    unit = k / k.norm(dim=-1, keepdim=True)
    falls = torch.zeros(n, *shape).double()
    falls[1::2] = fall
    if shape == (4,):
        falls[:, 0] = 0  # One channel does not decay.
    one, none = torch.ones(n, 1).double(), torch.zeros(n).double()
    alpha = (-falls).exp().expand(n, 4)
    for keys, erase in ((k, None), (unit, one)):
        given = RuleInputs(q, keys, one, -falls, erase)
        erased = none if erase is None else one.squeeze(-1)
        for causal, wanted in zip((True, False), recurrence(q, keys, v, alpha, one.squeeze(-1), erased), strict=True):
            check(chunked_outputs(given, v, causal=causal), wanted)
            check(matrix(given, causal=causal) @ v, wanted)


def test_unwritten_tokens_are_not_read():
    q, k, v = normal(70, 5), normal(70, 5, seed=1), normal(70, 3, seed=2)
    none = torch.zeros(70, 1).double()
    for erase in (None, none):
        assert not matrix(RuleInputs(q, k, none, none - 0.1, erase), causal=True).any()
        assert not chunked_outputs(RuleInputs(q, k, none, none - 0.1, erase), v, causal=True).any()


def by_token(*tensors):
    return (x.float().transpose(1, 2) for x in tensors)


@pytest.mark.parametrize("gate", ["constant", "keys"])
def test_scalar_decay_equals_mamba2_scan(gate):
    q, k, v = normal(1, 2, 130, 8), normal(1, 2, 130, 8, seed=1), normal(1, 2, 130, 8, seed=2)
    fallen = torch.stack([gates("scalar_decay", gate, head)[:, 0].log() for head in k[0]], -1).unsqueeze(0).float()
    # In Mamba-2, the step is both the gate's rate and the strength, so values are divided by it first.
    queries, keys, values = by_token(q, k, v)
    found = mamba2_chunk_scan(values / -fallen.unsqueeze(-1), -fallen, -torch.ones(2), keys, queries, chunk_size=32)
    own = ac.get("scalar_decay", gate=gate).attend(q, k, v, causal=True)
    torch.testing.assert_close(own.float(), found.transpose(1, 2) / math.sqrt(8), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reference", [chunk_kimi_delta_attention, recurrent_kimi_delta_attention])
def test_kda_equals_kimi_linear(reference):
    q, k, v = normal(1, 2, 130, 8), normal(1, 2, 130, 8, seed=1), normal(1, 2, 130, 8, seed=2)
    fallen = torch.stack([gates("kda", "keys", head).log() for head in k[0]], 1).unsqueeze(0).float()
    queries, keys, values = by_token(q, k, v)
    beta = torch.full((1, 130, 2), 0.7)
    found, _ = reference(
        queries, keys, values, fallen, beta, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=True
    )
    own = ac.get("kda", strength=0.7).attend(q, k, v, causal=True)
    torch.testing.assert_close(own.float(), found.transpose(1, 2) * math.sqrt(8), rtol=1e-4, atol=1e-5)


def test_gated_deltanet_equals_qwen3_next():
    q, k, v = normal(1, 2, 130, 8), normal(1, 2, 130, 8, seed=1), normal(1, 2, 130, 8, seed=2)
    fallen = torch.stack([gates("gated_deltanet", "keys", head)[:, 0].log() for head in k[0]], -1).unsqueeze(0).float()
    queries, keys, values = by_token(q, k, v)
    found, _ = torch_chunk_gated_delta_rule(
        queries, keys, values, fallen, torch.ones(1, 130, 2), use_qk_l2norm_in_kernel=True
    )
    own = ac.get("gated_deltanet", gate="keys").attend(q, k, v, causal=True)
    torch.testing.assert_close(own.float(), found.transpose(1, 2) * math.sqrt(8), rtol=1e-4, atol=1e-5)


def pair(one, other, q, k, v):
    """Yield the matrices and outputs of two variants, causal and not."""
    for causal in (False, True):
        yield one.weights(q, k, causal=causal), other.weights(q, k, causal=causal)
        yield one.attend(q, k, v, causal=causal), other.attend(q, k, v, causal=causal)


@pytest.mark.parametrize(
    ("special", "settings", "plain", "same"),
    [
        ("gla", {"gate": "harmonic"}, "scalar_decay", {"gate": "harmonic"}),
        ("kda", {"gate": "harmonic", "strength": 0.5}, "gated_deltanet", {"gate": "harmonic", "strength": 0.5}),
    ],
)
def test_special_settings_equal_the_simpler_variant(special, settings, plain, same):
    x = normal(3, 90, 6), normal(3, 90, 6, seed=1), normal(3, 90, 4, seed=2)
    for one, other in pair(ac.get(special, **settings), ac.get(plain, **same), *x):
        check(one, other)


@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_a_constant_gate_inside_softmax_is_alibi(decay):
    x = normal(3, 90, 6), normal(3, 90, 6, seed=1), normal(3, 90, 4, seed=2)
    for one, other in pair(ac.get("fox", gate="constant", decay=decay), ac.get("alibi", slope=-math.log(decay)), *x):
        check(one, other)


def test_gate_sums_of_long_texts_are_accurate():
    """Check a long text: after 4000 tokens with decay 0.1, float32 holds the sum of logarithms to a thousandth only."""
    q, k, v = (x.float() for x in (normal(4000, 8), normal(4000, 8, seed=1), normal(4000, 8, seed=2)))
    a = ac.get("fox", gate="constant", decay=0.1)
    wanted = a.attend(q.double(), k.double(), v.double(), causal=True)
    torch.testing.assert_close(a.attend(q, k, v, causal=True).double(), wanted, rtol=1e-5, atol=1e-5)
