"""Tests of centred Taylor attention against the derivatives of softmax, and of its invariances."""

import pytest
import torch
from contract import decoded
from seeded import normal

import attention_core as ac

softmax = ac.get("softmax")


@pytest.mark.parametrize("causal", [False, True])
def test_centred_taylor_equals_the_taylor_series_of_softmax(causal):
    """Check that the two orders are the first two derivatives of softmax at q = 0 along q, by torch's autograd."""
    q, k = normal(6, 4), 2 + normal(6, 4, seed=1)

    def along(t):
        return softmax.weights(t * q, k, causal=causal)

    zero = torch.tensor(0.0, dtype=torch.float64)
    slope = torch.func.jacfwd(along)(zero)
    bend = torch.func.jacfwd(torch.func.jacfwd(along))(zero)
    first, second = (ac.get("centred_taylor", order=order).weights(q, k, causal=causal) for order in (1, 2))
    torch.testing.assert_close(first, along(zero) + slope)
    torch.testing.assert_close(second, along(zero) + slope + bend / 2)


@pytest.mark.parametrize("causal", [False, True])
def test_a_shift_of_all_keys_changes_nothing(causal):
    q, k, v = normal(3, 40, 8)
    for order in (1, 2):
        series = ac.get("centred_taylor", order=order)
        torch.testing.assert_close(
            series.weights(q, k + 5, causal=causal), series.weights(q, k, causal=causal), rtol=1e-9, atol=1e-12
        )
        torch.testing.assert_close(
            series.attend(q, k + 5, v, causal=causal), series.attend(q, k, v, causal=causal), rtol=1e-8, atol=1e-9
        )


@pytest.mark.parametrize("order", [1, 2])
def test_the_decoder_is_accurate_with_keys_far_from_zero(order):
    q, k, v = normal(3, 2, 20, 5)
    k = k + 2**20
    series = ac.get("centred_taylor", order=order)
    torch.testing.assert_close(decoded(series, q, k, v), series.attend(q, k, v, causal=True))
