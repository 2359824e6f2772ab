"""The texts a visitor can start from, written for this project, and the layer and head a first visit opens on."""

from functools import cache
from pathlib import Path

TEXTS = Path(__file__).parent / "texts"
LAYER = 2
HEAD = 3


@cache
def texts() -> dict[str, str]:
    """Preset texts by name: an English paragraph, a sentence with repeats, a Chinese paragraph, and a long text."""
    return {
        name: (TEXTS / f"{name}.txt").read_text("utf-8").strip() for name in ("english", "repeats", "chinese", "long")
    }
