"""Tests that are specific to fixed patterns: windows, strides, global tokens, random keys and sinks."""

from itertools import pairwise

import pytest
import torch
from seeded import normal
from transformers import LongformerConfig
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

import attention_core as ac
from attention_core.benchmarking.counting import count

FORMS = [False, True]


def longformer_of_transformers(hidden, heads, window, global_tokens):
    """Return the published module with equal global and local projections, and the q, k, v that it uses."""
    n, size = hidden.shape[1:]
    config = LongformerConfig(hidden_size=size, num_attention_heads=heads, attention_window=[2 * window])
    module = LongformerSelfAttention(config, 0).double().eval()
    source = torch.Generator().manual_seed(2)
    for name in ("query", "key", "value"):
        layer = getattr(module, name)
        torch.nn.init.normal_(layer.weight, std=size**-0.5, generator=source)
        torch.nn.init.normal_(layer.bias, generator=source)
        getattr(module, name + "_global").load_state_dict(layer.state_dict())
    everywhere = (torch.arange(n) < global_tokens).expand(len(hidden), n)
    with torch.no_grad():
        out = module(
            hidden,
            attention_mask=everywhere * 10000.0,
            is_index_masked=torch.zeros_like(everywhere),
            is_index_global_attn=everywhere,
            is_global_attn=global_tokens > 0,
        )[0]
        q, k, v = (getattr(module, name)(hidden) for name in ("query", "key", "value"))
    return tuple(x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (out, q, k, v))


@pytest.mark.parametrize("global_tokens", [0, 1, 3])
@pytest.mark.parametrize("window", [2, 8])
def test_longformer_equals_transformers(window, global_tokens):
    out, q, k, v = longformer_of_transformers(normal(2, 64, 24), 3, window, global_tokens)
    found = ac.get("longformer", window=window, global_tokens=global_tokens).attend(q, k, v)
    torch.testing.assert_close(found, out, atol=2e-6, rtol=1e-5)  # The softmax of transformers is in float32.


def random_pairs(n, *, causal=False, **chosen):
    """Return the pairs that random keys add to the diagonal and its neighbours."""
    near = ac.get("bigbird", window=1, global_tokens=0, random_keys=0).mask(n, causal=causal)
    return ac.get("bigbird", window=1, global_tokens=0, **chosen).mask(n, causal=causal) & ~near


@pytest.mark.parametrize("causal", FORMS)
def test_more_random_keys_keep_the_earlier_ones(causal):
    masks = [random_pairs(60, causal=causal, random_keys=count) for count in (1, 2, 5, 20)]
    for fewer, more in pairwise(masks):
        assert more[fewer].all()
        assert more.sum() > fewer.sum()


def test_causal_draws_do_not_depend_on_length():
    long = random_pairs(90, causal=True, random_keys=4)
    for n in (2, 17, 89):
        assert torch.equal(random_pairs(n, causal=True, random_keys=4), long[:n, :n])


def test_recorded_draws_do_not_change():
    found = random_pairs(50, random_keys=2, seed=1)
    assert found[:4].nonzero().tolist() == [[0, 6], [0, 26], [1, 14], [1, 19], [2, 38], [2, 39], [3, 7], [3, 31]]
    assert not torch.equal(found, random_pairs(50, random_keys=2, seed=2))


@pytest.mark.parametrize("causal", FORMS)
def test_draws_are_uniform_over_visible_keys(causal):
    n, draws = 200, 60
    rows, keys = random_pairs(n, causal=causal, random_keys=draws).nonzero().T
    far = rows >= 100  # 60 draws of over 100 keys: few coincide, and the number does not depend on the row.
    place = keys[far] / (rows[far] if causal else torch.tensor(n - 1))
    quarters = torch.histc(place.float(), bins=4, min=0, max=1) / len(place)
    assert (quarters - 0.25).abs().max() < 0.02
    # With one draw per token, a key stays undrawn with probability 1/e, so not all tokens draw the same key.
    assert 0.5 * n < random_pairs(n, random_keys=1).any(0).sum() < 0.75 * n


@pytest.mark.parametrize("key", ["longformer", "bigbird"])
def test_one_global_token_connects_all_pairs_in_two_layers(key):
    mask = ac.get(key, window=1, global_tokens=1).mask(40)
    assert not mask.all()
    assert (mask.int() @ mask.int()).all()
    sink = ac.get("sink", window=2, sinks=1).mask(40)
    assert not (sink.int() @ sink.int()).all()


@pytest.mark.parametrize("causal", FORMS)
@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("longformer", {"window": 4096, "global_tokens": 64}),
        ("longformer", {"window": 4096, "dilation": 64}),
        ("bigbird", {"window": 4096, "global_tokens": 64, "random_keys": 64}),
        ("sink", {"window": 4096, "sinks": 64}),
    ],
)
def test_window_longer_than_the_text_needs_no_quadratic_memory(key, settings, causal):
    n = 1024
    q, k, v = normal(3, n, 4, dtype=torch.float32)
    with torch.no_grad():
        found = count(lambda: ac.get(key, **settings).attend(q, k, v, causal=causal))
    assert found.largest_elements < n * n // 4
    assert found.peak_elements < n * n // 2


@pytest.mark.parametrize("causal", FORMS)
def test_random_keys_include_the_first_and_the_last_visible_key(causal):
    for n in (1, 2, 3):
        q = normal(1, n, 4)
        found = [ac.get("bigbird", random_keys=8, seed=seed) for seed in range(40)]
        parts = [each.variant.primitives(q, q, each.params, causal=causal)["random"] for each in found]
        drawn = torch.stack(parts).any(0).reshape(n, n)
        assert torch.equal(drawn, torch.ones(n, n).tril().bool() if causal else torch.ones(n, n).bool())


@pytest.mark.parametrize(("key", "settings"), [("local", {"window": 16}), ("atrous", {"stride": 16}), ("sparse", {})])
def test_rows_with_small_sums_are_accurate_in_float32(key, settings):
    """Check that logits in the thousands in one part of a row do not hide the other part."""
    q, k, v = normal(3, 2, 3, 70, 4, dtype=torch.float32)
    attention = ac.get(key, **settings)
    for causal in (False, True):
        found = attention.attend(60 * q, 60 * k, v, causal=causal).double()
        wanted = attention.weights(60 * q.double(), 60 * k.double(), causal=causal) @ v.double()
        torch.testing.assert_close(found, wanted, rtol=0, atol=2e-3)
