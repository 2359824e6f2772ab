"""Records the queries, keys and values of a model that the caller has loaded with the ``transformers`` library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attention_core.errors import InputError, ModelError
from attention_core.inputs.models import LoadedModel, ModelInfo
from attention_core.inputs.models.info import unrecordable_error
from attention_core.inputs.record import QKV
from attention_core.inputs.text import read

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


def from_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast | Tokenizer,
    text: str,
    *,
    layer: int = 0,
    max_tokens: int | None = None,
) -> QKV:
    """Return the queries, keys and values of all heads of one layer, from a model that reads a text.

    During the call, the model runs in evaluation mode and its attention implementation is replaced. Both are restored.
    Other threads must not use the model during the call.

    Args:
        model: a model of transformers that uses its attention interface, on any device.
        tokenizer: the model's fast tokenizer, of transformers or of tokenizers.
        text: any text; if it is too long it is cut, with a notice.
        layer: layer, counted from 0.
        max_tokens: maximum number of tokens, as in ``from_text``.

    Returns:
        The ``QKV``, float32 on the CPU. Queries and keys are recorded after rotary positions.

    Raises:
        InputError: if the model can read nothing in the text, or the layer does not exist.
        ModelError: if the model does not use the attention interface, or the tokenizer is not a fast one.

    Example:
        >>> import attention_core as ac
        >>> loaded = ac.inputs.models.load("minilm")  # or a model of your own
        >>> ac.inputs.from_model(loaded.model, loaded.tokenizer, "the cat saw the dog", layer=3).q.shape
        torch.Size([12, 7, 32])
    """
    # ``recorder`` is not imported at the top of the file, because it imports transformers, which takes seconds.
    from attention_core.inputs.models.recorder import RECORDER

    config = model.config.get_text_config()
    layers = config.num_hidden_layers
    if not 0 <= layer < layers:
        raise InputError(
            "The model has no layer {layer}. Choose a layer from 0 to {last}.", layer=layer, last=layers - 1
        )
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        raise ModelError("This is not a fast tokenizer. Load the tokenizer with AutoTokenizer and use_fast=True.")
    tokenizer_copy = type(backend).from_str(backend.to_str())  # a copy, because the next two lines change it
    tokenizer_copy.no_truncation()
    tokenizer_copy.no_padding()
    name = getattr(model.config, "name_or_path", "") or type(model).__name__
    max_positions = getattr(tokenizer, "model_max_length", None) or 2**31
    info = ModelInfo(
        key=name,
        title=name,
        layers=layers,
        heads=getattr(config, "num_attention_heads", 0),
        head_size=getattr(config, "head_dim", None) or 0,  # 0 if unknown: reading a text does not need the size
        positions=min(max_positions, getattr(config, "max_position_embeddings", max_positions)),
        causal=bool(getattr(config, "is_decoder", False)),
        note="",
        credit="",
        rotary=bool(getattr(config, "rope_parameters", None)),
    )
    with _recording(model, RECORDER):
        records = read(
            text,
            model=LoadedModel(info, model, tokenizer_copy, getattr(tokenizer, "unk_token_id", None)),
            layers=(layer,),
            max_tokens=max_tokens,
        )
    if layer not in records.layers:
        raise unrecordable_error(name)
    return records[layer]


@contextmanager
def _recording(model: PreTrainedModel, implementation: str) -> Iterator[None]:
    before, modes = model.config._attn_implementation, [(module, module.training) for module in model.modules()]
    model.set_attn_implementation(implementation)
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
        model.set_attn_implementation(before)
