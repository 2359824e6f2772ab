"""Text through a trained model, becoming the queries, keys and values of its layers."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from attention_core import limits
from attention_core.compact_repr import CompactRepr
from attention_core.errors import InputError
from attention_core.inputs import models
from attention_core.inputs.labels import label_pieces, readable
from attention_core.inputs.record import QKV, Notice

if TYPE_CHECKING:
    from attention_core.inputs.models.recorder import Layer

WORDS_SHOWN = 40
"""Characters of the text shown where a notice says up to which words it is read."""

MASKED = (
    "Layer {layer} of {title} sees only a part of the text, by a sliding window for example; "
    "the matrices here have no such bound."
)


class Reading(CompactRepr, Sequence[QKV]):
    """A text as a model has read it: a sequence of the records of its layers, each made when it is asked for.

    Attributes:
        tokens: as of the records, like the three that follow.
        special: likewise.
        groups: likewise.
        total_tokens: likewise.
        notices: those of every layer.
        model: the model's key, for captions.
        title: its name.
        depth: layers of the model.
        layers: what was kept of its forward pass.
    """

    tokens: tuple[str, ...]
    special: tuple[bool, ...]
    groups: tuple[int, ...]
    total_tokens: int
    notices: tuple[Notice, ...]
    model: str
    title: str
    depth: int
    layers: "dict[int, Layer]"

    def __len__(self) -> int:
        return self.depth

    def __iter__(self) -> Iterator[QKV]:
        return map(self.__getitem__, range(self.depth))

    def __getitem__(self, layer: int) -> QKV:  # type: ignore[override]  # a layer, never a slice
        """The record of a layer, from 0.

        Raises:
            InputError: if the model has no such layer.
        """
        _check_layer(layer, self.depth, self.title)
        found = self.layers[layer]
        masked = (_notice(MASKED, layer=layer, title=self.title),) if found.masked else ()
        return QKV(
            q=found.q,
            k=found.k,
            v=found.v,
            tokens=self.tokens,
            special=self.special,
            groups=self.groups,
            causal=found.causal,
            scale=found.scale,
            origin=f"{self.model} layer {layer}",
            total_tokens=self.total_tokens,
            notices=(*self.notices, *masked),
        )

    @property
    def nbytes(self) -> int:
        """What it holds: grouped keys and values once."""
        return sum(x.nbytes for layer in self.layers.values() for x in (layer.q, layer.keys, layer.values))


def from_text(text: str, *, model: str = "minilm", layer: int = 0, max_tokens: int | None = None) -> QKV:
    """Queries, keys and values of one layer, all heads, of a model that reads a text.

    The forward pass ends at that layer.

    Args:
        text: any text; what is too long is cut, and a notice says where.
        model: key of a built-in model (``models.BUILT_IN``) or ``owner/name`` of one on the Hugging Face hub.
        layer: from 0.
        max_tokens: most tokens kept, special ones included; None for as many as a drawn matrix may have
            (``limits.current().matrix_tokens``). The model's positions and the profile's bound on what is measured
            (``sweep_tokens``) hold besides.

    Raises:
        InputError: if the text holds nothing the model reads, or the layer or the number of tokens is out of bounds.
        ModelError: if the model cannot be had.
    """
    return record_layers(text, model=model, layers=(layer,), max_tokens=max_tokens)[0]


def record_layers(
    text: str, *, model: str = "minilm", layers: Sequence[int] | None = None, max_tokens: int | None = None
) -> tuple[QKV, ...]:
    """Queries, keys and values of several layers in one forward pass.

    Args:
        text: as in ``from_text``.
        model: as in ``from_text``.
        layers: from 0; None for all.
        max_tokens: as in ``from_text``.

    Returns:
        One record per layer, in the order asked for.

    Raises:
        InputError: as ``from_text``.
        ModelError: as ``from_text``.
    """
    found = read(text, model=model, layers=layers, max_tokens=max_tokens)
    return tuple(found if layers is None else map(found.__getitem__, layers))


def read(
    text: str, *, model: str = "minilm", layers: Sequence[int] | None = None, max_tokens: int | None = None
) -> Reading:
    """Let a model read a text, up to the last of some layers; arguments and errors as of ``record_layers``."""
    loaded = models.load(model)
    info = loaded.info
    layers = range(info.layers) if layers is None else layers
    for layer in layers:
        _check_layer(layer, info.layers, info.title)

    from attention_core.inputs.models.recorder import record  # imports transformers, by now loaded

    found = tokenise(text, model=model, max_tokens=max_tokens)
    return Reading(
        tokens=found.labels,
        special=found.special,
        groups=found.groups,
        total_tokens=found.total,
        notices=found.notices,
        model=info.key,
        title=info.title,
        depth=info.layers,
        layers=record(loaded.model, found.ids, set(layers)),
    )


class Tokens(CompactRepr):
    """A text as a model is given it.

    Attributes:
        ids: the tokens' numbers.
        labels: one per token, as a person would write it.
        special: one flag per token, true for those that the tokenizer added.
        groups: one number per token, shared by the pieces of one character.
        total: tokens before cutting.
        notices: what the user should know.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    special: tuple[bool, ...]
    groups: tuple[int, ...]
    total: int
    notices: tuple[Notice, ...]


def tokenise(text: str, *, model: str = "minilm", max_tokens: int | None = None) -> Tokens:
    """A text's tokens, as many as are kept; arguments and errors as of ``from_text``."""
    text, notices = _readable_text(text)
    loaded = models.load(model)
    info = loaded.info
    encoding = loaded.tokenizer.encode(text)
    special = encoding.special_tokens_mask
    if all(special):
        raise InputError("The text holds nothing that {title} reads; type a few words.", title=info.title)
    kept = _kept(special, max_tokens, info.positions)
    ids = [encoding.ids[i] for i in kept]
    offsets = [encoding.offsets[i] for i in kept]
    names = [encoding.tokens[i] if special[i] else loaded.tokenizer.decode([encoding.ids[i]]) for i in kept]
    labels, groups = label_pieces(text, offsets, names)
    labels = tuple("[UNK]" if token == loaded.unknown_id else label for token, label in zip(ids, labels, strict=True))
    if len(kept) < len(special):
        notices.append(
            _notice(
                "The text makes {total} tokens; the first {kept} are kept, up to “{words}”.",
                total=len(special),
                kept=len(kept),
                words=_last_words(text[: max(end for _, end in offsets)]),
            )
        )
    if unknown := sum(token == loaded.unknown_id for token in ids):
        notices.append(
            _notice(
                "{title} does not know {unknown} of the {total} tokens and reads each as the same [UNK]; "
                "the model SmolLM2 reads every script.",
                title=info.title,
                unknown=unknown,
                total=len(ids),
            )
        )
    return Tokens(
        ids=tuple(ids),
        labels=labels,
        special=tuple(bool(special[i]) for i in kept),
        groups=groups,
        total=len(special),
        notices=tuple(notices),
    )


def _check_layer(layer: int, count: int, title: str) -> None:
    if not 0 <= layer < count:
        raise InputError(
            "{title} has no layer {layer}; give one from 0 to {last}.", title=title, layer=layer, last=count - 1
        )


def beginning(text: str, *, tokens: int, model: str = "minilm") -> str:
    """A text's beginning that makes at most so many tokens, up to the end of a word where words have spaces between.

    Unlike the first tokens of a longer text's record, it is a text of its own, and reads the same anywhere.

    Args:
        text: any text; one that makes no more tokens is returned as it is.
        tokens: the most tokens, those that the model adds included.
        model: as in ``from_text``.

    Raises:
        InputError: if the text is empty, or so few tokens are too few.
        ModelError: if the model cannot be had.
    """
    read, _notices = _readable_text(text)
    loaded = models.load(model)
    encoding = loaded.tokenizer.encode(read)
    special = encoding.special_tokens_mask
    if len(special) <= tokens:
        return text
    end = max(encoding.offsets[i][1] for i in _kept(special, tokens, loaded.info.positions))
    kept = read[:end]
    if read[end : end + 1].isspace() or not kept.split()[1:]:
        return kept
    return kept.rstrip().removesuffix(kept.split()[-1]).rstrip()


def _readable_text(text: str) -> tuple[str, list[Notice]]:
    """The part of a text that is read, in characters that tokenizers take."""
    limit = limits.current().text_characters
    head = text[:limit]
    whole = head.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not whole.strip():
        raise InputError("The text is empty; type or paste a few words.")
    notices = []
    if whole != head:
        notices.append(_notice("The text holds halves of characters; each is read as \N{REPLACEMENT CHARACTER}."))
    if len(text) > limit:
        notices.append(
            _notice(
                "The text has {total:,} characters; the first {limit:,} are read, up to “{words}”.",
                total=len(text),
                limit=limit,
                words=_last_words(whole),
            )
        )
    return whole, notices


def _kept(special: Sequence[int], max_tokens: int | None, positions: int) -> list[int]:
    """Which tokens are kept: all that fit, and the special ones at the end, as the tokenizer's own truncation does."""
    bounds = limits.current()
    if max_tokens is not None and max_tokens <= sum(special):
        raise InputError(
            "At most {max_tokens} tokens are too few; allow at least {least}, for the model adds {added} of its own.",
            max_tokens=max_tokens,
            least=sum(special) + 1,
            added=sum(special),
        )
    n = len(special)
    ours = bounds.matrix_tokens if max_tokens is None else min(max_tokens, bounds.sweep_tokens)
    room = min(n, positions, ours)
    ending = next(i for i in range(n) if not special[n - 1 - i])
    return [*range(room - ending), *range(n - ending, n)]


def _last_words(text: str) -> str:
    """The end of a text for a notice, from the start of a word where there is one."""
    if len(text) <= WORDS_SHOWN:
        return readable(" ".join(text.split()))
    end = " ".join(text[-WORDS_SHOWN:].split())
    return "… " + readable(end.partition(" ")[2] or end)


def _notice(template: str, **fields: object) -> Notice:
    return Notice(template, tuple(fields.items()))
