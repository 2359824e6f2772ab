"""Tests of Nyström's inverse: measured as the variant computes it, and worse on a real head if it is exact."""

from itertools import pairwise

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core.experiments.nystrom_inverse import inverted_shares, run, tasks
from attention_core.inputs.source import SyntheticSource, TextSource
from attention_core.inputs.synthetic import SyntheticSpec
from attention_core.ops.low_rank.inverse import exact_inverse, inverse_steps

TEXT = (
    "The librarian who had lost her keys asked the boy beside the window whether he had seen them. He had not, but he "
    "remembered that the keys were lying on the old piano when the library opened."
)
SOURCE = SyntheticSource(SyntheticSpec(n=24, d=8, heads=2, sharpness=2.0))


def measured(source=SOURCE, *, head=1, word="nystrom~landmarks~6"):
    (task,) = tasks(source, head=head, word=word)
    return run(task)


def test_each_row_equals_the_error_of_the_variant_with_these_settings():
    rows, qkv = measured(), SOURCE.load()
    softmax = ac.get("softmax").weights(qkv.q[1], qkv.k[1]).double()
    assert [row.iterations for row in rows] == [*range(1, 13), None]
    for row in rows:
        count = row.iterations
        how = {"inverse": "exact"} if count is None else {"iterations": count}
        own = ac.get("nystrom", landmarks=6, **how).weights(qkv.q[1], qkv.k[1]).double()
        assert row.error == pytest.approx(float((own - softmax).norm() / softmax.norm()), rel=1e-4)
        assert row.negative == pytest.approx(float(own.clamp(max=0).abs().sum() / own.abs().sum()), rel=1e-3)


def test_the_residual_falls_with_iterations_and_is_smallest_for_the_exact_inverse():
    residuals = [row.residual for row in measured()]
    assert all(later <= earlier + 1e-6 for earlier, later in pairwise(residuals[:-1]))
    assert residuals[-1] < 1e-6


def test_the_inverse_settings_of_the_variant_are_ignored():
    assert measured(word="nystrom~landmarks~6~inverse~exact~iterations~3") == measured()


def test_the_exact_inverse_is_worse_than_few_iterations_on_a_real_head():
    source = TextSource(TEXT, "minilm", 2)
    *iterated, exact = measured(source, head=3, word="nystrom~landmarks~20")
    assert exact.error > 2 * min(row.error for row in iterated)
    assert exact.largest > iterated[5].largest


@pytest.mark.parametrize("iterations", [0, 1, 4, 9])
def test_inverted_shares_equal_those_of_the_iterated_matrices(iterations):
    a = torch.randn(9, 9, generator=torch.Generator().manual_seed(4)).softmax(-1).double()
    *_, v = inverse_steps(a, iterations)
    u, sizes, _ = torch.linalg.svd(a)
    values, share = inverted_shares(a.numpy(), iterations)
    np.testing.assert_allclose(values, sizes, rtol=1e-10)
    np.testing.assert_allclose(share, torch.diagonal(u.T @ a @ v @ u), rtol=1e-6, atol=1e-12)


def test_many_iterations_converge_to_the_exact_inverse():
    a = torch.eye(5).double() + 0.1 * torch.rand(5, 5, generator=torch.Generator().manual_seed(1)).double()
    *_, v = inverse_steps(a, 12)
    torch.testing.assert_close(v, exact_inverse(a))
    np.testing.assert_allclose(inverted_shares(a.numpy(), 12)[1], 1)


def test_the_inverse_with_one_landmark_has_no_error():
    rows = measured(SyntheticSource(SyntheticSpec(n=1, d=8, heads=1)), head=0)
    assert all(row.error < 1e-6 for row in rows)
