"""Conditions under which a claim cannot be judged on an input, and numerical tolerances that several claims share."""

from torch import Tensor

from attention_core.analysis.matrix.future import future_share
from attention_core.claims.claim_parts import Quantity, UntestableError
from attention_core.formatting import N_, format_readable
from attention_core.inputs.record import QKV

FLOAT32_TOLERANCE = 1e-6
"""Relative difference of matrices below which a difference counts as float32 rounding."""
FUTURE = Quantity("future", "share of attention on later tokens without the causal mask", "%")
"""Share of unmasked attention mass, in per cent, on keys after the query, for a causal model; 0 for a bidirectional
input."""
MEASURED_UNMASKED = N_(
    "This model is causal, but was measured without its mask. Without the mask, {future}% of its attention is on "
    "tokens after the query."
)
"""The sentence that follows the finding if ``FUTURE`` is not 0."""
MAX_FUTURE = 10
"""Largest ``FUTURE``, in per cent, at which unmasked attention is still close to causal attention. Trained heads have
up to 64; uniform attention would have 50."""


def future_percent(qkv: QKV) -> float:
    """Return the percentage of a causal model's attention on later tokens without a mask; 0 for other models."""
    return 100 * future_share(qkv, head=None) if qkv.causal else 0.0


def check_low_future_mass(qkv: QKV, method: str) -> None:
    """Check that a causal model attends little to the future when unmasked, so that a non-causal method can be judged.

    Args:
        qkv: the queries, keys and values; those of a bidirectional model always pass.
        method: the name of the non-causal method.

    Raises:
        UntestableError: if more than ``MAX_FUTURE`` per cent of the attention mass lies on the future.
    """
    percent = future_percent(qkv)
    if percent > MAX_FUTURE:
        raise UntestableError(
            "{method} cannot be causal, but this model is causal. Without a mask, {hidden}% of its attention would "
            "be on tokens after the query (the limit is {most}%). Choose a bidirectional model.",
            method=method,
            hidden=format_readable(percent, 3),
            most=MAX_FUTURE,
        )


def check_not_uniform(uniform: Tensor) -> None:
    """Check that attention is not uniform in every head; otherwise, all methods would give the same result.

    Args:
        uniform: the relative error of uniform attention's matrix, one value per head.

    Raises:
        UntestableError: if all heads are uniform, up to float32 rounding.
    """
    if (uniform < FLOAT32_TOLERANCE).all():
        raise UntestableError(
            "All tokens of this input have the same weight, so all methods give the same result. Choose an input "
            "with sharper attention."
        )
