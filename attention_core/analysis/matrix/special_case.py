"""A numerical check that one variant equals another at some settings: the largest difference of their weights."""

from attention_core.attention import Attention
from attention_core.inputs.record import QKV


def max_weight_difference(qkv: QKV, general: Attention, special: Attention, *, causal: bool) -> float:
    """Return the largest difference between the weights of two variants, over heads and pairs.

    If ``special`` is a special case of ``general``, the difference is only a rounding error.

    Raises:
        NotCausalError: if ``causal`` is set and one of the variants cannot be causal.
    """
    one, other = (each.weights(qkv.q, qkv.k, causal=causal) for each in (general, special))
    return float((one - other).abs().max())
