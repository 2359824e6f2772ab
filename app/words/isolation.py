"""Isolation of words that a visitor typed, so that right-to-left words in them cannot reorder a sentence on screen."""

import re

ISOLATE, END_OF_ISOLATE = "\u2068", "\u2069"
"""The Unicode characters FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE."""
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
"""The blocks of right-to-left scripts and Arabic digits, and the right-to-left mark."""
_ISOLATE_PATTERN = re.compile(f"{ISOLATE}[^{ISOLATE}{END_OF_ISOLATE}]*{END_OF_ISOLATE}")
# Tabs and line breaks stay, and other ASCII control characters are shown as symbols. Control characters
# without a symbol are removed. Direction controls are removed too: they would reorder the text after them.
_CONTROLS: dict[int, str | None] = {c: chr(0x2400 + c) for c in range(0x20) if chr(c) not in "\t\n\r"}
_CONTROLS |= {0x7F: "␡"} | dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), 0x2066, 0x2067])


def isolate(text: str) -> str:
    """Return a token or other words from a visitor so that they can be part of a sentence.

    Right-to-left words swap places with the numbers and quotation marks next to them unless they are isolated. Other
    words are returned without isolates, which would change nothing on screen. Control characters become visible
    symbols, and characters that override the direction of the text are removed. Applying the function twice changes
    nothing more.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _balance(text.translate(_CONTROLS))
    outside, count = text, 1
    while count:
        outside, count = _ISOLATE_PATTERN.subn("", outside)
    return f"{ISOLATE}{text}{END_OF_ISOLATE}" if RIGHT_TO_LEFT.search(outside) else text


def _balance(text: str) -> str:
    """Return the words without ends of isolates that were never opened, and with an end for each open isolate."""
    characters, depth = [], 0
    for character in text:
        if character == END_OF_ISOLATE and not depth:
            continue
        depth += (character == ISOLATE) - (character == END_OF_ISOLATE)
        characters.append(character)
    return "".join(characters) + END_OF_ISOLATE * depth
