"""Tokens as a person would write them, and which of them are pieces of one character."""

import unicodedata
from collections.abc import Sequence

CONTINUED = "·"
MARKS = {"\n": "↵", "\t": "⇥", "\r": "␍", "\x7f": "␡"}
DOTTED_CIRCLE = "◌"


def label_pieces(
    text: str, offsets: Sequence[tuple[int, int]], tokens: Sequence[str]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Label tokens by the text they stand for.

    Args:
        text: what was tokenized.
        offsets: start and end of each token in the text; start = end for a token that stands for none of it.
        tokens: the tokenizer's own writing, for those.

    Returns:
        One label per token (a piece that only continues a character is ``·``), and one group number per token, shared
        by the pieces of one character.
    """
    labels: list[str] = []
    groups: list[int] = []
    covered = 0  # the text up to here is in earlier labels
    for (start, end), token in zip(offsets, tokens, strict=True):
        continues = start < min(covered, end)
        groups.append(groups[-1] if continues else len(labels))
        if start == end:
            labels.append(token)
        else:
            labels.append(readable(text[max(start, covered) : end]) or CONTINUED)
        covered = max(covered, end)
    return tuple(labels), tuple(groups)


def readable(piece: str) -> str:
    """A piece of text without the spaces around it and with a visible sign for whatever is invisible."""
    if not piece.strip(" "):
        return "␣" * len(piece)
    piece = piece.strip(" ")
    shown = "".join(filter(None, map(_sign, piece))) or "".join(f"U+{ord(c):04X}" for c in piece[:1])
    return DOTTED_CIRCLE + shown if unicodedata.category(shown[:1] or " ").startswith("M") else shown


def number_repeats(tokens: Sequence[str]) -> tuple[str, ...]:
    """Tokens that can be told apart: the third ``cat`` is ``cat (3)``."""
    seen: dict[str, int] = {}
    labels = []
    for token in tokens:
        seen[token] = seen.get(token, 0) + 1
        labels.append(f"{token} ({seen[token]})" if seen[token] > 1 else token)
    return tuple(labels)


def _sign(character: str) -> str:
    """One character as shown: itself, a sign, or nothing for an invisible one that only shapes its neighbours."""
    if character in MARKS:
        return MARKS[character]
    if character < " ":
        return chr(0x2400 + ord(character))
    return character if character.isprintable() else ""
