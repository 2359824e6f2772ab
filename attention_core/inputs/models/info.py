"""What is known of a model before and after it is loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
"""How a model of the hub is written."""


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """One model, as menus, captions and credits show it.

    Attributes:
        key: what ``from_text(model=...)`` takes.
        title: name on screen.
        layers: number of attention layers.
        heads: query heads per layer.
        head_size: size d of a head.
        positions: most tokens it reads.
        causal: whether it hides the future.
        note: what a reader of its numbers must know: languages, quantisation.
        credit: who made the weights, and their licence.
        rotary: whether queries and keys are recorded as turned by their positions (RoPE).
        rotary_base: the base of the angles ``base^(-2i/d)`` by which it turns its pairs ``(i, i + d/2)``; None where it
            turns nothing, or may do it in another way.
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
class Loaded:
    """A model ready to read text; shared by every thread and never changed.

    Attributes:
        info: what is known of it.
        model: the network, in float32, without gradient, attending through ``recorder.RECORDER``.
        tokenizer: text to token numbers, with offsets, without padding or truncation.
        unknown_id: the token that stands for whatever the tokenizer does not know, if there is one.
    """

    info: ModelInfo
    model: PreTrainedModel
    tokenizer: Tokenizer
    unknown_id: int | None
