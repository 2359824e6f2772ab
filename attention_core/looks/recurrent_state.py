"""What does a variant that is a recurrent network remember? Its state after each token, from its own decoder."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_core import registry
from attention_core.algorithms.causal_scan import State
from attention_core.brief import Brief
from attention_core.inputs.record import QKV
from attention_core.metrics.error import relative_error
from attention_core.variant import Attention

NUMBERS = 2**22
"""Numbers in all the states of a text, 4 bytes each: a wide state is followed over fewer tokens."""
RANGE = 60.0
"""Natural logarithm of the largest factor a state is scaled back by: e⁶⁰ times a state still fits float32."""


class Grown(Brief):
    """One head's state over time.

    Attributes:
        sums: ``S_i``, ``float32 [n, C, d_v]``.
        keys: ``z_i``, the normaliser's half of the state, ``float32 [n, C]``.
        added: what token i adds to ``S``, ``φ(k_i) v_iᵀ``, ``float32 [n, C, d_v]``.
        outputs: what the decoder answers, ``float64 [n, d_v]``.
        full: the same from the variant's own explicit matrix, ``float64 [n, d_v]``.
        cache: the keys and values that softmax would have to hold in the state's place, ``float32 [n, d + d_v]``.
        softmax: what softmax attention answers in its place, ``float64 [n, d_v]``.
        log_unit: ``S``, ``z`` and what is added are in units of e to this power; 0 unless they are beyond float32.
    """

    sums: np.ndarray
    keys: np.ndarray
    added: np.ndarray
    outputs: np.ndarray
    full: np.ndarray
    cache: np.ndarray
    softmax: np.ndarray
    log_unit: float

    def difference(self, i: int) -> float:
        """The largest difference of an entry of the variant's two outputs of token i."""
        return float(abs(self.outputs[i] - self.full[i]).max())

    def lost(self, i: int) -> float:
        """How far the output of token i lies from softmax's, as a share of that one's length."""
        reference = torch.tensor(self.softmax[i : i + 1])
        return float(relative_error(torch.tensor(self.outputs[i : i + 1]), reference))


def grow(qkv: QKV, attention: Attention, *, head: int) -> Grown:
    """Run a variant's decoder over one head, token by token, in float64.

    Args:
        qkv: queries, keys and values, ``[H, n, d]``.
        attention: a variant that has a decoder, with its settings.
        head: the head.

    Returns:
        The states of the first tokens, as many as hold ``NUMBERS`` numbers; all of them as a rule.
    """
    decoder, p = attention.variant.decoder, attention.params
    assert decoder is not None
    q, k, v = (x[head].double() for x in qkv.tensors)
    memory = decoder.init_state(q[0], v[0], p)
    kept = max(1, NUMBERS // _state(memory).sums.numel())
    q, k, v = q[:kept], k[:kept], v[:kept]
    outputs, states, alone = [], [], []
    for token in zip(q, k, v, strict=True):
        # What a token adds is the state it makes, at its own place, of an empty one.
        alone.append(_state(decoder.step(_emptied(memory), *token, p)[1]))
        out, memory = decoder.step(memory, *token, p)
        outputs.append(out)
        states.append(_state(memory))
    last = states[-1].reference
    log_unit = 0.0 if last is None or float(last.max()) < RANGE else float(last.max())
    sums = torch.stack([_scaled_back(state, log_unit) for state in states])
    return Grown(
        sums=sums[..., :-1].numpy(),
        keys=sums[..., -1].numpy(),
        added=torch.stack([_scaled_back(state, log_unit) for state in alone])[..., :-1].numpy(),
        outputs=torch.stack(outputs).numpy(),
        full=(attention.weights(q, k, causal=True) @ v).numpy(),
        cache=torch.cat([k, v], -1).float().numpy(),
        softmax=registry.get("softmax").attend(q, k, v, causal=True).numpy(),
        log_unit=log_unit,
    )


def _state(memory: Any) -> State:  # noqa: ANN401 - each decoder has its own memory
    """The sums in a decoder's memory: plain, beside what keeps them in range, or beside what it draws once."""
    if isinstance(memory, Tensor):
        return State(memory, None)
    return memory if isinstance(memory, State) else memory.state


def _emptied(memory: Any) -> Any:  # noqa: ANN401 - each decoder has its own memory
    """The memory with nothing in its sums, and all else as it is."""
    if isinstance(memory, Tensor):
        return torch.zeros_like(memory)
    if isinstance(memory, State):
        return memory._replace(sums=torch.zeros_like(memory.sums))
    return memory._replace(state=_emptied(memory.state))


def _scaled_back(state: State, log_unit: float) -> Tensor:
    """``Σ φ(k_j) [v_j, 1]ᵀ`` itself, ``float32 [..., C, d_v + 1]``: a decoder holds it over e to its reference."""
    if state.reference is None:
        return state.sums.float()
    return (state.sums * (state.reference - log_unit).exp().mT).float()
