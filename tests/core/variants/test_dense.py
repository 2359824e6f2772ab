"""Tests that are specific to each dense variant; the contract tests cover what all variants share."""

import pytest
import torch
import torch.nn.functional as F

import attention_core as ac
from attention_core.benchmarking.counting import count

CASES = [
    ("softmax_log_n", {"base_length": 20}),
    ("relu2", {"normalizer": "length"}),
    ("relu2", {"normalizer": "squared"}),
    ("relu2", {"normalizer": "fixed"}),
    ("relu2", {"normalizer": "sum"}),
    ("additive", {}),
    ("nonlocal", {"similarity": "gaussian"}),
    ("nonlocal", {"similarity": "dot"}),
    ("nonlocal", {"similarity": "concat"}),
    ("synthesizer", {"kind": "dense"}),
    ("synthesizer", {"kind": "random"}),
]
IDS = ["-".join([key, *map(str, settings.values())]) for key, settings in CASES]


def tokens(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def inputs(*shape, dtype=torch.float64):
    return [tokens(*shape, dtype=dtype, seed=seed) for seed in range(3)]


def close(a, b, **tolerance):
    torch.testing.assert_close(a, b, **({"rtol": 1e-10, "atol": 1e-12} | tolerance))


@pytest.mark.parametrize(("key", "settings"), CASES, ids=IDS)
@pytest.mark.parametrize("backward", [False, True])
def test_memory_is_at_most_twice_that_of_the_fused_kernel(key, settings, backward):
    def peak(attend):
        x = [t.requires_grad_(backward) for t in inputs(8, 256, 64, dtype=torch.float32)]

        def run():
            out = attend(*x)
            return torch.autograd.grad(out.sum(), x, allow_unused=True) if backward else out

        return count(run).peak_elements

    fused = peak(lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None]))
    assert peak(ac.get(key, **settings).attend) < 2 * fused


@pytest.mark.parametrize(("key", "settings"), CASES, ids=IDS)
def test_float32_weights_equal_float64_weights(key, settings):
    q, k, _ = inputs(2, 70, 8)
    wide = ac.get(key, **settings).weights(q, k)
    close(ac.get(key, **settings).weights(q.float(), k.float()).double(), wide, rtol=1e-4, atol=1e-6)


class TestSoftmaxLogN:
    def test_entropy_of_a_fixed_law_of_logits_stops_growing(self):
        def entropy(key, n):
            q, k = (3**0.5 * tokens(n, 64, seed=seed) for seed in (0, 1))
            w = ac.get(key).weights(q, k)
            return -(w * w.clamp_min(1e-300).log()).sum(-1).mean()

        growth = {key: entropy(key, 2048) - entropy(key, 128) for key in ("softmax", "softmax_log_n")}
        assert growth["softmax"] > 1.5
        assert abs(growth["softmax_log_n"]) < 0.3


class TestRelu2:
    def test_a_row_without_a_positive_logit_is_zero_and_so_are_its_gradients(self):
        q, k = torch.ones(8, 3, requires_grad=True), -torch.ones(8, 3)
        k[:, 0] -= torch.arange(8.0)
        v = tokens(8, 2, dtype=torch.float32).requires_grad_()
        out = ac.get("relu2", normalizer="sum").attend(q, k, v)
        assert torch.equal(out, torch.zeros(8, 2))
        assert all(not g.any() for g in torch.autograd.grad(out.sum(), (q, v)))


class TestAdditive:
    @staticmethod
    def weight_vector(d, seed=0):
        """Return w, read from the weights: large keys saturate tanh, so that key ±e_j scores ±w_j."""
        k = torch.cat([torch.eye(d), -torch.eye(d)]).double() * 1e3
        row = ac.get("additive", seed=seed).weights(torch.zeros_like(k), k)[0].log()
        return (row[:d] - row[d:]) / 2

    def test_the_weight_vector_has_variance_one_over_d_and_depends_on_the_seed(self):
        w = self.weight_vector(512)
        # 512 draws: the standard error of the relative variance is 0.06, that of the mean 0.04 standard deviations.
        assert abs(w.var() * 512 - 1) < 0.25
        assert abs(w.mean()) * 512**0.5 < 0.18
        assert not torch.allclose(self.weight_vector(8), self.weight_vector(8, seed=1))

    @pytest.mark.parametrize("causal", [False, True])
    @pytest.mark.parametrize("largest", [1.0, 39.0, 41.0, 100.0, 300.0, 330.0, 1e4])
    def test_entries_beyond_the_range_of_exponentials_give_the_same_outputs(self, largest, causal):
        q, k, v = inputs(2, 40, 16)
        q, k = (largest * x / x.abs().max() for x in (q, k))
        k[..., ::2, :] = -q[..., ::2, :]  # tanh of a small difference of large entries
        a = ac.get("additive")
        expected = a.variant.definition(q, k, v, a.params, causal=causal)
        close(a.attend(q, k, v, causal=causal), expected)
        found = a.attend(q.float(), k.float(), v.float(), causal=causal).double()
        # Rounding of q and k to float32 changes their sums.
        exact = a.variant.definition(q.float().double(), k.float().double(), v, a.params, causal=causal)
        close(found, exact, rtol=1e-4, atol=1e-5)


class TestNonlocal:
    @pytest.mark.parametrize("causal", [False, True])
    def test_dot_takes_linear_time_and_memory(self, causal):
        def measured(n):
            q, k, v = inputs(n, 16, dtype=torch.float32)
            return count(lambda: ac.get("nonlocal", similarity="dot").attend(q, k, v, causal=causal))

        once, twice = measured(1024), measured(2048)
        assert twice.multiply_adds == 2 * once.multiply_adds
        assert twice.peak_elements < 2.05 * once.peak_elements

    @staticmethod
    def vectors(d, seed=0):
        """Return w_q and w_k, read from the weights: opposite queries with zero keys, and vice versa."""
        ends, n = torch.cat([torch.eye(d), -torch.eye(d)]).double(), 2 * d
        attention = ac.get("nonlocal", similarity="concat", seed=seed)
        by_query = n * attention.weights(ends, 0 * ends)[:, 0]
        by_key = n * attention.weights(0 * ends, ends)[0]
        return [x[:d] - x[d:] for x in (by_query, by_key)]

    def test_concat_uses_two_uncorrelated_vectors_that_depend_on_the_seed(self):
        w_q, w_k = self.vectors(300)
        assert abs(torch.corrcoef(torch.stack([w_q, w_k]))[0, 1]) < 0.25
        for w in (w_q, w_k):
            assert abs(w.var() * 300 - 1) < 0.35
        assert not torch.allclose(self.vectors(4)[0], self.vectors(4, seed=1)[0])


class TestSynthesizer:
    @pytest.mark.parametrize("kind", ["dense", "random"])
    def test_the_weights_of_a_prefix_are_renormalised_weights_of_the_text(self, kind):
        q, k, _ = inputs(2, 200, 6)
        attention = ac.get("synthesizer", kind=kind)
        long = attention.weights(q, k)
        for n in (1, 50, 64, 130):
            part = long[:, :n, :n]
            close(attention.weights(q[:, :n], k[:, :n]), part / part.sum(-1, keepdim=True))
