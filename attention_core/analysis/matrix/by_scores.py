"""Does a variant weigh by its scores alone? Then what is added to them through queries and keys is a bias to it."""

from functools import cache

import torch

from attention_core.variant import Attention

TOKENS, SIZE, MORE = 24, 6, 2


@cache
def by_scores(attention: Attention) -> bool:
    """Whether a causal variant's weights depend on queries and keys through ``q kᵀ / √d`` alone, found by trial.

    Two more coordinates and any change of basis ``q M``, ``k M⁻ᵀ`` leave these scores as they are; features, norms of
    queries or keys, and gates made of them change.

    Args:
        attention: the variant with its settings.

    Raises:
        NotCausalError: if it cannot be causal.
    """
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 2, TOKENS, SIZE, generator=generator, dtype=torch.float64)
    # Near the unit matrix, so that it is far from having no inverse.
    basis = torch.eye(SIZE + MORE, dtype=torch.float64)
    basis += 0.2 * torch.randn(basis.shape, generator=generator, dtype=torch.float64)
    wider_q = torch.nn.functional.pad(q * ((SIZE + MORE) / SIZE) ** 0.5, (0, MORE)) @ basis
    wider_k = torch.nn.functional.pad(k, (0, MORE)) @ torch.linalg.inv(basis).mT
    own, changed = (attention.weights(a, b, causal=True) for a, b in ((q, k), (wider_q, wider_k)))
    return torch.allclose(own, changed, rtol=1e-6, atol=1e-9)
