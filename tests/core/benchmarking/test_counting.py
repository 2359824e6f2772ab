import pytest
import torch
import torch.nn.functional as F

import attention_core as ac
from attention_core.benchmarking.counting import count, largest_live_tensors


def test_products_and_the_elements_of_their_results_are_counted():
    a, b = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    counts = count(lambda: a @ b)
    assert (counts.multiply_adds, counts.peak_elements, counts.largest_elements) == (2 * 3 * 4 * 5, 30, 30)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_fused_attention_is_counted_forward_and_backward(dtype: torch.dtype):
    q, k, v = torch.randn(3, 2, 3, 16, 8, dtype=dtype).unbind(0)
    forward = 2 * 2 * 3 * 16 * 16 * 8
    assert count(lambda: F.scaled_dot_product_attention(q, k, v)).multiply_adds == forward
    x = q.clone().requires_grad_()
    # The backward pass computes the scores again and four more products: five, compared with two forward.
    both = count(lambda: F.scaled_dot_product_attention(x, k, v).sum().backward())
    assert both.multiply_adds == forward + forward * 5 // 2


def test_freed_tensors_are_not_counted():
    def call() -> torch.Tensor:
        a = torch.zeros(100)
        b = a[10:20]  # A view keeps the whole storage.
        del a
        c = torch.zeros(50)
        del b
        d = torch.zeros(60)
        return c + d[:50]

    counts = count(call)
    assert counts.peak_elements == 50 + 60 + 50
    assert counts.largest_elements == 100


def test_the_largest_tensors_at_the_peak_are_listed():
    def call() -> None:
        a = torch.zeros(9, 10)
        b = torch.zeros(3, 5)
        del a
        c = torch.zeros(7, 14)  # The peak: with b, and without a.
        d = torch.zeros(2)
        del b, c, d
        torch.zeros(1, 12)

    assert largest_live_tensors(call, max_tensors=2) == [(98 * 4, (7, 14)), (15 * 4, (3, 5))]


def test_tensors_that_existed_before_are_not_counted():
    a = torch.zeros(1000)
    assert count(lambda: a.add_(1)[10:].view(-1)).peak_elements == 0


def test_elements_are_counted_by_their_bytes():
    counts = count(lambda: torch.zeros(64, dtype=torch.bool), unit=torch.float32)
    assert counts.peak_elements == 16
    assert count(lambda: torch.zeros(64, dtype=torch.float64), unit=torch.float64).peak_elements == 64


def test_nothing_is_counted_after_an_exception():
    with pytest.raises(ZeroDivisionError):
        count(lambda: 1 / 0)
    assert count(lambda: None).peak_elements == 0


def test_operations_quadruple_for_softmax_and_double_for_linear():
    def adds(key: str, n: int) -> int:
        q = torch.randn(1, n, 8)
        return count(lambda: ac.get(key).attend(q, q, q)).multiply_adds

    assert adds("softmax", 256) == 4 * adds("softmax", 128)
    assert adds("linear", 256) == 2 * adds("linear", 128)
