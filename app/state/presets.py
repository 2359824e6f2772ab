"""The preset texts that visitors can choose as input, and the layer and head that a first visit shows."""

from functools import cache
from pathlib import Path

TEXTS = Path(__file__).parent.parent / "texts"
LAYER = 2
HEAD = 3


@cache
def texts() -> dict[str, str]:
    """Return the preset texts by name.

    They are a story, an English sentence, a text with repeats, random words repeated once to reveal induction heads, a
    Chinese paragraph, and a long text.
    """
    names = ("story", "english", "repeats", "sequence", "chinese", "long")
    return {name: (TEXTS / f"{name}.txt").read_text("utf-8").strip() for name in names}


SENTENCE = "The animal did not cross the street because it was too tired."
"""Initial sentence of Home: "it" attends to a word seven positions before it."""
SENTENCE_LAYER = 3
SENTENCE_HEAD = 1
"""A head of MiniLM in which a pronoun attends to the word it refers to."""
SENTENCE_TOKENS = 40
"""Largest number of tokens of a sentence, including special tokens; with more, arcs and words overlap."""
