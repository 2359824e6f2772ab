"""Tests of patterns over the pixels of an image, each compared with a loop over the coordinates of all pairs."""

import itertools

import pytest
import torch

import attention_core as ac


def in_square(down, across, settings):
    return max(abs(down), abs(across)) <= settings["window"]


def at_multiples(down, across, stride):
    return down % stride == 0 and across % stride == 0


PATTERNS = {
    "local": lambda i, j, down, across, s: in_square(down, across, s),
    "atrous": lambda i, j, down, across, s: at_multiples(down, across, s["stride"]),
    "sparse": lambda i, j, down, across, s: in_square(down, across, s) or at_multiples(down, across, s["stride"]),
    "longformer": lambda i, j, down, across, s: (
        (
            max(abs(down), abs(across)) <= s["window"] * s["dilation"]
            and down % s["dilation"] == 0
            and across % s["dilation"] == 0
        )
        or min(i, j) < s["global_tokens"]
    ),
}
CASES = (
    *(("local", {"window": window}) for window in (1, 2, 6)),
    *(("atrous", {"stride": stride}) for stride in (1, 2, 3, 9)),
    *(("sparse", {"window": window, "stride": stride}) for window, stride in ((1, 2), (2, 3), (1, 9), (6, 1))),
    ("longformer", {"window": 1, "dilation": 1, "global_tokens": 0}),
    ("longformer", {"window": 1, "dilation": 2, "global_tokens": 3}),
    ("longformer", {"window": 2, "dilation": 1, "global_tokens": 8}),
    ("longformer", {"window": 1, "dilation": 3, "global_tokens": 64}),
)


@pytest.mark.parametrize(("n", "columns"), [(48, 8), (50, 8), (49, 7), (20, 1), (7, 30)])
@pytest.mark.parametrize(("key", "settings"), CASES)
@pytest.mark.parametrize("causal", [False, True])
def test_a_pixel_attends_to_the_pixels_of_its_pattern(key, settings, n, columns, causal):
    q, k, v = torch.randn(3, 2, n, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    attention = ac.get(key, columns=columns, **settings)
    allowed = torch.zeros(n, n, dtype=torch.bool)
    for i, j in itertools.product(range(n), repeat=2):
        (a, b), (c, d) = divmod(i, columns), divmod(j, columns)
        allowed[i, j] = PATTERNS[key](i, j, a - c, b - d, settings) and (j <= i or not causal)
    given = [x.clone().requires_grad_() for x in (q, k, v)]
    wanted = [x.clone().requires_grad_() for x in (q, k, v)]
    found = attention.attend(*given, causal=causal)
    weights = (wanted[0] @ wanted[1].mT / 5**0.5).masked_fill(~allowed, -torch.inf).softmax(-1)
    torch.testing.assert_close(found, weights @ wanted[2])
    torch.testing.assert_close(attention.weights(q, k, causal=causal), weights.detach())
    assert torch.equal(attention.mask(n, causal=causal), allowed)
    slopes = [
        torch.autograd.grad((out * v.cos()).sum(), x) for out, x in ((found, given), (weights @ wanted[2], wanted))
    ]
    torch.testing.assert_close(*slopes)
