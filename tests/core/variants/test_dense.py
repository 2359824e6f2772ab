"""Tests that are specific to each dense variant; the contract tests cover what all variants share."""

import math

import pytest
import torch
import torch.nn.functional as F

import attention_core as ac
from attention_core.benchmarking.counting import count
from attention_core.ops.random import normal, normal_table

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


def by_pairs(q, k, logit, causal):
    """Return a matrix filled pair by pair, with ``-inf`` for later keys."""
    n = q.shape[-2]
    entries = [[logit(q[i], k[j], i, j) if j <= i or not causal else -math.inf for j in range(n)] for i in range(n)]
    return torch.tensor(entries, dtype=torch.float64)


def counts(causal, n):
    """Return the number of keys that each query attends to, ``[n, 1]``."""
    return torch.arange(1, n + 1, dtype=torch.float64)[:, None] if causal else torch.full((n, 1), float(n))


@pytest.mark.parametrize(("key", "settings"), CASES, ids=IDS)
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_the_finite_differences(key, settings, causal):
    x = [t.requires_grad_() for t in inputs(2, 5, 3)]
    assert torch.autograd.gradcheck(lambda q, k, v: ac.get(key, **settings).attend(q, k, v, causal=causal), x)


@pytest.mark.parametrize(("key", "settings"), CASES, ids=IDS)
def test_the_last_query_sees_as_much_causally(key, settings):
    """Check that a causal row equals the row of the full matrix without the later tokens, for any normaliser."""
    q, k, _ = inputs(2, 12, 5)
    attention = ac.get(key, **settings)
    whole = attention.weights(q, k, causal=True)
    for n in (1, 2, 7, 12):
        close(whole[:, n - 1, :n], attention.weights(q[:, :n], k[:, :n])[:, -1])


@pytest.mark.parametrize(("key", "settings"), CASES, ids=IDS)
@pytest.mark.parametrize("backward", [False, True])
def test_memory_is_at_most_twice_the_fused_kernel_s(key, settings, backward):
    def peak(attend):
        x = [t.requires_grad_(backward) for t in inputs(8, 256, 64, dtype=torch.float32)]

        def run():
            out = attend(*x)
            return torch.autograd.grad(out.sum(), x, allow_unused=True) if backward else out

        return count(run).peak_elements

    fused = peak(lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None]))
    assert peak(ac.get(key, **settings).attend) < 2 * fused


@pytest.mark.parametrize(("key", "settings"), CASES, ids=IDS)
def test_the_largest_inputs_of_an_upload_stay_finite(key, settings):
    q, k, v = (x * 1e6 for x in inputs(2, 40, 64, dtype=torch.float32))
    for causal in (False, True):
        assert ac.get(key, **settings).attend(q, k, v, causal=causal).isfinite().all()


@pytest.mark.parametrize(("key", "settings"), CASES, ids=IDS)
def test_float32_and_float64_show_one_picture(key, settings):
    q, k, _ = inputs(2, 70, 8)
    wide = ac.get(key, **settings).weights(q, k)
    close(ac.get(key, **settings).weights(q.float(), k.float()).double(), wide, rtol=1e-4, atol=1e-6)


class TestSoftmaxLogN:
    @pytest.mark.parametrize("n", [2, 33, 512])
    def test_it_is_softmax_at_the_base_length(self, n):
        q, k, v = inputs(2, n, 8)
        close(
            ac.get("softmax_log_n", base_length=n).attend(q, k, v),
            F.scaled_dot_product_attention(q[None], k[None], v[None])[0],
        )

    def test_it_is_softmax_at_another_temperature(self):
        q, k, _ = inputs(2, 40, 8)
        cooler = ac.get("softmax", temperature=math.log(7) / math.log(40))
        close(ac.get("softmax_log_n", base_length=7).weights(q, k), cooler.weights(q, k))

    def test_causal_rows_grow_sharper_with_what_they_see(self):
        q, k, v = inputs(19, 8)
        scaled = [q[i] @ k[: i + 1].T / math.sqrt(8) * math.log(max(i + 1, 2)) / math.log(5) for i in range(19)]
        attention = ac.get("softmax_log_n", base_length=5)
        weights, out = attention.weights(q, k, causal=True), attention.attend(q, k, v, causal=True)
        for i, logits in enumerate(scaled):
            close(weights[i, : i + 1], logits.exp() / logits.exp().sum())
            close(out[i], (logits.exp() / logits.exp().sum()) @ v[: i + 1])

    def test_equal_logits_stay_equal(self):
        q, k, v = torch.zeros(30, 4), *inputs(30, 4, dtype=torch.float32)[1:]
        close(ac.get("softmax_log_n").attend(q, k, v), v.mean(0).expand(30, 4), rtol=1e-5, atol=1e-6)

    def test_entropy_of_a_fixed_law_of_logits_stops_growing(self):
        def entropy(key, n):
            q, k = (3**0.5 * tokens(n, 64, seed=seed) for seed in (0, 1))
            w = ac.get(key).weights(q, k)
            return -(w * w.clamp_min(1e-300).log()).sum(-1).mean()

        growth = {key: entropy(key, 2048) - entropy(key, 128) for key in ("softmax", "softmax_log_n")}
        assert growth["softmax"] > 1.5
        assert abs(growth["softmax_log_n"]) < 0.3


class TestRelu2:
    @pytest.mark.parametrize("causal", [False, True])
    @pytest.mark.parametrize("normalizer", ["length", "squared", "fixed", "sum"])
    def test_it_is_the_formula(self, normalizer, causal):
        q, k, v = inputs(21, 6)
        squares = by_pairs(q, k, lambda q, k, i, j: max(0.0, float(q @ k) / math.sqrt(6)) ** 2, causal).clamp_min(0)
        total = squares.sum(-1, keepdim=True)
        seen = counts(causal, 21)
        whole = torch.where(total == 0, 1.0, total)
        z = {"length": seen, "squared": seen**2, "fixed": 77.0, "sum": whole}[normalizer]
        attention = ac.get("relu2", normalizer=normalizer, base_length=77)
        close(attention.weights(q, k, causal=causal), squares / z)
        close(attention.attend(q, k, v, causal=causal), squares / z @ v)

    @pytest.mark.parametrize("factor", [1e-3, 0.5, 1e3])
    def test_only_the_sum_forgets_the_scale_of_the_logits(self, factor):
        q, k, _ = inputs(2, 20, 6)
        close(ac.get("relu2", normalizer="sum").weights(q * factor, k), ac.get("relu2", normalizer="sum").weights(q, k))
        close(ac.get("relu2").weights(q * factor, k), factor**2 * ac.get("relu2").weights(q, k))

    def test_softmax_does_not_forget_it(self):
        q, k, _ = inputs(2, 20, 6)
        sharp, flat = (ac.get("softmax").weights(q * c, k).max(-1).values.mean() for c in (2.0, 0.5))
        assert sharp > flat + 0.1

    def test_a_row_without_a_positive_logit_is_zero_and_so_are_its_gradients(self):
        q, k = torch.ones(8, 3, requires_grad=True), -torch.ones(8, 3)
        k[:, 0] -= torch.arange(8.0)
        v = tokens(8, 2, dtype=torch.float32).requires_grad_()
        out = ac.get("relu2", normalizer="sum").attend(q, k, v)
        assert torch.equal(out, torch.zeros(8, 2))
        assert all(not g.any() for g in torch.autograd.grad(out.sum(), (q, v)))

    def test_sums_of_rows(self):
        q, k, _ = inputs(2, 64, 6)
        close(ac.get("relu2", normalizer="sum").weights(q, k).sum(-1), torch.ones(2, 64, dtype=torch.float64))
        assert (ac.get("relu2").weights(q, k).sum(-1) - 1).abs().min() > 1e-3


class TestAdditive:
    @staticmethod
    def judge(d, seed=0):
        """Return w, read from the weights: large keys saturate tanh, so that key ±e_j scores ±w_j."""
        k = torch.cat([torch.eye(d), -torch.eye(d)]).double() * 1e3
        row = ac.get("additive", seed=seed).weights(torch.zeros_like(k), k)[0].log()
        return (row[:d] - row[d:]) / 2

    @pytest.mark.parametrize("causal", [False, True])
    def test_it_is_the_formula(self, causal):
        q, k, v = inputs(17, 6)
        w = self.judge(6)
        weights = by_pairs(q, k, lambda q, k, i, j: float(w @ (q + k).tanh()), causal).softmax(-1)
        close(ac.get("additive").weights(q, k, causal=causal), weights)
        close(ac.get("additive").attend(q, k, v, causal=causal), weights @ v)

    def test_the_judge_has_variance_one_over_d_and_hangs_on_the_seed(self):
        w = self.judge(512)
        # 512 draws: the standard error of the relative variance is 0.06, that of the mean 0.04 standard deviations.
        assert abs(w.var() * 512 - 1) < 0.25
        assert abs(w.mean()) * 512**0.5 < 0.18
        assert not torch.allclose(self.judge(8), self.judge(8, seed=1))

    def test_all_heads_have_one_judge(self):
        q, k, _ = inputs(9, 6)
        weights = ac.get("additive").weights(q.expand(2, 3, 9, 6), k.expand(2, 3, 9, 6))
        close(weights, weights[0, 0].expand(2, 3, 9, 9))

    def test_only_the_sum_of_query_and_key_counts(self):
        q, k, _ = inputs(2, 9, 6)
        close(ac.get("additive").weights(q + 0.7, k - 0.7), ac.get("additive").weights(q, k))


class TestNonlocal:
    @pytest.mark.parametrize("causal", [False, True])
    def test_gaussian_is_the_fused_kernel_without_a_scale(self, causal):
        q, k, v = inputs(2, 3, 30, 8)
        expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=1.0)
        close(ac.get("nonlocal").weights(q, k, causal=causal) @ v, expected)
        close(ac.get("nonlocal").attend(q, k, v, causal=causal), expected)

    @pytest.mark.parametrize("causal", [False, True])
    def test_dot_is_the_formula(self, causal):
        q, k, v = inputs(150, 8)
        products = torch.einsum("id,jd->ij", q, k)
        weights = (products.tril() if causal else products) / counts(causal, 150)
        attention = ac.get("nonlocal", similarity="dot")
        assert weights.min() < 0
        close(attention.weights(q, k, causal=causal), weights)
        close(attention.attend(q, k, v, causal=causal), weights @ v)

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

    @pytest.mark.parametrize("causal", [False, True])
    def test_concat_is_the_formula(self, causal):
        q, k, v = inputs(19, 6)
        w_q, w_k = self.vectors(6)
        sums = by_pairs(q, k, lambda q, k, i, j: float(w_q @ q + w_k @ k), causal)
        weights = sums.clamp_min(0) / counts(causal, 19)
        attention = ac.get("nonlocal", similarity="concat")
        close(attention.weights(q, k, causal=causal), weights)
        close(attention.attend(q, k, v, causal=causal), weights @ v)

    def test_the_vectors_of_concat_are_two_and_hang_on_the_seed(self):
        w_q, w_k = self.vectors(300)
        assert abs(torch.corrcoef(torch.stack([w_q, w_k]))[0, 1]) < 0.25
        for w in (w_q, w_k):
            assert abs(w.var() * 300 - 1) < 0.35
        assert not torch.allclose(self.vectors(4)[0], self.vectors(4, seed=1)[0])


class TestSynthesizer:
    @pytest.mark.parametrize("causal", [False, True])
    def test_dense_is_the_formula(self, causal):
        q, k, v = inputs(21, 6)
        inner = normal((6, 6), 5, q, 1) / math.sqrt(6)
        table = normal_table(range(21), 6, 5, q, 2) / math.sqrt(6)
        logits = by_pairs(q, k, lambda q, k, i, j: float((q @ inner).clamp_min(0) @ table[j]), causal)
        attention = ac.get("synthesizer", seed=5)
        close(attention.weights(q, k, causal=causal), logits.softmax(-1))
        close(attention.attend(q, k, v, causal=causal), logits.softmax(-1) @ v)

    @pytest.mark.parametrize("causal", [False, True])
    def test_random_is_the_formula_in_every_head(self, causal):
        q, k, v = inputs(2, 3, 150, 6)
        table = normal_table(range(150), 150, 5, q)
        logits = table.masked_fill(~torch.ones(150, 150, dtype=torch.bool).tril(), -math.inf) if causal else table
        attention = ac.get("synthesizer", kind="random", seed=5)
        close(attention.weights(q, k, causal=causal), logits.softmax(-1).expand(2, 3, 150, 150))
        close(attention.attend(q, k, v, causal=causal), torch.einsum("ij,abjd->abid", logits.softmax(-1), v))

    def test_no_token_looks_at_another(self):
        q, k, _ = inputs(20, 6)
        other = q.clone()
        other[7] += 1
        for kind, moved in (("dense", {7}), ("random", set())):
            attention = ac.get("synthesizer", kind=kind)
            before, after = attention.weights(q, k), attention.weights(other, k + 1)
            assert {i for i in range(20) if not torch.equal(before[i], after[i])} == moved

    @pytest.mark.parametrize("kind", ["dense", "random"])
    def test_a_longer_text_keeps_the_shorter_one_s_numbers(self, kind):
        q, k, _ = inputs(2, 200, 6)
        attention = ac.get("synthesizer", kind=kind)
        long = attention.weights(q, k)
        for n in (1, 50, 64, 130):
            part = long[:, :n, :n]
            close(attention.weights(q[:, :n], k[:, :n]), part / part.sum(-1, keepdim=True))

    @pytest.mark.parametrize("kind", ["dense", "random"])
    def test_the_seed_draws_another(self, kind):
        q, k, _ = inputs(9, 6)
        a, b = (ac.get("synthesizer", kind=kind, seed=seed).weights(q, k) for seed in (0, 1))
        assert (a - b).abs().max() > 0.01
