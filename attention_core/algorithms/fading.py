"""Features whose similarity fades by a constant rate per token of distance, in logarithms counted from chunk to chunk.

Counted from the first token they would lose their digits, and ``γ^n`` may be far below the smallest number there is.
"""

import torch
from torch import Tensor

from attention_core.algorithms.causal_scan import State, fold, with_ones
from attention_core.algorithms.features import MAPS, Features
from attention_core.algorithms.precision import widened
from attention_core.algorithms.prefix import running_max


def faded(n: int, rate: float, like: Tensor) -> Tensor:
    """``rate · i`` for ``i = 1..n``, ``[n, 1]``, in the type and on the device of ``like``."""
    return rate * torch.arange(1, n + 1, dtype=like.dtype, device=like.device).unsqueeze(-1)


@torch.no_grad()
def peaks(k: Tensor, rate: float, feature_map: str, *, causal: bool, start: Tensor | None = None) -> Tensor:
    """The largest faded key of each feature as every token sees it, a logarithm, ``[..., n, d]``; it cancels in a row.

    Only ``exp`` needs it to stay in range: for the other maps it is 0, ``[n, 1]``.

    Args:
        k: keys, ``[..., n, d]``.
        rate: ``-log γ``.
        feature_map: one of ``MAPS``, or ``exp``.
        causal: whether a token sees the keys up to its own only.
        start: the peak of the token before the first, ``[..., 1, d]``, to go on from.
    """
    k = widened(k)
    if feature_map != "exp":
        return k.new_zeros(k.shape[-2], 1)
    fade = faded(k.shape[-2], rate, k)
    peak = running_max(k + fade) - fade
    if start is not None:
        peak = torch.maximum(peak, start - fade)
    return peak if causal else torch.maximum(peak, (running_max(k.flip(-2) + fade) - fade).flip(-2))


def fading_features(q: Tensor, k: Tensor, peak: Tensor, rate: float, feature_map: str) -> Features:
    """``φ(q)`` and ``φ(k)`` with a reference that rises by ``rate`` per token, from ``peak`` before the first of these.

    Rows of ``exp`` are up to a factor. With peaks of both directions the features serve backwards as well.
    """
    q, k = widened(q), widened(k)
    reference = peak + faded(q.shape[-2], rate, q)
    if feature_map == "exp":
        row = (q.detach() + peak).amax(-1, keepdim=True)
        return Features((q + peak - row).exp(), (k - peak).exp(), reference)
    phi = MAPS[feature_map]
    return Features(phi(q), phi(k), reference)


def fold_fading(state: State, f: Features, v: Tensor, peak: Tensor) -> tuple[Tensor, State]:
    """The next tokens, one or a chunk, to their weighted sums with the normaliser, and the next state."""
    sums, state = fold(state, f, with_ones(widened(v)))
    # From the last token's point of view: there the next chunk's count begins.
    return sums, State(state.sums, peak[..., -1:, :])
