"""The numbers that a recurrent variant keeps after each token (its state), computed by the variant's own decoder."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_core import registry
from attention_core.analysis.low_rank.factors import lengths
from attention_core.attention import Attention
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.metrics.approximation import relative_error
from attention_core.ops.delta.fast_weights import RuleInputs
from attention_core.ops.linear.causal_scan import State

MAX_NUMBERS = 2**22
"""Maximum numbers, 4 bytes each, in all states computed for a text. If a state is large, only the states of the
first tokens are computed.
"""
MAX_LOG_SCALE = 60.0
"""The decoder divides the sums by e^reference. If the largest reference is below this value, the division is
undone, and the result still fits float32.
"""


class StateChanges(CompactRepr):
    """The changes that tokens make to a state of fast weights before they write to it: decay and erasing.

    Attributes:
        decay_shares: share of each of C channels (the state's rows) lost by decay, ``1 - α_i``, ``float64 [n, C]``.
        erased_shares: token i reads a value from the state with its key and removes this share of the value,
            ``ε_i ‖k_i‖²``, ``float64 [n]``; None if the rule removes nothing.
        along: whether the content to remove is read along a separate direction instead of the key.
            ``erased_shares`` then contains the squared length of this direction instead of ``‖k_i‖²``.
    """

    decay_shares: np.ndarray
    erased_shares: np.ndarray | None
    along: bool


class StateHistory(CompactRepr):
    """One head's state after each token i: a matrix ``S_i`` with C channels, and for running sums a vector ``z_i``.

    Fast weights follow ``S_i = S_{i-1} + decay_change(i) + erase_change(i) + added[i]``.

    Attributes:
        sums: ``S_i``, ``float32 [n, C, d_v]``.
        keys: ``z_i``, the normaliser's part of the state, ``float32 [n, C]``; None for fast weights.
        added: what token i adds to ``S``, ``φ(k_i) v_iᵀ``, ``float32 [n, C, d_v]``.
        changes: other changes that token i makes to ``S``; None for running sums.
        state_size: number of numbers in the state.
        outputs: outputs of the decoder, ``float64 [n, d_v]``.
        full: the outputs from the variant's explicit matrix, ``float64 [n, d_v]``.
        kv_cache: keys and values that softmax would have to cache instead, ``float32 [n, d + d_v]``.
        softmax: outputs of softmax attention on the same input, ``float64 [n, d_v]``.
        log_unit: ``sums``, ``keys`` and ``added`` are in units of e to this power; 0 unless they exceed float32.
    """

    sums: np.ndarray
    keys: np.ndarray | None
    added: np.ndarray
    changes: StateChanges | None = None
    state_size: int
    outputs: np.ndarray
    full: np.ndarray
    kv_cache: np.ndarray
    softmax: np.ndarray
    log_unit: float

    def state_before(self, i: int) -> np.ndarray:
        """Return ``S_{i-1}``, ``[C, d_v]``; zeros before the first token."""
        return self.sums[i - 1] if i else np.zeros_like(self.sums[0])

    def decay_change(self, i: int) -> np.ndarray:
        """Return the change of the state by decay before token i, ``-(1 - α_i) S_{i-1}``, ``[C, d_v]``."""
        assert self.changes is not None
        return -self.changes.decay_shares[i][:, None] * self.state_before(i)

    def erase_change(self, i: int) -> np.ndarray:
        """Return the change of the state by erasing stored content before token i writes, ``[C, d_v]``."""
        return self.sums[i] - self.added[i] - self.state_before(i) - self.decay_change(i)

    @property
    def channel_sizes(self) -> np.ndarray:
        """The Euclidean length of each channel's row of ``S_i`` after each token, ``float64 [n, C]``."""
        return np.linalg.norm(self.sums.astype(float), axis=-1)

    @property
    def removed_size(self) -> np.ndarray:
        """The norm of the part of the state that each token removes by decay and erasing, ``float64 [n]``."""
        return lengths(np.diff(self.sums, axis=0, prepend=0) - self.added)

    def matrix_difference(self, i: int) -> float:
        """Return the largest absolute difference between token i's outputs from the decoder and the explicit matrix."""
        return float(abs(self.outputs[i] - self.full[i]).max())

    def softmax_error(self, i: int) -> float:
        """Return the relative error of the output of token i, compared with softmax."""
        return self._error(self.outputs[i], i)

    def uniform_error(self, i: int) -> float:
        """Return the relative error of the mean of the values up to token i, compared with softmax."""
        return self._error(self.kv_cache[: i + 1, -self.softmax.shape[1] :].mean(0, dtype=np.float64), i)

    def _error(self, output: np.ndarray, i: int) -> float:
        reference = torch.tensor(self.softmax[i : i + 1])
        return float(relative_error(torch.tensor(output[None]), reference))


def followed_tokens(qkv: QKV, attention: Attention) -> int:
    """Return for how many tokens ``state_history`` computes states, which hold at most ``MAX_NUMBERS`` numbers."""
    decoder = attention.variant.decoder
    assert decoder is not None
    first, value = qkv.q[0, 0].double(), qkv.v[0, 0].double()
    state = _state_of(decoder.init_state(first, value, attention.params))
    return min(qkv.n, max(1, MAX_NUMBERS // state.sums.numel()))


def state_history(qkv: QKV, attention: Attention, *, head: int) -> StateHistory:
    """Run a variant's decoder over one head, token by token, in float64.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: a variant that has a decoder, with its settings.
        head: index of the head.

    Returns:
        The states of the first tokens, usually of all; see ``followed_tokens``.
    """
    decoder, p = attention.variant.decoder, attention.params
    assert decoder is not None
    q, k, v = (x[head].double() for x in qkv.tensors)
    decoder_state, n = decoder.init_state(q[0], v[0], p), followed_tokens(qkv, attention)
    q, k, v = q[:n], k[:n], v[:n]
    outputs, states, additions, inputs = [], [], [], []
    for token in zip(q, k, v, strict=True):
        if decoder.rule_inputs is not None:
            inputs.append(decoder.rule_inputs(decoder_state, *token[:2], p))
        # The decoder also processes the token with all sums set to zero, which gives what this token adds to the state.
        additions.append(_state_of(decoder.step(_with_zero_sums(decoder_state), *token, p)[1]))
        out, decoder_state = decoder.step(decoder_state, *token, p)
        outputs.append(out)
        states.append(_state_of(decoder_state))
    reference = states[-1].reference
    largest = 0.0 if reference is None else float(reference.max())
    log_unit = 0.0 if largest < MAX_LOG_SCALE else largest
    sums, added = (torch.stack([_unscaled_sums(each, log_unit) for each in parts]) for parts in (states, additions))
    d_v = v.shape[-1]
    return StateHistory(
        sums=sums[..., :d_v].numpy(),
        keys=sums[..., -1].numpy() if decoder.normalised else None,
        added=added[..., :d_v].numpy(),
        changes=_changes(inputs) if inputs else None,
        state_size=sums[0].numel() + (0 if decoder.normalised else _extra_numbers(decoder_state)),
        outputs=torch.stack(outputs).numpy(),
        full=(attention.weights(q, k, causal=True) @ v).numpy(),
        kv_cache=torch.cat([k, v], -1).float().numpy(),
        softmax=registry.get("softmax").attend(q, k, v, causal=True).numpy(),
        log_unit=log_unit,
    )


def _changes(inputs: Sequence[RuleInputs]) -> StateChanges:
    """Return the changes that tokens make before writing; each item of ``inputs`` belongs to one token, ``[1, *]``."""
    decays = [torch.zeros_like(token.k) if token.log_gates is None else -token.log_gates.expm1() for token in inputs]
    directions = [token.k if token.directions is None else token.directions for token in inputs]
    erased = [
        token.erase_strength * direction.square().sum(-1, keepdim=True)
        for token, direction in zip(inputs, directions, strict=True)
        if token.erase_strength is not None
    ]
    return StateChanges(
        decay_shares=torch.cat([x.expand_as(token.k) for x, token in zip(decays, inputs, strict=True)]).numpy(),
        erased_shares=torch.cat(erased).flatten().numpy() if erased else None,
        along=any(token.directions is not None for token in inputs),
    )


def _extra_numbers(decoder_state: Any) -> int:  # noqa: ANN401 - each decoder has its own type of state
    """Return the number of numbers in a state of fast weights that are not in its matrix."""
    return sum(part.numel() for part in decoder_state if isinstance(part, Tensor)) - decoder_state.sums.numel()


def _state_of(decoder_state: Any) -> State:  # noqa: ANN401 - each decoder has its own type of state
    """Return the sums in a decoder's state, which may contain references or other tensors as well."""
    if isinstance(decoder_state, Tensor):
        return State(decoder_state, None)
    if isinstance(decoder_state, State):
        return decoder_state
    return decoder_state.state if hasattr(decoder_state, "state") else State(decoder_state.sums, None)


def _with_zero_sums(decoder_state: Any) -> Any:  # noqa: ANN401 - each decoder has its own type of state
    """Return the state with its sums set to zero and everything else unchanged."""
    if isinstance(decoder_state, Tensor):
        return torch.zeros_like(decoder_state)
    if hasattr(decoder_state, "state"):
        return decoder_state._replace(state=_with_zero_sums(decoder_state.state))
    return decoder_state._replace(sums=torch.zeros_like(decoder_state.sums))


def _unscaled_sums(state: State, log_unit: float) -> Tensor:
    """Return ``Σ φ(k_j) [v_j, 1]ᵀ``, ``float32 [..., C, d_v + 1]``, undoing the decoder's division by e^reference.

    Fast weights have no normaliser and are returned unscaled, ``[..., C, d_v]``.
    """
    if state.reference is None:
        return state.sums.float()
    return (state.sums * (state.reference - log_unit).exp().mT).float()
