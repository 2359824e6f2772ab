"""Two variants that are said to be the same at some settings, on the input at hand: how far are they apart?"""

from attention_core.inputs.record import QKV
from attention_core.variant import Attention


def apart(qkv: QKV, general: Attention, special: Attention, *, causal: bool) -> float:
    """The largest difference between two variants' weights, over all heads and pairs; rounding, where they agree.

    Raises:
        NotCausalError: if causal is asked of one that cannot be.
    """
    one, other = (each.weights(qkv.q, qkv.k, causal=causal) for each in (general, special))
    return float((one - other).abs().max())
