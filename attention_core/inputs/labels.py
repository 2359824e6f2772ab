"""Readable labels for tokens, also for tokens that are only a part of one character."""

import unicodedata
from collections.abc import Sequence

CONTINUATION = "·"
MARKS = {"\n": "↵", "\t": "⇥", "\r": "␍", "\x7f": "␡"}
DOTTED_CIRCLE = "◌"
EMPTY_LABEL = "∅"
INVISIBLE = "\u115f\u1160\u2800\u3164\uffa0"
"""Invisible characters that Unicode counts as printable: Hangul fillers and the blank Braille pattern."""
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
SPACES = str.maketrans("Ġ▁Ċĉ", "  \n\t")
"""Translation of the leading white space of tokens in byte-level BPE and SentencePiece."""


def label_pieces(
    text: str, offsets: Sequence[tuple[int, int]], tokens: Sequence[str]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Label tokens by the parts of the text that they cover.

    Args:
        text: the tokenized text.
        offsets: start and end of each token in the text; start = end for a token that covers no text.
        tokens: the tokenizer's own strings, used for tokens that cover no text.

    Returns:
        One label per token (``·`` for a piece that only continues a character), and one group number per token, shared
        by the pieces of one character.
    """
    labels: list[str] = []
    groups: list[int] = []
    covered = 0  # the end of the text that earlier labels cover
    for (start, end), token in zip(offsets, tokens, strict=True):
        continues = start < min(covered, end)
        groups.append(groups[-1] if continues else len(labels))
        if start == end:
            labels.append(token)
        else:
            labels.append(readable(text[max(start, covered) : end]) or CONTINUATION)
        covered = max(covered, end)
    return tuple(labels), tuple(groups)


def continues_character(tokens: Sequence[str], groups: Sequence[int]) -> tuple[bool, ...]:
    """Return one flag per token: whether it only continues the character of the token before it.

    ``tokens`` and ``groups`` are the labels and group numbers from ``label_pieces``.
    """
    previous = (None, *groups)
    return tuple(
        token == CONTINUATION and group == last for token, group, last in zip(tokens, groups, previous, strict=False)
    )


def name_pieces(tokens: Sequence[str], groups: Sequence[int]) -> tuple[str, ...]:
    """Return the labels of ``label_pieces`` with each ``·`` replaced by its character and number, such as ``书₂``.

    ``tokens`` and ``groups`` are as in ``continues_character``.
    """
    names: list[str] = []
    piece, character = 1, ""
    for token, continues in zip(tokens, continues_character(tokens, groups), strict=True):
        piece, character = (piece + 1, character) if continues else (1, token)
        names.append(f"{character}{str(piece).translate(SUBSCRIPTS)}" if continues else token)
    return tuple(names)


def readable(piece: str) -> str:
    """Return a piece of text without surrounding spaces, in which visible signs replace invisible characters."""
    if not piece.strip(" "):
        return "␣" * len(piece)
    piece = piece.strip(" ")
    label = "".join(filter(None, map(_visible_form, piece))).strip(" ") or "".join(f"U+{ord(c):04X}" for c in piece[:1])
    return DOTTED_CIRCLE + label if unicodedata.category(label[:1] or " ").startswith("M") else label


def readable_token(token: str) -> str:
    """Return the label of a token in a tokenizer's notation, such as ``Ġthe``, ``▁the`` or ``##ing``; see `readable`.

    The label is always visible: an empty token becomes ``∅``.
    """
    rest = token.lstrip("Ġ▁Ċĉ")
    token = token[: len(token) - len(rest)].translate(SPACES) + rest
    return readable(token.removeprefix("##") or token) or EMPTY_LABEL


def number_repeats(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return labels that all differ: the third ``cat`` becomes ``cat (3)``, unless another token has that name."""
    counts: dict[str, int] = {}
    names, labels = set(tokens), []
    for token in tokens:
        counts[token] = count = counts.get(token, 0) + 1
        label = token
        while count > 1 and (label := f"{token} ({count})") in names:
            counts[token] = count = count + 1
        names.add(label)
        labels.append(label)
    return tuple(labels)


def _visible_form(character: str) -> str:
    """Return the visible form of one character; empty for an invisible one that only shapes its neighbours."""
    if character in MARKS:
        return MARKS[character]
    if character < " ":
        return chr(0x2400 + ord(character))
    return character if character.isprintable() and character not in INVISIBLE else ""
