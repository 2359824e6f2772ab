"""Text through a trained model, becoming the queries, keys and values of its layers."""

from collections.abc import Sequence

from attention_core import limits
from attention_core.errors import InputError
from attention_core.inputs import models
from attention_core.inputs.labels import label_pieces, readable
from attention_core.inputs.record import QKV, Notice

WORDS_SHOWN = 40
"""Characters of the text shown where a notice says up to which words it is read."""

MASKED = (
    "Layer {layer} of {title} sees only a part of the text, by a sliding window for example; "
    "the matrices here have no such bound."
)


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
    text, notices = _readable_text(text)
    loaded = models.load(model)
    info = loaded.info
    layers = range(info.layers) if layers is None else layers
    for layer in layers:
        if not 0 <= layer < info.layers:
            raise InputError(
                "{title} has no layer {layer}; give one from 0 to {last}.",
                title=info.title,
                layer=layer,
                last=info.layers - 1,
            )

    from attention_core.inputs.models.recorder import record  # imports transformers, by now loaded

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
                "The text makes {total} tokens; the first {kept} are kept, up to «{words}».",
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

    found = record(loaded.model, ids, set(layers))
    return tuple(
        QKV(
            q=found[layer].q,
            k=found[layer].k,
            v=found[layer].v,
            tokens=labels,
            special=tuple(bool(special[i]) for i in kept),
            groups=groups,
            causal=found[layer].causal,
            scale=found[layer].scale,
            origin=f"{info.key} layer {layer}",
            total_tokens=len(special),
            notices=(*notices, *([_notice(MASKED, layer=layer, title=info.title)] if found[layer].masked else ())),
        )
        for layer in layers
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
                "The text has {total:,} characters; the first {limit:,} are read, up to «{words}».",
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
