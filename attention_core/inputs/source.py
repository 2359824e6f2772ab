"""Where queries, keys and values come from, as a frozen description that can be compared, hashed and loaded.

Whatever differs between sources is said by their classes: nobody else asks of which kind one is.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Self

from attention_core.errors import InputError
from attention_core.inputs import models
from attention_core.inputs.npz import printable
from attention_core.inputs.positions import ALIBI, NONE, OWN, ROPE, Placed, Positions, Rope, placed
from attention_core.inputs.record import QKV, Notice
from attention_core.inputs.synthetic import SyntheticSpec, from_synthetic
from attention_core.inputs.text import from_text, read
from attention_core.inputs.upload import from_upload
from attention_core.limits import current


@dataclass(frozen=True, repr=False)
class Source(ABC):
    """What every source says of itself; most have nothing to add to what stands here.

    Attributes:
        key: its word in links.
        made: whether sequences of any length and seed can be made.
        trained: whether it may hold a trained model's attention.
        written: whether the visitor writes it, and can write more of it.
        positions: whether queries and keys are as the source has them, or in one of the other ``CHOICES``.
    """

    positions: Positions = field(default=OWN, kw_only=True)

    key: ClassVar[str]
    made: ClassVar[bool] = False
    trained: ClassVar[bool] = True
    written: ClassVar[bool] = False
    layer = 0  # no field: a text has one of its own

    def __repr__(self) -> str:
        # An address, a cache and a line of code from before there was a choice of positions stay the same.
        told = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr and not f.kw_only]
        return f"{type(self).__name__}({', '.join(told)}{self._positions_code})"

    def load(self, tokens: int | None = None) -> QKV:
        """The record at the source's own length, or at another number of tokens.

        Raises:
            LabError: if there is no such record, or not with the positions that are asked for.
        """
        return placed(self._own(tokens), self.own_rope, self.positions)

    @abstractmethod
    def _own(self, tokens: int | None) -> QKV:
        """The same with the positions that the source has."""

    def room(self, record: QKV) -> int:
        """The most tokens it can be measured at.

        Args:
            record: its record at its own length, which may have been cut for drawing.
        """
        return record.n

    def at_length(self, tokens: int, longest: int, load: "Load") -> QKV:
        """Its record at a number of tokens.

        Args:
            tokens: how many.
            longest: the most that will be asked of this source.
            load: turns a source into a record.

        Raises:
            LabError: if it cannot become a record of this length.
        """
        return first_tokens(load(self, None), tokens)

    def reseeded(self, seeds: int) -> "tuple[tuple[int | None, Source], ...]":
        """The same with several seeds, from its own onwards; alone and without a seed where nothing is drawn."""
        return ((None, self),)

    @property
    def layer_count(self) -> int:
        """Layers that it can be read at.

        Raises:
            ModelError: if its model cannot be had.
        """
        return 1

    def at_layer(self, layer: int) -> "Source":
        """The same read at another layer."""
        return self

    def layers(self, load: "Load") -> Sequence[QKV]:
        """Its record at every layer, of which its own is number ``layer``.

        Raises:
            LabError: if it cannot become a record.
        """
        return (load(self, None),)

    def each(self, layers: Sequence[QKV]) -> Sequence[QKV]:
        """The records of its layers, from those with the positions that the source has."""
        return layers if self.positions == OWN else Placed(layers, self.own_rope, self.positions)

    @property
    def own_rope(self) -> Rope | None:
        """How the source turns queries and keys; None where it does not, or nobody knows."""
        return None

    @property
    def rope(self) -> Rope | None:
        """How its queries and keys have been turned; None where they have not, or nobody knows."""
        own = self.own_rope
        return {OWN: own, ROPE: own or Rope()}.get(self.positions)

    @property
    def settled(self) -> Self:
        """The same with its own positions where those asked for are its own anyway: numbers alike, notices not."""
        same = ROPE if self.own_rope else NONE
        return replace(self, positions=OWN) if self.positions == same else self

    def rope_notice(self) -> Notice:
        """Which of the forms with and without RoPE it has, and where the other comes from."""
        own = self.own_rope
        if self.positions == ALIBI:
            return Notice(
                "ALiBi takes the place of RoPE in these queries and keys, as chosen; the other forms are the same ones "
                "without it."
            )
        if own and self.positions == NONE:
            return Notice(
                "RoPE is taken out of these queries and keys, as chosen; with it they are as the input has them."
            )
        if not own and self.positions == ROPE:
            return Notice(
                "These queries and keys are turned by RoPE, as chosen; without it they are as the input has them."
            )
        return self._own_notice()

    @abstractmethod
    def _own_notice(self) -> Notice:
        """The same while the choice changes nothing."""

    def lengths_notice(self, record: QKV) -> Notice:
        """What its record at another length is."""
        return Notice("Each length is the beginning of the same queries and keys; in a causal model that is exact.")

    @property
    def code(self) -> str:
        """The Python that makes it again, where ``attention_core`` is ``ac``."""
        return f"ac.inputs.{self!r}"

    @property
    def _positions_code(self) -> str:
        return "" if self.positions == OWN else f", positions={self.positions!r}"


Load = Callable[[Source, int | None], QKV]
"""Turns a source into a record at a number of tokens; an app passes its cached one."""


@dataclass(frozen=True, repr=False)
class TextSource(Source):
    """A text through one layer of a model.

    Attributes:
        text: the text.
        model: key of a built-in model, or ``owner/name``.
        layer: from 0.
    """

    text: str
    model: str = "minilm"
    layer: int = 0

    key = "text"
    written = True

    def _own(self, tokens: int | None) -> QKV:
        """The record of the text, or of its first tokens, read by the model as a text that ends there."""
        return from_text(self.text, model=self.model, layer=self.layer, max_tokens=tokens)

    def room(self, record: QKV) -> int:
        """The whole text, as far as the model and the bounds go."""
        return min(record.total_tokens, models.load(self.model).info.positions, current().sweep_tokens)

    def at_length(self, tokens: int, longest: int, load: Load) -> QKV:
        """A causal model's record of a beginning is the beginning of its record, so the model reads the text once.

        One that reads both ways reads each beginning as a text of its own.
        """
        record = load(self, None)
        if not record.causal:
            return load(self, tokens)
        return first_tokens(load(self, longest) if tokens > record.n else record, tokens)

    @property
    def layer_count(self) -> int:
        """Layers of the model."""
        return models.layer_count(self.model)

    def at_layer(self, layer: int) -> "TextSource":
        """The same text."""
        return replace(self, layer=layer)

    def layers(self, load: Load) -> Sequence[QKV]:
        """One pass of the model."""
        return self.each(read(self.text, model=self.model))

    @property
    def own_rope(self) -> Rope | None:
        """As the model does."""
        info = models.load(self.model).info
        return Rope(base=info.rotary_base, halves=True) if info.rotary else None

    def _own_notice(self) -> Notice:
        """As the model was trained."""
        info = models.load(self.model).info
        if not info.rotary:
            return Notice(
                "{model} was trained without RoPE: turned by it, its queries and keys show what RoPE does.",
                (("model", info.title),),
            )
        if info.rotary_base is None:
            return Notice(
                "{model} turns queries and keys by RoPE before they are recorded, and how is not known.",
                (("model", info.title),),
            )
        return Notice(
            "{model} turns queries and keys by RoPE, with base {base:,.0f}, before they are recorded; without it they "
            "are turned back.",
            (("model", info.title), ("base", info.rotary_base)),
        )

    def lengths_notice(self, record: QKV) -> Notice:
        """As the model reads."""
        if record.causal:
            return super().lengths_notice(record)
        return Notice("The model reads both ways, so each length is the text's beginning read as a text of its own.")


@dataclass(frozen=True, repr=False)
class SyntheticSource(Source):
    """A synthetic sequence."""

    spec: SyntheticSpec

    key = "synthetic"
    made = True
    trained = False

    def _own(self, tokens: int | None) -> QKV:
        """The sequence, or one of the same kind and seed with another number of tokens."""
        return from_synthetic(self.spec if tokens is None else replace(self.spec, n=tokens))

    def room(self, record: QKV) -> int:
        """What the bounds allow."""
        limits = current()
        numbers = limits.synthetic_numbers // (self.spec.heads * self.spec.d)
        return min(limits.sweep_tokens, limits.synthetic_tokens, numbers)

    def at_length(self, tokens: int, longest: int, load: Load) -> QKV:
        """A sequence of its own."""
        return load(self, tokens)

    def reseeded(self, seeds: int) -> tuple[tuple[int | None, Source], ...]:
        """One sequence for each seed."""
        own = self.spec.seed
        return tuple((seed, replace(self, spec=replace(self.spec, seed=seed))) for seed in range(own, own + seeds))

    @property
    def own_rope(self) -> Rope | None:
        """As the spec says."""
        return Rope() if self.spec.rope else None

    def _own_notice(self) -> Notice:
        """The same for all sequences."""
        return Notice("Both are the same queries and keys, whether RoPE is switched on for this sequence or not.")

    def lengths_notice(self, record: QKV) -> Notice:
        """The same for all sequences."""
        return Notice("Each length is a new sequence of the same kind and seed.")

    @property
    def code(self) -> str:
        """The spec in full."""
        return f"ac.inputs.SyntheticSource(ac.inputs.{self.spec!r}{self._positions_code})"


@dataclass(frozen=True, repr=False)
class UploadSource(Source):
    """An uploaded file. Its digest is its identity; the bytes take no part in comparisons.

    Attributes:
        name: the file's name.
        digest: SHA-256 of the bytes.
        data: the bytes.
    """

    name: str
    digest: str
    data: bytes = field(repr=False, compare=False)

    key = "upload"

    @classmethod
    def of(cls, name: str, data: bytes, *, positions: Positions = OWN) -> "UploadSource":
        """The source of a file's bytes; its name as far as it can be shown."""
        return cls(printable(name), hashlib.sha256(data).hexdigest(), data, positions=positions)

    def _own(self, tokens: int | None) -> QKV:
        """The file's record, or its first tokens."""
        qkv = from_upload(self.data, self.name)
        return qkv if tokens is None else first_tokens(qkv, tokens)

    def _own_notice(self) -> Notice:
        """The same for all files."""
        return Notice(
            "A file does not tell whether RoPE is in it: it is taken to be without, and turned for the other."
        )

    @property
    def code(self) -> str:
        """The bytes are not in it: they are read from a file."""
        return f'ac.inputs.UploadSource.of({self.name!r}, open("your-file.npz", "rb").read(){self._positions_code})'


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
