"""What does a variant that is a recurrent network remember? Its state after each token, from its own decoder."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_core import registry
from attention_core.analysis.low_rank.factors import lengths
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.record import QKV
from attention_core.metrics.error import relative_error
from attention_core.ops.delta.fast_weights import Tokens
from attention_core.ops.linear.causal_scan import State
from attention_core.variant import Attention

NUMBERS = 2**22
"""Numbers in all the states of a text, 4 bytes each: a wide state is followed over fewer tokens."""
RANGE = 60.0
"""Natural logarithm of the largest factor a state is scaled back by: e⁶⁰ times a state still fits float32."""


class Changes(CompactRepr):
    """What the tokens do to a state of fast weights before they write.

    Attributes:
        fades: the share of each channel that fades, ``1 - α_i``, ``float64 [n, C]``.
        erases: the share of what its key then reads that token i takes back, ``ε_i ‖k_i‖²``, ``float64 [n]``; None
            where the rule takes nothing back.
        along: whether a direction of its own reads that in place of its key, and its length counts.
    """

    fades: np.ndarray
    erases: np.ndarray | None
    along: bool


class Grown(CompactRepr):
    """One head's state over time.

    Of fast weights ``S_i = S_{i-1} + faded(i) + erased(i) + added[i]``.

    Attributes:
        sums: ``S_i``, ``float32 [n, C, d_v]``.
        keys: ``z_i``, the normaliser's half of the state, ``float32 [n, C]``; None of fast weights, which have none.
        added: what token i adds to ``S``, ``φ(k_i) v_iᵀ``, ``float32 [n, C, d_v]``.
        changes: what else token i does to ``S``; None of running sums.
        held: numbers in the state.
        outputs: what the decoder answers, ``float64 [n, d_v]``.
        full: the same from the variant's own explicit matrix, ``float64 [n, d_v]``.
        cache: the keys and values that softmax would have to hold in the state's place, ``float32 [n, d + d_v]``.
        softmax: what softmax attention answers in its place, ``float64 [n, d_v]``.
        log_unit: ``S``, ``z`` and what is added are in units of e to this power; 0 unless they are beyond float32.
    """

    sums: np.ndarray
    keys: np.ndarray | None
    added: np.ndarray
    changes: Changes | None = None
    held: int
    outputs: np.ndarray
    full: np.ndarray
    cache: np.ndarray
    softmax: np.ndarray
    log_unit: float

    def before(self, i: int) -> np.ndarray:
        """``S_{i-1}``, ``[C, d_v]``, zeros before the first token."""
        return self.sums[i - 1] if i else np.zeros_like(self.sums[0])

    def faded(self, i: int) -> np.ndarray:
        """What fading makes of the state before token i, ``-(1 - α_i) S_{i-1}``, ``[C, d_v]``."""
        assert self.changes is not None
        return -self.changes.fades[i][:, None] * self.before(i)

    def erased(self, i: int) -> np.ndarray:
        """What token i takes back of what its key reads, as a change of the state, ``[C, d_v]``."""
        return self.sums[i] - self.added[i] - self.before(i) - self.faded(i)

    @property
    def channels(self) -> np.ndarray:
        """How much each channel holds after each token, the length of its row of ``S_i``, ``float64 [n, C]``."""
        held: np.ndarray = np.linalg.norm(self.sums.astype(float), axis=-1)
        return held

    @property
    def removed(self) -> np.ndarray:
        """How much of the state each token takes away, the length of what fades and is erased, ``float64 [n]``."""
        return lengths(np.diff(self.sums, axis=0, prepend=0) - self.added)

    def difference(self, i: int) -> float:
        """The largest difference of an entry of the variant's two outputs of token i."""
        return float(abs(self.outputs[i] - self.full[i]).max())

    def lost(self, i: int) -> float:
        """How far the output of token i lies from softmax's, as a share of that one's length."""
        reference = torch.tensor(self.softmax[i : i + 1])
        return float(relative_error(torch.tensor(self.outputs[i : i + 1]), reference))


def followed(qkv: QKV, attention: Attention) -> int:
    """Return how many of a record's tokens `grow` follows: as many as have ``NUMBERS`` numbers in all their states."""
    decoder = attention.variant.decoder
    assert decoder is not None
    first, value = qkv.q[0, 0].double(), qkv.v[0, 0].double()
    state = _state(decoder.init_state(first, value, attention.params))
    return min(qkv.n, max(1, NUMBERS // state.sums.numel()))


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
    memory, kept = decoder.init_state(q[0], v[0], p), followed(qkv, attention)
    q, k, v = q[:kept], k[:kept], v[:kept]
    outputs, states, alone, taken = [], [], [], []
    for token in zip(q, k, v, strict=True):
        if decoder.tokens is not None:
            taken.append(decoder.tokens(memory, *token[:2], p))
        # What a token adds is the state it makes, at its own place, of an empty one.
        alone.append(_state(decoder.step(_emptied(memory), *token, p)[1]))
        out, memory = decoder.step(memory, *token, p)
        outputs.append(out)
        states.append(_state(memory))
    last = states[-1].reference
    log_unit = 0.0 if last is None or float(last.max()) < RANGE else float(last.max())
    sums, added = (torch.stack([_scaled_back(state, log_unit) for state in made]) for made in (states, alone))
    d_v = v.shape[-1]
    return Grown(
        sums=sums[..., :d_v].numpy(),
        keys=sums[..., -1].numpy() if decoder.normalised else None,
        added=added[..., :d_v].numpy(),
        changes=_changes(taken) if taken else None,
        held=sums[0].numel() + (0 if decoder.normalised else _beside(memory)),
        outputs=torch.stack(outputs).numpy(),
        full=(attention.weights(q, k, causal=True) @ v).numpy(),
        cache=torch.cat([k, v], -1).float().numpy(),
        softmax=registry.get("softmax").attend(q, k, v, causal=True).numpy(),
        log_unit=log_unit,
    )


def _changes(taken: Sequence[Tokens]) -> Changes:
    """What tokens do before they write, from how each is taken in, ``[1, *]``."""
    fades = [torch.zeros_like(token.k) if token.gates is None else -token.gates.expm1() for token in taken]
    directions = [token.k if token.along is None else token.along for token in taken]
    erases = [
        token.erase * w.square().sum(-1, keepdim=True)
        for token, w in zip(taken, directions, strict=True)
        if token.erase is not None
    ]
    return Changes(
        fades=torch.cat([fade.expand_as(token.k) for fade, token in zip(fades, taken, strict=True)]).numpy(),
        erases=torch.cat(erases).flatten().numpy() if erases else None,
        along=any(token.along is not None for token in taken),
    )


def _beside(memory: Any) -> int:  # noqa: ANN401 - each decoder has its own memory
    """Numbers that a memory of fast weights holds beside its matrix."""
    return sum(part.numel() for part in memory if isinstance(part, Tensor)) - memory.sums.numel()


def _state(memory: Any) -> State:  # noqa: ANN401 - each decoder has its own memory
    """The sums in a decoder's memory: plain, beside what keeps them in range, or beside what else it needs."""
    if isinstance(memory, Tensor):
        return State(memory, None)
    if isinstance(memory, State):
        return memory
    return memory.state if hasattr(memory, "state") else State(memory.sums, None)


def _emptied(memory: Any) -> Any:  # noqa: ANN401 - each decoder has its own memory
    """The memory with nothing in its sums, and all else as it is."""
    if isinstance(memory, Tensor):
        return torch.zeros_like(memory)
    if hasattr(memory, "state"):
        return memory._replace(state=_emptied(memory.state))
    return memory._replace(sums=torch.zeros_like(memory.sums))


def _scaled_back(state: State, log_unit: float) -> Tensor:
    """``Σ φ(k_j) [v_j, 1]ᵀ`` itself, ``float32 [..., C, d_v + 1]``: a decoder holds it over e to its reference.

    Fast weights, which have no normaliser, are held as they are, ``[..., C, d_v]``.
    """
    if state.reference is None:
        return state.sums.float()
    return (state.sums * (state.reference - log_unit).exp().mT).float()
