"""Where queries, keys and values come from, as a frozen description that can be compared, hashed and loaded.

Each source has ``load(tokens=None) -> QKV``: the record at its own length, or at another number of tokens, for what is
measured against length.
"""

import hashlib
from dataclasses import dataclass, field, replace

from attention_core.errors import InputError
from attention_core.inputs.record import QKV, Notice
from attention_core.inputs.synthetic import SyntheticSpec, from_synthetic
from attention_core.inputs.text import from_text
from attention_core.inputs.upload import from_upload


@dataclass(frozen=True)
class TextSource:
    """A text through one layer of a model.

    Attributes:
        text: the text.
        model: key of a built-in model, or ``owner/name``.
        layer: from 0.
    """

    text: str
    model: str = "minilm"
    layer: int = 0

    def load(self, tokens: int | None = None) -> QKV:
        """The record of the text, or of its first tokens, read by the model as a text that ends there.

        Raises:
            InputError: if the text holds nothing the model reads.
            ModelError: if the model cannot be had.
        """
        return from_text(self.text, model=self.model, layer=self.layer, max_tokens=tokens)


@dataclass(frozen=True)
class SyntheticSource:
    """A synthetic sequence."""

    spec: SyntheticSpec

    def load(self, tokens: int | None = None) -> QKV:
        """The sequence, or one of the same kind and seed with another number of tokens.

        Raises:
            InputError: if the spec is out of bounds.
        """
        return from_synthetic(self.spec if tokens is None else replace(self.spec, n=tokens))


@dataclass(frozen=True)
class UploadSource:
    """An uploaded file. Its digest is its identity; the bytes take no part in comparisons.

    Attributes:
        name: the file's name.
        digest: SHA-256 of the bytes.
        data: the bytes.
    """

    name: str
    digest: str
    data: bytes = field(repr=False, compare=False)

    @classmethod
    def of(cls, name: str, data: bytes) -> "UploadSource":
        """The source of a file's bytes."""
        return cls(name, hashlib.sha256(data).hexdigest(), data)

    def load(self, tokens: int | None = None) -> QKV:
        """The file's record, or its first tokens.

        Raises:
            InputError: if the file is not what it should be.
        """
        qkv = from_upload(self.data, self.name)
        return qkv if tokens is None else first_tokens(qkv, tokens)


Source = TextSource | SyntheticSource | UploadSource


def first_tokens(qkv: QKV, tokens: int) -> QKV:
    """A record's first positions.

    In a causal model these are exactly the queries, keys and values of the shorter text.

    Raises:
        InputError: if there are fewer.
    """
    if not 1 <= tokens <= qkv.n:
        raise InputError("There are {n} tokens; ask for 1 to {n} of them, not {tokens}.", n=qkv.n, tokens=tokens)
    notice = Notice("The first {tokens} of {n} tokens are kept.", (("tokens", tokens), ("n", qkv.n)))
    return replace(
        qkv,
        q=qkv.q[:, :tokens],
        k=qkv.k[:, :tokens],
        v=qkv.v[:, :tokens],
        tokens=qkv.tokens[:tokens],
        special=qkv.special[:tokens],
        groups=qkv.groups[:tokens],
        notices=(*qkv.notices, notice) if tokens < qkv.n else qkv.notices,
    )
