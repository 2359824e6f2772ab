"""Replaces the attention in some layers of a model until a ``with`` block ends, for the calling thread only.

The model's weights, configuration and code stay unchanged. The function that computes the model's attention
(``inputs.models.recorder``) reads the replacement of a layer from a context variable. Threads have separate contexts,
so two threads may use different replacements in one shared model at the same time. Source of the interface: the
documentation of transformers, "Attention Interface".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from attention_core import registry
from attention_core.attention import Attention
from attention_core.errors import InputError, ModelError, NotCausalError
from attention_core.inputs.models.attention_interface import (
    RECORDER,
    attention_override,
    check_logits,
    hides_future,
    scale_of,
    usual_scale,
)
from attention_core.ops.softmax.masked import at_least_float32

if TYPE_CHECKING:
    from transformers import PreTrainedModel

UNIFORM = "uniform"
"""The word for the plain mean of the values."""


@dataclass(frozen=True)
class _MeanAttention:
    """The mean of the values of the allowed keys, independent of queries and keys: a baseline for variants."""

    word: str = UNIFORM
    title: str = "Equal weights"

    def attend(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False) -> Tensor:
        values = at_least_float32(v)
        if not causal:
            return values.mean(-2, keepdim=True).to(v.dtype).expand_as(v)
        counts = torch.arange(1, v.shape[-2] + 1, dtype=values.dtype, device=v.device)
        return (values.cumsum(-2) / counts[:, None]).to(v.dtype)

    def weights(self, q: Tensor, k: Tensor, *, causal: bool = False) -> Tensor:
        mask = at_least_float32(q.new_ones(q.shape[-2], q.shape[-2]))
        mask = mask.tril() if causal else mask
        return (mask / mask.sum(-1, keepdim=True)).to(q.dtype).expand(*q.shape[:-2], *mask.shape)


MEAN = _MeanAttention()
Attends = Attention | _MeanAttention
"""A replacement for softmax: an ``Attention``, or ``MEAN``."""


def from_word(word: str) -> Attends:
    """Return the variant that a word names, or ``MEAN`` for ``uniform``; errors as in ``registry.from_word``."""
    return MEAN if word == UNIFORM else registry.from_word(word)


@dataclass(frozen=True)
class _AttentionLayer:
    module: nn.Module
    causal: bool


class _Swap:
    """A function that computes attention for the replaced layers; it returns None for other layers.

    Args:
        replacements: the replacement of each attention module.
    """

    def __init__(self, replacements: Mapping[nn.Module, Attends]) -> None:
        self.replacements = replacements
        # A model that generates token by token passes only the queries of new tokens. The queries and keys of earlier
        # tokens are therefore stored for each module. Comparing the stored keys with the model's cache finds the
        # queries of each text.
        self._past: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def __call__(
        self,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        scaling: float | None,
        kwargs: dict[str, Any],
    ) -> Tensor | None:
        replacement = self.replacements.get(module)
        if replacement is None:
            return None
        check_logits(kwargs)
        causal, new = hides_future(module, kwargs), query.shape[-2]
        groups = query.shape[1] // key.shape[1]
        k, v = (x if groups == 1 else x.repeat_interleave(groups, dim=1) for x in (key, value))
        q = self._all_queries(module, usual_scale(query, scale_of(query, scaling)), key)
        is_token = None if mask is None else _token_mask(mask, causal)
        if is_token is None or bool(is_token.all()):
            return replacement.attend(q, k, v, causal=causal)[..., -new:, :]
        out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=v.dtype, device=v.device)
        for b, tokens in enumerate(is_token):
            out[b][:, tokens] = replacement.attend(*(x[b][:, tokens] for x in (q, k, v)), causal=causal)
        return out[..., -new:, :]

    def _all_queries(self, module: nn.Module, query: Tensor, key: Tensor) -> Tensor:
        """Return the queries of all tokens of ``key``; a model with a cache passes only the new ones in ``query``."""
        n_past = key.shape[-2] - query.shape[-2]
        if n_past > 0:
            past = self._past.get(module)
            texts = None if past is None else _same_texts(past[1], key[..., :n_past, :])
            if past is None or texts is None:
                raise ModelError(
                    "The cache contains tokens that the model did not read last with this replacement of its "
                    "attention. Start with an empty cache, and read one text after the other."
                )
            query = torch.cat((past[0][texts], query), -2)
        self._past[module] = query, key
        return query


def _same_texts(earlier: Tensor, cached: Tensor) -> list[int] | None:
    """Return, for each text of a batch in the cache, which earlier text has the same keys; None if a text has none.

    Beam search reorders and repeats the texts of the cache. Both tensors are ``[B, G, n, d]``.
    """
    if earlier.shape[1:] != cached.shape[1:]:
        return None
    if torch.equal(earlier, cached):
        return list(range(len(cached)))
    matches = [next((i for i, keys in enumerate(earlier) if torch.equal(keys, each)), None) for each in cached]
    found = [match for match in matches if match is not None]
    return found if len(found) == len(cached) else None


@contextmanager
def swapped(model: PreTrainedModel, places: Mapping[int, str | Attends]) -> Iterator[PreTrainedModel]:
    """Replace the attention in a model's layers until the block ends, in this thread only.

    Each replacement receives queries and keys with rotary positions, scaled so that its logits have the layer's
    scale. Each key and value head is repeated for its query heads, and padding is left out. Other layers attend as
    usual. A text may be read token by token with transformers' cache if all of it is read inside the block, and no
    other text in between. Swaps may be nested; the inner swap takes precedence.

    Args:
        model: a model from ``inputs.models.load``, or another model loaded with its attention interface.
        places: the replacement by layer number, counted from 0 in the order in which the layers attend. It may be
            given by its word, such as ``local~window~16``.

    Yields:
        The model.

    Raises:
        InputError: if the model has no such layer.
        UnknownVariantError: for an unknown variant.
        ModelError: if the model does not attend through the interface, or, inside the block, if its cache contains
            other tokens than those read last.
        NotCausalError: if a layer is causal and its variant cannot be.
    """
    layers, outer = attention_layers(model), attention_override.get()
    replacements = {layer: from_word(each) if isinstance(each, str) else each for layer, each in places.items()}
    for layer, attends in replacements.items():
        if layer not in range(len(layers)):
            raise InputError(
                "The model has no layer {layer}. Choose layers from 0 to {last}.", layer=layer, last=len(layers) - 1
            )
        if isinstance(attends, Attention) and attends.variant.causal_reason and layers[layer].causal:
            raise NotCausalError(
                "{title} cannot be causal: {reason}", title=attends.title, reason=attends.variant.causal_reason
            )
    inner = {layers[layer].module: attends for layer, attends in replacements.items()}
    token = attention_override.set(_Swap({**(outer.replacements if isinstance(outer, _Swap) else {}), **inner}))
    try:
        yield model
    finally:
        attention_override.reset(token)


def layer_range(word: str, count: int) -> tuple[int, ...]:
    """Return the layers that a word names: ``all``, one layer such as ``7``, or an inclusive range such as ``10-20``.

    Raises:
        InputError: if the word names no layers, or a layer that a model of ``count`` layers does not have.
    """
    first, dash, last = (f"0-{count - 1}" if word == "all" else word).partition("-")
    ends = first, (last if dash else first)
    if all(end.isascii() and end.isdecimal() and len(end) <= 4 for end in ends):
        low, high = map(int, ends)
        if low <= high < count:
            return tuple(range(low, high + 1))
    raise InputError(
        "Invalid layers: {word!r}. Write “all”, one layer such as 7, or a range such as 10-20. Layers are numbered "
        "from 0 to {last}.",
        word=word[:40],
        last=count - 1,
    )


_layers_by_model: WeakKeyDictionary[PreTrainedModel, tuple[_AttentionLayer, ...]] = WeakKeyDictionary()


def attention_layers(model: PreTrainedModel) -> tuple[_AttentionLayer, ...]:
    """Return a model's attention layers in order, found once by running the model on two tokens.

    Raises:
        ModelError: if it does not attend through the interface.
    """
    if model not in _layers_by_model:
        layers: list[_AttentionLayer] = []

        def record_layer(module: nn.Module, *rest: Any) -> None:  # noqa: ANN401 - the interface's further arguments
            layers.append(_AttentionLayer(module, hides_future(module, rest[-1])))

        token = attention_override.set(record_layer)
        try:
            with torch.no_grad():
                model(input_ids=torch.zeros(1, 2, dtype=torch.long, device=model.device))
        finally:
            attention_override.reset(token)
        if not layers:
            raise ModelError(
                "This model does not compute attention through the lab's interface. Load it with "
                'attn_implementation="{name}".',
                name=RECORDER,
            )
        _layers_by_model[model] = tuple(layers)
    return _layers_by_model[model]


def _token_mask(mask: Tensor, causal: bool) -> Tensor:
    """Return which tokens are not padding, ``bool [B, n]``.

    The attention mask is ``[B, 1 or H, r, n]`` for the last r tokens as queries; true or 0 means allowed.

    Raises:
        ModelError: if the mask hides more than padding and the future.
    """
    visible = (mask if mask.dtype == torch.bool else mask == 0)[:, 0]
    new, n = visible.shape[-2:]
    is_token = visible[:, -1]  # the last query can attend to all tokens, even if it is padding itself
    expected = is_token[:, None, :].expand_as(visible)
    if causal:
        expected = expected & torch.ones(n, n, dtype=torch.bool, device=mask.device).tril()[-new:]
    is_token_query = is_token[:, -new:, None]
    if bool(((visible != expected) & is_token_query).any()):
        raise ModelError(
            "At least one of the layers to replace hides tokens that a replacement would attend to, for example tokens "
            "outside a sliding window. Choose other layers, another model or a shorter text."
        )
    return is_token
