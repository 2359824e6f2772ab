"""Learning rates, tuned for each variant and task: with one rate for all variants, the comparison would be unfair."""

import json
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "recorded" / "rates.json"
DEFAULT = 3e-3
GRID = (1e-3, 3e-3, 1e-2)
"""The rates that ``python -m attention_core.learning.record_runs`` compares."""


@cache
def tuned() -> dict[str, dict[str, float]]:
    """Return the recorded best rates by task and variant; empty if none are recorded."""
    return json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}


def rate(task: str, word: str) -> float:
    """Return the tuned learning rate of a variant on a task, or ``DEFAULT`` if none is recorded."""
    return tuned().get(task, {}).get(word, DEFAULT)
