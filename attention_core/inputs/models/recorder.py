"""The queries, keys and values a model really attends with, through transformers' own attention interface.

A model made with ``attn_implementation=RECORDER`` attends as torch's scaled dot product does; inside ``record`` each
layer's q, k, v are kept on the way, after rotary positions, and what ``instead`` holds may attend in its place. Both
belong to the calling thread alone.
Source: the documentation of transformers, "Attention Interface".
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import torch
from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.utils import logging

from attention_core.compact_repr import CompactRepr
from attention_core.inputs.models.attending import RECORDER, check_logits, hides_future, instead, scale_of, usual_scale
from attention_core.runtime import progress

_MAKING = threading.Lock()


@contextmanager
def making() -> Iterator[None]:
    """Let one thread at a time make or save a model with transformers, without progress bars.

    transformers changes torch's default type and itself meanwhile, for every thread. Its progress bars would fill logs
    and notebooks; whether it shows bars afterwards stays as the caller has set it.
    """
    with _MAKING:
        shown, hub_hidden = logging.is_progress_bar_enabled(), are_progress_bars_disabled()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            if shown:
                logging.enable_progress_bar()
            if hub_hidden:
                disable_progress_bars()
            else:
                enable_progress_bars()


class Layer(CompactRepr):
    """What one layer attended with.

    Attributes:
        q: ``[H, n, d]`` float32, scaled so that ``softmax(q kᵀ / √d)`` is the layer's attention.
        keys: ``[G, n, d]``; each serves H / G neighbouring heads.
        values: ``[G, n, d_v]``, likewise.
        causal: whether the layer hides the future.
        scale: the layer's own logit scale.
        masked: whether it hides more than the future, e.g. by a sliding window.
    """

    q: Tensor
    keys: Tensor
    values: Tensor
    causal: bool
    scale: float
    masked: bool

    @property
    def k(self) -> Tensor:
        """``[H, n, d]``, grouped heads repeated."""
        return self._repeated(self.keys)

    @property
    def v(self) -> Tensor:
        """``[H, n, d_v]``, likewise."""
        return self._repeated(self.values)

    def _repeated(self, x: Tensor) -> Tensor:
        heads = self.q.shape[0] // x.shape[0]
        return x if heads == 1 else x.repeat_interleave(heads, dim=0)


class _Enough(Exception):  # noqa: N818 - not an error: the last layer asked for is there
    """Ends a forward pass early."""


class _Recording:
    def __init__(self, wanted: Collection[int] | None) -> None:
        self.wanted = wanted
        self.seen = 0
        self.layers: dict[int, Layer] = {}

    def see(self, layer: Layer) -> None:
        if self.wanted is None or self.seen in self.wanted:
            self.layers[self.seen] = layer
        self.seen += 1
        if self.wanted is not None and self.seen > max(self.wanted):
            raise _Enough


_recording: ContextVar[_Recording | None] = ContextVar("attention_lab_recording", default=None)


def record(model: PreTrainedModel, ids: Sequence[int], layers: Collection[int] | None = None) -> dict[int, Layer]:
    """Run a model over tokens and return what its layers attended with.

    Args:
        model: made with ``attn_implementation=RECORDER``.
        ids: the tokens.
        layers: the layers wanted, counted from 0 in the order they attend; the pass ends at the last. None for all.

    Returns:
        Layer number to its record; empty where the model does not attend through the interface.
    """
    recording = _Recording(layers)
    token = _recording.set(recording)
    try:
        with torch.no_grad(), suppress(_Enough):
            model(input_ids=torch.tensor([list(ids)]))
    finally:
        _recording.reset(token)
    return recording.layers


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,  # noqa: ANN401 - each model's layers pass their own
) -> tuple[Tensor, None]:
    progress.check()  # between two layers a pass of seconds can be stopped
    recording = _recording.get()
    if recording is not None:
        recording.see(_layer(module, query, key, value, attention_mask, scaling, kwargs))
    other = instead.get()
    found = other and other(module, query, key, value, attention_mask, scaling, kwargs)
    if found is not None:
        return found.transpose(1, 2).contiguous(), None
    return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)


def _layer(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float | None,
    kwargs: dict[str, Any],
) -> Layer:
    check_logits(kwargs)
    scale, causal = scale_of(query, scaling), hides_future(module, kwargs)
    return Layer(
        q=usual_scale(query[0].float(), scale).contiguous(),
        keys=key[0].float().contiguous(),
        values=value[0].float().contiguous(),
        causal=causal,
        scale=scale,
        masked=mask is not None and not _is_plain(mask, causal),
    )


def _is_plain(mask: Tensor, causal: bool) -> bool:
    """Whether a mask (true or 0 = may look) says no more than causal or not."""
    visible = mask if mask.dtype == torch.bool else mask == 0
    full = torch.ones(mask.shape[-2:], dtype=torch.bool)
    return bool((visible == (full.tril() if causal else full)).all())


AttentionInterface.register(RECORDER, _attend)
AttentionMaskInterface.register(RECORDER, sdpa_mask)
