"""Reads texts with a trained language model and returns the queries, keys and values of its layers."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from attention_core import limits
from attention_core.compact_repr import CompactRepr
from attention_core.errors import InputError, Notice
from attention_core.formatting import N_
from attention_core.inputs import models
from attention_core.inputs.labels import continues_character, label_pieces, name_pieces, readable
from attention_core.inputs.record import QKV

if TYPE_CHECKING:
    from attention_core.inputs.models.recorder import LayerQKV

QUOTED_CHARACTERS = 40
"""Number of characters of the text that a notice quotes to show where the text was cut."""

UNKNOWN = "[UNK]"
"""Label of a token that the tokenizer does not know."""
MASKED_NOTICE = N_(
    "In layer {layer} of {title}, tokens attend to only a part of the text, such as a sliding window. In the "
    "matrices shown here, they attend to the whole text."
)


class LayerRecords(CompactRepr, Sequence[QKV]):
    """A text as read by a model: a sequence with one ``QKV`` per layer, each made on access.

    Attributes:
        tokens: the tokens that the model reads.
        info: the model's description.
        layers: recorded layers of the forward pass, by layer number.
    """

    tokens: "Tokens"
    info: models.ModelInfo
    layers: "dict[int, LayerQKV]"

    def __len__(self) -> int:
        return self.info.layers

    def __iter__(self) -> Iterator[QKV]:
        return map(self.__getitem__, range(self.info.layers))

    def __getitem__(self, layer: int) -> QKV:  # type: ignore[override]  # The index is a layer, never a slice.
        """Return the ``QKV`` of a layer, counted from 0.

        Raises:
            InputError: if the model has no such layer.
        """
        _check_layer(layer, self.info.layers, self.info.title)
        recorded = self.layers[layer]
        masked_notices = (_notice(MASKED_NOTICE, layer=layer, title=self.info.title),) if recorded.masked else ()
        return QKV(
            q=recorded.q,
            k=recorded.k,
            v=recorded.v,
            tokens=self.tokens.labels,
            special=self.tokens.special,
            groups=self.tokens.groups,
            causal=recorded.causal,
            scale=recorded.scale,
            origin=f"{self.info.key} layer {layer}",
            total_tokens=self.tokens.total,
            notices=(*self.tokens.notices, *masked_notices),
        )

    @property
    def nbytes(self) -> int:
        """The bytes of all layers in memory; keys and values that several heads share are counted once."""
        return sum(x.nbytes for layer in self.layers.values() for x in (layer.q, layer.keys, layer.values))


def from_text(text: str, *, model: str = "minilm", layer: int = 0, max_tokens: int | None = None) -> QKV:
    """Return the queries, keys and values of all heads of one layer, from a model that reads a text.

    The forward pass ends at that layer.

    Args:
        text: any text; if it is too long it is cut, with a notice.
        model: key of a built-in model (``models.BUILT_IN``) or ``owner/name`` of a model on the Hugging Face hub.
        layer: layer, counted from 0.
        max_tokens: maximum number of tokens, special ones included; None for the limit of a drawn matrix
            (``limits.current().matrix_tokens``). The model's number of positions and the profile's ``sweep_tokens``
            limit the tokens in any case.

    Raises:
        InputError: if the model can read nothing in the text, or the layer or number of tokens is out of bounds.
        ModelError: if the model is not available.
    """
    return record_layers(text, model=model, layers=(layer,), max_tokens=max_tokens)[0]


def record_layers(
    text: str, *, model: str = "minilm", layers: Sequence[int] | None = None, max_tokens: int | None = None
) -> tuple[QKV, ...]:
    """Return the queries, keys and values of several layers from one forward pass.

    Args:
        text: see ``from_text``.
        model: see ``from_text``.
        layers: layers, counted from 0; None for all.
        max_tokens: see ``from_text``.

    Returns:
        One ``QKV`` per layer, in the order of ``layers``.
    """
    records = read(text, model=model, layers=layers, max_tokens=max_tokens)
    return tuple(records if layers is None else map(records.__getitem__, layers))


def read(
    text: str,
    *,
    model: str | models.LoadedModel = "minilm",
    layers: Sequence[int] | None = None,
    max_tokens: int | None = None,
) -> LayerRecords:
    """Run a model on a text up to the last of the given layers; see ``record_layers`` for arguments and errors."""
    loaded = models.load(model) if isinstance(model, str) else model
    info = loaded.info
    layers = range(info.layers) if layers is None else layers
    if not layers:
        raise InputError("No layers are chosen. Choose at least one layer, or leave out layers for all.")
    for layer in layers:
        _check_layer(layer, info.layers, info.title)

    # ``recorder`` is not imported at the top of the file, because it imports transformers, which takes seconds.
    from attention_core.inputs.models.recorder import record

    tokens = tokenise(text, model=model, max_tokens=max_tokens)
    return LayerRecords(tokens=tokens, info=info, layers=record(loaded.model, tokens.ids, set(layers)))


class Tokens(CompactRepr):
    """The tokens of a text, as the model gets them.

    Attributes:
        ids: token numbers of the vocabulary.
        labels: one readable label per token.
        special: one flag per token, true for those that the tokenizer added.
        groups: one number per token, shared by the pieces of one character.
        total: number of tokens before cutting.
        notices: messages for the user.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    special: tuple[bool, ...]
    groups: tuple[int, ...]
    total: int
    notices: tuple[Notice, ...]


def tokenise(text: str, *, model: str | models.LoadedModel = "minilm", max_tokens: int | None = None) -> Tokens:
    """Return the tokens of a text, cut to the limit; see ``from_text`` for arguments and errors."""
    limit = limits.current().text_characters
    is_cut = len(text) > limit
    text, notices = _readable_text(text)
    loaded = models.load(model) if isinstance(model, str) else model
    info = loaded.info
    encoding = loaded.tokenizer.encode(text)
    special = encoding.special_tokens_mask
    if all(special):
        raise InputError("{title} finds no tokens in the text. Type a few words.", title=info.title)
    indices = _indices_that_fit(special, max_tokens, info.positions)
    ids = [encoding.ids[i] for i in indices]
    offsets = [_offsets_of(encoding.tokens[i], encoding.offsets[i], text) for i in indices]
    names = [encoding.tokens[i] if special[i] else loaded.tokenizer.decode([encoding.ids[i]]) for i in indices]
    labels, groups = label_pieces(text, offsets, names)
    labels = tuple(UNKNOWN if token == loaded.unknown_id else label for token, label in zip(ids, labels, strict=True))
    if len(indices) < len(special):
        notices.append(
            _notice(
                N_(
                    "The first {characters:,} characters have {total:,} tokens. Only the first {kept:,} are used, up "
                    "to “{words}”."
                )
                if is_cut
                else N_("The text has {total:,} tokens. Only the first {kept:,} are used, up to “{words}”."),
                characters=limit,
                total=len(special),
                kept=len(indices),
                words=_text_end(text[: max(end for _, end in offsets)]),
            )
        )
    if unknown := sum(token == loaded.unknown_id for token in ids):
        notices.append(
            _notice(
                "{title} replaces {unknown} of the {total} tokens by the unknown token [UNK]. SmolLM2 can process "
                "text in any script.",
                title=info.title,
                unknown=unknown,
                total=len(ids),
            )
        )
    if pieces := sum(continues_character(labels, groups)):
        index = continues_character(labels, groups).index(True)
        piece_names = name_pieces(labels, groups)
        notices.append(
            _notice(
                "{title} splits some characters into two or more tokens. On the axes, these tokens share one label. In "
                "the texts of the page, the second token of “{character}” is called “{name}”. Number of tokens that "
                "continue a character: {pieces}.",
                title=info.title,
                character=piece_names[index - 1],
                name=piece_names[index],
                pieces=pieces,
            )
        )
    return Tokens(
        ids=tuple(ids),
        labels=labels,
        special=tuple(bool(special[i]) for i in indices),
        groups=groups,
        total=len(special),
        notices=tuple(notices),
    )


def _offsets_of(token: str, offsets: tuple[int, int], text: str) -> tuple[int, int]:
    """Return start and end of the part of the text that a token covers, given the tokenizer's own ``offsets``.

    Start and end are equal for a ``▁`` that the tokenizer put before the text.
    """
    start, end = offsets
    return (start, start) if token == "▁" and not text[start:end].isspace() else offsets


def _check_layer(layer: int, count: int, title: str) -> None:
    if not 0 <= layer < count:
        raise InputError(
            "{title} has no layer {layer}. Choose a layer from 0 to {last}.", title=title, layer=layer, last=count - 1
        )


def beginning(text: str, *, tokens: int, model: str = "minilm") -> str:
    """Return the beginning of a text that has at most ``tokens`` tokens, cut after a word if words are separated.

    Args:
        text: any text; if it has no more tokens than the limit, it is returned unchanged.
        tokens: maximum number of tokens, including those that the model adds.
        model: see ``from_text``.

    Raises:
        InputError: if the text is empty, or the limit leaves no room for text.
        ModelError: if the model is not available.
    """
    readable, _notices = _readable_text(text)
    loaded = models.load(model)
    encoding = loaded.tokenizer.encode(readable)
    special = encoding.special_tokens_mask
    if len(special) <= tokens:
        return text
    end = max(encoding.offsets[i][1] for i in _indices_that_fit(special, tokens, loaded.info.positions))
    kept = readable[:end]
    if readable[end : end + 1].isspace() or not kept.split()[1:]:
        return kept
    return kept.rstrip().removesuffix(kept.split()[-1]).rstrip()


def _readable_text(text: str) -> tuple[str, list[Notice]]:
    """Return the text, cut and without lone surrogates, which tokenizers reject, and notices about both changes."""
    limit = limits.current().text_characters
    prefix = text[:limit]
    valid = prefix.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not valid.strip():
        raise InputError("The text is empty. Type or paste a few words.")
    notices = []
    if valid != prefix:
        notices.append(_notice("The text contains incomplete characters. Each is replaced by �."))
    if len(text) > limit:
        notices.append(
            _notice(
                "The text has {total:,} characters. Only the first {limit:,} are used, up to “{words}”.",
                total=len(text),
                limit=limit,
                words=_text_end(valid),
            )
        )
    return valid, notices


def _indices_that_fit(special: Sequence[int], max_tokens: int | None, positions: int) -> list[int]:
    """Return the indices of the tokens to keep: the first that fit, and the special ones at the end.

    ``special`` holds 1 for tokens that the tokenizer added, and ``positions`` is the model's maximum number of tokens.
    """
    profile = limits.current()
    if max_tokens is not None and max_tokens <= sum(special):
        raise InputError(
            "The limit of {max_tokens} tokens is too low, because the model adds {added} special tokens. Allow at "
            "least {least} tokens.",
            max_tokens=max_tokens,
            least=sum(special) + 1,
            added=sum(special),
        )
    n = len(special)
    limit = profile.matrix_tokens if max_tokens is None else min(max_tokens, profile.sweep_tokens)
    n_kept = min(n, positions, limit)
    n_ending = next(i for i in range(n) if not special[n - 1 - i])
    return [*range(n_kept - n_ending), *range(n - n_ending, n)]


def _text_end(text: str) -> str:
    """Return the end of a text for a notice, from the start of a word if possible."""
    if len(text) <= QUOTED_CHARACTERS:
        return readable(" ".join(text.split()))
    end = " ".join(text[-QUOTED_CHARACTERS:].split())
    return "… " + readable(end.partition(" ")[2] or end)


def _notice(template: str, **fields: object) -> Notice:
    return Notice(template, tuple(fields.items()))
