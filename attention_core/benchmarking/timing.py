"""Settings of a timing run, and the calls to time: forward pass, forward and backward pass, or one decoding step."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from attention_core.attention import Attention
from attention_core.benchmarking.full_matrix_mask import MaskedFullAttention, attention_from_word
from attention_core.errors import InputError, Name, Names, check_range
from attention_core.formatting import N_
from attention_core.ops.softmax.exact import exact_attention
from attention_core.runtime.devices import DEVICES

MODES = ("forward", "backward", "decode")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SIZES = (64, 128, 256, 512, 1024, 2048, 4096)
BOUNDS = {"tokens": 2**20, "heads": 256, "head size": 1024, "rounds": 100, "variants": 64}
"""Maximum values in a ``TimingSpec``, independent of what this machine can measure."""


@dataclass(frozen=True, kw_only=True)
class TimingSpec:
    """The settings of a timing run.

    Attributes:
        variants: variants with their settings, as written by ``Attention.word``, or their masks on the full matrix, as
            written by ``MaskedFullAttention.word``. Ratios need softmax among the variants.
        sizes: sequence lengths in tokens, ascending.
        mode: one of ``MODES``; ``"backward"`` is forward and backward together.
        causal: whether future keys are hidden; a decode step always hides them.
        device: ``"cpu"`` or ``"cuda"``.
        dtype: one of ``DTYPES``.
        heads: number of heads; the batch size is one.
        head_size: size d of queries, keys and values.
        rounds: samples of each variant at each length.

    Raises:
        LabError: for an unknown variant or setting, or a value out of bounds.
    """

    variants: tuple[str, ...]
    sizes: tuple[int, ...] = SIZES
    mode: str = "forward"
    causal: bool = False
    device: str = "cpu"
    dtype: str = "float32"
    heads: int = 8
    head_size: int = 64
    rounds: int = 5

    def __post_init__(self) -> None:
        for name, word, known in (
            ("mode", self.mode, MODES),
            ("device", self.device, DEVICES),
            ("dtype", self.dtype, tuple(DTYPES)),
        ):
            if word not in known:
                raise InputError(
                    "Invalid {name}: {word!r}. Choose one of {known}.",
                    name=Name(name),
                    word=word[:40],
                    known=Names(known),
                )
        for name, value in (
            (N_("heads"), self.heads),
            (N_("head size"), self.head_size),
            (N_("rounds"), self.rounds),
            (N_("variants"), len(self.variants)),
            *((N_("tokens"), n) for n in self.sizes),
        ):
            check_range(name, value, 1, BOUNDS[name])
        if not self.sizes or list(self.sizes) != sorted(set(self.sizes)):
            raise InputError("Choose at least one length. Lengths must be in increasing order, without repeats.")
        if len(set(self.variants)) < len(self.variants):
            raise InputError("Each variant can be listed only once.")
        for word in self.variants:
            attention_from_word(word)

    def output_bytes(self, n: int) -> int:
        """Return the bytes of the output for n queries."""
        return self.heads * n * self.head_size * DTYPES[self.dtype].itemsize

    @property
    def element(self) -> torch.dtype:
        """The torch dtype of the numbers."""
        return DTYPES[self.dtype]


def unsupported_reason(attention: Attention, *, mode: str, causal: bool) -> str | None:
    """Return one sentence on why a variant cannot be timed in a mode of ``MODES``; None if it can."""
    if mode == "decode":
        # A recurrent variant decodes with its state. Softmax can decode as well: one query attends to a cache of keys
        # and values.
        can_decode = not isinstance(attention, MaskedFullAttention) and (
            attention.variant.decoder is not None or attention.key == "softmax"
        )
        return None if can_decode else N_("It has no incremental decoding.")
    return attention.variant.causal_reason if causal else None


@lru_cache(maxsize=1)  # one entry, because a run times all variants at one length before the next length
def inputs(spec: TimingSpec, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return Gaussian queries, keys and values, ``[1, H, n, d]``, the same for every variant and run."""
    generator = torch.Generator(spec.device).manual_seed(n)
    q, k, v = torch.randn(3, 1, spec.heads, n, spec.head_size, generator=generator, device=spec.device)
    return q.to(spec.element), k.to(spec.element), v.to(spec.element)


class Backward:
    """A call that runs forward and backward together; ``backward_only`` returns a call of the backward only.

    Args:
        attend: function of q, k and v.
        q: ``[B, H, n, d]``.
        k: ``[B, H, n, d]``.
        v: ``[B, H, n, d_v]``.
    """

    def __init__(self, attend: Callable[[Tensor, Tensor, Tensor], Tensor], q: Tensor, k: Tensor, v: Tensor) -> None:
        self._attend = attend
        self._leaves = tuple(x.detach().requires_grad_() for x in (q, k, v))
        self._gradient = torch.ones_like(v)

    def __call__(self) -> tuple[Tensor, ...]:
        """Return the gradients of q, k and v; None for an input on which the output does not depend."""
        return torch.autograd.grad(self._forward(), self._leaves, self._gradient, allow_unused=True)

    def backward_only(self) -> Callable[[], tuple[Tensor, ...]]:
        """Run the forward now, and return its backward, which can be called repeatedly and retains the graph."""
        backward = partial(torch.autograd.grad, self._forward(), self._leaves, self._gradient)
        return partial(backward, allow_unused=True, retain_graph=True)

    @torch.enable_grad()
    def _forward(self) -> Tensor:
        return self._attend(*self._leaves)


def prepare(attention: Attention, q: Tensor, k: Tensor, v: Tensor, *, mode: str, causal: bool) -> Callable[[], Any]:
    """Return the function to time: a forward pass, a forward and backward pass, or a decode step, by ``mode``.

    Args:
        attention: a variant for which ``unsupported_reason`` returns None.
        q: ``[B, H, n, d]``.
        k: ``[B, H, n, d]``.
        v: ``[B, H, n, d_v]``.
        mode: one of ``MODES``.
        causal: whether future keys are hidden.
    """
    if mode == "decode":
        return _step(attention, q, k, v)
    if isinstance(attention, MaskedFullAttention):
        attend = attention.masked_call(q.shape[-2], q.device, causal=causal)
    else:
        attend = partial(attention.attend, causal=causal)
    return partial(attend, q, k, v) if mode == "forward" else Backward(attend, q, k, v)


def _step(attention: Attention, q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Any]:
    """Return a function that decodes the last token, from a state or with a cache of n keys and values.

    With a cache, the function writes the token's key and value into it.
    """
    token = q[..., -1, :].clone(), k[..., -1, :].clone(), v[..., -1, :].clone()
    decoder, params = attention.variant.decoder, attention.params
    if decoder is not None:
        # The state after one token is enough for timing, because neither its size nor the cost of a step depends on the
        # number of earlier tokens.
        _, state = decoder.step(decoder.init_state(token[0], token[2], params), *token, params)
        return lambda: decoder.step(state, *token, params)
    keys, values, query = k.clone(), v.clone(), token[0].unsqueeze(-2)

    def step() -> Tensor:
        keys[..., -1, :], values[..., -1, :] = token[1], token[2]
        return exact_attention(query, keys, values)

    return step
