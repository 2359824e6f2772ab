"""Checks of the text on screen: words to replace, openings to avoid, and the longest sentence.

``PYTHONPATH=. python tests/screen_english.py PATH ...`` prints the faults of the messages in these files and folders.
Without arguments it prints those of all messages. Rules for docstrings and comments are in ``plain_english.py``.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.extract import extract_from_dir
from plain_english import REPLACE

from app.words.extraction import core, lesson, screen

ROOT = Path(__file__).parents[1]
LONGEST = 28
"""The highest number of words in a sentence; formulas, numbers and inserted values do not count."""
FOLDERS = (
    ("attention_core", "**.py", core),
    ("app", "**.py", screen),
    ("pages", "**.py", screen),
    ("app/lessons/shipped", "*.toml", lesson),
)
EXAMPLES = ("pages/model/encoder.py",)
"""Files with example sentences as input, which may have any subject."""
LOOKS = ("pages/home", "app/live_sentence")
"""Places where a word may "look" at another word: the first page, before the term "attends to" is introduced."""

SCREEN = REPLACE | {
    r"looks?|looked|looking": "attends to, can attend to, shows",
    r"held": "kept, stored, compared",
    r"off by|is off|are off|be off": "error",
    r"without the sign|without its sign|without their signs?": "in absolute value",
    r"in the mean": "on average",
    r"next to nothing": "the number",
    r"all but": "almost",
    r"ever so": "any",
    r"on the way": "between key and query",
    r"as they would|as it would": "name what is compared",
    r"takes? out|taken out|took out|taking out": "removes, projects out",
    r"lets? go|gone": "decayed, evicted, removed",
    r"forgets?|forgot|forgotten": "decays, discards",
    r"weighs?|weighed": "has weight, gives weight",
    r"near(?:er)? one|that one|this one|each one|which one": "repeat the noun",
    r"no one|none of": "not one of, no key",
    r"further token": "another token",
    r"here and there": "name the places",
    r"(?:it|they|you) (?:has|have|is|are) seen": "name what is visible",
    r"in (?:its|their) place": "instead",
    r"by chance": "at random",
    r"say|says|said|tells?|told": "shows, reports, states",
    r"errs?|erred": "has an error of",
    r"most of all|least of all": "most, least",
    r"so far as|as far as|so that of": "write a full sentence",
    r"mends?|mended": "recovers, corrects",
    r"wavers?|gropes?|drowns?|swallows?": "the field's term",
}
"""Patterns of whole words on screen, and the words to write instead."""

OPENINGS = r"(?:Who|Whom|Whose|What|Whatever|Whoever|Those|Of|Whether|Nothing|Nobody|Such|Held|Kept|None of|All that)\b"
"""Openings to avoid, except in a question."""


def messages(*paths: str) -> Iterator[tuple[str, int, str]]:
    """Yield the file, line and text of the messages below the paths, or of all messages."""
    for folder, pattern, method in FOLDERS:
        for file, line, said, _, _ in extract_from_dir(str(ROOT / folder), [(pattern, method)]):
            place = f"{folder}/{file}"
            if not paths or place.startswith(tuple(path.rstrip("/") for path in paths)):
                yield from ((place, line, form) for form in ([said] if isinstance(said, str) else said) if form)


def faults(place: str, text: str) -> Iterator[str]:
    """Yield every fault of a message: the words, and the remedy."""
    prose = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|\{[^}]*\}|\]\([^)]*\)", "X", text, flags=re.DOTALL)
    for pattern, instead in SCREEN.items():
        if instead.startswith("attends to") and place.startswith(LOOKS):
            continue
        if place in EXAMPLES and instead.startswith("they"):
            continue
        for found in re.finditer(rf"(?<![\w-])(?:{pattern})(?![\w-])", prose, flags=re.IGNORECASE):
            yield f"{found[0]!r}: write {instead}"
    for sentence in re.split(r"(?<=[.;:!?])\s+|\n\s*\n|\n\s*- ", prose):
        if re.match(OPENINGS, sentence.strip()) and not prose.strip().endswith("?"):
            yield f"opens with {sentence.split()[0]!r}: name the subject first"
        if len(re.findall(r"[A-Za-z]{2,}", sentence)) > LONGEST:
            yield f"a sentence of more than {LONGEST} words: {' '.join(sentence.split())[:60]}…"


if __name__ == "__main__":
    found = [
        f"{place}:{line}: {fault}" for place, line, text in messages(*sys.argv[1:]) for fault in faults(place, text)
    ]
    sys.exit("\n".join(found))
