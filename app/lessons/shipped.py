"""The lessons included in the app, each in a file of the folder ``shipped``."""

from functools import cache
from pathlib import Path

from app.lessons import lesson
from app.lessons.lesson import Lesson

FOLDER = Path(__file__).parent / "shipped"
PICTURES = {
    "flat": ("softmax", "linear"),
    "grey": ("linear", "local"),
    "window_and_sink": ("local", "sink"),
    "local_then_atrous": ("local", "atrous"),
    "nystrom_performer": ("nystrom", "performer"),
    "pooling": ("linformer", "pooled"),
    "log_n": ("softmax", "softmax_log_n"),
    "stand_in": ("sink", "topk"),
}
"""The variants whose matrices are shown next to the question of a lesson."""
ORDER = ("flat", "grey", "window_and_sink", "local_then_atrous", "nystrom_performer", "pooling", "log_n", "stand_in")


@cache
def shipped() -> dict[str, Lesson]:
    """Return the included lessons by key, in the intended order."""
    return {key: lesson.read((FOLDER / f"{key}.toml").read_bytes(), key) for key in ORDER}
