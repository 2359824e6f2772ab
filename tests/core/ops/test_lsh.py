import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_core.ops import lsh
from attention_core.ops.random import normal


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def randint(high, *shape, seed=0):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def in_adjacent_chunks(chunks):
    """Return whether ``0 <= code_i - code_j <= 1``, for every pair."""
    gap = chunks.code[..., :, None] - chunks.code[..., None, :]
    return (gap == 0) | (gap == 1)


class TestBuckets:
    def test_a_bucket_is_the_nearest_direction_or_opposite_direction(self):
        x, sizes = randn(2, 50, 6), (8,)
        directions = normal((6, 4), 3, x, 1)
        wanted = torch.cat([x @ directions, -x @ directions], -1).argmax(-1)
        assert torch.equal(lsh.hash_buckets(x, sizes, 3, 1), wanted)
        assert wanted.unique().numel() == 8

    def test_the_buckets_of_several_hashes_are_numbered_jointly(self):
        x, sizes = randn(200, 6), (4, 6, 2)
        parts = normal((6, 6), 0, x, 0).split([2, 3, 1], 1)
        ends = [torch.cat([x @ directions, -x @ directions], -1).argmax(-1) for directions in parts]
        assert torch.equal(lsh.hash_buckets(x, sizes, 0, 0), 12 * ends[0] + 2 * ends[1] + ends[2])

    def test_buckets_ignore_vector_length_and_opposite_vectors_get_opposite_buckets(self):
        x, sizes = randn(100, 5), (6,)
        bucket = lsh.hash_buckets(x, sizes, 0, 0)
        assert torch.equal(lsh.hash_buckets(x * randn(100, 1, seed=1).exp(), sizes, 0, 0), bucket)
        assert torch.equal(lsh.hash_buckets(-x, sizes, 0, 0), (bucket + 3) % 6)

    def test_rounds_and_seeds_change_the_hash_and_heads_share_it(self):
        x, sizes = randn(100, 5).expand(2, 3, 100, 5), (6,)
        bucket = lsh.hash_buckets(x, sizes, 0, 0)
        assert (bucket == bucket[0, 0]).all()
        for seed, number in ((0, 1), (1, 0)):
            assert not torch.equal(lsh.hash_buckets(x, sizes, seed, number), bucket)

    @pytest.mark.parametrize("sizes", [(2,), (16,), (4, 4)])
    def test_a_smaller_angle_makes_a_shared_bucket_more_likely(self, sizes):
        # Pairs at five cosines, each hashed independently; the standard deviation of a share of 4000 is below 0.008.
        shares = []
        for cosine in (-0.5, 0.0, 0.5, 0.8, 0.95):
            a, b = F.normalize(randn(2, 4000, 16), dim=-1)
            b = F.normalize(b - (a * b).sum(-1, keepdim=True) * a, dim=-1)
            other = cosine * a + math.sqrt(1 - cosine**2) * b
            rounds = [lsh.hash_buckets(a, sizes, 0, r) == lsh.hash_buckets(other, sizes, 0, r) for r in range(4)]
            shares.append(torch.stack(rounds).double().mean().item())
        assert all(later - earlier > 0.02 for earlier, later in itertools.pairwise(shares)), shares

    @given(buckets=st.floats(1.01, 1e6), largest=st.integers(4, 512))
    def test_the_number_of_buckets_is_near_the_target_with_small_even_hashes(self, buckets, largest):
        sizes = lsh.hash_sizes(buckets, largest)
        assert all(size % 2 == 0 and 2 <= size <= largest + 2 for size in sizes)
        assert 0.6 <= math.prod(sizes) / buckets <= 2
        assert len(sizes) == 1 or buckets > largest ** (len(sizes) - 1)

    def test_one_bucket_needs_no_hash(self):
        assert lsh.hash_sizes(1, 8) == ()
        assert not lsh.hash_buckets(randn(3, 7, 4), (), 0, 0).any()


class TestChunks:
    @settings(max_examples=60, deadline=None)
    @given(n=st.integers(1, 40), buckets=st.integers(1, 9), size=st.integers(1, 12), seed=st.integers(0, 99))
    def test_sorted_chunks_follow_their_definition(self, n, buckets, size, seed):
        bucket = randint(buckets, n, seed=seed)
        in_order = sorted(range(n), key=lambda i: (int(bucket[i]), i))
        chunk = {token: place // size for place, token in enumerate(in_order)}
        wanted = [[chunk[i] - chunk[j] in (0, 1) for j in range(n)] for i in range(n)]
        chunks = lsh.sorted_chunks(bucket, size)
        assert in_adjacent_chunks(chunks).tolist() == wanted
        check_places(chunks)

    @settings(max_examples=60, deadline=None)
    @given(n=st.integers(1, 40), buckets=st.integers(1, 9), size=st.integers(1, 12), seed=st.integers(0, 99))
    def test_bucket_chunks_follow_their_definition(self, n, buckets, size, seed):
        bucket = randint(buckets, n, seed=seed)
        chunk = [int((bucket[:i] == bucket[i]).sum()) // size for i in range(n)]
        wanted = [[bool(bucket[i] == bucket[j]) and chunk[i] - chunk[j] in (0, 1) for j in range(n)] for i in range(n)]
        chunks = lsh.bucket_chunks(bucket, buckets, size)
        assert in_adjacent_chunks(chunks).tolist() == wanted
        check_places(chunks)

    def test_a_later_token_changes_sorted_chunks_but_not_bucket_chunks(self):
        bucket = torch.tensor([1, 1, 0, 1, 1, 1, 0])
        changed = torch.tensor([1, 1, 0, 1, 1, 0, 0])
        before, after = (in_adjacent_chunks(lsh.sorted_chunks(b, 2))[:5, :5] for b in (bucket, changed))
        assert not torch.equal(before, after)
        before, after = (in_adjacent_chunks(lsh.bucket_chunks(b, 2, 2))[:5, :5] for b in (bucket, changed))
        assert torch.equal(before, after)

    def test_leading_axes_are_independent(self):
        bucket = randint(4, 2, 3, 20)
        for make in (lambda b: lsh.sorted_chunks(b, 3), lambda b: lsh.bucket_chunks(b, 4, 3)):
            together = make(bucket)
            for b in range(2):
                for h in range(3):
                    alone = make(bucket[b, h])
                    assert torch.equal(together.code[b, h], alone.code)
                    assert torch.equal(together.slot[b, h], alone.slot)


def check_places(chunks):
    """Check that every token has its own place, and that allowed pairs are in the same or adjacent chunks of places."""
    assert chunks.slot.unique().numel() == chunks.slot.numel()
    assert 0 <= int(chunks.slot.min()) <= int(chunks.slot.max()) < chunks.n_chunks * chunks.size
    row = chunks.slot // chunks.size
    gap = row[:, None] - row
    assert not (in_adjacent_chunks(chunks) & (gap != 0) & (gap != 1)).any()


class TestAttention:
    def rounds(self, lead, n, size, number, *, causal, buckets=5):
        made = [randint(buckets, *lead, n, seed=r) for r in range(number)]
        return [lsh.bucket_chunks(b, buckets, size) if causal else lsh.sorted_chunks(b, size) for b in made]

    def union(self, rounds, *, causal):
        seen = torch.stack([in_adjacent_chunks(chunks) for chunks in rounds]).any(0)
        n = seen.shape[-1]
        seen &= torch.ones(n, n).tril(-1).bool() if causal else ~torch.eye(n).bool()
        return seen | torch.diag_embed(~seen.any(-1))

    @pytest.mark.parametrize("causal", [False, True])
    @pytest.mark.parametrize(("n", "size", "number"), [(1, 1, 1), (2, 2, 3), (29, 4, 1), (64, 8, 3), (1500, 128, 2)])
    def test_the_output_equals_torch_attention_with_the_union_as_mask(self, n, size, number, causal):
        # 1500 tokens in chunks of 128 take several blocks.
        q, k, v = randn(2, 3, n, 6), randn(2, 3, n, 6, seed=1), randn(2, 3, n, 4, seed=2)
        rounds = self.rounds((2, 3), n, size, number, causal=causal)
        seen = self.union(rounds, causal=causal)
        wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=1.0)
        torch.testing.assert_close(lsh.lsh_attention(q, k, v, rounds=rounds, causal=causal), wanted)

    def test_the_output_equals_the_paper_with_weights_divided_by_rounds(self):
        n = 40
        q, k, v = randn(n, 6), randn(n, 6, seed=1), randn(n, 4, seed=2)
        rounds = self.rounds((), n, 8, 4, causal=False)
        found = torch.stack([in_adjacent_chunks(chunks) & ~torch.eye(n).bool() for chunks in rounds])
        times = found.sum(0)
        assert times.max() == 4
        logits = (q @ k.mT - times.log()).masked_fill(~found, -math.inf)
        each, lse = logits.softmax(-1) @ v, logits.logsumexp(-1, keepdim=True)
        wanted = (each * (lse - lse.logsumexp(0)).exp()).sum(0)
        torch.testing.assert_close(lsh.lsh_attention(q, k, v, rounds=rounds, causal=False), wanted)

    def test_an_isolated_token_returns_its_value_and_gradients_reach_only_values(self):
        q, k, v = (randn(3, 2, seed=s).requires_grad_() for s in range(3))
        lonely = lsh.bucket_chunks(torch.tensor([0, 1, 2]), 3, 2)
        out = lsh.lsh_attention(q, k, v, rounds=[lonely, lonely], causal=True)
        assert torch.equal(out, v)
        of_q, of_k, of_v = torch.autograd.grad(out.sum(), (q, k, v))
        assert not of_q.any()
        assert not of_k.any()
        assert (of_v == 1).all()

    def test_gradients_equal_those_of_the_explicit_matrix(self):
        q, k, v = (randn(2, 30, size, seed=s).requires_grad_() for s, size in enumerate((6, 6, 4)))
        rounds = self.rounds((2,), 30, 4, 3, causal=False)
        matrix = (q @ k.mT).masked_fill(~self.union(rounds, causal=False), -math.inf).softmax(-1)
        weight = randn(2, 30, 4, seed=9)
        found = lsh.lsh_attention(q, k, v, rounds=rounds, causal=False)
        for one, other in zip(
            torch.autograd.grad((found * weight).sum(), (q, k, v)),
            torch.autograd.grad((matrix @ v * weight).sum(), (q, k, v)),
            strict=True,
        ):
            torch.testing.assert_close(one, other)

    @given(n=st.integers(1, 300), runs=st.integers(1, 40), size=st.integers(1, 40))
    def test_max_chunks_suffices_in_the_worst_case(self, n, runs, size):
        # All runs but one hold a single token, which gives the most nearly empty chunks.
        lengths = [1] * (min(runs, n) - 1)
        lengths.append(n - len(lengths))
        assert sum(-(-length // min(size, n)) for length in lengths) <= lsh.max_chunks(n, runs, size)
