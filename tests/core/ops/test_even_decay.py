import pytest
import torch

from attention_core.ops.linear.causal_scan import CHUNK
from attention_core.ops.linear.even_decay import decay_powers


@pytest.mark.parametrize("decay", [0.1, 0.97, 1.0])
def test_decay_is_the_power_of_the_distance(decay):
    powers = decay_powers(decay, torch.zeros((), dtype=torch.float64), CHUNK)
    place = torch.arange(CHUNK)
    distance = place[:, None] - place
    torch.testing.assert_close(powers.within, torch.where(distance >= 0, decay ** distance.double(), 0.0))
    torch.testing.assert_close(powers.from_start[:, 0], decay ** (place.double() + 1))
    torch.testing.assert_close(powers.to_end[:, 0], decay ** (CHUNK - 1 - place.double()))
    few = powers.shortened(5)
    torch.testing.assert_close(few.within, powers.within[:5, :5])
    torch.testing.assert_close(few.to_end[:, 0], decay ** torch.arange(4.0, -1.0, -1.0, dtype=torch.float64))
