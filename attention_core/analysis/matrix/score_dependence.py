"""A numerical test of whether a variant's weights depend only on its scores ``q kᵀ / √d``, not on q and k themselves.

If they do, a position bias such as ALiBi's can be added to the scores by extra entries of q and k.
"""

from functools import cache

import torch

from attention_core.attention import Attention

TOKENS, SIZE, EXTRA_SIZE = 24, 6, 2


@cache
def depends_only_on_scores(attention: Attention) -> bool:
    """Return whether a causal variant's weights depend on q and k only through ``q kᵀ / √d``, by a numerical test.

    The test appends zeros to q and k and changes the basis to ``q M``, ``k M⁻ᵀ``. The scores stay the same. Features,
    norms of queries or keys, and gates computed from them change.

    Raises:
        NotCausalError: if the variant cannot be causal.
    """
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 2, TOKENS, SIZE, generator=generator, dtype=torch.float64)
    # q is multiplied by ``basis`` and k by its inverse transpose, which leaves all scores unchanged. The basis is close
    # to the identity, so that it is well conditioned.
    basis = torch.eye(SIZE + EXTRA_SIZE, dtype=torch.float64)
    basis += 0.2 * torch.randn(basis.shape, generator=generator, dtype=torch.float64)
    wider_q = torch.nn.functional.pad(q * ((SIZE + EXTRA_SIZE) / SIZE) ** 0.5, (0, EXTRA_SIZE)) @ basis
    wider_k = torch.nn.functional.pad(k, (0, EXTRA_SIZE)) @ torch.linalg.inv(basis).mT
    weights, changed_weights = (attention.weights(a, b, causal=True) for a, b in ((q, k), (wider_q, wider_k)))
    return torch.allclose(weights, changed_weights, rtol=1e-6, atol=1e-9)
