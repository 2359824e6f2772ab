import pytest
import torch

from attention_core.ops.linear.causal_scan import CHUNK
from attention_core.ops.linear.even_decay import decay_powers, decayed_attention


@pytest.mark.parametrize("decay", [0.1, 0.97, 1.0])
def test_decay_is_the_power_of_the_distance(decay):
    powers = decay_powers(decay, torch.zeros((), dtype=torch.float64))
    place = torch.arange(CHUNK)
    distance = place[:, None] - place
    torch.testing.assert_close(powers.inside, torch.where(distance >= 0, decay ** distance.double(), 0.0))
    torch.testing.assert_close(powers.since[:, 0], decay ** (place.double() + 1))
    torch.testing.assert_close(powers.until[:, 0], decay ** (CHUNK - 1 - place.double()))
    few = powers.first(5)
    torch.testing.assert_close(few.inside, powers.inside[:5, :5])
    torch.testing.assert_close(few.until[:, 0], decay ** torch.arange(4.0, -1.0, -1.0, dtype=torch.float64))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("decay", [0.1, 0.97, 1.0])
@pytest.mark.parametrize("n", [1, 5, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 7])
def test_chunks_are_rows_of_the_decayed_matrix_over_their_sum(n, decay, causal):
    source = torch.Generator().manual_seed(n)
    q, k, v = (torch.randn(2, n, size, generator=source, dtype=torch.float64) for size in (4, 4, 3))
    q[0, 0] = -1.0  # A row whose features are all zero is a zero row.
    distance = torch.arange(n)[:, None] - torch.arange(n)
    similarity = q.relu() @ k.relu().mT * decay ** distance.abs().double()
    similarity = similarity.tril() if causal else similarity
    total = similarity.sum(-1, keepdim=True)
    wanted = similarity / torch.where(total == 0, 1.0, total) @ v
    torch.testing.assert_close(decayed_attention(torch.relu, q, k, v, decay=decay, causal=causal), wanted)
