"""The texts a visitor can start from, written for this project, and the layer and head a first visit opens on."""

from functools import cache
from pathlib import Path

TEXTS = Path(__file__).parent.parent / "texts"
LAYER = 2
HEAD = 3


@cache
def texts() -> dict[str, str]:
    """Preset texts by name.

    A story, an English sentence, one with repeats, random words that are said twice over so that induction heads show,
    a Chinese paragraph, and a long text.
    """
    names = ("story", "english", "repeats", "sequence", "chinese", "long")
    return {name: (TEXTS / f"{name}.txt").read_text("utf-8").strip() for name in names}


SENTENCE = "The animal did not cross the street because it was too tired."
"""What Home opens on, written into its field: "it" looks at a word that stands seven before it."""
SENTENCE_LAYER = 3
SENTENCE_HEAD = 1
"""A head of MiniLM that looks from a pronoun at what it stands for."""
SENTENCE_TOKENS = 40
"""Most tokens of a sentence, special ones included: more arcs and words than these are no longer told apart."""
