"""Records the queries, keys and values with which a model attends, through the attention interface of transformers.

A model made with ``attn_implementation=RECORDER`` uses torch's scaled dot product attention. Within ``record``, the q,
k and v of each layer are stored, after rotary positions. The function in ``attention_override``, if set, replaces the
attention. The recording and the replacement affect the calling thread only. Source: the documentation of transformers,
"Attention Interface".
"""

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
from attention_core.inputs.models.attention_interface import (
    RECORDER,
    attention_override,
    check_logits,
    hides_future,
    scale_of,
    usual_scale,
)
from attention_core.runtime import progress
from attention_core.runtime.torch_state import TORCH_STATE


@contextmanager
def model_loading_lock() -> Iterator[None]:
    """Hold a lock while a model is made or saved with transformers, and hide progress bars.

    While it makes or saves a model, transformers changes torch's default type and its own state for all threads.
    ``TORCH_STATE`` also protects torch's random generator, which transformers uses for weights that a file lacks.
    Progress bars would fill logs and notebooks. The caller's setting of progress bars is restored afterwards.
    """
    with TORCH_STATE:
        bars_enabled, hub_bars_disabled = logging.is_progress_bar_enabled(), are_progress_bars_disabled()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            if bars_enabled:
                logging.enable_progress_bar()
            if hub_bars_disabled:
                disable_progress_bars()
            else:
                enable_progress_bars()


class LayerQKV(CompactRepr):
    """The queries, keys and values of one layer.

    Attributes:
        q: ``[H, n, d]`` float32 on the CPU, scaled so that ``softmax(q kᵀ / √d)`` is the layer's attention.
        keys: ``[G, n, d]`` for G key-value heads, each shared by H / G neighbouring query heads.
        values: ``[G, n, d_v]``, shared in the same way.
        causal: whether the layer hides future keys.
        scale: the layer's own logit scale.
        masked: whether the layer hides more than future keys, for example by a sliding window.
    """

    q: Tensor
    keys: Tensor
    values: Tensor
    causal: bool
    scale: float
    masked: bool

    @property
    def k(self) -> Tensor:
        """The keys ``[H, n, d]``, with grouped heads repeated."""
        return self._repeated(self.keys)

    @property
    def v(self) -> Tensor:
        """The values ``[H, n, d_v]``, with grouped heads repeated."""
        return self._repeated(self.values)

    def _repeated(self, x: Tensor) -> Tensor:
        heads = self.q.shape[0] // x.shape[0]
        return x if heads == 1 else x.repeat_interleave(heads, dim=0)


class _LastLayerReached(Exception):  # noqa: N818 - not an error: ends the pass after the last requested layer
    """The exception that ends a forward pass after the last requested layer."""


class _Recording:
    def __init__(self, requested: Collection[int] | None) -> None:
        self.requested = requested
        self.n_layers = 0
        self.layers: dict[int, LayerQKV] = {}

    def add(self, layer: LayerQKV) -> None:
        if self.requested is None or self.n_layers in self.requested:
            self.layers[self.n_layers] = layer
        self.n_layers += 1
        if self.requested is not None and self.n_layers > max(self.requested):
            raise _LastLayerReached


_recording: ContextVar[_Recording | None] = ContextVar("attention_lab_recording", default=None)


def record(model: PreTrainedModel, ids: Sequence[int], layers: Collection[int] | None = None) -> dict[int, LayerQKV]:
    """Run a model over tokens and return the queries, keys and values of its layers.

    Args:
        model: made with ``attn_implementation=RECORDER``.
        ids: token numbers.
        layers: requested layers, counted from 0 in the order of the pass; the pass ends at the last of them. None
            for all.

    Returns:
        The queries, keys and values by layer number; empty if the model does not use the attention interface.
    """
    recording = _Recording(layers)
    token = _recording.set(recording)
    try:
        with torch.no_grad(), suppress(_LastLayerReached):
            model(input_ids=torch.tensor([list(ids)], device=model.device))
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
    **kwargs: Any,  # noqa: ANN401 - each model passes other arguments
) -> tuple[Tensor, None]:
    progress.check()  # a forward pass takes seconds, so it can be cancelled between two layers
    recording = _recording.get()
    if recording is not None:
        recording.add(_layer(module, query, key, value, attention_mask, scaling, kwargs))
    override = attention_override.get()
    output = override and override(module, query, key, value, attention_mask, scaling, kwargs)
    if output is not None:
        return output.transpose(1, 2).contiguous(), None
    return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)


def _layer(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float | None,
    kwargs: dict[str, Any],
) -> LayerQKV:
    check_logits(kwargs)
    scale, causal = scale_of(query, scaling), hides_future(module, kwargs)
    return LayerQKV(
        q=usual_scale(query[0].float(), scale).contiguous().cpu(),
        keys=key[0].float().contiguous().cpu(),
        values=value[0].float().contiguous().cpu(),
        causal=causal,
        scale=scale,
        masked=mask is not None and not _is_plain(mask, causal),
    )


def _is_plain(mask: Tensor, causal: bool) -> bool:
    """Return whether a mask hides exactly the future keys if ``causal``, or no key otherwise.

    In the mask, true or 0 means that a pair is allowed.
    """
    allowed = mask if mask.dtype == torch.bool else mask == 0
    all_pairs = torch.ones(mask.shape[-2:], dtype=torch.bool, device=mask.device)
    return bool((allowed == (all_pairs.tril() if causal else all_pairs)).all())


AttentionInterface.register(RECORDER, _attend)
AttentionMaskInterface.register(RECORDER, sdpa_mask)
