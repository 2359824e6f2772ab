"""Findings about measurements, which are shown above a figure, and their explanations, which are shown below it."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.words.i18n import paragraph

MAX_LINES = 2
"""Largest number of lines of findings above a figure. Further findings are below it."""


@dataclass(frozen=True)
class Finding:
    """A sentence about the measurements.

    Attributes:
        text: the finding.
        explanation: further numbers, or the cause; may be empty.
    """

    text: str
    explanation: str = ""


Lines = Sequence[Sequence[Finding]]
"""Findings in the order of their importance; each inner sequence is one line of text above a figure."""


def to_lines(found: Lines | Finding | str) -> Lines:
    """Return findings in lines; a single finding or text is a line of its own."""
    if isinstance(found, str):
        found = Finding(found)
    return [[found]] if isinstance(found, Finding) else found


def text_above(lines: Lines) -> str:
    """Return the text above the figure as Markdown: the first ``MAX_LINES`` lines of findings."""
    return "  \n".join(filter(None, (paragraph(*(each.text for each in line)) for line in lines[:MAX_LINES])))


def text_below(lines: Lines, *, as_list: bool = False) -> str:
    """Return the text below the figure: the explanations of the findings above it, and the remaining findings.

    Args:
        lines: the findings.
        as_list: whether to return a Markdown list with one item for each line of findings, if there are several.
    """
    explanations = [paragraph(*(each.explanation for each in line)) for line in lines[:MAX_LINES]]
    others = [paragraph(*(paragraph(each.text, each.explanation) for each in line)) for line in lines[MAX_LINES:]]
    texts = list(filter(None, (*explanations, *others)))
    return "\n".join(f"- {text}" for text in texts) if as_list and len(texts) > 1 else paragraph(*texts)
