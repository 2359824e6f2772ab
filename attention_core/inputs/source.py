"""Sources of queries, keys and values: immutable descriptions of an input that can be compared, hashed and loaded.

Loading a source gives a ``QKV``: the queries, keys and values of one attention layer.
Each kind of source is a class. Code outside this module uses its methods and never checks the class.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Self

from attention_core.errors import InputError, Notice
from attention_core.inputs import models
from attention_core.inputs.npz import printable
from attention_core.inputs.positions import ALIBI, NONE, OWN, ROPE, PositionedLayers, Positions, Rope, with_positions
from attention_core.inputs.record import QKV
from attention_core.inputs.synthetic import SyntheticSpec, from_synthetic
from attention_core.inputs.text import from_text, read
from attention_core.inputs.upload import from_upload
from attention_core.limits import current


@dataclass(frozen=True, repr=False)
class Source(ABC):
    """The base class of all sources; subclasses override only what differs.

    Attributes:
        key: name of the kind in links.
        is_generated: whether sequences of any length and seed can be generated.
        may_be_trained: whether queries and keys may come from a trained model.
        is_text: whether the visitor writes the input and can extend it.
        is_offered: whether the app offers it; otherwise only programs use it.
        positions: position encoding of queries and keys, one of ``CHOICES``; ``"own"`` leaves them unchanged.
    """

    positions: Positions = field(default=OWN, kw_only=True)

    key: ClassVar[str]
    is_generated: ClassVar[bool] = False
    may_be_trained: ClassVar[bool] = True
    is_text: ClassVar[bool] = False
    is_offered: ClassVar[bool] = True
    layer = 0  # not annotated, so not a dataclass field; subclasses with several layers declare a field

    def __repr__(self) -> str:
        # The default ``positions`` is left out, so that addresses, cache keys and code that were made before this
        # field existed stay the same.
        parts = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr and not f.kw_only]
        return f"{type(self).__name__}({', '.join(parts)}{self._positions_code})"

    def load(self, tokens: int | None = None) -> QKV:
        """Return the ``QKV`` at the source's own length, or at another number of tokens.

        Raises:
            LabError: if the source cannot be loaded, or not with the requested positions.
        """
        return with_positions(self._load_original(tokens), self.own_rope, self.positions)

    @abstractmethod
    def _load_original(self, tokens: int | None) -> QKV:
        """Return the ``QKV`` with the source's own positions; see ``load``."""

    def max_tokens(self, record: QKV) -> int:
        """Return the maximum number of tokens of a measurement.

        Args:
            record: the ``QKV`` at the source's own length, which may have been cut for drawing.
        """
        return record.m

    def at_length(self, tokens: int, longest: int, load: "Load") -> QKV:
        """Return the ``QKV`` at a number of tokens.

        Args:
            tokens: number of tokens.
            longest: largest number of tokens that the caller will request from this source.
            load: function that turns a source into a ``QKV``.

        Raises:
            LabError: if the source cannot be loaded at this length.
        """
        return first_tokens(load(self, None), tokens)

    def reseeded(self, seeds: int) -> "tuple[tuple[int | None, Source], ...]":
        """Return pairs of seed and source for consecutive seeds from the source's own on.

        ``(None, self)`` without a seed.
        """
        return ((None, self),)

    @property
    def layer_count(self) -> int:
        """The number of layers.

        Raises:
            ModelError: if the model is not available.
        """
        return 1

    def at_layer(self, layer: int) -> "Source":
        """Return the same source at another layer."""
        return self

    def layers(self, load: "Load") -> Sequence[QKV]:
        """Return the ``QKV`` records of all layers; the source's own ``QKV`` is at index ``layer``."""
        return (load(self, None),)

    def apply_positions(self, layers: Sequence[QKV]) -> Sequence[QKV]:
        """Return the ``QKV`` records of all layers with the requested positions, made from the original ``layers``."""
        return layers if self.positions == OWN else PositionedLayers(layers, self.own_rope, self.positions)

    @property
    def own_rope(self) -> Rope | None:
        """The RoPE of the source's own queries and keys; its base is None if unknown. None if no RoPE is known."""
        return None

    @property
    def rope(self) -> Rope | None:
        """The RoPE of the queries and keys with the requested positions, as in ``own_rope``; None without RoPE."""
        own = self.own_rope
        return {OWN: own, ROPE: own or Rope()}.get(self.positions)

    @property
    def canonical(self) -> Self:
        """The same source with ``positions=OWN`` if that gives the same queries and keys, otherwise unchanged."""
        equal = ROPE if self.own_rope else NONE
        return replace(self, positions=OWN) if self.positions == equal else self

    def rope_notice(self) -> Notice:
        """Return a notice that says whether the source uses RoPE, and how results with or without it are computed."""
        own = self.own_rope
        if self.positions == ALIBI:
            return Notice(
                "The option “ALiBi” is selected, so this input uses ALiBi instead of RoPE. For comparison, results "
                "are also computed with RoPE and without RoPE, in both cases without ALiBi."
            )
        if own is None:
            return Notice(
                "The lab knows of no RoPE that was applied to the original queries and keys of this input. Queries and "
                "keys with RoPE are computed from them by rotations that depend on the position."
            )
        if own.base is None:
            return Notice(
                "RoPE was applied to the original queries and keys of this input. The rotation angles are not known, "
                "so RoPE cannot be removed."
            )
        return Notice(
            "RoPE with base {base:,.0f} was applied to the original queries and keys of this input. To compute queries "
            "and keys without RoPE, these rotations are reversed.",
            (("base", own.base),),
        )

    def lengths_notice(self, record: QKV) -> Notice:
        """Return a notice that says how this source makes queries and keys at lengths other than that of ``record``."""
        if record.crosses:
            return Notice(
                "The keys come from another sequence than the queries, so only the keys are shortened. At length n, "
                "all queries attend to the first n keys only."
            )
        return Notice(
            "For a length of n tokens, only the first n tokens are used, with their queries and keys from the whole "
            "sequence. In a causal model, queries and keys do not depend on later tokens, so they are the same as if "
            "the model read only the shorter sequence."
        )

    @property
    def code(self) -> str:
        """The Python expression that makes this source again, where ``ac`` is ``attention_core``."""
        return f"ac.inputs.{self!r}"

    @property
    def _positions_code(self) -> str:
        return "" if self.positions == OWN else f", positions={self.positions!r}"


Load = Callable[[Source, int | None], QKV]
"""A function ``(source, tokens) -> QKV``, as ``source.load``; the app passes one with a cache."""


@dataclass(frozen=True, repr=False)
class TextSource(Source):
    """A text read by one layer of a model.

    Attributes:
        text: the text.
        model: key of a built-in model, or ``owner/name``.
        layer: layer, counted from 0.
    """

    text: str
    model: str = "minilm"
    layer: int = 0

    key = "text"
    is_text = True

    def _load_original(self, tokens: int | None) -> QKV:
        return from_text(self.text, model=self.model, layer=self.layer, max_tokens=tokens)

    def max_tokens(self, record: QKV) -> int:
        """Return the number of tokens of the whole text, limited by the model and the profile."""
        return min(record.total_tokens, models.load(self.model).info.positions, current().sweep_tokens)

    def at_length(self, tokens: int, longest: int, load: Load) -> QKV:
        """Return the ``QKV`` at a number of tokens.

        For a causal model, the first tokens of the longest ``QKV`` are used, so the model reads the text only once. Any
        other model reads the first tokens as a separate text.
        """
        record = load(self, None)
        if not record.causal:
            return load(self, tokens)
        return first_tokens(load(self, longest) if tokens > record.n else record, tokens)

    @property
    def layer_count(self) -> int:
        """The number of layers of the model."""
        return models.layer_count(self.model)

    def at_layer(self, layer: int) -> "TextSource":
        """Return the same text at another layer."""
        return replace(self, layer=layer)

    def layers(self, load: Load) -> Sequence[QKV]:
        """Return the ``QKV`` records of all layers from one forward pass."""
        return self.apply_positions(read(self.text, model=self.model))

    @property
    def own_rope(self) -> Rope | None:
        """The RoPE of the model; None if the model has no RoPE."""
        info = models.load(self.model).info
        return Rope(base=info.rotary_base, halves=True) if info.rotary else None

    def lengths_notice(self, record: QKV) -> Notice:
        """Return a notice on how the model makes queries and keys at other lengths, which depends on its causality."""
        if record.causal:
            return super().lengths_notice(record)
        return Notice(
            "The model is bidirectional, so its queries and keys depend on later tokens. For a length of n tokens, the "
            "model therefore reads only the first n tokens of the text."
        )


@dataclass(frozen=True, repr=False)
class SyntheticSource(Source):
    """A synthetic sequence.

    Attributes:
        spec: its settings.

    Example:
        >>> import attention_core as ac
        >>> source = ac.inputs.SyntheticSource(ac.inputs.SyntheticSpec(heads=2))
        >>> source.load(16).q.shape
        torch.Size([2, 16, 32])
    """

    spec: SyntheticSpec

    key = "synthetic"
    is_generated = True
    may_be_trained = False

    def _load_original(self, tokens: int | None) -> QKV:
        return from_synthetic(self.spec if tokens is None else replace(self.spec, n=tokens))

    def max_tokens(self, record: QKV) -> int:
        """Return the maximum number of tokens that the profile allows."""
        limits = current()
        numbers = limits.synthetic_numbers // (self.spec.heads * self.spec.d)
        return min(limits.sweep_tokens, limits.synthetic_tokens, numbers)

    def at_length(self, tokens: int, longest: int, load: Load) -> QKV:
        """Return a new sequence of that length."""
        return load(self, tokens)

    def reseeded(self, seeds: int) -> tuple[tuple[int | None, Source], ...]:
        """Return one pair of seed and source for each seed."""
        own = self.spec.seed
        return tuple((seed, replace(self, spec=replace(self.spec, seed=seed))) for seed in range(own, own + seeds))

    @property
    def own_rope(self) -> Rope | None:
        """The RoPE with default settings if ``spec`` asks for RoPE, else None."""
        return Rope() if self.spec.rope else None

    def lengths_notice(self, record: QKV) -> Notice:
        """Return a notice on how the ``QKV`` at another length is made, the same for all synthetic sequences."""
        return Notice("For each length, a new sequence of the same kind is generated from the same seed.")

    @property
    def code(self) -> str:
        """The Python expression that makes this source again, with the complete spec."""
        return f"ac.inputs.SyntheticSource(ac.inputs.{self.spec!r}{self._positions_code})"


@dataclass(frozen=True, repr=False)
class UploadSource(Source):
    """An uploaded file, identified by its digest; the bytes are not compared.

    Attributes:
        name: name of the file.
        digest: SHA-256 of the bytes.
        data: the bytes.
    """

    name: str
    digest: str
    data: bytes = field(repr=False, compare=False)

    key = "upload"

    @classmethod
    def of(cls, name: str, data: bytes, *, positions: Positions = OWN) -> "UploadSource":
        """Return the source of a file's bytes, with unprintable characters of its name replaced."""
        return cls(printable(name), hashlib.sha256(data).hexdigest(), data, positions=positions)

    def _load_original(self, tokens: int | None) -> QKV:
        return first_tokens(from_upload(self.data, self.name), tokens)

    @property
    def code(self) -> str:
        """The Python expression that makes this source again; the bytes are read from a placeholder path."""
        return f'ac.inputs.UploadSource.of({self.name!r}, open("your-file.npz", "rb").read(){self._positions_code})'


def first_tokens(qkv: QKV, tokens: int | None) -> QKV:
    """Return a ``QKV`` with only its first positions, or unchanged for None.

    For a causal model these are exactly the queries, keys and values of the shorter text. If the keys are those of
    another sequence, only keys and values are cut; all queries stay.

    Raises:
        InputError: if the ``QKV`` has fewer positions.
    """
    if tokens is None:
        return qkv
    if not 1 <= tokens <= qkv.m:
        raise InputError(
            "The input has {n} tokens. Choose a number from 1 to {n} instead of {tokens}.", n=qkv.m, tokens=tokens
        )
    if qkv.key_tokens is not None:
        return replace(qkv, k=qkv.k[:, :tokens], v=qkv.v[:, :tokens], key_tokens=qkv.key_tokens[:tokens])
    notice = Notice("Only the first {tokens} of {n} tokens are used.", (("tokens", tokens), ("n", qkv.n)))
    return replace(
        qkv,
        q=qkv.q[:, :tokens],
        k=qkv.k[:, :tokens],
        v=qkv.v[:, :tokens],
        tokens=qkv.tokens[:tokens],
        special=qkv.special[:tokens],
        groups=qkv.groups[:tokens],
        grid=qkv.grid if tokens == qkv.n else None,
        notices=(*qkv.notices, notice) if tokens < qkv.n else qkv.notices,
    )


def first_tokens_at_most(qkv: QKV, tokens: int) -> QKV:
    """Return the first tokens of a ``QKV``, or all tokens if there are fewer."""
    return first_tokens(qkv, min(tokens, qkv.n))
