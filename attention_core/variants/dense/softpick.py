"""Softpick: a rectified softmax, in which a single weight or a whole row can be zero."""

from torch import Tensor

from attention_core.ops.softmax.blockwise import RowBlock, blockwise_attention, largest_block, n_pairs
from attention_core.ops.softmax.masked import causal_mask, safe_divisor, scores
from attention_core.variant import Cost, Paper, Params, Variant


def softpick(logits: Tensor) -> Tensor:
    """Compute ``relu(e^z - 1) / Σ |e^z - 1|`` of logits z over the last axis.

    Hidden keys must have the logit 0, which adds nothing to the sum; ``-inf`` would add 1 to the sum. Numerator and
    denominator are divided by the largest exponential to avoid overflow.
    """
    row_max = logits.amax(-1, keepdim=True).clamp_min(0).detach()
    exp_minus_one = (logits - row_max).exp() - (-row_max).exp()
    return exp_minus_one.clamp_min(0) / safe_divisor(exp_minus_one.abs().sum(-1, keepdim=True))


def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Compute ``softpick(q kᵀ / √d)``, ``[..., n, n]``."""
    logits = scores(q, k)
    if causal:  # hidden keys get the logit 0, since e⁰ - 1 = 0 adds nothing to a row's sum
        logits = logits.masked_fill(~causal_mask(q.shape[-2], q.device), 0.0)
    return softpick(logits)


def definition(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Compute ``relu(e^z - 1) / Σ |e^z - 1| v``, ``[..., n, d_v]``, which overflows if logits z are large."""
    logits = scores(q, k)  # [..., n, n]
    if causal:  # hidden keys get the logit 0, since e⁰ - 1 = 0 adds nothing to a row's sum
        logits = logits.tril()
    exp_minus_one = logits.expm1()
    return exp_minus_one.relu() / safe_divisor(exp_minus_one.abs().sum(-1, keepdim=True)) @ v


def _row_weights(q: Tensor, k: Tensor, rows: RowBlock) -> Tensor:
    return softpick(rows.fill_future(scores(q, k), 0.0))


def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Compute the output in blocks of queries: O(n² d) time, O(n d) memory."""
    return blockwise_attention(_row_weights, q, k, v, causal=causal)


def cost(n: int, d: int, p: Params, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost of the products with k and v, computed by blocks of queries.

    The memory is that of the output and of 4 blocks of weights.
    """
    return Cost(
        multiply_adds=2 * d * n_pairs(n, causal=causal, keys=keys),
        peak_elements=n * d + 4 * largest_block(n, keys=keys),
    )


VARIANT = Variant(
    __name__,
    title="Softpick",
    summary=(
        "A logit x gets the weight max(eˣ − 1, 0), divided by the row's sum of |eˣ − 1|, so keys with negative "
        "logits get weight zero."
    ),
    formula=r"A_{ij} = \frac{\operatorname{relu}(e^{s_{ij}} - 1)}{\sum_l |e^{s_{il}} - 1|},\quad "
    r"s = \frac{Q K^\top}{\sqrt d}",
    complexity="n² d",
    params=Params,
    rows_sum_to_one=False,
    source=Paper(
        "Softpick: No Attention Sink, No Massive Activations with Rectified Softmax",
        2025,
        "https://arxiv.org/abs/2504.20966",
    ),
    note="If no logit of a row is positive, all weights of the row are zero.",
)
