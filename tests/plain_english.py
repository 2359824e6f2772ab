"""Checks of docstrings and comments: words to replace, openings to avoid, and the longest sentence.

``python tests/plain_english.py FILE ...`` prints the faults of these files, or of all files without arguments.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("app", "attention_core", "pages", "benchmarks", "tests")
LONGEST = 35
"""The highest number of words in a sentence; code and formulas do not count."""

REPLACE = {
    r"anew": "again, from scratch",
    r"beside": "next to, compared with, in addition to",
    r"besides": "also, other than",
    r"whoever": "name the person: the visitor, the caller",
    r"whatever": "any",
    r"held against": "compared with",
    r"holds? (?:each|every|all|it|them) to": "checks",
    r"amiss": "wrong",
    r"(?:for ever|forever)": "permanently, without end",
    r"at once": "immediately, in one step",
    r"put right": "corrected",
    r"reckon(?:s|ed|ing)?": "compute",
    r"looked at": "shown, examined",
    r"may look(?: at)?": "can attend to",
    r"stands? for": "represents",
    r"stood for": "represented",
    r"standing for": "representing",
    r"lets? go(?: of)?": "releases, evicts",
    r"is none": "does not exist",
    r"are none": "do not exist",
    r"there is none": "it does not exist",
    r"nobody": "no session, no caller, no process",
    r"naught|nought": "zero",
    r"likewise": "in the same way",
    r"likewise, of": "the same for",
    r"thereof|therein|hereby|whereof|wherein": "name the noun",
    r"upon": "on",
    r"its own own": "its own",
    r"alike": "the same, equally",
    r"as it is": "unchanged",
    r"as they are": "unchanged",
    r"the one[^.]{0,60}the other": "repeat the nouns",
    r"that of that|those of those|what it is of|what they are of": "repeat the noun",
    r"tells?(?: it| them)? (?:whether|what|how|which|of)": "returns, reports",
    r"he|she|his|her|hers": "they, the visitor",
    r"don't|doesn't|isn't|aren't|can't|won't|it's|wouldn't|didn't|wasn't|couldn't": "no contractions",
}
"""Patterns of whole words, and the words to write instead."""

OPENINGS = r"(?:Who|Whom|Whose|What|Whatever|Whoever|Those|Of|Whether|Nothing|Nobody|Such|Held|Kept|None of|All that)\b"
"""Openings to avoid: a docstring starts with a verb (functions) or with a noun phrase (everything else)."""


def passages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings, attribute docstrings and comments of a file, each with its line number."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    block: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#!|# (?:type|noqa|ruff|mypy|pragma)\b", token.string):
            if block and block[-1][0] + 1 != token.start[0]:
                yield block[0][0], " ".join(words for _, words in block)
                block = []
            block.append((token.start[0], token.string.lstrip("# ")))
    if block:
        yield block[0][0], " ".join(words for _, words in block)


def faults(path: Path) -> Iterator[str]:
    """Yield every fault of a file: its line, the words, and the remedy."""
    for line, text in passages(path):
        prose = re.sub(r"^ *>>> .*\n(?: *\S.*\n)*", "\n", text, flags=re.MULTILINE)  # A doctest ends at a blank line.
        prose = re.sub(r"``.*?``|`[^`]*`", "CODE", prose, flags=re.DOTALL)
        for pattern, instead in REPLACE.items():
            for found in re.finditer(rf"(?<![\w-])(?:{pattern})(?![\w-])", prose, flags=re.IGNORECASE):
                if found[0].endswith("None"):  # the value, as in "``head`` is None"
                    continue
                yield f"{path}:{line}: {found[0]!r}: write {instead}"
        if re.match(OPENINGS, prose.strip()):
            yield f"{path}:{line}: opens with {prose.split()[0]!r}: start with a verb or a noun phrase"
        for sentence in re.split(r"(?<=[.;:!?])\s+|\n\s*\n|\n\s*[-\w`]+: ", prose):
            if len(re.findall(r"[A-Za-z]{2,}", sentence)) > LONGEST:
                yield f"{path}:{line}: a sentence of more than {LONGEST} words: {' '.join(sentence.split())[:60]}…"


def files() -> list[Path]:
    """Return every Python file of the project."""
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


if __name__ == "__main__":
    found = [fault for path in map(Path, sys.argv[1:] or files()) for fault in faults(path)]
    sys.exit("\n".join(found))
