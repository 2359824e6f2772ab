"""Tests of reversible residuals and checkpoints: the results of autograd without its stored activations."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from attention_core.benchmarking.counting import count
from attention_core.ops.reversible import checkpointed, forward, restored, reversible

WAYS = {"reversible": reversible, **{f"every {n}": partial(checkpointed, every=n) for n in (1, 2, 3, 99)}}


def layers(depth, d=6, dtype=torch.float64):
    """Return blocks of plain formulas, and their weights."""
    drawn = torch.randn(depth, 2, d, d, generator=torch.Generator().manual_seed(0), dtype=dtype) / d**0.5
    weights = [[w.clone().requires_grad_() for w in pair] for pair in drawn]

    def block(u, w):
        def mixes(x):
            x = F.layer_norm(x, (d,))
            return (x @ x.mT / d**0.5).softmax(-1) @ x @ u

        return mixes, lambda x: torch.tanh(x @ w)

    return [block(*pair) for pair in weights], [w for pair in weights for w in pair]


def streams(n=7, d=6, dtype=torch.float64):
    drawn = torch.randn(4, 2, n, d, generator=torch.Generator().manual_seed(1), dtype=dtype)
    return [x.clone().requires_grad_() for x in drawn[:2]], list(drawn[2:])


def by_loop(x1, x2, blocks):
    """Return the outputs by the definition, block by block; autograd stores every activation."""
    for f, g in blocks:
        y1 = x1 + f(x2)
        y2 = x2 + g(y1)
        x1, x2 = y1, y2
    return x1, x2


@pytest.mark.parametrize("depth", [1, 2, 5, 8])
@pytest.mark.parametrize("way", WAYS)
def test_outputs_and_all_gradients_are_the_plain_ones(way, depth):
    found = []
    for evaluate in (by_loop, WAYS[way]):
        blocks, weights = layers(depth)
        inputs, at_output = streams()
        out = evaluate(*inputs, blocks)
        torch.autograd.backward(out, at_output)
        found.append([*out, *(x.grad for x in (*inputs, *weights))])
    for plain, own in zip(*found, strict=True):
        torch.testing.assert_close(own, plain, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_gradients_are_slopes(way):
    blocks, _weights = layers(3, d=2)
    inputs, _ = streams(n=3, d=2)
    assert torch.autograd.gradcheck(lambda a, b: WAYS[way](a, b, blocks), inputs)


def test_gradients_of_weights_are_added_to_those_there():
    blocks, weights = layers(2)
    inputs, at_output = streams()
    for _ in range(2):
        torch.autograd.backward(reversible(*inputs, blocks), at_output)
    twice = [w.grad.clone() for w in weights]
    for w in weights:
        w.grad = None
    torch.autograd.backward(reversible(*inputs, blocks), at_output)
    for both, once in zip(twice, weights, strict=True):
        torch.testing.assert_close(both, 2 * once.grad)


@pytest.mark.parametrize("depth", [1, 4, 12])
def test_the_last_streams_give_back_the_first(depth):
    blocks, _weights = layers(depth)
    inputs, _ = streams()
    for back, x in zip(restored(*forward(*inputs, blocks), blocks), inputs, strict=True):
        torch.testing.assert_close(back, x, rtol=0, atol=1e-10)
        assert not back.requires_grad


@pytest.mark.parametrize("way", WAYS)
def test_a_layer_that_ignores_its_stream_passes_no_gradient(way):
    inputs, at_output = streams()
    shift = torch.ones(6, dtype=torch.float64, requires_grad=True)
    blocks = [(lambda x: shift.expand(x.shape), lambda x: x * 0.5)]
    torch.autograd.backward(WAYS[way](*inputs, blocks), at_output)
    torch.testing.assert_close(inputs[1].grad, at_output[1])
    torch.testing.assert_close(shift.grad, (at_output[0] + at_output[1] / 2).sum((0, 1)))


def test_depth_costs_reversible_residuals_nothing_and_plain_ones_as_much_again():
    def held(evaluate, depth):
        blocks, weights = layers(depth, d=16)
        inputs, at_output = streams(n=40, d=16)
        for x in (*inputs, *weights):
            x.grad = torch.zeros_like(x)
        return count(lambda: torch.autograd.backward(evaluate(*inputs, blocks), at_output)).peak_elements

    assert held(reversible, 4) == held(reversible, 16)
    assert held(by_loop, 16) > 3.5 * held(by_loop, 4)
