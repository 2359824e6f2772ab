"""The classes ``ModelInfo``, a description of a model, and ``LoadedModel``, a model that is ready to read text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention_core.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
"""Pattern of a valid hub name, ``owner/name``."""


def unrecordable_error(name: str) -> ModelError:
    """Return the error for a model that does not use transformers' attention interface, needed to record q, k and v."""
    return ModelError(
        "{name} does not use the attention interface of the Transformers library, so its queries and keys cannot be "
        "recorded. Choose a model such as BERT, GPT-2 or Llama.",
        name=name,
    )


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """The description of a model, as shown in menus, captions and credits.

    Attributes:
        key: argument of ``from_text(model=...)``.
        title: name on screen.
        layers: number of attention layers.
        heads: query heads per layer.
        head_size: size d of a head.
        positions: maximum number of tokens.
        causal: whether future keys are hidden.
        note: facts needed to interpret results of the model, such as its languages and quantisation.
        credit: authors of the weights, and their licence.
        rotary: whether the recorded queries and keys have been rotated by their positions (RoPE).
        rotary_base: base of the angles ``base^(-2i/d)`` of pairs ``(i, i + d/2)``; None if nothing is rotated or the
            rotation may be a different one.
    """

    key: str
    title: str
    layers: int
    heads: int
    head_size: int
    positions: int
    causal: bool
    note: str
    credit: str
    rotary: bool = False
    rotary_base: float | None = None


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model that is ready to read text; shared between threads and never changed.

    Attributes:
        info: description of the model.
        model: the network, in float32, without gradient, with the attention function that ``recorder`` registers.
        tokenizer: converts text to token numbers with offsets, without padding or truncation.
        unknown_id: token for everything that the tokenizer does not know; None if there is no such token.
    """

    info: ModelInfo
    model: PreTrainedModel
    tokenizer: Tokenizer
    unknown_id: int | None
